/* SPDX-License-Identifier: MIT */
/* listener.c - the agent's thread that listens, and its answers.
 *
 * It has a file table of its own (CLOSE_RANGE_UNSHARE), which contains only files that it opens itself: the program
 * cannot close the agent's files, its children do not inherit them, they do not count among its files, and the agent
 * keeps none of the program's pipes open. Without an evaluation it sleeps in poll(2) without a timeout. The worker
 * cannot wake it, having other files; during an evaluation it therefore polls every few milliseconds.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "src/agent/crash.h"
#include "src/agent/private.h"
#include "src/agent/python.h"
#include "src/agent/sampler.h"
#include "src/agent/settings.h"
#include "src/agent/worker.h"

enum {
	MAX_CLIENTS = 8,
	STACK_BYTES = 1 << 18,
	BACKLOG = 64,
	FIRST_BYTES = 4096, /* initial size of a client's buffers, which grow */
	PATIENCE_MS = 2000, /* time for an interrupted evaluation to end */
	FAST_MS = 1,
	SLOW_MS = 5,
	GIL_MS = 10000, /* longest wait for the GIL */
	FAST_LOOKS = 50,
	MAX_REASON = 1000, /* characters of a traceback in a reason */
};

struct buffer {
	char *bytes;
	size_t n, allocated;
};

struct client {
	int fd; /* -1: none */
	struct buffer in, out;
	bool is_closing; /* close after all bytes are sent */
	int sent[2];     /* descriptors to send with the next bytes, and to close afterwards; -1: none */
};

static struct {
	int socket;
	struct client clients[MAX_CLIENTS];
	/* The evaluation. */
	struct client *owner; /* the client that waits for it; NULL: none */
	bool is_started, is_interrupted, asks_again;
	uint64_t due_ns, patience_ns; /* CLOCK_MONOTONIC; 0: no bound */
	uint64_t delay_ns;            /* of the worker, when it was interrupted */
	unsigned n_looks;
	struct client *recorder; /* for which the process is sampled; NULL: none */
	bool ticks;              /* the sampler wants to be called again */
	uint64_t tick_ns;        /* when it was called last */
	/* The end. */
	struct client *detaching;
	bool is_disarming; /* the worker undoes what our Python code has changed; due_ns is its bound */
	/* A key that Python code applies. */
	bool is_applying; /* the worker applies it until due_ns */
	unsigned applied_key;
	struct client *applier; /* the client that set it; NULL: disconnected */
	struct config applied;  /* the configuration with it */
	bool ends;
} on;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- Clients ---- */

static bool make_room(struct buffer *buffer, size_t n_bytes)
{
	size_t wanted = buffer->allocated ? buffer->allocated : FIRST_BYTES;
	char *bytes;

	while (wanted < buffer->n + n_bytes)
		wanted *= 2;
	if (wanted == buffer->allocated)
		return true;
	bytes = realloc(buffer->bytes, wanted);
	if (!bytes)
		return false;
	buffer->bytes = bytes;
	buffer->allocated = wanted;
	return true;
}

static void take_off(struct buffer *buffer, size_t n_bytes)
{
	memmove(buffer->bytes, buffer->bytes + n_bytes, buffer->n - n_bytes);
	buffer->n -= n_bytes;
}

static const struct client no_client = { .fd = -1, .sent = { -1, -1 } };

static void close_sent(struct client *client)
{
	for (unsigned i = 0; i < sizeof client->sent / sizeof client->sent[0]; i++) {
		if (client->sent[i] >= 0)
			close(client->sent[i]);
		client->sent[i] = -1;
	}
}

static void stop_sampling(void)
{
	on.recorder = NULL;
	sampler_stop();
	on.ticks = true; /* the sampler may still have the signal */
}

static void drop(struct client *client)
{
	if (on.recorder == client)
		stop_sampling();
	if (on.owner == client) {
		on.owner = NULL;
		if (worker_phase() == JOB_RUNNING)
			(void)worker_interrupt(); /* its client has disconnected */
		worker_abandon();
	}
	if (on.detaching == client)
		on.detaching = NULL;
	if (on.applier == client)
		on.applier = NULL;
	close(client->fd);
	free(client->in.bytes);
	free(client->out.bytes);
	close_sent(client);
	*client = no_client;
}

