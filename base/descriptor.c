/* SPDX-License-Identifier: MIT */
/* descriptor.c - see descriptor.h. */
#include "base/descriptor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/util.h"

/* Ignore more than these, to bound the time. */
enum { MAX_SOCKETS = 1 << 17, MAX_LOCKS = 1 << 16, TCP_LISTEN = 10, N_PORTS = 1 << 16 };

struct sockets {
	pid_t pid;
	bool is_read;
	struct socket {
		uint64_t inode;
		char *text;
	} * items; /* sorted by inode */
	size_t n, allocated;
	uint64_t listening[N_PORTS / 64]; /* a bit for each port */
};

int sockets_new(pid_t pid, struct sockets **ret)
{
	struct sockets *sockets = calloc(1, sizeof *sockets);

	if (!sockets)
		return -ENOMEM;
	sockets->pid = pid;
	*ret = sockets;
	return 0;
}

void sockets_renew(struct sockets *sockets)
{
	for (size_t i = 0; i < sockets->n; i++)
		free(sockets->items[i].text);
	sockets->n = 0;
	sockets->is_read = false;
	memset(sockets->listening, 0, sizeof sockets->listening);
}

void sockets_free(struct sockets *sockets)
{
	if (!sockets)
		return;
	sockets_renew(sockets);
	free(sockets->items);
	free(sockets);
}

void sockets_freep(struct sockets **sockets)
{
	sockets_free(*sockets);
}

/* ---- Lines ---- */

uint64_t descriptor_socket_inode(const char *link)
{
	uint64_t inode;
	int n = 0;

	return sscanf(link, "socket:[%" SCNu64 "]%n", &inode, &n) == 1 && n > 0 && link[n] == '\0' ? inode : 0;
}

/* Parse "0100007F:1F90", or 32 digits, as words in native byte order. @to: at least 64 bytes. False: no address. */
static bool format_address(const char *digits, char *to, bool *ret_is_any)
{
	uint32_t words[4] = { 0 };
	char text[INET6_ADDRSTRLEN];
	size_t n = strcspn(digits, ":");
	unsigned port;
	bool is_6 = n == 32;

	if ((n != 8 && n != 32) || sscanf(digits + n, ":%4x", &port) != 1)
		return false;
	for (size_t i = 0; i < n / 8; i++)
		if (sscanf(digits + 8 * i, "%8" SCNx32, &words[i]) != 1)
			return false;
	if (!inet_ntop(is_6 ? AF_INET6 : AF_INET, words, text, sizeof text))
		return false;
	snprintf(to, 64, is_6 ? "[%s]:%u" : "%s:%u", text, port);
	*ret_is_any = port == 0 && (words[0] | words[1] | words[2] | words[3]) == 0;
	return true;
}

bool descriptor_parse_inet(const char *line, const char *protocol, uint64_t *ret_inode, char to[DESCRIPTOR_TEXT_BYTES])
{
	char local[48], peer[48], from[64], other[64];
	bool is_unbound, has_no_peer;
	unsigned state;
	uint64_t inode;

	if (sscanf(line, " %*d: %47[0-9A-Fa-f:] %47[0-9A-Fa-f:] %x %*s %*s %*s %*u %*u %" SCNu64, local, peer, &state,
		   &inode) != 4 ||
	    inode == 0 || !format_address(local, from, &is_unbound) || !format_address(peer, other, &has_no_peer))
		return false;
	*ret_inode = inode;
	if (!has_no_peer)
		snprintf(to, DESCRIPTOR_TEXT_BYTES, "%s %s to %s", protocol, from, other);
	else
		snprintf(to, DESCRIPTOR_TEXT_BYTES, "%s %s%s", protocol, from,
			 state == TCP_LISTEN && strncmp(protocol, "tcp", 3) == 0 ? ", listening" : "");
	return true;
}

bool descriptor_parse_unix(const char *line, uint64_t *ret_inode, char to[DESCRIPTOR_TEXT_BYTES])
{
	uint64_t inode;
	int n = 0;

	if (sscanf(line, "%*x: %*x %*x %*x %*x %*x %" SCNu64 "%n", &inode, &n) != 1 || n == 0 || inode == 0)
		return false;
	line += n + (line[n] == ' ');
	*ret_inode = inode;
	if (line[0] == '\0' || line[0] == '\n')
		snprintf(to, DESCRIPTOR_TEXT_BYTES, "unix socket:[%" PRIu64 "]", inode);
	else
		snprintf(to, DESCRIPTOR_TEXT_BYTES, "unix %.*s", (int)MIN(strcspn(line, "\n"), (size_t)256), line);
	return true;
}

bool descriptor_parse_lock(const char *line, pid_t *ret_pid, unsigned *ret_major, unsigned *ret_minor,
			   uint64_t *ret_inode)
{
	int pid;

	/* A waiter's line, "1: -> FLOCK ...", does not match: report holders only. */
	if (sscanf(line, "%*d: %*[A-Z] %*s %*s %d %x:%x:%" SCNu64, &pid, ret_major, ret_minor, ret_inode) != 4 ||
	    pid <= 0)
		return false;
	*ret_pid = pid;
	return true;
}

