/* SPDX-License-Identifier: MIT */
/* top_run.c - see top_run.h.
 *
 * One epoll, as when recording. Samples are read in portions, so that keys work also
 * with a constant stream of samples. A tick ten times a second reads the process' state, and some ticks flush
 * the batch, so that names are there when rows are made.
 */
#include "src/cli/top_run.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/record_options.h"

enum { PORTION = 256, PORTION_NS = 50000000, TICK_NS = 100000000, TICKS_TO_FLUSH = 3, CAPTURE_NICE = -10 };
enum { SETTLE_STEPS = 50, SETTLE_STEP_NS = 20000000, DEFAULT_COLUMNS = 120 };

enum source { FROM_CAPTURE, FROM_SIGNALS, FROM_PROCESS, FROM_TICK, FROM_REFRESH, FROM_KEYS, N_SOURCES };

struct loop {
	struct top_session *session;
	int epoll, fds[N_SOURCES]; /* -1: unused */
	bool end, has_ended, repaint;
	unsigned n_ticks, n_frames;
};

static void taken_signals(sigset_t *ret)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD, SIGWINCH, SIGTSTP, SIGPIPE };

	sigemptyset(ret);
	for (size_t i = 0; i < N_ELEMENTS(signals); i++)
		sigaddset(ret, signals[i]);
}

void top_block_signals(sigset_t *ret_before)
{
	sigset_t taken;

	taken_signals(&taken);
	pthread_sigmask(SIG_BLOCK, &taken, ret_before);
}

int top_start_pipeline(struct top_session *session)
{
	struct store *store;
	int r;

	pipeline_free(TAKE(session->pipeline));
	r = top_begin(session->top, monotonic_ns(), &store);
	if (r < 0)
		return r;
	r = pipeline_new(store, &session->pipeline_options, &session->pipeline);
	if (r < 0) {
		store_close(store);
		return r;
	}
	pipeline_read_inside(session->pipeline, session->capture);
	return 0;
}

/* ---- Loop ---- */