static void put(struct client *client, enum message_kind kind, uint32_t number, const char *text, size_t n_text)
{
	const struct message message = { .kind = kind, .numbers = { number }, .text = text, .n_text = n_text };
	ssize_t n = -ENOMEM;

	if (make_room(&client->out, PROTOCOL_HEADER_BYTES + sizeof message.numbers + n_text))
		n = message_format(&message, client->out.bytes + client->out.n);
	if (n < 0)
		client->is_closing = true;
	else
		client->out.n += (size_t)n;
}

static void refuse(struct client *client, const char *why)
{
	put(client, MESSAGE_REFUSED, 0, why, strlen(why));
}

/* ---- The evaluation ---- */

static void end_evaluation(enum outcome outcome, const char *text, size_t n_text)
{
	static const char cut[] = "... (cut)\n";
	const size_t max = PROTOCOL_MAX_BYTES / 2;

	if (n_text > max)
		put(on.owner, MESSAGE_OUTPUT, 2, cut, sizeof cut - 1);
	put(on.owner, MESSAGE_RESULT, outcome, text, n_text > max ? max : n_text);
	on.owner = NULL;
}

static void send_output(void)
{
	static char bytes[PROTOCOL_MAX_OUTPUT]; /* only this thread uses it */
	int stream;
	size_t n;

	while (on.owner->out.n < PROTOCOL_MAX_OUTPUT && (n = worker_take_output(&stream, bytes, sizeof bytes)) > 0)
		put(on.owner, MESSAGE_OUTPUT, (uint32_t)stream, bytes, n);
}

static void send_result(void)
{
	enum outcome outcome;
	char *text;
	size_t n;

	if (on.owner->out.n >= PROTOCOL_MAX_OUTPUT)
		return; /* output may remain */
	worker_take_result(&outcome, &text, &n);
	end_evaluation(outcome, text, n);
	free(text);
}

/* Time that the worker has waited for a processor so far, in ns; 0: unknown. Source: sched-stats.rst, "/proc/<pid>/schedstat". */
static uint64_t worker_delay_ns(void)
{
	char path[64], text[96] = "";
	unsigned long long ran, waited = 0;
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof path, "/proc/self/task/%d/schedstat",
		 (int)__atomic_load_n(&agent.worker, __ATOMIC_SEQ_CST));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, sizeof text - 1);
		close(fd);
	}
	return n > 0 && sscanf(text, "%llu %llu", &ran, &waited) == 2 ? waited : 0;
}

static void interrupt(void)
{
	if (worker_cancel()) {
		end_evaluation(OUTCOME_NOT_STARTED, NULL, 0);
		return;
	}
	if (!on.is_interrupted) {
		on.patience_ns = now_ns() + PATIENCE_MS * UINT64_C(1000000);
		on.delay_ns = worker_delay_ns();
	}
	on.is_interrupted = true;
	on.asks_again = !worker_interrupt();
}

/* Do not mistake a busy machine, on which the code makes no progress, for C code that does not return. */
static bool is_hopeless(void)
{
	uint64_t now = now_ns(), delay;

	if (!on.is_interrupted || now < on.patience_ns)
		return false;
	delay = worker_delay_ns();
	return delay <= on.delay_ns || now - on.patience_ns >= delay - on.delay_ns;
}

static void advance(void)
{
	enum job_phase phase = worker_phase();

	if (phase != JOB_QUEUED && !on.is_started) {
		on.is_started = true;
		put(on.owner, MESSAGE_STARTED, 0, NULL, 0);
	}
	if (on.asks_again)
		on.asks_again = !worker_interrupt();
	send_output();
	if (phase == JOB_DONE) {
		send_result();
	} else if (is_hopeless()) {
		worker_abandon();
		end_evaluation(OUTCOME_ABANDONED, NULL, 0);
	} else if (on.due_ns && !on.is_interrupted && now_ns() >= on.due_ns) {
		interrupt();
	} else if (worker_has_died()) {
		worker_abandon();
		refuse(on.owner, "the interpreter has ended");
		on.owner = NULL;
	}
}

static void begin(struct client *client, const struct message *message)
{
	char *code;

	if (!config_is_on(&agent.config, &config_eval)) {
		refuse(client, "probing.eval is off in this process");
		return;
	}
	code = malloc(message->n_text + 1);
	if (!code) {
		refuse(client, "not enough memory");
		return;
	}
	memcpy(code, message->text, message->n_text);
	if (on.owner || !worker_submit(code, message->n_text)) {
		free(code);
		refuse(client,
		       worker_has_died() ? "the interpreter has ended" : "another evaluation has not ended yet");
		return;
	}
	on.owner = client;
	on.is_started = on.is_interrupted = on.asks_again = false;
	on.due_ns = message->numbers[0] ? now_ns() + message->numbers[0] * UINT64_C(1000000) : 0;
	on.n_looks = 0;
}

