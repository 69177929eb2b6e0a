/* SPDX-License-Identifier: MIT */
/* fuzz_cfi_answers.c - answers of the process that reads ELF files, after a file has taken it over.
 *
 * Input: 4 bytes with the offset of a PC in the mapped file, 1,024 bytes of stack, and packets: 2 bytes of length, and that
 * many bytes. A length with the top bit set is a packet without our head.
 * The recorder, on the other end, opens the file, asks for symbols, sections and functions, and walks the stack by the
 * rows that it gets. The first half of the stack counts as captured at STACK_AT, all of it can be read later. Answers may be
 * wrong; they read nothing beyond the file and the stack, and cost at most one file.
 * fuzz/make_cfi_answers_corpus.py makes the corpus.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cursor.h"
#include "base/util.h"
#include "src/pipeline/cfi_client.h"
#include "src/pipeline/cfi_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

#define MAPPED_AT UINT64_C(0x10000000)
#define STACK_AT UINT64_C(0x7ffd00000000)

enum {
	IMAGE_BYTES = 8192,
	STACK_BYTES = 1024,
	CAPTURED_BYTES = 512,
	HEADER_BYTES = 4 + STACK_BYTES,
	N_PLACES = 8,
	MAX_PACKETS = 64,
	PATIENCE_MS = 1000,
	WITHOUT_HEAD = 0x8000,
};

static uint64_t checksum; /* keeps the compiler from dropping the reads */

struct fixture {
	struct cfi_client *client;
	int other; /* the client's end of the socket */
	uint8_t *image, *stack;
	struct module_table *modules;
	struct address_space *space;
	struct remote *remote;
	struct native_unwinder *unwinder;
	struct native_process *process;
	struct native_stack walked;
};

static void must(int r)
{
	if (r < 0)
		abort();
}

/* ---- Worker ---- */

/* Write all answers before any question: as much as the socket holds. */
static void say(int socket, const uint8_t *data, size_t n_bytes)
{
	struct cursor from = { .at = data, .end = data + n_bytes };

	for (unsigned i = 0; i < MAX_PACKETS && cursor_left(&from) > 2; i++) {
		size_t length = (size_t)cursor_fixed(&from, 2), n = MIN(length & ~WITHOUT_HEAD, cursor_left(&from));

		if (length & WITHOUT_HEAD)
			(void)send(socket, from.at, n, MSG_DONTWAIT | MSG_NOSIGNAL);
		else
			(void)cfi_send(socket, from.at, n, -1);
		from.at += n;
	}
	shutdown(socket, SHUT_WR);
}

static void start_client(struct fixture *fixture, const uint8_t *data, size_t n_bytes)
{
	int ends[2], room = 1 << 20;

	must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
	(void)setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
	must(fcntl(ends[1], F_SETFL, O_NONBLOCK));
	say(ends[1], data, n_bytes);
	fixture->other = ends[1];
	must(cfi_client_over(ends[0], PATIENCE_MS, &fixture->client));
}

/* ---- Recorder ---- */

static void read_segments(struct elf_file *elf)
{
	struct elf_segment segment;
	const void *bytes;
	size_t n = 0;

	for (; elf_file_segment(elf, n, &segment); n++) {
		if (elf_file_data(elf, segment.address, 1, &bytes) == 0)
			checksum += *(const uint8_t *)bytes;
		if (segment.n_file_bytes > 0 && segment.n_file_bytes <= IMAGE_BYTES &&
		    elf_file_data(elf, segment.address, (size_t)segment.n_file_bytes, &bytes) == 0)
			checksum += ((const uint8_t *)bytes)[segment.n_file_bytes - 1];
	}
	if (n > ELF_SUMMARY_MAX_SEGMENTS || elf_file_build_id(elf)->n_bytes > BUILD_ID_MAX)
		abort();
}

static void ask_file(struct elf_file *elf)
{
	uint64_t first, second;

	if (elf_file_symbol(elf, "_PyRuntime", &first, &second) == 0)
		checksum += first + second;
	if (elf_file_section(elf, ".PyRuntime", &first, &second) == 0)
		checksum += first + second;
	if (elf_file_function(elf, 0x1010, &first, &second) == 0 && (first > 0x1010 || second <= 0x1010))
		abort();
}

