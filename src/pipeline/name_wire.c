/* SPDX-License-Identifier: MIT */
/* name_wire.c - see name_wire.h. */
#include "src/pipeline/name_wire.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"

#define NO_STRING UINT32_MAX

struct head {
	uint32_t kind, n_bytes;
};

void wire_init(struct wire *wire)
{
	*wire = (struct wire){ .fd = -1 };
}

static void drop_file(struct wire *wire)
{
	if (wire->fd >= 0)
		close(TAKE_FD(wire->fd));
}

void wire_done(struct wire *wire)
{
	drop_file(wire);
	free(wire->bytes);
	wire_init(wire);
}

/* ---- Send ---- */

static void attach(struct msghdr *message, void *room, size_t n_bytes, int fd)
{
	struct cmsghdr *header;

	message->msg_control = room;
	message->msg_controllen = n_bytes;
	header = CMSG_FIRSTHDR(message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(header), &fd, sizeof fd);
}

static int send_rest(int socket, const uint8_t *bytes, size_t n_bytes)
{
	while (n_bytes > 0) {
		ssize_t n = send(socket, bytes, n_bytes, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == ECONNRESET ? -EPIPE : -errno;
		bytes += n;
		n_bytes -= (size_t)n;
	}
	return 0;
}

int wire_send(int socket, enum wire_kind kind, const void *bytes, size_t n_bytes, int fd)
{
	union {
		struct cmsghdr aligned;
		char bytes[CMSG_SPACE(sizeof(int))];
	} room = { .bytes = { 0 } };
	struct head head = { kind, (uint32_t)n_bytes };
	struct iovec parts[] = { { &head, sizeof head }, { (void *)(uintptr_t)bytes, n_bytes } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = n_bytes > 0 ? 2 : 1 };
	size_t n_sent;
	ssize_t n;
	int r;

	if (n_bytes > WIRE_MAX_BYTES)
		return -EMSGSIZE;
	if (fd >= 0)
		attach(&message, &room, sizeof room.bytes, fd);
	do
		n = sendmsg(socket, &message, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;
	n_sent = (size_t)n;
	if (n_sent < sizeof head) {
		r = send_rest(socket, (const uint8_t *)&head + n_sent, sizeof head - n_sent);
		if (r < 0)
			return r;
		n_sent = sizeof head;
	}
	return send_rest(socket, (const uint8_t *)bytes + (n_sent - sizeof head), n_bytes - (n_sent - sizeof head));
}

/* ---- Receive ---- */

/* Take the first descriptor and close the others. */
static void take_files(struct wire *wire, struct msghdr *message)
{
	for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header)) {
		size_t n = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
			if (wire->fd < 0)
				wire->fd = fd;
			else
				close(fd);
		}
	}
}

static int wait_for(int socket, int patience_ms)
{
	struct pollfd wanted = { .fd = socket, .events = POLLIN };
	int n;

	do
		n = poll(&wanted, 1, patience_ms);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n == 0 ? -ETIMEDOUT : 0;
}

static int receive_part(int socket, struct wire *wire, void *to, size_t n_bytes, size_t *ret)
{
	union {
		struct cmsghdr aligned;
		char bytes[CMSG_SPACE(4 * sizeof(int))];
	} room;
	struct iovec part = { to, n_bytes };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &room, .msg_controllen = sizeof room
	};
	ssize_t n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);

	if (n < 0)
		return errno == EINTR ? 0 : errno == ECONNRESET ? -EPIPE : -errno;
	take_files(wire, &message);
	if (n == 0)
		return -EPIPE;
	*ret += (size_t)n;
	return 0;
}

static int receive_all(int socket, int patience_ms, struct wire *wire, void *to, size_t n_bytes)
{
	size_t n = 0;
	int r = 0;

	while (r >= 0 && n < n_bytes) {
		if (patience_ms >= 0)
			r = wait_for(socket, patience_ms);
		if (r >= 0)
			r = receive_part(socket, wire, (uint8_t *)to + n, n_bytes - n, &n);
	}
	return r;
}

static int make_room(struct wire *wire, size_t n_bytes)
{
	uint8_t *bytes;

	if (n_bytes <= wire->allocated)
		return 0;
	bytes = realloc(wire->bytes, n_bytes);
	if (!bytes)
		return -ENOMEM;
	wire->bytes = bytes;
	wire->allocated = n_bytes;
	return 0;
}

