/* SPDX-License-Identifier: MIT */
/* wait_object.c - see wait_object.h.
 *
 * The thread may have gone on since its stack was taken. waits.c keeps an object only if the records of context switches
 * show that the wait lasted until the object had been read.
 */
#include "src/pipeline/wait_object.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "base/wait_call.h"

enum {
	LOCKING_WORDS = 128, /* of a stack: the functions that lock, and those of libc that wait */
	SHARE = 100,         /* of the time on the clock, one part at most; */
	BURST_NS = 50000000, /* after a pause so much at once: /proc/net/tcp alone may take some ms */
	SOCKETS_EVERY_NS = 100000000,
	SOCKETS_SHARE = 200, /* of a reading of all sockets */
};

void wait_objects_done(struct wait_objects *objects)
{
	for (size_t i = 0; i < N_ELEMENTS(objects->sockets); i++)
		sockets_free(objects->sockets[i].sockets);
	*objects = (struct wait_objects){ 0 };
}

/* ---- Names ---- */

static void bracket(const char *prefix, const char *text, char to[WAIT_OBJECT_BYTES])
{
	snprintf(to, WAIT_OBJECT_BYTES, "[%s%.150s]", prefix, text);
}

/* "tcp 10.0.0.1:8000" and "10.0.0.7:51312": the port of a client means nothing. */
static void shorten_connection(const char *local, int n_local, const char *peer, const struct sockets *sockets,
			       char to[WAIT_OBJECT_BYTES])
{
	const char *end = strrchr(peer, ':');
	unsigned port = 0;

	for (int i = n_local; i > 0; i--)
		if (local[i - 1] == ':') {
			port = (unsigned)strtoul(local + i, NULL, 10);
			break;
		}
	if (strncmp(local, "tcp", 3) == 0 && sockets && end && sockets_listen_at(sockets, port))
		snprintf(to, WAIT_OBJECT_BYTES, "[%.*s from %.*s]", n_local, local, (int)(end - peer), peer);
	else
		snprintf(to, WAIT_OBJECT_BYTES, "[%.*s to %s]", (int)strcspn(local, " "), local, peer);
}

void wait_object_shorten(const char *text, const struct sockets *sockets, char to[WAIT_OBJECT_BYTES])
{
	static const char anonymous[] = "anon_inode:", deleted[] = " (deleted)";
	const char *peer = strstr(text, " to ");
	char shorter[DESCRIPTOR_TEXT_BYTES];
	size_t n = strcspn(text, "[");

	to[0] = '\0';
	if (strcmp(text, "anon_inode:[eventpoll]") == 0)
		return;
	if (peer && (strncmp(text, "tcp", 3) == 0 || strncmp(text, "udp", 3) == 0)) {
		shorten_connection(text, (int)(peer - text), peer + strlen(" to "), sockets, to);
		return;
	}
	snprintf(shorter, sizeof shorter, "%s", text);
	if (strncmp(text, anonymous, sizeof anonymous - 1) == 0) { /* "anon_inode:[timerfd]", "anon_inode:inotify" */
		text += sizeof anonymous - 1;
		text += text[0] == '[';
		snprintf(shorter, sizeof shorter, "%.*s", (int)strcspn(text, "]"), text);
	} else if (text[0] != '/' && n > 0 && text[n] == '[' &&
		   text[n - 1] == ':') { /* "pipe:[123]", "unix socket:[123]" */
		shorter[n - 1] = '\0';
	} else if (strlen(text) > sizeof deleted && strcmp(text + strlen(text) - strlen(deleted), deleted) == 0) {
		shorter[strlen(text) - strlen(deleted)] = '\0';
	}
	bracket("", shorter, to);
}

/* ---- Descriptors ---- */

/* NULL: no memory. */
static struct wait_sockets *sockets_of(struct wait_objects *objects, pid_t pid)
{
	struct wait_sockets added = { .pid = pid }, *to;

	for (size_t i = 0; i < N_ELEMENTS(objects->sockets); i++)
		if (objects->sockets[i].pid == pid)
			return &objects->sockets[i];
	if (sockets_new(pid, &added.sockets) < 0)
		return NULL;
	to = &objects->sockets[objects->next++ % N_ELEMENTS(objects->sockets)];
	sockets_free(to->sockets);
	*to = added;
	return to;
}

/* A socket that is not known may be new. */
static int describe(struct wait_objects *objects, pid_t pid, int descriptor, char to[WAIT_OBJECT_BYTES])
{
	struct wait_sockets *sockets;
	char text[DESCRIPTOR_TEXT_BYTES];
	uint64_t began_ns = thread_cpu_ns(), now_ns = monotonic_ns();
	int r;

	r = descriptor_describe(pid, descriptor, NULL, text);
	if (r < 0)
		return r;
	if (descriptor_socket_inode(text) == 0) {
		wait_object_shorten(text, NULL, to);
		return 0;
	}
	sockets = sockets_of(objects, pid);
	if (!sockets)
		return -ENOMEM;
	r = descriptor_describe(pid, descriptor, sockets->sockets, text);
	if (r >= 0 && descriptor_socket_inode(text) != 0 && now_ns >= sockets->next_ns) {
		sockets_renew(sockets->sockets);
		r = descriptor_describe(pid, descriptor, sockets->sockets, text);
		sockets->next_ns = now_ns +
				   MAX((thread_cpu_ns() - began_ns) * SOCKETS_SHARE, (uint64_t)SOCKETS_EVERY_NS);
	}
	if (r >= 0)
		wait_object_shorten(text, sockets->sockets, to);
	return r;
}

