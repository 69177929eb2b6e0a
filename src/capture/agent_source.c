/* SPDX-License-Identifier: MIT */
/* agent_source.c - see agent_source.h.
 *
 * Invariants:
 * 1. A process is sampled as long as its socket is open: closing it ends sampling there, and so does our end.
 * 2. An event of the poller comes after all samples that were in the rings when the poller found it: samples of a
 *    thread come before its end.
 * 3. Samples of all rings come in the order of their times, and their times never decrease: two threads that write at
 *    the same moment may be in each other's order.
 * 4. Nothing in a ring is trusted (sample_ring.c). A ring that makes no sense is closed.
 * 5. Where mappings have changed since they were last reported, CAPTURE_REMAPPED comes before a sample: the size of the
 *    address space shows that, at some of the wake-ups.
 */
#include "src/capture/agent_source.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/id_map.h"
#include "base/proc.h"
#include "base/remote.h"
#include "base/task_ids.h"
#include "base/util.h"
#include "src/agent/agent.h"
#include "src/capture/poller.h"
#include "src/capture/wait_ticks.h"

enum {
	WAKE_NS = 20000000,
	WAIT_NS = 10000000,         /* looks at threads that wait */
	SELDOM_WAKE_NS = 250000000, /* of a recorder that is always on, with few samples a second */
	EVENTS_HZ = 10,             /* looks for forks, execs and ends */
	SELDOM_EVENTS_HZ = 4,
	ANSWER_MS = 5000,
	TRY_AGAIN_NS = 100000000,
	REMAP_NS = 50000000, /* at least, between two readings of mappings: a program may allocate all the time */
	NEEDED_SEALS = F_SEAL_SHRINK | F_SEAL_SEAL, /* else reading could be SIGBUS */
};

/* A child has an agent once its interpreter runs, a new program once it has started. */
#define TRY_FOR_NS UINT64_C(10000000000)

struct agent_process {
	pid_t pid;
	int socket; /* -1: it is not sampled */
	void *memory;
	size_t memory_bytes;
	struct sample_ring_reader ring; /* of that memory; its ring is NULL: there is none */
	uint64_t try_ns, try_until_ns;  /* to connect; 0: not any more */
	bool has_layout, has_ended, is_same_namespace;
	struct python_layout layout;
	struct task_ids *ids;
	struct id_map tids;                  /* the process' own number + 1: ours */
	uint64_t n_pages, wake, remapped_ns; /* of its address space when that was last reported; that wake-up; then */
};

struct agent_source {
	struct capture_options own_options;
	struct poller *poller;
	struct wait_ticks *waits; /* NULL: with MODE_CPU */
	struct agent_process **processes;
	size_t n, allocated;
	int timer;
	uint64_t wake, last_ns;
	struct capture_event held; /* of the poller, if has_held */
	bool has_held, is_paused, is_stopped, has_told_end;
	uint64_t stopped_ns;
	uint64_t n_samples, n_malformed, n_lost; /* n_lost: of rings that are closed */
	uint64_t handler_ns;
	unsigned n_yielded;
};

/* ---- The agent's socket ---- */

static int say(int socket, const struct message *message)
{
	char bytes[PROTOCOL_HEADER_BYTES + sizeof message->numbers + sizeof(struct python_layout)];
	ssize_t n = message_format(message, bytes);

	if (n < 0)
		return (int)n;
	return send(socket, bytes, (size_t)n, MSG_NOSIGNAL) == n ? 0 : -ENOTCONN;
}

/* A short answer, in one piece, and the descriptors that came with it. */
static ssize_t hear(int socket, char *bytes, size_t n_bytes, int fds[2])
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} control = { 0 };
	struct iovec part = { bytes, n_bytes };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
	};
	struct pollfd polled = { .fd = socket, .events = POLLIN };
	ssize_t n;

	if (poll(&polled, 1, ANSWER_MS) != 1)
		return -ENOTCONN;
	n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	if (n <= 0)
		return -ENOTCONN;
	if (message.msg_controllen >= sizeof control.header && control.header.cmsg_level == SOL_SOCKET &&
	    control.header.cmsg_type == SCM_RIGHTS && control.header.cmsg_len == CMSG_LEN(2 * sizeof(int)))
		memcpy(fds, CMSG_DATA(&control.header), 2 * sizeof(int));
	return n;
}