static void walk(struct fixture *fixture, uint64_t pc)
{
	struct sample sample = {
		.has_user = true,
		.stack = fixture->stack,
		.stack_bytes = CAPTURED_BYTES,
	};
	uint64_t value;

	for (unsigned i = 0; i < MACHINE_N_REGS; i++)
		memcpy(&sample.regs.value[i], fixture->stack + 8 * i, sizeof sample.regs.value[i]);
	sample.regs.value[MACHINE_REG_SP] = STACK_AT;
	sample.regs.value[MACHINE_REG_PC] = pc;
	must(native_unwind(fixture->process, &sample, fixture->remote, &fixture->walked));
	for (size_t i = 0; i < fixture->walked.n_frames; i += 1 + fixture->walked.n_frames / 8)
		for (unsigned reg = 0; reg <= MACHINE_N_REGS; reg++)
			if (native_register(&fixture->walked, i, reg, &value) == 0)
				checksum += value;
}

/* Treat the file as a module that is mapped from its first byte on. */
static void walk_all(struct fixture *fixture, struct elf_file *elf, uint32_t offset)
{
	const struct mapping_source source = {
		.start = MAPPED_AT,
		.end = MAPPED_AT + IMAGE_BYTES,
		.executable = true,
		.inode = 1,
		.path = "/hostile.so",
	};

	must(address_space_add(fixture->space, &source));
	module_table_get(fixture->modules, 0)->elf = elf;
	walk(fixture, MAPPED_AT + offset);
	for (unsigned i = 0; i < N_PLACES; i++)
		walk(fixture, MAPPED_AT + (uint64_t)IMAGE_BYTES * i / N_PLACES);
	walk(fixture, MAPPED_AT + offset);
}

static void start_unwinder(struct fixture *fixture)
{
	must(module_table_new(&fixture->modules));
	must(address_space_new(1, fixture->modules, &fixture->space));
	must(remote_open_buffer(RADDR(STACK_AT), fixture->stack, STACK_BYTES, &fixture->remote));
	must(native_unwinder_new(fixture->modules, &fixture->unwinder));
	native_unwinder_set_source(fixture->unwinder, cfi_client_rows(fixture->client));
	must(native_process_new(fixture->unwinder, fixture->space, &fixture->process));
}

static void end(struct fixture *fixture)
{
	native_stack_done(&fixture->walked);
	native_process_free(fixture->process);
	native_unwinder_free(fixture->unwinder);
	remote_free(fixture->remote);
	address_space_free(fixture->space);
	module_table_free(fixture->modules);
	cfi_client_free(fixture->client);
	close(fixture->other);
	free(fixture->stack);
	free(fixture->image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	struct fixture fixture = { .other = -1 };
	struct pipeline_cfi_troubles troubles;
	struct elf_file *elf;
	uint32_t offset;

	if (n_bytes <= HEADER_BYTES)
		return 0;
	memcpy(&offset, data, sizeof offset);
	/* Blocks of exact size, so that the sanitizer detects every overrun. */
	fixture.image = calloc(1, IMAGE_BYTES);
	fixture.stack = malloc(STACK_BYTES);
	if (!fixture.image || !fixture.stack)
		abort();
	memcpy(fixture.stack, data + 4, STACK_BYTES);
	start_client(&fixture, data + HEADER_BYTES, n_bytes - HEADER_BYTES);
	start_unwinder(&fixture);
	if (elf_file_open_through(cfi_client_reader(fixture.client), "hostile", -1, fixture.image, IMAGE_BYTES, &elf) ==
	    0) {
		read_segments(elf);
		ask_file(elf);
		walk_all(&fixture, elf, offset % IMAGE_BYTES);
	}
	cfi_client_troubles(fixture.client, &troubles);
	if (troubles.n_deaths > 1)
		abort(); /* the worker can die only once */
	end(&fixture);
	return 0;
}