/* ---- Probes ---- */

/* The tables and functions of attach --config (src/cli/probes.py), and others (package.py). It binds no name in __main__. */
static const char disarm_code[] =
	"(lambda agent: (agent.get('disarm', len)(''), agent.get('undo_all', len)(''), None)[2])"
	"(getattr(__import__('sys'), '_probing_agent', {}))";

static int begin_disarming(void)
{
	char *code;

	if ((!__atomic_load_n(&agent.has_probes, __ATOMIC_SEQ_CST) &&
	     !__atomic_load_n(&agent.has_undo, __ATOMIC_SEQ_CST)) ||
	    worker_has_died() || !python_is_running())
		return 1;
	code = strdup(disarm_code);
	if (!code || !worker_submit(code, sizeof disarm_code - 1)) {
		free(code);
		return -EBUSY;
	}
	on.is_disarming = true;
	on.due_ns = now_ns() + GIL_MS * UINT64_C(1000000);
	on.n_looks = 0;
	return 0;
}

/* Returns 1: no probe is armed; 0: not yet. Errors: -EBUSY another evaluation runs; -ETIMEDOUT the GIL is not released. */
static int disarm(void)
{
	enum outcome outcome;
	size_t n_text;
	char *text;

	if (!on.is_disarming)
		return begin_disarming();
	if (worker_phase() == JOB_DONE) {
		worker_take_result(&outcome, &text, &n_text);
		free(text);
		on.is_disarming = false;
		settings_forget_applied();
		return 1;
	}
	if (worker_has_died()) {
		worker_abandon();
		on.is_disarming = false;
		return 1;
	}
	if (now_ns() < on.due_ns || !worker_cancel())
		return 0;
	on.is_disarming = false;
	return -ETIMEDOUT;
}

/* ---- Settings ---- */

static void put_configuration(struct client *client)
{
	char list[CONFIG_MAX_KEYS * (64 + CONFIG_MAX_TEXT)], value[CONFIG_MAX_TEXT];
	size_t n = 0;

	for (unsigned i = 0; i < n_config_keys; i++) {
		config_format(&agent.config, i, value);
		n += (size_t)snprintf(list + n, sizeof list - n, "%.63s=%s\n", config_keys[i]->name, value);
	}
	put(client, MESSAGE_CONFIGURATION, 0, list, n);
}

/* Have the module of a key apply its value; then end_applying() answers. */
static void begin_applying(struct client *client, unsigned key)
{
	char *code = python_apply_code(&on.applied, key);

	if (!code || !worker_submit(code, strlen(code))) {
		refuse(client, !code               ? "not enough memory"
			       : worker_has_died() ? "the interpreter has ended"
						   : "an evaluation has not ended yet");
		free(code);
		return;
	}
	on.is_applying = true;
	on.applied_key = key;
	on.applier = client;
	on.due_ns = now_ns() + GIL_MS * UINT64_C(1000000);
	on.n_looks = 0;
}

static const char *set_crash(const struct config *config)
{
	const char *text = config_text(config, &config_crash);

	return crash_set(text && python_has_package() ? text : "off"); /* otherwise the package reports the reason */
}

static void end_applying(const char *problem, size_t n_problem)
{
	on.is_applying = false;
	if (!problem)
		settings_set(&on.applied);
	else if (config_keys[on.applied_key] == &config_crash)
		(void)set_crash(&agent.config); /* as before */
	if (!on.applier)
		return;
	if (problem)
		put(on.applier, MESSAGE_REFUSED, 0, problem, n_problem < MAX_REASON ? n_problem : MAX_REASON);
	else
		put_configuration(on.applier);
	on.applier = NULL;
}

static void apply(void)
{
	static const char died[] = "the interpreter has ended", busy[] = "no thread releases the GIL";
	static char ignored[PROTOCOL_MAX_OUTPUT]; /* discards the output of other code */
	enum outcome outcome;
	size_t n_text;
	char *text;
	int stream;

	(void)worker_take_output(&stream, ignored, sizeof ignored);
	if (worker_phase() == JOB_DONE) {
		worker_take_result(&outcome, &text, &n_text);
		end_applying(outcome == OUTCOME_NOTHING ? NULL : text ? text : "not enough memory", n_text);
		free(text);
	} else if (worker_has_died()) {
		worker_abandon();
		end_applying(died, sizeof died - 1);
	} else if (now_ns() >= on.due_ns && worker_cancel()) {
		end_applying(busy, sizeof busy - 1);
	}
}