int wire_receive(int socket, int patience_ms, struct wire *wire)
{
	struct head head;
	int r;

	drop_file(wire);
	r = receive_all(socket, patience_ms, wire, &head, sizeof head);
	if (r < 0)
		return r;
	if (head.n_bytes > WIRE_MAX_BYTES)
		return -EMSGSIZE;
	r = make_room(wire, head.n_bytes);
	if (r >= 0)
		r = receive_all(socket, patience_ms, wire, wire->bytes, head.n_bytes);
	if (r < 0)
		return r;
	wire->kind = head.kind;
	wire->n_bytes = head.n_bytes;
	return 0;
}

bool wire_struct(const struct wire *wire, void *to, size_t n_bytes)
{
	if (wire->n_bytes != n_bytes)
		return false;
	memcpy(to, wire->bytes, n_bytes);
	return true;
}

/* ---- Answers ---- */

static int put(struct wire_answers *answers, const void *bytes, size_t n_bytes)
{
	size_t wanted = answers->n + n_bytes;
	uint8_t *moved;

	if (wanted > answers->allocated) {
		moved = realloc(answers->bytes, 2 * wanted);
		if (!moved)
			return -ENOMEM;
		answers->bytes = moved;
		answers->allocated = 2 * wanted;
	}
	if (n_bytes > 0)
		memcpy(answers->bytes + answers->n, bytes, n_bytes);
	answers->n = wanted;
	return 0;
}

static int put_string(struct wire_answers *answers, const char *string)
{
	uint32_t n_bytes = string ? (uint32_t)strnlen(string, WIRE_MAX_STRING) : NO_STRING;
	int r;

	r = put(answers, &n_bytes, sizeof n_bytes);
	if (r >= 0 && string)
		r = put(answers, string, n_bytes);
	return r < 0 || !string ? r : put(answers, "", 1);
}

static int put_symbol(struct wire_answers *answers, const struct wire_symbol *symbol)
{
	uint8_t flags[] = { symbol->role, symbol->is_offset, symbol->is_python };
	int r;

	r = put(answers, &symbol->start, sizeof symbol->start);
	if (r >= 0)
		r = put(answers, &symbol->line, sizeof symbol->line);
	if (r >= 0)
		r = put(answers, &symbol->first_line, sizeof symbol->first_line);
	if (r >= 0)
		r = put(answers, flags, sizeof flags);
	if (r >= 0)
		r = put_string(answers, symbol->name);
	if (r >= 0)
		r = put_string(answers, symbol->linkage);
	return r < 0 ? r : put_string(answers, symbol->file);
}

int wire_put_answer(struct wire_answers *answers, const struct wire_answer *answer)
{
	size_t n_before = answers->n;
	int r;

	r = put(answers, &answer->subject, sizeof answer->subject);
	if (r >= 0)
		r = put(answers, &answer->n, sizeof answer->n);
	for (uint32_t i = 0; i < answer->n && r >= 0; i++)
		r = put_symbol(answers, &answer->symbols[i]);
	if (r < 0)
		answers->n = n_before;
	return r;
}

/* Check for the NUL at the stated end. NULL: no string, or the cursor has failed. */
static const char *take_string(struct cursor *from)
{
	uint32_t n_bytes = (uint32_t)cursor_fixed(from, 4);
	const uint8_t *at = from->at;

	if (from->failed || n_bytes == NO_STRING)
		return NULL;
	if (n_bytes > WIRE_MAX_STRING || cursor_left(from) <= n_bytes || at[n_bytes] != '\0') {
		from->failed = true;
		return NULL;
	}
	from->at += n_bytes + 1;
	return (const char *)at;
}

static void take_symbol(struct cursor *from, struct wire_symbol *ret)
{
	ret->start = cursor_fixed(from, 8);
	ret->line = (int32_t)cursor_signed(from, 4);
	ret->first_line = (int32_t)cursor_signed(from, 4);
	ret->role = (uint8_t)cursor_fixed(from, 1);
	ret->is_offset = cursor_fixed(from, 1) != 0;
	ret->is_python = cursor_fixed(from, 1) != 0;
	ret->name = take_string(from);
	ret->linkage = take_string(from);
	ret->file = take_string(from);
	if (ret->role > SYMBOL_INTERNAL || !ret->name || ret->line < 0 || ret->first_line < 0)
		from->failed = true;
}

int wire_take_answer(struct cursor *from, struct wire_answer *ret)
{
	if (!from->failed && cursor_left(from) == 0)
		return 0;
	ret->subject = (uint32_t)cursor_fixed(from, 4);
	ret->n = (uint32_t)cursor_fixed(from, 4);
	if (ret->n > SYMBOL_MAX_INLINED)
		from->failed = true;
	for (uint32_t i = 0; i < ret->n && !from->failed; i++)
		take_symbol(from, &ret->symbols[i]);
	return from->failed ? -EBADMSG : 1;
}
