/* SPDX-License-Identifier: MIT */
/* untracked_files.c - the system calls of the listener on files, hidden from ThreadSanitizer.
 *
 * ThreadSanitizer knows one table of files for the process, the listener has its own: the program's write to its
 * descriptor 1 is no race with the listener's opening of another file that is 1 there. These are linked into the agent
 * in place of libc's, and only with ThreadSanitizer. They are no cancellation points.
 */
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HIDDEN __attribute__((visibility("hidden")))

HIDDEN int open(const char *path, int flags, ...) /* creates nothing */
{
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0);
}

HIDDEN int close(int fd)
{
	return (int)syscall(SYS_close, fd);
}

HIDDEN ssize_t read(int fd, void *to, size_t n_bytes)
{
	return syscall(SYS_read, fd, to, n_bytes);
}

HIDDEN int poll(struct pollfd *polled, nfds_t n, int time_out_ms)
{
	const struct timespec time_out = { time_out_ms / 1000, time_out_ms % 1000 * 1000000 };

	return (int)syscall(SYS_ppoll, polled, n, time_out_ms < 0 ? NULL : &time_out, NULL, 0);
}

HIDDEN int socket(int domain, int type, int protocol)
{
	return (int)syscall(SYS_socket, domain, type, protocol);
}

HIDDEN int bind(int fd, const struct sockaddr *address, socklen_t n_bytes)
{
	return (int)syscall(SYS_bind, fd, address, n_bytes);
}

HIDDEN int listen(int fd, int backlog)
{
	return (int)syscall(SYS_listen, fd, backlog);
}

HIDDEN int accept4(int fd, struct sockaddr *address, socklen_t *n_bytes, int flags)
{
	return (int)syscall(SYS_accept4, fd, address, n_bytes, flags);
}

HIDDEN ssize_t recv(int fd, void *to, size_t n_bytes, int flags)
{
	return syscall(SYS_recvfrom, fd, to, n_bytes, flags, NULL, NULL);
}

HIDDEN ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	return syscall(SYS_sendmsg, fd, message, flags);
}

HIDDEN ssize_t send(int fd, const void *bytes, size_t n_bytes, int flags)
{
	return syscall(SYS_sendto, fd, bytes, n_bytes, flags, NULL, 0);
}