static int open_timer(uint64_t every_ns)
{
	struct timespec every = { (time_t)(every_ns / 1000000000u), (long)(every_ns % 1000000000u) };
	const struct itimerspec spec = { .it_value = every, .it_interval = every };
	CLEANUP(closep) int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd < 0 || timerfd_settime(fd, 0, &spec, NULL) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static int open_signals(void)
{
	sigset_t taken;
	int fd;

	taken_signals(&taken);
	fd = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static int open_process(pid_t pid)
{
	long fd = syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? -errno : (int)fd;
}

static int watch(struct loop *loop, enum source source, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = source };

	if (fd < 0)
		return fd;
	loop->fds[source] = fd;
	return epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static void unwatch(struct loop *loop, enum source source)
{
	if (loop->fds[source] < 0)
		return;
	epoll_ctl(loop->epoll, EPOLL_CTL_DEL, loop->fds[source], NULL);
	if (source != FROM_CAPTURE && source != FROM_KEYS)
		close(loop->fds[source]);
	loop->fds[source] = -1;
}

static void loop_done(struct loop *loop)
{
	for (int i = 0; i < N_SOURCES; i++)
		unwatch(loop, (enum source)i);
	if (loop->epoll >= 0)
		close(loop->epoll);
}

static void process_ended(struct loop *loop);

static int loop_init(struct loop *loop, struct top_session *session)
{
	int r;

	loop->session = session;
	for (int i = 0; i < N_SOURCES; i++)
		loop->fds[i] = -1;
	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll < 0)
		return -errno;
	r = capture_watch(session->capture, loop->epoll, FROM_CAPTURE);
	loop->fds[FROM_CAPTURE] = capture_fd(session->capture);
	if (r >= 0)
		r = watch(loop, FROM_SIGNALS, open_signals());
	if (r >= 0)
		r = watch(loop, FROM_TICK, open_timer(TICK_NS));
	if (r >= 0)
		r = watch(loop, FROM_REFRESH, open_timer((uint64_t)(session->arguments->delay_s * 1e9)));
	if (r >= 0 && session->keys >= 0)
		r = watch(loop, FROM_KEYS, session->keys);
	if (r >= 0)
		r = watch(loop, FROM_PROCESS, open_process(session->pid));
	if (r == -ESRCH) { /* the target has ended; show what it left */
		process_ended(loop);
		r = 0;
	}
	return r;
}

/* ---- Samples ---- */

/* Returns 1 if there may be more: very deep stacks take a few milliseconds each. */
static int take_samples(struct top_session *session, unsigned max)
{
	uint64_t end_ns = monotonic_ns() + PORTION_NS;

	while (max-- > 0 && monotonic_ns() < end_ns) {
		struct capture_event event;
		struct sample next;
		int r;

		r = capture_next(session->capture, &event);
		if (r > 0 && capture_peek(session->capture, &next))
			pipeline_expect_sample(session->pipeline, &next);
		if (r > 0)
			r = pipeline_event(session->pipeline, &event) ?: 1;
		if (r <= 0)
			return r;
	}
	return 1;
}

/* Hand over samples, and read back the earlier ones that were written and resolved. */
static int pass_on_samples(struct top_session *session)
{
	int r;

	r = pipeline_flush(session->pipeline);
	return r < 0 ? r : top_absorb(session->top, monotonic_ns());
}

/* Start a new tree in a new file if the old one is too large to read each second. */
static int begin_anew(struct top_session *session)
{
	char python[64];
	int r, python_error;

	r = top_start_pipeline(session);
	if (r >= 0)
		r = pipeline_attach(session->pipeline, session->pid, python, sizeof python, &python_error);
	return r == -ESRCH || r == -EPERM ? 0 : r;
}

static void tick(struct loop *loop)
{
	struct top_session *session = loop->session;
	int r = 0;

	if (!loop->has_ended)
		top_watch_look(session->watch, monotonic_ns());
	/* The last samples of a thread that sleeps now did not wake the reader. */
	if (!loop->has_ended)
		r = take_samples(session, PORTION);
	if (r >= 0 && ++loop->n_ticks % TICKS_TO_FLUSH == 0)
		r = pass_on_samples(session);
	if (r >= 0 && !loop->has_ended && top_is_full(session->top))
		r = begin_anew(session);
	if (r < 0)
		session->error = r;
}

/* ---- Show ---- */

static void read_status(struct loop *loop, struct top_status *ret)
{
	struct top_session *session = loop->session;
	struct capture_counts counts;

	capture_read_counts(session->capture, &counts);
	*ret = (struct top_status){
		.command = session->command,
		.python = pipeline_python(session->pipeline),
		.source = record_source_names[capture_source(session->capture)],
		.pid = session->pid,
		.hz = session->arguments->capture.hz,
		.lost = counts.lost + counts.lost_looks,
		.has_ended = loop->has_ended,
	};
	top_watch_read(session->watch, monotonic_ns(), ret);
}

static void show(struct loop *loop)
{
	struct top_session *session = loop->session;
	struct grid grid;
	unsigned rows, columns;
	int r;

	if (!screen_is_ready(session->screen))
		return; /* samples do not wait for a terminal; the next refresh draws */
	screen_size(session->screen, &rows, &columns);
	r = grid_init(&grid, rows, columns);
	if (r < 0) {
		session->error = r;
		return;
	}
	top_draw(session->top, &grid);
	screen_show(session->screen, &grid, loop->repaint);
	loop->repaint = false;
	grid_done(&grid);
}

static unsigned printed_columns(void)
{
	const char *text = getenv("COLUMNS");
	unsigned long columns = text ? strtoul(text, NULL, 10) : 0;

	if (columns == 0)
		columns = cli_columns(STDOUT_FILENO);
	return columns >= 20 && columns <= 10000 ? (unsigned)columns : DEFAULT_COLUMNS;
}

/* Print header, column names and rows. */
static int print_frame(struct loop *loop)
{
	const struct top_arguments *arguments = loop->session->arguments;
	char when[64];
	struct tm local;
	time_t now = time(NULL);
	struct grid grid;
	int r;

	r = grid_init(&grid, arguments->n_rows + 4, printed_columns());
	if (r < 0)
		return r;
	top_draw(loop->session->top, &grid);
	localtime_r(&now, &local);
	strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S%z", &local);
	printf("%s%s\n", loop->n_frames > 1 ? "\n" : "", when);
	r = grid_print(&grid, stdout);
	grid_done(&grid);
	loop->session->write_failed = r < 0;
	return r;
}

/* A printed frame is never redrawn, so wait a little for pending samples and names. */
static int settle(struct top_session *session)
{
	const struct timespec step = { 0, SETTLE_STEP_NS };
	int r;

	r = pass_on_samples(session);
	for (int i = 0; i < SETTLE_STEPS && r >= 0 && !top_is_settled(session->top); i++) {
		nanosleep(&step, NULL);
		r = top_absorb(session->top, monotonic_ns());
	}
	return r;
}

static void refresh(struct loop *loop)
{
	struct top_session *session = loop->session;
	struct top_status status;
	int r = 0;

	loop->n_frames++;
	if (!session->screen)
		r = settle(session);
	read_status(loop, &status);
	if (r >= 0)
		r = top_refresh(session->top, &status, monotonic_ns());
	if (r >= 0 && session->screen)
		show(loop);
	else if (r >= 0)
		r = print_frame(loop);
	if (r < 0)
		session->error = r;
	if (session->arguments->n_frames > 0 && loop->n_frames >= session->arguments->n_frames)
		loop->end = true;
}

/* ---- Events ---- */

static void drain(struct top_session *session)
{
	int r;

	capture_stop(session->capture);
	do
		r = take_samples(session, PORTION);
	while (r > 0);
	if (r < 0)
		session->error = r;
}

static void process_ended(struct loop *loop)
{
	struct top_session *session = loop->session;

	loop->has_ended = true;
	unwatch(loop, FROM_PROCESS);
	unwatch(loop, FROM_CAPTURE);
	drain(session);
	if (session->is_child)
		waitpid(session->pid, NULL, WNOHANG);
	if (!session->screen || session->arguments->exit) {
		if (session->error == 0)
			refresh(loop);
		loop->end = true;
	}
}

/* Stop like a shell's child on Ctrl-Z, and restore the terminal meanwhile. */
static void stop(struct loop *loop)
{
	if (loop->session->screen)
		screen_leave(loop->session->screen);
	kill(getpid(), SIGSTOP);
	if (!loop->session->screen)
		return;
	screen_resize(loop->session->screen);
	loop->repaint = true;
	show(loop);
}

static void take_signal(struct loop *loop, const struct signalfd_siginfo *info)
{
	struct top_session *session = loop->session;

	switch (info->ssi_signo) {
	case SIGCHLD: /* the pidfd reports the end */
	case SIGPIPE: /* write(2) reports it */
		break;
	case SIGTSTP:
		stop(loop);
		break;
	case SIGWINCH:
		if (!session->screen)
			break;
		screen_resize(session->screen);
		show(loop);
		break;
	default: /* the command gets signals of the terminal itself, but not those of kill(1) */
		session->signal = (int)info->ssi_signo;
		if (session->is_child && !loop->has_ended && info->ssi_code <= 0)
			kill(session->pid, (int)info->ssi_signo);
		loop->end = true;
	}
}

static void take_signals(struct loop *loop)
{
	struct signalfd_siginfo info;

	while (read(loop->fds[FROM_SIGNALS], &info, sizeof info) == sizeof info)
		take_signal(loop, &info);
}

static void take_keys(struct loop *loop)
{
	struct top_session *session = loop->session;
	bool is_gone = false;
	uint32_t key;

	while (!loop->end && screen_key(session->screen, &key, &is_gone)) {
		switch (top_key(session->top, key, monotonic_ns())) {
		case TOP_QUIT_AND_END:
			session->end_command = true;
			loop->end = true;
			break;
		case TOP_QUIT:
			loop->end = true;
			break;
		case TOP_REPAINT:
			loop->repaint = true;
			break;
		case TOP_STAY:
		case TOP_RESET:
			break;
		}
	}
	if (is_gone)
		loop->end = true;
	if (!loop->end)
		show(loop);
}

static void serve(struct loop *loop, enum source source)
{
	uint64_t expirations;
	int r;

	if (loop->fds[source] < 0)
		return; /* the process has ended meanwhile */
	switch (source) {
	case FROM_CAPTURE:
		r = take_samples(loop->session, PORTION);
		if (r < 0)
			loop->session->error = r;
		break;
	case FROM_SIGNALS:
		take_signals(loop);
		break;
	case FROM_PROCESS:
		process_ended(loop);
		break;
	case FROM_TICK:
		if (read(loop->fds[source], &expirations, sizeof expirations) > 0)
			tick(loop);
		break;
	case FROM_REFRESH:
		if (read(loop->fds[source], &expirations, sizeof expirations) > 0)
			refresh(loop);
		break;
	case FROM_KEYS:
		take_keys(loop);
		break;
	case N_SOURCES:
		break;
	}
}

void top_run(struct top_session *session)
{
	struct epoll_event events[N_SOURCES];
	struct loop loop = { .end = false };
	int r;

	/* As in a recorder: an earlier wake-up reads memory earlier. */
	(void)setpriority(PRIO_PROCESS, 0, CAPTURE_NICE);
	r = loop_init(&loop, session);
	if (r >= 0 && session->screen && !loop.end) {
		refresh(&loop);
		loop.n_frames = 0; /* the first frame had no samples */
		loop.end = false;
	}
	while (r >= 0 && !loop.end && session->error == 0) {
		int n = epoll_wait(loop.epoll, events, N_SOURCES, -1);

		if (n < 0 && errno != EINTR)
			r = -errno;
		for (int i = 0; i < n && session->error == 0 && !loop.end; i++)
			serve(&loop, events[i].data.u32);
	}
	if (r < 0 && session->error == 0)
		session->error = r;
	capture_stop(session->capture);
	loop_done(&loop);
}
