/* SPDX-License-Identifier: MIT */
/* cfi_wire.h - messages between the capturing thread and the process that reads its ELF files. Private.
 *
 * One request, one answer, in packets (SOCK_SEQPACKET) that begin with the head of name_wire.h. Requests are structs in
 * their memory layout. The other end parses crafted files and is not trusted: an answer has a bounded length, and each
 * number in it is checked before its use.
 */
#ifndef PROBING_CFI_WIRE_H
#define PROBING_CFI_WIRE_H

#include "base/elf_reader.h"
#include "unwind/native/native.h"

enum {
	CFI_MAX_NAME = 64,                           /* of a symbol or a section, NUL included */
	CFI_MAX_PACKET = 16 + NATIVE_ROWS_MAX_BYTES, /* head and error included */
};

enum cfi_kind {
	CFI_OPEN,     /* the file comes with it; struct cfi_summary */
	CFI_CLOSE,    /* no answer */
	CFI_SYMBOL,   /* name; struct cfi_pair: value, size */
	CFI_SECTION,  /* name; struct cfi_pair: address, size */
	CFI_FUNCTION, /* one address; struct cfi_pair: start, end */
	CFI_ROWS,     /* addresses; int32_t error, the bytes of native_rows_compile() */
};

struct cfi_question {
	uint32_t kind, file; /* file: a number of the recorder's */
	uint64_t n_addresses, addresses[NATIVE_ROWS_MAX_ADDRESSES];
	char name[CFI_MAX_NAME];
};

struct cfi_pair {
	int32_t error;
	uint64_t first, second;
};

/* Counts all segments, but contains a limited number of them. */
struct cfi_summary {
	int32_t error;
	uint32_t machine, n_id_bytes, n_segments;
	uint8_t id[BUILD_ID_MAX];
	struct cfi_segment {
		uint64_t address, file_offset, n_file_bytes, n_memory_bytes;
		uint32_t is_writable, is_executable;
	} segments[ELF_SUMMARY_MAX_SEGMENTS];
};

/* A packet without its head; borrowed from the buffer that it was received in. */
struct cfi_packet {
	const uint8_t *bytes;
	size_t n_bytes;
	int fd; /* of the packet, owned by the receiver; -1: none */
};

/* cfi_send - @fd: -1: none. Errors: of wire_send(). */
int cfi_send(int socket, const void *bytes, size_t n_bytes, int fd);
/* The same, for packets without an answer, which fill a socket whose other end does not read. -ETIMEDOUT: it is
 * filled. */
int cfi_send_in_time(int socket, int patience_ms, const void *bytes, size_t n_bytes);

/*
 * cfi_receive - wait for a packet.
 * @buffer: CFI_MAX_PACKET bytes. @patience_ms: -1: no limit. @takes_file: false: close a descriptor of the packet.
 * Errors: -EPIPE the other end is closed; -ETIMEDOUT; -EBADMSG too long, or not one of our packets; of poll(2) and
 * recvmsg(2).
 */
int cfi_receive(int socket, int patience_ms, bool takes_file, uint8_t *buffer, struct cfi_packet *ret);

/* Write it into a packet; returns the number of bytes to send. */
size_t cfi_put_summary(const struct elf_summary *summary, struct cfi_summary *ret);

/* Decode a packet of the other end. -EBADMSG: malformed. -ENOENT: it answers with an error, whichever. */
int cfi_take_summary(const struct cfi_packet *packet, struct elf_summary *ret);
int cfi_take_pair(const struct cfi_packet *packet, uint64_t *ret_first, uint64_t *ret_second);
int cfi_take_rows(const struct cfi_packet *packet, const uint8_t **ret, size_t *ret_bytes);

#endif
