/* SPDX-License-Identifier: MIT */
/* cfi_wire.c - see cfi_wire.h. */
#include "src/pipeline/cfi_wire.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"
#include "src/pipeline/name_wire.h"

struct head {
	uint32_t kind, n_bytes;
};

int cfi_send(int socket, const void *bytes, size_t n_bytes, int fd)
{
	return wire_send(socket, WIRE_CFI, bytes, n_bytes, fd);
}

static int wait_for(int socket, short events, int patience_ms)
{
	struct pollfd wanted = { .fd = socket, .events = events };
	int n;

	do
		n = poll(&wanted, 1, patience_ms);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n == 0 ? -ETIMEDOUT : 0;
}

int cfi_send_in_time(int socket, int patience_ms, const void *bytes, size_t n_bytes)
{
	int r = wait_for(socket, POLLOUT, patience_ms);

	return r < 0 ? r : cfi_send(socket, bytes, n_bytes, -1);
}

/* Take the first descriptor; the buffer holds no more. */
static int take_file(struct msghdr *message)
{
	const struct cmsghdr *header = message->msg_controllen > 0 ? CMSG_FIRSTHDR(message) : NULL;
	int fd;

	if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS ||
	    header->cmsg_len < CMSG_LEN(sizeof fd))
		return -1;
	memcpy(&fd, CMSG_DATA(header), sizeof fd);
	return fd;
}

int cfi_receive(int socket, int patience_ms, bool takes_file, uint8_t *buffer, struct cfi_packet *ret)
{
	union {
		struct cmsghdr aligned;
		char bytes[CMSG_SPACE(sizeof(int))];
	} room;
	struct iovec part = { buffer, CFI_MAX_PACKET };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	CLEANUP(closep) int fd = -1;
	struct head head;
	ssize_t n;
	int r;

	r = patience_ms < 0 ? 0 : wait_for(socket, POLLIN, patience_ms);
	if (r < 0)
		return r;
	do {
		message.msg_control = takes_file ? &room : NULL; /* the kernel closes files that do not fit */
		message.msg_controllen = takes_file ? sizeof room.bytes : 0;
		n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;
	fd = takes_file ? take_file(&message) : -1;
	if (n == 0)
		return -EPIPE;
	if (message.msg_flags & MSG_TRUNC || (size_t)n < sizeof head)
		return -EBADMSG;
	memcpy(&head, buffer, sizeof head);
	if (head.kind != WIRE_CFI || head.n_bytes != (size_t)n - sizeof head)
		return -EBADMSG;
	*ret = (struct cfi_packet){ buffer + sizeof head, head.n_bytes, TAKE_FD(fd) };
	return 0;
}

size_t cfi_put_summary(const struct elf_summary *summary, struct cfi_summary *ret)
{
	size_t n = MIN(summary->n_segments, (size_t)ELF_SUMMARY_MAX_SEGMENTS);

	memset(ret, 0, sizeof *ret);
	ret->machine = summary->machine;
	ret->n_id_bytes = MIN(summary->build_id.n_bytes, (unsigned)BUILD_ID_MAX);
	memcpy(ret->id, summary->build_id.bytes, ret->n_id_bytes);
	ret->n_segments = (uint32_t)n;
	for (size_t i = 0; i < n; i++) {
		const struct elf_segment *segment = &summary->segments[i];

		ret->segments[i] = (struct cfi_segment){ segment->address,      segment->file_offset,
							 segment->n_file_bytes, segment->n_memory_bytes,
							 segment->writable,     segment->executable };
	}
	return offsetof(struct cfi_summary, segments) + n * sizeof ret->segments[0];
}

/* Map errors of the worker: its -ENOMEM must not end the recording. */
static int take_error(const struct cfi_packet *packet)
{
	int32_t error;

	if (packet->n_bytes < sizeof error)
		return -EBADMSG;
	memcpy(&error, packet->bytes, sizeof error);
	return error == 0 ? 0 : -ENOENT;
}

int cfi_take_summary(const struct cfi_packet *packet, struct elf_summary *ret)
{
	const size_t n_head = offsetof(struct cfi_summary, segments);
	struct cfi_summary summary;
	int r = take_error(packet);

	if (r < 0)
		return r;
	if (packet->n_bytes < n_head || packet->n_bytes > sizeof summary)
		return -EBADMSG;
	memcpy(&summary, packet->bytes, packet->n_bytes);
	if (summary.n_segments > ELF_SUMMARY_MAX_SEGMENTS || summary.n_id_bytes > BUILD_ID_MAX ||
	    packet->n_bytes != n_head + summary.n_segments * sizeof summary.segments[0])
		return -EBADMSG;
	memset(ret, 0, sizeof *ret);
	ret->machine = summary.machine;
	ret->build_id.n_bytes = summary.n_id_bytes;
	memcpy(ret->build_id.bytes, summary.id, summary.n_id_bytes);
	ret->n_segments = summary.n_segments;
	for (size_t i = 0; i < summary.n_segments; i++) {
		const struct cfi_segment *segment = &summary.segments[i];

		ret->segments[i] = (struct elf_segment){ segment->address,          segment->file_offset,
							 segment->n_file_bytes,     segment->n_memory_bytes,
							 segment->is_writable != 0, segment->is_executable != 0 };
	}
	return 0;
}

int cfi_take_pair(const struct cfi_packet *packet, uint64_t *ret_first, uint64_t *ret_second)
{
	struct cfi_pair pair;
	int r = take_error(packet);

	if (r < 0)
		return r;
	if (packet->n_bytes != sizeof pair)
		return -EBADMSG;
	memcpy(&pair, packet->bytes, sizeof pair);
	*ret_first = pair.first;
	*ret_second = pair.second;
	return 0;
}

int cfi_take_rows(const struct cfi_packet *packet, const uint8_t **ret, size_t *ret_bytes)
{
	int r = take_error(packet);

	if (r < 0)
		return r;
	*ret = packet->bytes + sizeof(int32_t);
	*ret_bytes = packet->n_bytes - sizeof(int32_t);
	return 0;
}