static void note_refusal(const struct capture_options *options, const struct message *message)
{
	if (options->agent_why)
		snprintf(options->agent_why, CAPTURE_WHY_BYTES, "%.*s", (int)message->n_text, message->text);
}

/*
 * An agent copies what there is of a stack, and no more: unless less was asked for, all of it, for the rest cannot be
 * read while the thread stands still.
 */
static uint32_t stack_bytes(const struct capture_options *options)
{
	return options->stack_bytes == SAMPLE_STACK_BYTES ? SAMPLE_RING_MAX_STACK_BYTES
							  : (uint32_t)options->stack_bytes & ~7u;
}

/* @fds: the ring and the memory, owned by the caller. */
static int ask_for_samples(const struct agent_source *source, int socket, int fds[2])
{
	const struct capture_options *options = &source->own_options;
	const struct message sample = {
		.kind = MESSAGE_SAMPLE,
		.numbers = { (uint32_t)MAX(options->hz * 1000, 1.0), stack_bytes(options) },
	};
	struct message answer;
	char bytes[2048];
	ssize_t n;
	int r;

	r = say(socket, &sample);
	if (r < 0)
		return r;
	n = hear(socket, bytes, sizeof bytes, fds);
	if (n < 0)
		return (int)n;
	n = message_parse(bytes, (size_t)n, PROTOCOL_AGENT, &answer);
	if (n > 0 && answer.kind == MESSAGE_REFUSED) {
		note_refusal(options, &answer);
		return -EBUSY;
	}
	return n > 0 && answer.kind == MESSAGE_SAMPLING && fds[0] >= 0 ? 0 : -EBADMSG;
}

static int tell_layout(const struct agent_process *process)
{
	const struct message message = {
		.kind = MESSAGE_LAYOUT,
		.text = (const char *)&process->layout,
		.n_text = sizeof process->layout,
	};

	return process->has_layout && process->socket >= 0 ? say(process->socket, &message) : 0;
}

/* ---- Processes ---- */

static void close_ring(struct agent_source *source, struct agent_process *process)
{
	if (process->ring.ring) {
		source->n_lost += __atomic_load_n(&process->ring.ring->n_dropped, __ATOMIC_RELAXED);
		source->n_yielded += __atomic_load_n(&process->ring.ring->state, __ATOMIC_RELAXED) ==
				     SAMPLE_RING_YIELDED;
	}
	sample_ring_reader_done(&process->ring);
	if (process->memory)
		munmap(process->memory, process->memory_bytes);
	process->memory = NULL;
}

static void close_socket(struct agent_process *process)
{
	closep(&process->socket);
	process->socket = -1;
}

static void free_process(struct agent_source *source, struct agent_process *process)
{
	close_ring(source, process);
	close_socket(process);
	(void)remote_lend(process->pid, -1);
	task_ids_free(process->ids);
	id_map_done(&process->tids);
	free(process);
}

static int map_ring(struct agent_process *process, int fd)
{
	struct stat st;
	void *memory;
	int r;

	if (fstat(fd, &st) < 0 || (fcntl(fd, F_GET_SEALS) & NEEDED_SEALS) != NEEDED_SEALS || st.st_size <= 0 ||
	    st.st_size > SAMPLE_RING_HEADER_BYTES + SAMPLE_RING_MAX_BYTES)
		return -EBADMSG;
	memory = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	r = sample_ring_reader_init(memory, (uint64_t)st.st_size, &process->ring);
	if (r < 0) {
		munmap(memory, (size_t)st.st_size);
		return r;
	}
	process->memory = memory;
	process->memory_bytes = (size_t)st.st_size;
	return 0;
}

/* It is sampled from now on. Its ring of before is empty. */
static int open_process(struct agent_source *source, struct agent_process *process)
{
	CLEANUP(closep) int socket = -1;
	CLEANUP(closep) int memory = -1;
	CLEANUP(closep) int ring = -1;
	int fds[2] = { -1, -1 }, r;

	r = source->own_options.connect_agent(process->pid, &socket);
	if (r < 0)
		return r == -ESRCH || r == -ENOMEM || r == -EBUSY ? r : -ENOTCONN;
	r = ask_for_samples(source, socket, fds);
	ring = fds[0];
	memory = fds[1];
	if (r < 0)
		return r;
	close_ring(source, process);
	r = map_ring(process, ring);
	if (r >= 0)
		r = remote_lend(process->pid, TAKE_FD(memory));
	if (r < 0)
		return r;
	process->socket = TAKE_FD(socket);
	process->try_ns = 0;
	return tell_layout(process);
}

