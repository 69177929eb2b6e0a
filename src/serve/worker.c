/* SPDX-License-Identifier: MIT */
/*
 * worker.c - see worker.h.
 *
 * A worker is not bound to the thread that started it, which ends with its connection: it ends when its stdin does, and
 * so with this process.
 */
#include "src/serve/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"

enum { MAX_WORKERS = 4, IDLE_S = 300, HEAD_BYTES = 1024, TICK_MS = 10, EXIT_BAD_ANSWER = 1 };

struct worker {
	pthread_mutex_t lock; /* of all below: whoever asks */
	pid_t pid;            /* 0: none */
	int in, out, err;     /* to its stdin, from its stdout, its stderr */
	uint64_t asked_ns;    /* CLOCK_MONOTONIC, of the last question */
};

struct workers {
	size_t n;
	struct worker workers[];
};

int workers_new(size_t n, struct workers **ret)
{
	struct workers *workers = calloc(1, sizeof *workers + n * sizeof *workers->workers);

	if (!workers)
		return -ENOMEM;
	workers->n = n;
	for (size_t i = 0; i < n; i++) {
		pthread_mutex_init(&workers->workers[i].lock, NULL);
		workers->workers[i].in = workers->workers[i].out = workers->workers[i].err = -1;
	}
	*ret = workers;
	return 0;
}

/* ---- One worker, locked ---- */

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(TAKE_FD(*fd));
}

/* It only reads, so it may be killed. */
static void end_worker(struct worker *worker)
{
	close_fd(&worker->in);
	close_fd(&worker->out);
	close_fd(&worker->err);
	if (worker->pid == 0)
		return;
	kill(-worker->pid, SIGKILL);
	waitpid(worker->pid, NULL, 0);
	worker->pid = 0;
}

