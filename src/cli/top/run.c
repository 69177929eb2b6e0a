/* SPDX-License-Identifier: MIT */
/* run.c - see top.h.
 *
 * Samples are read in portions, so that keys work also with a constant stream of samples. A tick ten times a second reads the process' state, and some ticks flush
 * the batch, so that names are there when rows are made.
 */
#include "src/cli/top/top.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/record/record.h"
#include "src/target/target.h"

enum { PORTION = 256, PORTION_NS = 50000000, TICK_NS = 100000000, TICKS_TO_FLUSH = 3, CAPTURE_NICE = -10 };
enum { STABLE_STEPS = 50, STABLE_STEP_NS = 20000000, DEFAULT_COLUMNS = 120 };

struct live_view {
	struct top_session *session;
	struct event_loop loop;
	int capture, process; /* sources of the loop; negative: none */
	bool has_ended, repaint;
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

static int open_process(pid_t pid)
{
	long fd = syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? -errno : (int)fd;
}

static event_serve take_portion, take_keys, process_ended, refresh, tick;
static event_take_signal take_signal;

static int watch_all(struct live_view *view)
{
	struct top_session *session = view->session;
	sigset_t taken;
	int r = 0;

	taken_signals(&taken);
	if (!session->fetch)
		r = view->capture = event_loop_watch_capture(&view->loop, session->capture, take_portion);
	if (r >= 0)
		r = event_loop_watch_signals(&view->loop, &taken, take_signal);
	if (r >= 0 && !session->fetch)
		r = event_loop_watch_timer(&view->loop, TICK_NS, TICK_NS, tick);
	if (r >= 0) {
		uint64_t delay_ns = (uint64_t)(session->arguments->delay_s * 1e9);

		r = event_loop_watch_timer(&view->loop, delay_ns, delay_ns, refresh);
	}
	if (r >= 0 && session->keys >= 0)
		r = event_loop_watch(&view->loop, session->keys, false, take_keys);
	if (r >= 0 && !session->fetch)
		r = view->process = event_loop_watch(&view->loop, open_process(session->pid), true, process_ended);
	if (r == -ESRCH) { /* the target has ended; show what it left */
		process_ended(view);
		r = 0;
	}
	return MIN(r, 0);
}

/* ---- Samples ---- */

static int take_samples(struct top_session *session)
{
	return pipeline_take(session->pipeline, session->capture, PORTION, PORTION_NS);
}

/* Remember an error, which ends the view. */
static void check(struct live_view *view, int r)
{
	if (r >= 0)
		return;
	view->session->error = r;
	event_loop_end(&view->loop);
}

static void take_portion(void *data)
{
	struct live_view *view = data;

	check(view, take_samples(view->session));
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

static void tick(void *data)
{
	struct live_view *view = data;
	struct top_session *session = view->session;
	int r = 0;

	if (!view->has_ended)
		top_watch_look(session->watch, monotonic_ns());
	/* The last samples of a thread that sleeps now did not wake the reader. */
	if (!view->has_ended)
		r = take_samples(session);
	if (r >= 0 && ++view->n_ticks % TICKS_TO_FLUSH == 0)
		r = pass_on_samples(session);
	if (r >= 0 && !view->has_ended && top_is_full(session->top))
		r = begin_anew(session);
	check(view, r);
}

/* ---- Show ---- */

static void read_status(struct live_view *view, struct top_status *ret)
{
	struct top_session *session = view->session;
	struct capture_counts counts;

	capture_read_counts(session->capture, &counts);
	*ret = (struct top_status){
		.command = session->command,
		.python = pipeline_python(session->pipeline),
		.source = record_source_names[capture_source(session->capture)],
		.pid = session->pid,
		.hz = session->arguments->capture.hz,
		.lost = counts.lost + counts.skipped_ticks,
		.has_ended = view->has_ended,
	};
	top_watch_read(session->watch, monotonic_ns(), ret);
}

static void show(struct live_view *view)
{
	struct top_session *session = view->session;
	struct grid grid;
	unsigned rows, columns;
	int r;

	if (!screen_is_ready(session->screen))
		return; /* samples do not wait for a terminal; the next refresh draws */
	screen_size(session->screen, &rows, &columns);
	r = grid_init(&grid, rows, columns);
	if (r < 0) {
		check(view, r);
		return;
	}
	top_draw(session->top, &grid);
	screen_show(session->screen, &grid, view->repaint);
	view->repaint = false;
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
static int print_frame(struct live_view *view)
{
	const struct top_arguments *arguments = view->session->arguments;
	char when[64];
	struct tm local;
	time_t now = time(NULL);
	struct grid grid;
	int r;

	r = grid_init(&grid, arguments->n_rows + 4, printed_columns());
	if (r < 0)
		return r;
	top_draw(view->session->top, &grid);
	localtime_r(&now, &local);
	strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S%z", &local);
	printf("%s%s\n", view->n_frames > 1 ? "\n" : "", when);
	r = grid_print(&grid, stdout);
	grid_done(&grid);
	view->session->write_failed = r < 0;
	return r;
}

/* A printed frame is never redrawn, so wait a little for pending samples and names. */
static int wait_until_stable(struct top_session *session)
{
	const struct timespec step = { 0, STABLE_STEP_NS };
	int r;

	r = pass_on_samples(session);
	for (int i = 0; i < STABLE_STEPS && r >= 0 && !top_is_stable(session->top); i++) {
		nanosleep(&step, NULL);
		r = top_absorb(session->top, monotonic_ns());
	}
	return r;
}

static void refresh(void *data)
{
	struct live_view *view = data;
	struct top_session *session = view->session;
	struct top_status status;
	int r = 0;

	view->n_frames++;
	if (session->fetch) {
		status = (struct top_status){ .cpu_share = -1, .gil_share = -1, .gc_share = -1 };
		r = session->fetch(session->fetch_data, session->top, &status);
	} else {
		if (!session->screen)
			r = wait_until_stable(session);
		read_status(view, &status);
	}
	if (r >= 0)
		r = top_refresh(session->top, &status, monotonic_ns());
	if (r >= 0 && session->screen)
		show(view);
	else if (r >= 0)
		r = print_frame(view);
	check(view, r);
	if (session->arguments->n_frames > 0 && view->n_frames >= session->arguments->n_frames)
		event_loop_end(&view->loop);
}

/* ---- Events ---- */

static void drain(struct live_view *view)
{
	int r;

	capture_stop(view->session->capture);
	do
		r = take_samples(view->session);
	while (r > 0);
	check(view, r);
}

static void process_ended(void *data)
{
	struct live_view *view = data;
	struct top_session *session = view->session;

	view->has_ended = true;
	if (view->process >= 0)
		event_loop_unwatch(&view->loop, (unsigned)view->process);
	event_loop_unwatch(&view->loop, (unsigned)view->capture);
	drain(view);
	if (session->is_child)
		waitpid(session->pid, NULL, WNOHANG);
	if (!session->screen || session->arguments->exit) {
		if (session->error == 0)
			refresh(view);
		event_loop_end(&view->loop);
	}
}

/* Stop like a shell's child on Ctrl-Z, and restore the terminal meanwhile. */
static void stop(struct live_view *view)
{
	if (view->session->screen)
		screen_leave(view->session->screen);
	kill(getpid(), SIGSTOP);
	if (!view->session->screen)
		return;
	screen_resize(view->session->screen);
	view->repaint = true;
	show(view);
}

static void take_signal(void *data, const struct signalfd_siginfo *info)
{
	struct live_view *view = data;
	struct top_session *session = view->session;

	switch (info->ssi_signo) {
	case SIGCHLD: /* the pidfd reports the end */
	case SIGPIPE: /* write(2) reports it */
		break;
	case SIGTSTP:
		stop(view);
		break;
	case SIGWINCH:
		if (!session->screen)
			break;
		screen_resize(session->screen);
		show(view);
		break;
	default: /* the command gets signals of the terminal itself, but not those of kill(1) */
		session->signal = (int)info->ssi_signo;
		if (session->is_child && !view->has_ended && info->ssi_code <= 0)
			kill(session->pid, (int)info->ssi_signo);
		event_loop_end(&view->loop);
	}
}

static void take_keys(void *data)
{
	struct live_view *view = data;
	struct top_session *session = view->session;
	bool is_gone = false;
	uint32_t key;

	while (!view->loop.is_over && screen_key(session->screen, &key, &is_gone)) {
		switch (top_key(session->top, key, monotonic_ns())) {
		case TOP_QUIT_AND_END:
			session->end_command = true;
			event_loop_end(&view->loop);
			break;
		case TOP_QUIT:
			event_loop_end(&view->loop);
			break;
		case TOP_REPAINT:
			view->repaint = true;
			break;
		case TOP_STAY:
		case TOP_RESET:
			break;
		}
	}
	if (is_gone)
		event_loop_end(&view->loop);
	if (!view->loop.is_over)
		show(view);
}

void top_run(struct top_session *session)
{
	struct live_view view = { .session = session, .process = -1 };
	int r;

	/* As in a recorder: an earlier wake-up reads memory earlier. */
	if (!session->fetch)
		(void)setpriority(PRIO_PROCESS, 0, CAPTURE_NICE);
	r = event_loop_init(&view.loop, &view);
	if (r >= 0)
		r = watch_all(&view);
	if (r >= 0 && session->fetch)
		refresh(&view);
	if (r >= 0 && session->screen && !session->fetch && !view.loop.is_over) {
		refresh(&view);
		view.n_frames = 0; /* the first frame had no samples */
		view.loop.is_over = session->error < 0;
	}
	if (r >= 0)
		r = event_loop_run(&view.loop);
	if (r < 0 && session->error == 0)
		session->error = r;
	if (session->capture)
		capture_stop(session->capture);
	event_loop_done(&view.loop);
}