static struct agent_process *find_process(const struct agent_source *source, pid_t pid)
{
	for (size_t i = source->n; i-- > 0;)
		if (source->processes[i]->pid == pid && !source->processes[i]->has_ended)
			return source->processes[i];
	return NULL;
}

static bool is_in_our_namespace(pid_t pid)
{
	struct stat ours, its;
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/ns/pid", (int)pid);
	return stat("/proc/self/ns/pid", &ours) < 0 || stat(path, &its) < 0 || ours.st_ino == its.st_ino;
}

static int add_process(struct agent_source *source, pid_t pid, struct agent_process **ret)
{
	struct agent_process *process;
	int r;

	r = grow(&source->processes, source->n, &source->allocated, sizeof *source->processes);
	process = r >= 0 ? calloc(1, sizeof *process) : NULL;
	if (!process)
		return -ENOMEM;
	process->pid = pid;
	process->socket = -1;
	process->is_same_namespace = is_in_our_namespace(pid);
	source->processes[source->n++] = process;
	*ret = process;
	return 0;
}

/* A new process, or a new program in it: it may have an agent soon. */
static void try_soon(struct agent_process *process)
{
	process->try_ns = monotonic_ns();
	process->try_until_ns = process->try_ns + TRY_FOR_NS;
}

static int connect_pending(struct agent_source *source)
{
	uint64_t now_ns = monotonic_ns();

	for (size_t i = 0; i < source->n; i++) {
		struct agent_process *process = source->processes[i];

		if (process->try_ns == 0 || now_ns < process->try_ns || source->is_paused || source->is_stopped)
			continue;
		process->try_ns = now_ns < process->try_until_ns ? now_ns + TRY_AGAIN_NS : 0;
		if (open_process(source, process) == -ENOMEM)
			return -ENOMEM;
	}
	return 0;
}

