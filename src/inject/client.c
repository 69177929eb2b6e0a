/* SPDX-License-Identifier: MIT */
/* client.c - connects to an agent, and exchanges messages with it: see inject.h.
 *
 * Its socket's name belongs to a network namespace. If that is not ours, a child enters it, connects, and ends: the
 * socket is then ours. The listener must be the right process, by the kernel's credentials.
 *
 * In a user namespace without our root, the agent sees root as nobody, and nobody is anybody. There a child connects as the
 * process' own user.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/inject/inject.h"

/* ---- Connect ---- */

static int connect_by_name(int fd, const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t n = strnlen(name, sizeof address.sun_path - 1);

	memcpy(address.sun_path + 1, name, n);
	return connect(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)) < 0
		       ? -errno
		       : 0;
}

static bool is_ours(pid_t pid, const char *namespace)
{
	struct stat ours, theirs;
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)pid, namespace);
	if (stat(path, &theirs) < 0)
		return true;
	snprintf(path, sizeof path, "/proc/self/ns/%s", namespace);
	return stat(path, &ours) < 0 || (ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev);
}

static int enter(pid_t pid, const char *namespace)
{
	CLEANUP(closep) int fd = -1;
	char path[64];

	if (is_ours(pid, namespace))
		return 0;
	snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)pid, namespace);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 || setns(fd, 0) < 0 ? -EPERM : 0;
}

/* Effective user of a process, in our user namespace; our own where it cannot be read. */
static uid_t user_of(pid_t pid)
{
	CLEANUP(freep) char *status = NULL;
	const char *value;
	unsigned real, effective;
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	if (read_file(path, 1 << 16, &status, NULL) < 0)
		return geteuid();
	value = proc_status_value(status, "Uid");
	return value && sscanf(value, "%u %u", &real, &effective) == 2 ? effective : geteuid();
}

static bool needs_its_user(pid_t pid)
{
	return geteuid() == 0 && !is_ours(pid, "user") && user_of(pid) != 0;
}

/* A socket belongs to the namespace of its creator, so create it in a child inside the namespace. */
static void connect_in_child(pid_t pid, const char *name, int to)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	int r, fd = -1;
	struct iovec part = { &r, sizeof r };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	bool takes_user = needs_its_user(pid); /* while both namespaces are what they were */
	uid_t user = user_of(pid);

	r = enter(pid, "net");
	if (r >= 0 && takes_user && seteuid(user) < 0)
		r = -errno;
	if (r < 0 && enter(pid, "user") == 0)
		r = enter(pid, "net");
	if (r >= 0) {
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		r = fd < 0 ? -errno : connect_by_name(fd, name);
	}
	if (r >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof control;
		control.header = (struct cmsghdr){ CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
	}
	_exit(sendmsg(to, &message, MSG_NOSIGNAL) < 0);
}

static int receive_socket(int from, int *ret)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	int r = -EIO;
	struct iovec part = { &r, sizeof r };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
	};
	ssize_t n = recvmsg(from, &message, MSG_CMSG_CLOEXEC);

	if (n != (ssize_t)sizeof r)
		return -EIO;
	if (r < 0)
		return r;
	if (message.msg_controllen < sizeof control.header || control.header.cmsg_type != SCM_RIGHTS)
		return -EIO;
	memcpy(ret, CMSG_DATA(&control.header), sizeof *ret);
	return 0;
}

static int connect_elsewhere(pid_t pid, const char *name, int *ret)
{
	int ends[2], r;
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	child = fork();
	if (child == 0)
		connect_in_child(pid, name, ends[1]);
	close(ends[1]);
	r = child < 0 ? -EAGAIN : receive_socket(ends[0], ret);
	close(ends[0]);
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	return r;
}

int agent_connect(pid_t pid, const struct agent_state *state, int *ret)
{
	CLEANUP(closep) int fd = -1;
	struct ucred peer;
	socklen_t n = sizeof peer;
	int r;

	if (is_ours(pid, "net") && !needs_its_user(pid)) {
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		r = fd < 0 ? -errno : connect_by_name(fd, state->socket);
	} else {
		r = connect_elsewhere(pid, state->socket, &fd);
	}
	if (r < 0)
		return r;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0 || peer.pid != pid)
		return -ECONNREFUSED;
	*ret = TAKE_FD(fd);
	return 0;
}

/* ---- Messages ---- */

int agent_talk_begin(int fd, struct agent_talk *ret)
{
	*ret = (struct agent_talk){ .fd = fd, .bytes = malloc(PROTOCOL_MAX_BYTES) };
	if (ret->bytes)
		return 0;
	close(fd);
	ret->fd = -1;
	return -ENOMEM;
}

void agent_talk_end(struct agent_talk *talk)
{
	if (talk->fd >= 0)
		close(talk->fd);
	free(talk->bytes);
	*talk = (struct agent_talk){ .fd = -1 };
}

int agent_send(struct agent_talk *talk, enum message_kind kind, uint32_t number, const char *text, size_t n_text)
{
	const struct message message = { .kind = kind, .numbers = { number }, .text = text, .n_text = n_text };
	CLEANUP(freep) char *bytes = malloc(PROTOCOL_HEADER_BYTES + sizeof message.numbers + n_text);
	ssize_t n_bytes, sent = 0;

	if (!bytes)
		return -ENOMEM;
	n_bytes = message_format(&message, bytes);
	if (n_bytes < 0)
		return (int)n_bytes;
	while (sent < n_bytes) {
		ssize_t n = send(talk->fd, bytes + sent, (size_t)(n_bytes - sent), MSG_NOSIGNAL);

		if (n < 0 && errno != EINTR)
			return errno == EPIPE || errno == ECONNRESET ? -EPIPE : -errno;
		sent += n > 0 ? n : 0;
	}
	return 0;
}

static int receive(struct agent_talk *talk, int wait_ms)
{
	struct pollfd polled = { .fd = talk->fd, .events = POLLIN };
	int r = poll(&polled, 1, wait_ms);
	ssize_t n;

	if (r <= 0)
		return r < 0 ? -errno : -ETIMEDOUT;
	n = recv(talk->fd, talk->bytes + talk->n, PROTOCOL_MAX_BYTES - talk->n, 0);
	if (n < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;
	talk->n += (size_t)n;
	return n > 0 ? 0 : -EPIPE;
}

int agent_receive(struct agent_talk *talk, int wait_ms, struct message *ret)
{
	memmove(talk->bytes, talk->bytes + talk->n_used, talk->n - talk->n_used);
	talk->n -= talk->n_used;
	talk->n_used = 0;
	for (;;) {
		ssize_t n = message_parse(talk->bytes, talk->n, PROTOCOL_AGENT, ret);
		int r;

		if (n != 0) {
			talk->n_used = n > 0 ? (size_t)n : 0;
			return n < 0 ? (int)n : 0;
		}
		r = receive(talk, wait_ms);
		if (r < 0)
			return r;
	}
}