static void configure(struct client *client, const struct message *message)
{
	char assignment[CONFIG_MAX_TEXT + CONFIG_MAX_NAME] = "", why[CONFIG_MAX_WHY];
	const char *problem;
	int key;

	if (message->n_text >= sizeof assignment || memchr(message->text, '\0', message->n_text)) {
		refuse(client, "that is not KEY=VALUE");
		return;
	}
	memcpy(assignment, message->text, message->n_text);
	if (!assignment[0]) {
		put_configuration(client);
		return;
	}
	if (on.is_applying) {
		refuse(client, "another key is being set");
		return;
	}
	on.applied = agent.config;
	if (config_assign(&on.applied, assignment, why) < 0) {
		refuse(client, why);
		return;
	}
	key = config_find(assignment, strcspn(assignment, "="));
	problem = config_keys[key] == &config_crash ? set_crash(&on.applied) : NULL;
	if (problem) {
		refuse(client, problem);
		(void)set_crash(&agent.config); /* as before */
		return;
	}
	if (key >= 0 && config_keys[key]->module) {
		begin_applying(client, (unsigned)key);
		if (!on.is_applying && config_keys[key] == &config_crash)
			(void)set_crash(&agent.config);
		return;
	}
	settings_set(&on.applied);
	put_configuration(client);
}

/* ---- Sampling ---- */

/* Opened here, the recorder can read this process's memory without a privilege. Source: proc_pid_mem(5). */
static void start_sampling(struct client *client, const struct message *message)
{
	uint32_t rate = message->numbers[0], stack_bytes = message->numbers[1];
	const char *why = NULL;
	int ring = -1, memory;

	if (rate < SAMPLE_MIN_RATE || stack_bytes > SAMPLE_RING_MAX_STACK_BYTES || stack_bytes % 8 != 0 ||
	    client->out.n > 0) {
		refuse(client, "these are not sampling parameters");
		return;
	}
	memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	if (memory < 0)
		why = "it cannot open its own /proc/self/mem";
	if (!why)
		why = sampler_start(UINT64_C(1000000000000) / rate, stack_bytes, &ring);
	if (why) {
		if (memory >= 0)
			close(memory);
		refuse(client, why);
		return;
	}
	on.recorder = client;
	on.ticks = true;
	on.tick_ns = now_ns();
	client->sent[0] = ring;
	client->sent[1] = memory;
	put(client, MESSAGE_SAMPLING, 0, NULL, 0);
}

static void watch_python(struct client *client, const struct message *message)
{
	struct python_layout layout;

	if (on.recorder != client || message->n_text != sizeof layout) {
		refuse(client, "that is not the layout of a sampled process");
		return;
	}
	memcpy(&layout, message->text, sizeof layout);
	if (!sampler_watch(&layout))
		refuse(client, "a thread is stopped while it writes a sample");
}

static void tend_sampling(void)
{
	uint64_t now = now_ns();

	if (!on.ticks || now - on.tick_ns < sampler_tick_ms() * UINT64_C(1000000))
		return;
	on.tick_ns = now;
	on.ticks = sampler_tick();
	if (on.recorder && !sampler_runs()) /* the program has taken the signal: the ring tells the recorder */
		on.recorder = NULL;
}

/* ---- Messages ---- */

static void answer(struct client *client, const struct message *message)
{
	switch (message->kind) {
	case MESSAGE_HELLO:
		put(client, MESSAGE_WELCOME, (uint32_t)agent.pid, python_version(), strlen(python_version()));
		return;
	case MESSAGE_EVALUATE:
		begin(client, message);
		return;
	case MESSAGE_INTERRUPT:
		if (on.owner == client)
			interrupt();
		return;
	case MESSAGE_CONFIGURE:
		configure(client, message);
		return;
	case MESSAGE_SAMPLE:
		start_sampling(client, message);
		return;
	case MESSAGE_LAYOUT:
		watch_python(client, message);
		return;
	case MESSAGE_DETACH:
		if (worker_phase() == JOB_RUNNING)
			refuse(client, "an evaluation has not ended yet");
		else
			on.detaching = client;
		return;
	default: /* message_parse() rejects all other kinds */
		client->is_closing = true;
	}
}