/* ---- Files of /proc ---- */

bool sockets_listen_at(const struct sockets *sockets, unsigned port)
{
	return port < N_PORTS && sockets->listening[port / 64] >> port % 64 & 1;
}

/* "tcp 127.0.0.1:8000, listening" */
static void note_listening(struct sockets *sockets, const char *text)
{
	const char *colon = strrchr(text, ':');
	unsigned port;
	int n = 0;

	if (strncmp(text, "tcp", 3) == 0 && colon && sscanf(colon, ":%u, listening%n", &port, &n) == 1 && n > 0 &&
	    port < N_PORTS)
		sockets->listening[port / 64] |= UINT64_C(1) << port % 64;
}

static int add_socket(struct sockets *sockets, uint64_t inode, const char *text)
{
	int r;

	if (sockets->n >= MAX_SOCKETS)
		return 0;
	r = grow(&sockets->items, sockets->n, &sockets->allocated, sizeof *sockets->items);
	if (r < 0)
		return r;
	sockets->items[sockets->n] = (struct socket){ inode, strdup(text) };
	if (!sockets->items[sockets->n].text)
		return -ENOMEM;
	note_listening(sockets, text);
	sockets->n++;
	return 0;
}

DEFINE_CLEANUP(FILE *, fclose)

static int read_sockets(struct sockets *sockets, const char *protocol)
{
	char file[32], path[PROC_PATH_BYTES], line[1024], text[DESCRIPTOR_TEXT_BYTES];
	CLEANUP(fclosep) FILE *in = NULL;
	int r = 0;

	snprintf(file, sizeof file, "net/%s", protocol);
	proc_path(sockets->pid, file, path);
	in = fopen(path, "re");
	while (in && r >= 0 && fgets(line, sizeof line, in)) {
		uint64_t inode;

		if (strcmp(protocol, "unix") == 0 ? descriptor_parse_unix(line, &inode, text)
						  : descriptor_parse_inet(line, protocol, &inode, text))
			r = add_socket(sockets, inode, text);
	}
	return r;
}

static int compare_sockets(const void *a, const void *b)
{
	const struct socket *left = a, *right = b;

	return left->inode < right->inode ? -1 : left->inode > right->inode;
}

static int find_socket(struct sockets *sockets, uint64_t inode, const char **ret)
{
	static const char *const protocols[] = { "tcp", "tcp6", "udp", "udp6", "unix" };
	const struct socket wanted = { .inode = inode }, *found;
	int r = 0;

	if (!sockets->is_read) {
		for (size_t i = 0; i < N_ELEMENTS(protocols) && r >= 0; i++)
			r = read_sockets(sockets, protocols[i]);
		if (r < 0)
			return r;
		qsort(sockets->items, sockets->n, sizeof *sockets->items, compare_sockets);
		sockets->is_read = true;
	}
	found = sockets->n > 0 ? bsearch(&wanted, sockets->items, sockets->n, sizeof wanted, compare_sockets) : NULL;
	*ret = found ? found->text : NULL;
	return 0;
}

static int read_link(pid_t pid, int descriptor, char to[DESCRIPTOR_TEXT_BYTES])
{
	char file[32], path[PROC_PATH_BYTES];
	ssize_t n;

	snprintf(file, sizeof file, "fd/%d", descriptor);
	proc_path(pid, file, path);
	n = readlink(path, to, DESCRIPTOR_TEXT_BYTES - 1);
	if (n < 0)
		return -errno;
	to[n] = '\0';
	return 0;
}

int descriptor_describe(pid_t pid, int descriptor, struct sockets *sockets, char to[DESCRIPTOR_TEXT_BYTES])
{
	const char *text = NULL;
	uint64_t inode;
	int r;

	r = read_link(pid, descriptor, to);
	if (r < 0)
		return r;
	inode = descriptor_socket_inode(to);
	if (inode != 0 && sockets)
		r = find_socket(sockets, inode, &text);
	if (text)
		snprintf(to, DESCRIPTOR_TEXT_BYTES, "%s", text);
	return r;
}

pid_t descriptor_lock_holder(pid_t pid, int descriptor)
{
	char file[32], path[PROC_PATH_BYTES], line[512];
	CLEANUP(fclosep) FILE *locks = NULL;
	struct stat st;

	snprintf(file, sizeof file, "fd/%d", descriptor);
	proc_path(pid, file, path);
	if (stat(path, &st) < 0)
		return 0;
	locks = fopen("/proc/locks", "re");
	for (size_t i = 0; locks && i < MAX_LOCKS && fgets(line, sizeof line, locks); i++) {
		unsigned major_number, minor_number;
		uint64_t inode;
		pid_t holder;

		if (descriptor_parse_lock(line, &holder, &major_number, &minor_number, &inode) && inode == st.st_ino &&
		    makedev(major_number, minor_number) == st.st_dev)
			return holder;
	}
	return 0;
}