static int start_worker(struct worker *worker, const char *const *words)
{
	int in[2], out[2], r;

	if (pipe2(in, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(out, O_CLOEXEC) < 0) {
		r = -errno;
		close(in[0]);
		close(in[1]);
		return r;
	}
	worker->in = in[1];
	worker->out = out[0];
	worker->err = memfd_create("error", MFD_CLOEXEC);
	r = worker->err < 0 ? -errno : command_start(words, in[0], out[1], worker->err, false, &worker->pid);
	close(in[0]);
	close(out[1]);
	if (r < 0)
		end_worker(worker);
	return r;
}

/* Waits until a descriptor is ready. */
static int await(int fd, short events, int stop, uint64_t deadline_ns)
{
	struct pollfd fds[] = { { .fd = fd, .events = events }, { .fd = stop, .events = POLLIN } };

	for (;;) {
		uint64_t now = monotonic_ns();

		if (now >= deadline_ns)
			return -ETIME;
		if (poll(fds, 2, (int)MIN((deadline_ns - now) / 1000000 + 1, UINT64_C(60000))) < 0 && errno != EINTR)
			return -errno;
		if (fds[1].revents)
			return -ECANCELED;
		if (fds[0].revents)
			return 0;
	}
}

/* A question is shorter than a pipe's buffer, so one write takes it. -EPIPE: it has ended. */
static int put_question(struct worker *worker, const char *line, int stop, uint64_t deadline_ns)
{
	ssize_t n;
	int r = await(worker->in, POLLOUT, stop, deadline_ns);

	if (r < 0)
		return r;
	n = write(worker->in, line, strlen(line));
	return n < 0 ? -errno : n == (ssize_t)strlen(line) ? 0 : -EIO;
}

static int read_some(struct worker *worker, char *to, size_t n, int stop, uint64_t deadline_ns, size_t *ret)
{
	ssize_t got;
	int r = await(worker->out, POLLIN, stop, deadline_ns);

	if (r < 0)
		return r;
	got = read(worker->out, to, n);
	if (got < 0)
		return errno == EINTR ? 0 : -errno;
	*ret += (size_t)got;
	return got == 0 ? -EPIPE : 0;
}

/* @head: without its line end. A byte at a time: what follows belongs to the body. */
static int take_head(struct worker *worker, char head[HEAD_BYTES], int stop, uint64_t deadline_ns)
{
	size_t n = 0;
	int r = 0;

	while (r >= 0 && n < HEAD_BYTES - 1) {
		r = read_some(worker, head + n, 1, stop, deadline_ns, &n);
		if (r >= 0 && n > 0 && head[n - 1] == '\n') {
			head[n - 1] = '\0';
			return 0;
		}
	}
	return r < 0 ? r : -EBADMSG;
}

static int take_body(struct worker *worker, size_t n, int stop, uint64_t deadline_ns, struct command_result *ret)
{
	int r = 0;

	ret->out = malloc(n + 1);
	if (!ret->out)
		return -ENOMEM;
	while (r >= 0 && ret->n_out < n)
		r = read_some(worker, ret->out + ret->n_out, n - ret->n_out, stop, deadline_ns, &ret->n_out);
	ret->out[ret->n_out] = '\0';
	return r;
}

static int take_answer(struct worker *worker, int stop, uint64_t deadline_ns, struct command_result *ret)
{
	char head[HEAD_BYTES];
	int r = take_head(worker, head, stop, deadline_ns), status, at = 0;
	size_t n;

	if (r < 0)
		return r;
	if (sscanf(head, "ok %zu%n", &n, &at) == 1) {
		snprintf(ret->error, sizeof ret->error, "%s", head + at + (head[at] == ' '));
		return n <= COMMAND_MAX_OUTPUT ? take_body(worker, n, stop, deadline_ns, ret) : -EMSGSIZE;
	}
	if (sscanf(head, "bad %d %n", &status, &at) < 1 || at == 0 || status <= 0)
		return -EBADMSG;
	ret->status = status;
	snprintf(ret->error, sizeof ret->error, "%s", head + at);
	return 0;
}

/* ---- All of them ---- */

static int lock_worker(struct worker *worker, int stop, int client, uint64_t deadline_ns)
{
	struct pollfd fds[] = { { .fd = stop, .events = POLLIN }, { .fd = client, .events = POLLRDHUP } };

	while (pthread_mutex_trylock(&worker->lock) != 0) {
		if (monotonic_ns() >= deadline_ns)
			return -ETIME;
		poll(fds, 2, TICK_MS);
		if (fds[0].revents)
			return -ECANCELED;
		if (fds[1].revents)
			return -ECONNRESET;
	}
	return 0;
}

/* Before one more is started. Those that answer are left alone. */
static void end_oldest(struct workers *workers, const struct worker *but)
{
	struct worker *oldest = NULL;
	size_t n = 0;

	for (size_t i = 0; i < workers->n; i++) {
		struct worker *worker = &workers->workers[i];

		if (worker == but || pthread_mutex_trylock(&worker->lock) != 0)
			continue;
		n += worker->pid != 0;
		if (worker->pid != 0 && (!oldest || worker->asked_ns < oldest->asked_ns)) {
			if (oldest)
				pthread_mutex_unlock(&oldest->lock);
			oldest = worker; /* stays locked */
		} else {
			pthread_mutex_unlock(&worker->lock);
		}
	}
	if (!oldest)
		return;
	if (n >= MAX_WORKERS)
		end_worker(oldest);
	pthread_mutex_unlock(&oldest->lock);
}

/* What it wrote to stderr before it ended. */
static void take_error(const struct worker *worker, struct command_result *ret)
{
	ssize_t n = pread(worker->err, ret->error, sizeof ret->error - 1, 0);

	ret->error[MAX(n, 0)] = '\0';
	ret->status = EXIT_BAD_ANSWER;
}

/* -EPIPE: it has ended, as far as that is known. */
static int ask_once(struct worker *worker, const char *line, int stop, uint64_t deadline_ns, struct command_result *ret)
{
	int r = put_question(worker, line, stop, deadline_ns);

	if (r >= 0)
		r = take_answer(worker, stop, deadline_ns, ret);
	worker->asked_ns = monotonic_ns();
	return r;
}

static int ask_new(struct workers *workers, struct worker *worker, const char *const *words, const char *line, int stop,
		   uint64_t deadline_ns, struct command_result *ret)
{
	int r;

	end_oldest(workers, worker);
	r = start_worker(worker, words);
	return r < 0 ? r : ask_once(worker, line, stop, deadline_ns, ret);
}

/* One that ended since the last question, by whatever cause, is replaced. One that this question ends is asked it twice, at most. */
static int ask_locked(struct workers *workers, struct worker *worker, const char *const *words, const char *line,
		      int stop, uint64_t deadline_ns, struct command_result *ret)
{
	int r = worker->pid != 0 ? ask_once(worker, line, stop, deadline_ns, ret) : -EPIPE;

	if (r == -EPIPE) {
		end_worker(worker);
		command_result_done(ret);
		r = ask_new(workers, worker, words, line, stop, deadline_ns, ret);
	}
	if (worker->pid != 0 && (r == -EPIPE || r == -EBADMSG))
		take_error(worker, ret);
	ret->is_late = r == -ETIME;
	ret->is_too_long = r == -EMSGSIZE;
	if (r < 0)
		end_worker(worker);
	return r == -ETIME || r == -EMSGSIZE || r == -EPIPE || r == -EBADMSG ? 0 : r;
}

int worker_ask(struct workers *workers, size_t target, const char *const *words, const char *line, double seconds,
	       int stop, int client, struct command_result *ret)
{
	uint64_t deadline_ns = monotonic_ns() + (uint64_t)(seconds * 1e9);
	struct worker *worker = &workers->workers[target];
	int r;

	*ret = (struct command_result){ 0 };
	r = lock_worker(worker, stop, client, deadline_ns);
	if (r == -ETIME)
		ret->is_late = true;
	if (r < 0)
		return r == -ETIME ? 0 : r;
	r = ask_locked(workers, worker, words, line, stop, deadline_ns, ret);
	pthread_mutex_unlock(&worker->lock);
	return r;
}

void workers_end_idle(struct workers *workers)
{
	for (size_t i = 0; i < workers->n; i++) {
		struct worker *worker = &workers->workers[i];

		if (pthread_mutex_trylock(&worker->lock) != 0)
			continue;
		if (worker->pid != 0 && monotonic_ns() - worker->asked_ns > IDLE_S * UINT64_C(1000000000))
			end_worker(worker);
		pthread_mutex_unlock(&worker->lock);
	}
}

void workers_free(struct workers *workers)
{
	if (!workers)
		return;
	for (size_t i = 0; i < workers->n; i++) {
		end_worker(&workers->workers[i]);
		pthread_mutex_destroy(&workers->workers[i].lock);
	}
	free(workers);
}