static void answer_all(struct client *client)
{
	struct message message;
	ssize_t n = 0;

	while (!client->is_closing &&
	       (n = message_parse(client->in.bytes, client->in.n, PROTOCOL_PROBING, &message)) > 0) {
		answer(client, &message);
		take_off(&client->in, (size_t)n);
	}
	if (n < 0) {
		refuse(client, n == -EPROTONOSUPPORT ? "this agent is of another version" : "that was not a message");
		client->is_closing = true;
	}
}

static bool receive(struct client *client)
{
	ssize_t n;

	if (!make_room(&client->in, FIRST_BYTES))
		return false;
	n = recv(client->fd, client->in.bytes + client->in.n, client->in.allocated - client->in.n, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	client->in.n += (size_t)n;
	if (n > 0)
		answer_all(client);
	return n > 0;
}

/* Passes the descriptors, if any, with the bytes: SCM_RIGHTS in unix(7). */
static ssize_t send_bytes(struct client *client)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof client->sent)];
	} control = { 0 };
	struct iovec part = { client->out.bytes, client->out.n };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	ssize_t n;

	if (client->sent[0] >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof control;
		control.header = (struct cmsghdr){ CMSG_LEN(sizeof client->sent), SOL_SOCKET, SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.header), client->sent, sizeof client->sent);
	}
	n = sendmsg(client->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n > 0)
		close_sent(client);
	return n;
}

static bool send_some(struct client *client)
{
	ssize_t n;

	if (client->out.n == 0)
		return !client->is_closing;
	n = send_bytes(client);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	take_off(&client->out, (size_t)n);
	return client->out.n > 0 || !client->is_closing;
}

/* Only the process' own user, and root. */
static bool is_allowed(int fd)
{
	struct ucred peer;
	socklen_t n = sizeof peer;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0)
		return false;
	return peer.uid == geteuid() || peer.uid == 0;
}

static bool keep_client(int fd)
{
	for (int i = 0; i < MAX_CLIENTS && is_allowed(fd); i++)
		if (on.clients[i].fd < 0) {
			on.clients[i].fd = fd;
			return true;
		}
	return false;
}