/* An agent that has ended, by exec or on request, has closed its end. */
static void see_sockets(struct agent_source *source)
{
	for (size_t i = 0; i < source->n; i++) {
		struct agent_process *process = source->processes[i];
		char byte;

		if (process->socket >= 0 && recv(process->socket, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0)
			close_socket(process);
	}
}

static int follow_fork(struct agent_source *source, const struct capture_event *event)
{
	struct agent_process *process = find_process(source, event->pid);
	int r = 0;

	if (event->pid == event->fork.parent_pid)
		return 0;
	if (process)
		process->has_ended = true;
	if (source->waits)
		r = wait_ticks_fork(source->waits, event->pid, event->time_ns);
	if (r >= 0)
		r = add_process(source, event->pid, &process);
	if (r >= 0)
		try_soon(process);
	return r;
}

/* What an event of the poller means here. */
static int follow(struct agent_source *source, const struct capture_event *event)
{
	struct agent_process *process;

	if (event->type == CAPTURE_FORK)
		return follow_fork(source, event);
	process = find_process(source, event->pid);
	if (!process)
		return 0;
	if (event->type == CAPTURE_COMM && event->comm.is_exec) {
		close_socket(process);
		close_ring(source, process);
		(void)remote_lend(process->pid, -1); /* the memory of the program before */
		process->has_layout = false;
		id_map_clear(&process->tids);
		try_soon(process);
	} else if (event->type == CAPTURE_EXIT && event->pid == event->tid) {
		close_socket(process);
		process->has_ended = true;
		process->try_ns = 0;
	}
	return 0;
}

/* Those that have ended, and of which all has been read. */
static void forget_ended(struct agent_source *source)
{
	size_t n = 0;

	for (size_t i = 0; i < source->n; i++) {
		struct agent_process *process = source->processes[i];
		uint64_t time_ns;

		if (process->has_ended && (!process->ring.ring || !sample_ring_time(&process->ring, &time_ns)))
			free_process(source, process);
		else
			source->processes[n++] = process;
	}
	source->n = n;
}

/* ---- Samples ---- */

/* Threads of other PID namespaces have other numbers there. 0: it has ended. */
static pid_t our_tid(struct agent_process *process, pid_t own)
{
	CLEANUP(freep) pid_t *tids = NULL;
	struct id_slot *slot;
	size_t n = 0;

	if (process->is_same_namespace)
		return own;
	slot = id_map_find(&process->tids, (uint64_t)own + 1);
	if (slot)
		return (pid_t)slot->id;
	if ((!process->ids && task_ids_new(process->pid, &process->ids) < 0) || proc_tasks(process->pid, &tids, &n) < 0)
		return 0;
	id_map_clear(&process->tids);
	for (size_t i = 0; i < n; i++) {
		pid_t its;

		if (task_ids_own(process->ids, tids[i], &its) >= 0 && !id_map_find(&process->tids, (uint64_t)its + 1))
			(void)id_map_add(&process->tids, (uint64_t)its + 1, (uint32_t)tids[i]);
	}
	slot = id_map_find(&process->tids, (uint64_t)own + 1);
	return slot ? (pid_t)slot->id : 0;
}

/* Its frames come with our numbers, as those of the BPF program do. */
static void put_sample(struct agent_source *source, struct agent_process *process, pid_t tid,
		       const struct sample_ring_sample *taken, struct capture_event *ret)
{
	uint64_t time_ns = MIN(MAX(taken->record.time_ns, source->last_ns), monotonic_ns());

	source->last_ns = time_ns;
	*ret = (struct capture_event){ .type = CAPTURE_SAMPLE, .time_ns = time_ns, .pid = process->pid, .tid = tid };
	ret->sample = (struct sample){
		.time_ns = time_ns,
		.pid = process->pid,
		.tid = tid,
		.cpu = taken->record.cpu,
		.weight = taken->record.weight_ns,
		.has_user = true,
		.stack = taken->stack,
		.stack_bytes = taken->record.stack_bytes,
		.python = taken->python && taken->python->layout_id != 0 ? taken->python : NULL,
	};
	memcpy(ret->sample.regs.value, taken->record.regs, sizeof ret->sample.regs.value);
	if (taken->python) {
		taken->python->pid = (uint32_t)process->pid;
		taken->python->tid = (uint32_t)tid;
	}
	source->n_samples++;
	source->handler_ns += taken->record.handler_ns;
}

_Static_assert((int)MACHINE_N_REGS <= (int)SAMPLE_RING_MAX_REGS, "all registers of a machine");

/* Pages of the address space. 0: not told. */
static uint64_t read_pages(pid_t pid)
{
	CLEANUP(freep) char *text = NULL;
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
	return read_file(path, 256, &text, NULL) < 0 ? 0 : strtoull(text, NULL, 10);
}

/* Whether the next sample's mappings may not be known. */
static bool is_remapped(struct agent_source *source, struct agent_process *process)
{
	uint64_t n_pages;

	if (process->wake == source->wake)
		return false;
	process->wake = source->wake;
	if (monotonic_ns() < process->remapped_ns + REMAP_NS)
		return false;
	n_pages = read_pages(process->pid);
	if (n_pages == 0 || n_pages == process->n_pages)
		return false;
	process->n_pages = n_pages;
	process->remapped_ns = monotonic_ns();
	return true;
}

static struct agent_process *earliest(const struct agent_source *source)
{
	struct agent_process *found = NULL;
	uint64_t time_ns, found_ns = 0;

	for (size_t i = 0; i < source->n; i++) {
		struct agent_process *process = source->processes[i];

		if (process->ring.ring && sample_ring_time(&process->ring, &time_ns) &&
		    (!found || time_ns < found_ns)) {
			found = process;
			found_ns = time_ns;
		}
	}
	return found;
}

/* Returns whether ret was filled. */
static bool take_sample(struct agent_source *source, struct capture_event *ret)
{
	struct sample_ring_sample taken;
	struct agent_process *process;

	while ((process = earliest(source)) != NULL) {
		pid_t tid;
		int r;

		if (is_remapped(source, process)) {
			*ret = (struct capture_event){ .type = CAPTURE_REMAPPED,
						       .time_ns = monotonic_ns(),
						       .pid = process->pid,
						       .tid = process->pid };
			return true;
		}
		r = sample_ring_take(&process->ring, &taken);
		if (r < 0) {
			source->n_malformed++;
			close_socket(process);
			close_ring(source, process);
		}
		tid = r > 0 ? our_tid(process, taken.record.tid) : 0;
		if (tid == 0 || source->own_options.mode == MODE_OFFCPU)
			continue;
		put_sample(source, process, tid, &taken, ret);
		return true;
	}
	return false;
}

/* All processes, those without an agent, too. */
static int look_at_waits(struct agent_source *source)
{
	int r = 0;

	for (size_t i = 0; source->waits && r >= 0 && i < source->n; i++)
		if (!source->processes[i]->has_ended)
			r = wait_ticks_look(source->waits, source->processes[i]->pid);
	return r;
}

static int rest(struct agent_source *source)
{
	uint64_t expirations;
	int r = 0;

	if (read(source->timer, &expirations, sizeof expirations) == sizeof expirations)
		r = look_at_waits(source);
	source->wake++;
	see_sockets(source);
	forget_ended(source);
	return r < 0 ? r : connect_pending(source);
}

/* If waits are counted, wait_ticks reports the end of a thread other than the main one. */
static bool is_told(const struct agent_source *source, const struct capture_event *event)
{
	return source->waits && event->type == CAPTURE_EXIT && event->pid != event->tid;
}

/* Returns whether ret was filled, for the last time. */
static bool take_end(struct agent_source *source, struct capture_event *ret)
{
	if (!source->waits || !source->is_stopped || source->has_told_end)
		return false;
	source->has_told_end = true;
	*ret = (struct capture_event){ .type = CAPTURE_END, .time_ns = source->stopped_ns };
	return true;
}

int agent_source_next(struct agent_source *source, struct capture_event *ret)
{
	for (;;) {
		struct capture_event event;
		int r;

		if (take_sample(source, ret) || (source->waits && wait_ticks_take(source->waits, ret)))
			return 1;
		if (source->has_held) {
			source->has_held = false;
			*ret = source->held;
			r = follow(source, ret);
			return r < 0 ? r : 1;
		}
		r = poller_next(source->poller, &event);
		if (r < 0)
			return r;
		if (r == 0)
			r = rest(source);
		else if (event.type == CAPTURE_SAMPLE || is_told(source, &event))
			continue; /* a sample's time is in the rings, or has no stack */
		else if (source->waits && event.type == CAPTURE_EXIT && event.pid == event.tid)
			r = wait_ticks_leave(source->waits, event.pid, event.time_ns) ?: r;
		if (r < 0)
			return r;
		if (r == 0 && source->waits && wait_ticks_take(source->waits, ret))
			return 1;
		if (r == 0)
			return take_end(source, ret);
		source->held = event; /* the rings once more: see 2 */
		source->has_held = true;
	}
}

/* ---- Beginning and end ---- */

static void agent_source_freep(struct agent_source **source)
{
	agent_source_free(*source);
}

/* The poller's samples are not used, only what it finds out. */
static int start_poller(struct agent_source *source, const pid_t *pids, size_t n_pids)
{
	struct capture_options options = source->own_options;

	options.source = SOURCE_POLL;
	options.hz = options.wake_on_live_read ? SELDOM_EVENTS_HZ : EVENTS_HZ;
	options.idle = options.paused = false;
	return poller_attach(&options, pids, n_pids, &source->poller);
}

static int start_timer(struct agent_source *source)
{
	long wake_ns = source->own_options.mode != MODE_CPU    ? WAIT_NS
		       : source->own_options.wake_on_live_read ? SELDOM_WAKE_NS
							       : WAKE_NS;
	const struct itimerspec spec = { .it_value = { 0, wake_ns }, .it_interval = { 0, wake_ns } };

	source->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	return source->timer < 0 || timerfd_settime(source->timer, 0, &spec, NULL) < 0 ? -errno : 0;
}

/* One that has ended by now is passed over. Returns whether it is sampled. */
static int add_running(struct agent_source *source, pid_t pid)
{
	struct agent_process *process;
	int r;

	r = add_process(source, pid, &process);
	if (r < 0)
		return r;
	if (source->is_paused) {
		try_soon(process);
		return 1;
	}
	r = open_process(source, process);
	if (r < 0) {
		free_process(source, process);
		source->n--;
	}
	return r == -ESRCH ? 0 : r < 0 ? r : 1;
}

static int begin_waits(struct agent_source *source)
{
	int r = wait_ticks_new(&source->waits);

	if (r != -ENOSYS)
		return r;
	if (source->own_options.agent_why)
		snprintf(source->own_options.agent_why, CAPTURE_WHY_BYTES,
			 "this kernel does not count how often threads run (CONFIG_SCHED_INFO)");
	return -EBUSY;
}

int agent_source_new(const struct capture_options *options, const pid_t *pids, size_t n_pids, struct agent_source **ret)
{
	CLEANUP(agent_source_freep) struct agent_source *source = NULL;
	bool any = false;
	int r = 0;

	if (!options->connect_agent)
		return -ENOTCONN;
	source = calloc(1, sizeof *source);
	if (!source)
		return -ENOMEM;
	source->timer = -1;
	source->own_options = *options;
	for (size_t i = 0; r >= 0 && i < n_pids; i++) {
		r = add_running(source, pids[i]);
		any |= r > 0;
	}
	if (r >= 0 && !any)
		r = -ESRCH;
	source->is_paused = options->paused;
	if (source->is_paused)
		agent_source_pause(source);
	if (r >= 0)
		r = start_poller(source, pids, n_pids);
	if (r >= 0)
		r = start_timer(source);
	if (r >= 0 && options->mode != MODE_CPU)
		r = begin_waits(source);
	if (r >= 0)
		r = look_at_waits(source);
	if (r < 0)
		return r;
	*ret = TAKE(source);
	return 0;
}

void agent_source_free(struct agent_source *source)
{
	if (!source)
		return;
	for (size_t i = 0; i < source->n; i++)
		free_process(source, source->processes[i]);
	free(source->processes);
	poller_free(source->poller);
	wait_ticks_free(source->waits);
	closep(&source->timer);
	free(source);
}

int agent_source_add(struct agent_source *source, pid_t pid)
{
	struct agent_process *process = find_process(source, pid);
	int r;

	if (process)
		return 0;
	r = poller_add(source->poller, pid);
	if (r >= 0)
		r = add_process(source, pid, &process);
	if (r >= 0)
		try_soon(process); /* its agent may be starting, too */
	return r;
}

int agent_source_fd(const struct agent_source *source)
{
	return source->timer;
}

int agent_source_watch(struct agent_source *source, pid_t pid, const struct python_layout *layout)
{
	struct agent_process *process = find_process(source, pid);

	if (!process)
		return -ESRCH;
	process->layout = *layout;
	process->has_layout = true;
	return tell_layout(process);
}

void agent_source_pause(struct agent_source *source)
{
	source->is_paused = true;
	for (size_t i = 0; i < source->n; i++) {
		if (source->processes[i]->socket >= 0)
			source->processes[i]->try_ns = 1;
		close_socket(source->processes[i]);
	}
}

/* Each is connected again once its ring of before has been read. */
void agent_source_resume(struct agent_source *source)
{
	uint64_t now_ns = monotonic_ns();

	source->is_paused = false;
	for (size_t i = 0; i < source->n; i++)
		if (source->processes[i]->try_ns != 0)
			source->processes[i]->try_until_ns = now_ns + TRY_FOR_NS;
}

void agent_source_stop(struct agent_source *source)
{
	if (source->is_stopped)
		return;
	source->stopped_ns = monotonic_ns();
	(void)look_at_waits(source); /* what cannot be counted any more is unknown */
	source->is_stopped = true;
	for (size_t i = 0; i < source->n; i++)
		close_socket(source->processes[i]);
	poller_stop(source->poller);
}

void agent_source_read_counts(const struct agent_source *source, struct capture_counts *ret)
{
	*ret = (struct capture_counts){
		.samples = source->n_samples,
		.lost = source->n_lost,
		.malformed = source->n_malformed,
		.n_yielded = source->n_yielded,
		.handler_ns = source->handler_ns,
	};
	for (size_t i = 0; i < source->n; i++) {
		const struct sample_ring *ring = source->processes[i]->ring.ring;

		if (!ring)
			continue;
		ret->lost += __atomic_load_n(&ring->n_dropped, __ATOMIC_RELAXED);
		ret->n_threads += __atomic_load_n(&ring->n_threads, __ATOMIC_RELAXED);
		ret->n_refused += __atomic_load_n(&ring->n_refused, __ATOMIC_RELAXED);
		ret->n_blocked += __atomic_load_n(&ring->n_blocked, __ATOMIC_RELAXED);
		ret->n_yielded += __atomic_load_n(&ring->state, __ATOMIC_RELAXED) == SAMPLE_RING_YIELDED;
	}
}