/* The first one's name, and how many there are beside it: "[tcp 127.0.0.1:8000, listening, and 2 more]". */
static int name_descriptors(struct wait_objects *objects, pid_t pid, const struct wait_call *wait,
			    char to[WAIT_OBJECT_BYTES])
{
	size_t n_all = wait->n_descriptors + wait->n_more, n;
	int r;

	if (n_all == 0)
		return 0;
	r = describe(objects, pid, wait->descriptors[0], to);
	n = strlen(to);
	if (r >= 0 && n > 0 && n_all > 1)
		snprintf(to + n - 1, WAIT_OBJECT_BYTES - n + 1, ", and %zu more]", n_all - 1);
	return r == -ENOMEM ? r : 0; /* closed by now, or not to be read */
}

/* ---- Holders ---- */

/* As table thread has it. @python: NULL: unknown. @tid: its own; 0: unknown. */
static void name_holder(const struct process *process, const char *python, pid_t tid, char to[WAIT_OBJECT_BYTES])
{
	CLEANUP(freep) char *comm = NULL;
	const char *title = python;
	char file[48];

	snprintf(file, sizeof file, "task/%d/comm", (int)tid);
	comm = tid > 0 ? proc_text(process->pid, file, 64) : NULL;
	if (comm && comm[0])
		title = py_thread_title(python, comm, process->name ?: "");
	if (title && title[0])
		bracket("held by ", title, to);
}

static void name_by_ident(struct thread_names *names, const struct process *process, uint64_t ident,
			  char to[WAIT_OBJECT_BYTES])
{
	pid_t tid = 0;

	if (py_thread_of_ident(process->runtime, ident, &tid) >= 0)
		name_holder(process,
			    thread_names_by_ident(names, process->runtime, process->pid, ident, monotonic_ns()), tid,
			    to);
}

/* The memory may only resemble a mutex: its owner is a thread of the process. */
static void name_by_tid(struct thread_names *names, const struct process *process, pid_t tid,
			char to[WAIT_OBJECT_BYTES])
{
	char path[PROC_PATH_BYTES], file[48];

	snprintf(file, sizeof file, "task/%d", (int)tid);
	proc_path(process->pid, file, path);
	if (access(path, F_OK) == 0)
		name_holder(process, thread_names_find(names, process->runtime, process->pid, tid, monotonic_ns()), tid,
			    to);
}

static void name_lock(struct thread_names *names, const struct waiter *waiter, const struct wait_call *wait,
		      char to[WAIT_OBJECT_BYTES])
{
	const struct process *process = waiter->process;
	uint64_t words[LOCKING_WORDS];
	size_t n_words = MIN(waiter->n_bytes / sizeof *words, (size_t)LOCKING_WORDS);
	pid_t owner = wait_call_mutex_owner(wait, process->remote);
	struct py_lock lock;

	if (owner > 0) {
		name_by_tid(names, process, owner, to);
		return;
	}
	if (!process->runtime || n_words == 0)
		return;
	memcpy(words, waiter->stack, n_words * sizeof *words);
	if (py_lock_find(process->runtime, words, n_words, wait->futex, &lock) >= 0 && lock.owner != 0)
		name_by_ident(names, process, lock.owner, to);
}

static void name_gil_holder(struct thread_names *names, const struct waiter *waiter, char to[WAIT_OBJECT_BYTES])
{
	const struct process *process = waiter->process;
	uint64_t ident;

	py_begin_sample(process->runtime);
	if (py_gil_holder(process->runtime, waiter->tid, &ident) >= 0)
		name_by_ident(names, process, ident, to);
}

/* ---- All of them ---- */

static int read_object(struct wait_objects *objects, struct thread_names *names, const struct waiter *waiter,
		       char to[WAIT_OBJECT_BYTES])
{
	const struct process *process = waiter->process;
	struct wait_call wait;

	if (waiter->state == STATE_GIL) {
		name_gil_holder(names, waiter, to);
		return 0;
	}
	wait_call_of(waiter->call, 0, process->remote, &wait);
	if (wait.kind == WAIT_FUTEX)
		name_lock(names, waiter, &wait, to);
	else if (wait.kind == WAIT_DESCRIPTORS || wait.kind == WAIT_FILE_LOCK)
		return name_descriptors(objects, process->pid, &wait, to);
	return 0;
}

/* The recorder's time for objects fills up with the time on the clock. */
static bool affords(struct wait_objects *objects, uint64_t now_ns)
{
	objects->left_ns = MIN(objects->left_ns + (int64_t)((now_ns - objects->filled_ns) / SHARE), (int64_t)BURST_NS);
	objects->filled_ns = now_ns;
	return objects->left_ns > 0;
}

int wait_object_read(struct wait_objects *objects, struct thread_names *names, const struct waiter *waiter,
		     char to[WAIT_OBJECT_BYTES])
{
	uint64_t began_ns = thread_cpu_ns();
	int r;

	to[0] = '\0';
	if ((waiter->state != STATE_IO && waiter->state != STATE_LOCK && waiter->state != STATE_GIL) ||
	    (waiter->state == STATE_GIL && !waiter->process->runtime) || !affords(objects, monotonic_ns()))
		return 0;
	r = read_object(objects, names, waiter, to);
	objects->left_ns -= (int64_t)(thread_cpu_ns() - began_ns);
	return r;
}