static void accept_all(void)
{
	int fd;

	while ((fd = accept4(on.socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
		if (!keep_client(fd))
			close(fd);
}

/* ---- The loop ---- */

static int time_out(void)
{
	bool has_job = on.owner || on.is_disarming || on.is_applying;

	if (on.ticks && !has_job)
		return (int)sampler_tick_ms();
	if (!has_job)
		return -1;
	return on.n_looks++ < FAST_LOOKS ? FAST_MS : SLOW_MS;
}

static bool look(void)
{
	struct pollfd polled[MAX_CLIENTS + 1] = { { .fd = on.socket, .events = POLLIN } };

	for (int i = 0; i < MAX_CLIENTS; i++)
		polled[i + 1] = (struct pollfd){ .fd = on.clients[i].fd,
						 .events = POLLIN | (on.clients[i].out.n > 0 ? POLLOUT : 0) };
	if (poll(polled, MAX_CLIENTS + 1, time_out()) < 0 && errno != EINTR)
		return false;
	if (polled[0].revents & ~POLLIN)
		return false;
	for (int i = 0; i < MAX_CLIENTS; i++) {
		struct client *client = &on.clients[i];

		if (client->fd >= 0 && polled[i + 1].revents & ~POLLOUT && !receive(client))
			drop(client);
	}
	if (on.owner)
		advance();
	if (on.is_applying)
		apply();
	tend_sampling();
	for (int i = 0; i < MAX_CLIENTS; i++)
		if (on.clients[i].fd >= 0 && !send_some(&on.clients[i]))
			drop(&on.clients[i]);
	if (polled[0].revents & POLLIN)
		accept_all();
	return true;
}

static bool has_worker(void)
{
	return __atomic_load_n(&agent.worker, __ATOMIC_SEQ_CST) != 0;
}

/* Start and end of sampling never wait for an interpreter, but may wait for a processor. */
static void wait_for_worker(bool is_there)
{
	const struct timespec a_while = { .tv_nsec = 1000000 };

	for (int i = 0; i < 5000 && has_worker() != is_there; i++)
		nanosleep(&a_while, NULL);
}

static void listen_until_detached(void)
{
	while (look()) {
		int r = on.detaching || on.is_disarming ? disarm() : 0;

		if (r == 0 || !on.detaching)
			continue;
		if (r > 0 && worker_stop()) {
			wait_for_worker(false);
			return;
		}
		refuse(on.detaching,
		       r == -ETIMEDOUT ? "no thread releases the GIL, and what it has changed in Python code stays"
				       : "an evaluation has not ended yet");
		on.detaching = NULL;
	}
	(void)worker_stop();
	snprintf(agent.reason, sizeof agent.reason, "its socket failed");
}

/* ---- Start ---- */

/* For kernels before 5.9, which have no close_range(2). */
static int leave_files_one_by_one(void)
{
	struct rlimit most = { 0 };

	if (unshare(CLONE_FILES) < 0 || getrlimit(RLIMIT_NOFILE, &most) < 0)
		return -errno;
	for (rlim_t fd = 0; fd < most.rlim_cur && fd < 1 << 20; fd++)
		close((int)fd);
	return 0;
}

static int leave_files(void)
{
	enum { CLOSE_RANGE = 436, UNSHARE = 2 }; /* on all machines: linux/close_range.h */

	if (syscall(CLOSE_RANGE, 0u, ~0u, UNSHARE) < 0) {
		int r = leave_files_one_by_one();

		if (r < 0)
			return r;
	}
	/* Messages that libc prints before it aborts must not reach a client. */
	for (int i = 0; i < 3; i++)
		(void)open("/dev/null", O_RDWR);
	return 0;
}

static int make_socket(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	for (unsigned i = 0; fd >= 0 && i < AGENT_MAX_NAMES; i++) {
		int n = agent_format_socket(agent.socket, agent.pid, i);

		memcpy(address.sun_path + 1, agent.socket, (size_t)n);
		if (bind(fd, (struct sockaddr *)&address,
			 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) == 0)
			return listen(fd, BACKLOG) == 0 ? fd : -errno;
		if (errno != EADDRINUSE)
			break;
	}
	return -errno;
}

static const char *prepare(void)
{
	memset(&on, 0, sizeof on);
	for (int i = 0; i < MAX_CLIENTS; i++)
		on.clients[i] = no_client;
	if (leave_files() < 0)
		return "it may not have a table of files of its own (a seccomp filter forbids close_range and unshare)";
	wait_for_worker(true);
	on.socket = make_socket();
	return on.socket < 0 ? "it cannot have a unix socket" : NULL;
}

/* The client that asked for the end; -1: none. */
static int leave_clients(void)
{
	int last = on.detaching ? on.detaching->fd : -1;

	if (on.recorder)
		stop_sampling();

	for (int i = 0; i < MAX_CLIENTS; i++)
		if (on.clients[i].fd >= 0 && on.clients[i].fd != last)
			drop(&on.clients[i]);
	if (last >= 0) {
		free(on.detaching->in.bytes);
		free(on.detaching->out.bytes);
	}
	return last;
}

/* The last message. From here on the agent can be started again, and all shared state belongs to that start. */
static void send_bye(int fd)
{
	const struct message bye = { .kind = MESSAGE_BYE };
	char bytes[PROTOCOL_HEADER_BYTES];
	ssize_t n = message_format(&bye, bytes);

	(void)send(fd, bytes, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
	close(fd);
}

static void *serve(void *unused)
{
	const char *problem;
	int last;

	(void)unused;
	(void)prctl(PR_SET_NAME, "probing-agent");
	__atomic_store_n(&agent.listener, (int32_t)syscall(SYS_gettid), __ATOMIC_SEQ_CST);
	problem = prepare();
	if (problem) {
		(void)worker_stop();
		snprintf(agent.reason, sizeof agent.reason, "%s", problem);
	} else {
		(void)set_crash(&agent.config); /* python/probing/_crash.py reports the reason */
		__atomic_store_n(&agent.status, AGENT_ARMED, __ATOMIC_SEQ_CST);
		listen_until_detached();
		(void)crash_set(NULL);
		close(on.socket);
	}
	last = leave_clients();
	__atomic_store_n(&agent.listener, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&agent.status, AGENT_OFF, __ATOMIC_SEQ_CST);
	if (last >= 0)
		send_bye(last);
	return NULL;
}

int listener_start(void)
{
	pthread_t thread;
	int r = agent_thread(serve, STACK_BYTES, &thread);

	if (r == 0)
		pthread_detach(thread);
	return r;
}
