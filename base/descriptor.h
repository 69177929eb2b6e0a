/* SPDX-License-Identifier: MIT */
/* descriptor.h - the target of another process' descriptor: a file, a pipe, a socket with its addresses.
 *
 * Names and addresses are foreign text. Everything comes from /proc of that process, in its own
 * network namespace.
 */
#ifndef PROBING_BASE_DESCRIPTOR_H
#define PROBING_BASE_DESCRIPTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { DESCRIPTOR_TEXT_BYTES = 512 };

/* The sockets of a process' network namespace, as of the last reading. */
struct sockets;

int sockets_new(pid_t pid, struct sockets **ret); /* -ENOMEM */
/* They are read again when a socket is described next. */
void sockets_renew(struct sockets *sockets);
/* Whether one of them accepts TCP connections at this port, as of the last reading. */
bool sockets_listen_at(const struct sockets *sockets, unsigned port);
void sockets_free(struct sockets *sockets);
void sockets_freep(struct sockets **sockets);

/*
 * descriptor_describe - "/var/log/app.log", "pipe:[123]", "tcp 127.0.0.1:8000, listening",
 * "tcp 10.0.0.1:51312 to 10.0.0.2:5432", "unix /run/app.sock".
 * @sockets: of the process; NULL, or a socket that is not in it: "socket:[123]".
 * @to:      cut where it is longer.
 * Errors: -ENOENT there is no such descriptor; -EACCES, -ESRCH; -ENOMEM.
 * Source: proc_pid_fd(5), proc_pid_net(5).
 */
int descriptor_describe(pid_t pid, int descriptor, struct sockets *sockets, char to[DESCRIPTOR_TEXT_BYTES]);

/*
 * descriptor_lock_holder - a process that holds a lock on a descriptor's file, by /proc/locks.
 * Returns its PID in our namespace; 0: none listed.
 */
pid_t descriptor_lock_holder(pid_t pid, int descriptor);

/* ---- Their parts ---- */

/* The number in "socket:[123]"; 0: it is something else. */
uint64_t descriptor_socket_inode(const char *link);

/* A line of /proc/net/tcp, tcp6, udp, udp6. @protocol: "tcp". False: not such a line, or without an inode. */
bool descriptor_parse_inet(const char *line, const char *protocol, uint64_t *ret_inode, char to[DESCRIPTOR_TEXT_BYTES]);

/* A line of /proc/net/unix. */
bool descriptor_parse_unix(const char *line, uint64_t *ret_inode, char to[DESCRIPTOR_TEXT_BYTES]);

/* A line of /proc/locks: a lock that a process holds; false also for one that it waits for. Source: proc_locks(5). */
bool descriptor_parse_lock(const char *line, pid_t *ret_pid, unsigned *ret_major, unsigned *ret_minor,
			   uint64_t *ret_inode);

#endif
