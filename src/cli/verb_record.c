/* SPDX-License-Identifier: MIT */
/* verb_record.c - probing record: from the arguments to a finished file.
 *
 * Order matters: permission and arguments are checked before the file is created,
 * so that a recording that cannot start changes nothing; and
 * sampling is set up before a command execs, so that its first instruction
 * is sampled.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/cli/agent_use.h"
#include "src/cli/record/background.h"
#include "src/cli/cli.h"
#include "src/cli/record/record.h"
#include "src/cli/record/run.h"
#include "src/cli/record/summary.h"
#include "src/cli/target_errors.h"
#include "src/target/target.h"

enum { DEFAULT_HZ = 99 };

/* Several processes go by the first. */
static char *describe_targets(const struct targets *targets)
{
	char *text = proc_text(targets->pids[0], "cmdline", 4096), *whole = NULL;

	if (!text || targets->n == 1)
		return text;
	if (asprintf(&whole, "%s (and %zu other process%s)", text, targets->n - 1, targets->n > 2 ? "es" : "") < 0)
		whole = NULL;
	free(text);
	return whole;
}

/* The recording's process in words. Owned by the caller. */
static char *describe(const struct record_options *options, const struct recording *recording)
{
	char *text = NULL;

	if (!options->command)
		return describe_targets(&recording->targets);
	for (char **word = options->command; *word; word++) {
		char *longer;

		if (asprintf(&longer, "%s%s%s", text ? text : "", text ? " " : "", *word) < 0)
			break;
		free(text);
		text = longer;
	}
	return text;
}

static int put_run(struct store *store, const struct record_options *options, pid_t pid, const struct capture *capture,
		   const char *command)
{
	char cpu_model[128];
	struct utsname name;
	struct run_row row = {
		.started_ns = realtime_ns(),
		.command = command,
		.mode = record_unit(options)    ? "event"
			: options->capture.idle ? "wall"
						: record_mode_names[options->capture.mode],
		.stack_source = record_source_names[capture_source(capture)],
		.probing = cli_version,
		.pid = pid,
		.hz = options->capture.count > 0 ? 0 : options->capture.hz,
		.kernel_frames = capture_has_kernel(capture),
		.cpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN),
	};
	int r;

	uname(&name);
	proc_cpu_model(cpu_model, sizeof cpu_model);
	row.host = name.nodename;
	row.kernel = name.release;
	r = store_begin(store);
	if (r >= 0)
		r = store_put_run(store, &row);
	if (r >= 0)
		r = record_put_event(store, options);
	if (r >= 0 && cpu_model[0])
		r = store_set_run_cpu(store, cpu_model);
	if (r >= 0)
		r = store_commit(store);
	return r;
}

/* "run.db" of process 4242: "run.4242.db". */
static int put_pid_into_path(struct record_options *options, pid_t pid)
{
	const char *slash = strrchr(options->path, '/'), *name = slash ? slash + 1 : options->path;
	const char *dot = strrchr(name, '.');
	int n_stem = dot && dot > name ? (int)(dot - options->path) : (int)strlen(options->path);

	if (asprintf(&options->own_path, "%.*s.%d%s", n_stem, options->path, (int)pid, options->path + n_stem) < 0) {
		options->own_path = NULL;
		return -ENOMEM;
	}
	options->path = options->own_path;
	return 0;
}

static int create_store(struct record_options *options, pid_t pid, bool *ret_kept, struct store **ret)
{
	int r = store_create(options->path, ret_kept, ret);

	if (r != -EBUSY || !options->is_distinct)
		return r;
	r = put_pid_into_path(options, pid);
	return r < 0 ? r : store_create(options->path, ret_kept, ret);
}

/* Before the recorder has threads. A recording without a shipper is better than none. */
static void start_shipper(const struct record_options *options)
{
	pid_t pid;
	int r = record_ship(options->path, options->to, &pid);

	if (r < 0)
		cli_say("probing: %s is not sent: %s; send it with probing ship %s --to URL\n", options->path,
			strerror(-r), options->path);
	else if (!options->quiet)
		cli_say("process %d sends the recording to %s, also after the end; its messages: %s.ship.log\n",
			(int)pid, options->to, options->path);
}

/* Make the file and what fills it. Returns an exit status. */
static int open_pipeline(struct record_options *options, struct recording *recording)
{
	CLEANUP(store_closep) struct store *store = NULL;
	CLEANUP(freep) char *command = describe(options, recording);
	struct pipeline_options pipeline = options->pipeline;
	bool kept = false;
	int r;

	if (!command)
		return cli_fail(EXIT_FAILED, "not enough memory");
	r = create_store(options, recording->pid, &kept, &store);
	if (r == -EBUSY)
		return cli_fail(EXIT_NO_OUTPUT,
				"%s is being written by another recorder; choose another "
				"file with -o",
				options->path);
	if (r < 0)
		return cli_fail_open(options->path, r);
	if (kept && !options->quiet)
		cli_say("%s existed: kept as %s.old\n", options->path, options->path);
	r = options->mode != 0 ? store_set_mode(store, new_file_narrow(options->mode)) : 0;
	if (r >= 0)
		r = put_run(store, options, recording->pid, recording->capture, command);
	recording->needs = (struct privilege_needs){ capture_source(recording->capture), options->capture.mode,
						     recording->is_child, options->path };
	if (r >= 0 && options->to)
		start_shipper(options);
	recording->writer_capabilities = privilege_of_writer(&recording->needs);
	pipeline.capabilities = &recording->writer_capabilities;
	if (r >= 0)
		r = pipeline_new(store, &pipeline, &recording->pipeline);
	if (r < 0)
		return cli_fail(cli_status(r), "%s cannot be written: %s", options->path, strerror(-r));
	TAKE(store);
	pipeline_read_inside(recording->pipeline, recording->capture);
	return EXIT_OK;
}

static int fail_stopped(const char *path, int error)
{
	char sentence[512];

	if (error != -ESTALE)
		return cli_fail(cli_status(error), "recording stopped: %s; %s has everything written so far",
				strerror(-error), path);
	store_explain(error, path, sentence, sizeof sentence); /* the path holds nothing any more */
	return cli_fail(cli_status(error), "recording stopped: %s", sentence);
}

/* A server that forks its workers sleeps itself. Those that it started meanwhile are known. Returns whether there are
 * any. */
static bool print_children_of(const struct recording *recording, pid_t pid)
{
	CLEANUP(targets_done) struct targets children = { 0 };
	enum { NAMED = 8 };
	size_t n = 0;

	if (targets_add_children(&children, pid) < 0)
		return false;
	for (size_t i = 0; i < children.n; i++)
		if (!pipeline_knows(recording->pipeline, children.pids[i]))
			children.pids[n++] = children.pids[i];
	if (n == 0)
		return false;
	cli_say("process %d has %zu child%s that ran before and %s not recorded (", (int)pid, n, n > 1 ? "ren" : "",
		n > 1 ? "were" : "was");
	for (size_t i = 0; i < MIN(n, (size_t)NAMED); i++)
		cli_say("%s%d", i > 0 ? ", " : "", (int)children.pids[i]);
	cli_say("%s): probing record --pid %d --subprocesses records %s, too\n", n > NAMED ? ", ..." : "", (int)pid,
		n > 1 ? "them" : "it");
	return true;
}

static void print_children(const struct recording *recording)
{
	const struct targets *targets = &recording->targets;

	for (size_t i = 0; i < targets->n; i++)
		if (print_children_of(recording, targets->pids[i]))
			break;
}

static int finish(const struct record_options *options, struct recording *recording)
{
	struct pipeline_counter counters[SUMMARY_MAX_COUNTERS];
	struct summary summary = {
		.path = options->path,
		.seconds = (double)recording->recorded_ns / 1e9,
		.source = capture_source(recording->capture),
		.unit = record_unit(options),
		.is_estimate = options->capture.count == 0,
		.filter = &options->pipeline.filter,
		.is_idle = options->capture.idle,
		.kernel_left_out = options->capture.no_kernel,
		.has_kernel = capture_has_kernel(recording->capture),
		.mode = options->capture.mode,
		.restrict_error = recording->restrict_error,
	};
	int r;

	r = pipeline_flush(recording->pipeline);
	capture_read_counts(recording->capture, &summary.captured);
	pipeline_read_counts(recording->pipeline, &summary.counts);
	summary_counters(&summary.captured, &summary.counts, counters);
	if (recording->error < 0)
		r = recording->error;
	r = pipeline_finish(recording->pipeline, counters, r);
	recording_answer_last(recording, r);
	pipeline_read_name_troubles(recording->pipeline, &summary.names);
	pipeline_read_cfi_troubles(recording->pipeline, &summary.cfi);
	summary.gpu_trouble = pipeline_gpu_trouble(recording->pipeline);
	pipeline_read_rows(recording->pipeline, &summary.rows);
	pipeline_read_counts(recording->pipeline, &summary.counts); /* some may have gone at the very end */
	if (r < 0)
		return fail_stopped(options->path, r);
	if (options->quiet || options->no_summary)
		return EXIT_OK;
	capture_free(TAKE(recording->capture)); /* its rings are memory that may be needed */
	if (summary.mode != MODE_CPU)
		waits_cost_measure(&options->capture, summary.source, &summary.counts, summary.seconds,
				   &summary.waits_cost);
	if (recording->n_joined > 0)
		cli_say("%zu more process%s recorded, started meanwhile\n", recording->n_joined,
			recording->n_joined > 1 ? "es were" : " was");
	if (recording->is_child && !pipeline_python(recording->pipeline)[0] && summary.counts.of_32_bit == 0)
		cli_say("no Python was found in it%s\n",
			summary.source == SOURCE_POLL ? "" : ": these are native frames");
	summary_print(&summary);
	if (options->pipeline.no_symbols)
		cli_say("native functions have no names yet: probing symbolize %s\n", options->path);
	summary_report(options->path);
	if (summary.captured.samples == 0)
		print_children(recording);
	return EXIT_OK;
}

static int run(const struct record_options *options, struct recording *recording)
{
	int r, status;

	recording->duration_s = options->duration_s;
	recording->follows_children = !options->capture.no_children;
	recording->follows_waits = options->capture.mode != MODE_CPU;
	recording->is_always_on = record_is_always_on(options);
	recording->delay_s = options->delay_s;
	if (options->capture.paused && pipeline_pause(recording->pipeline) < 0)
		return cli_fail(EXIT_FAILED, "not enough memory");
	recording->is_paused = options->capture.paused;
	recording->progress = !options->quiet && isatty(STDERR_FILENO) && !recording->is_child;
	r = recording_run(recording);
	if (r < 0)
		recording->error = r;
	status = finish(options, recording);
	if (status == EXIT_OK)
		status = picture_make(recording->picture);
	control_close(&recording->control); /* a command may go on for long */
	recording_wait_child(recording);
	return status;
}

/* The status a command ended with, as a shell would see it had it run alone. */
static int end_like_child(int status)
{
	struct rlimit no_core = { 0, 0 };
	sigset_t all;

	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	setrlimit(RLIMIT_CORE, &no_core); /* the core is the child's, not ours */
	signal(SIGPIPE, SIG_IGN);         /* discard a message without a reader */
	signal(WTERMSIG(status), SIG_DFL);
	sigfillset(&all);
	pthread_sigmask(SIG_UNBLOCK, &all, NULL);
	raise(WTERMSIG(status));
	return 128 + WTERMSIG(status);
}

/* Announce what was found in the first one. */
static int attach_all(const struct record_options *options, struct recording *recording, char *python,
		      size_t python_bytes, int *python_error)
{
	const struct targets *targets = &recording->targets;

	for (size_t i = targets->n; i-- > 0;) {
		int r;

		r = pipeline_attach(recording->pipeline, targets->pids[i], python, python_bytes, python_error);
		if (r == -ENOMEM || (r < 0 && r != -ESRCH && targets->n == 1))
			return target_fail_capture(r, targets->pids[i]);
		if (r >= 0 && targets->n > 1 && *python_error == -EOPNOTSUPP && !options->quiet)
			cli_say("Python %s in process %d cannot be read: its native frames are recorded\n", python,
				(int)targets->pids[i]);
	}
	return EXIT_OK;
}

static int record_targets(struct record_options *options, struct recording *recording)
{
	struct targets *targets = &recording->targets;
	int r, status, python_error = 0;
	char python[64] = "";

	status = target_find(&options->targets, targets);
	if (status != EXIT_OK)
		return status;
	recording->pid = targets->pids[0];
	r = capture_attach_all(&options->capture, targets->pids, targets->n, &recording->capture);
	if (r < 0)
		return target_fail_capture(r, recording->pid);
	status = target_check_memory(recording->pid);
	if (status == EXIT_OK)
		status = open_pipeline(options, recording);
	if (status == EXIT_OK)
		status = attach_all(options, recording, python, sizeof python, &python_error);
	if (status != EXIT_OK)
		return status;
	r = capture_begin(recording->capture); /* now that the maps of all processes have been read */
	if (r < 0)
		return cli_fail(EXIT_FAILED, "not enough memory");
	if (targets_are_matched(&options->targets)) {
		r = matching_new(&options->targets, &recording->matching);
		if (r < 0)
			return cli_fail(cli_status(r), "the processes cannot be listed: %s", strerror(-r));
	}
	if (options->is_background && background_leave(&recording->background, options->path) < 0)
		return cli_fail(EXIT_FAILED, "the command that started the recorder was interrupted");
	record_announce(options, recording, python, python_error);
	record_announce_all(options, recording);
	return run(options, recording);
}

/* From the fork to the exec; the child is abandoned by the caller on failure. */
static int start_command(struct record_options *options, struct recording *recording, struct child *child)
{
	int r, status;

	r = capture_launch(&options->capture, child->pid, &recording->capture);
	if (r < 0)
		return target_fail_capture(r, child->pid);
	status = capture_source(recording->capture) == SOURCE_POLL ? target_check_memory(child->pid) : EXIT_OK;
	if (status == EXIT_OK)
		status = open_pipeline(options, recording);
	if (status != EXIT_OK)
		return status;
	r = pipeline_expect(recording->pipeline, child->pid);
	if (r < 0)
		return cli_fail(EXIT_FAILED, "not enough memory");
	record_announce(options, recording, "", 0);
	r = child_release(child);
	return r < 0 ? target_fail_command(options->command[0], r) : EXIT_OK;
}

static int record_command(struct record_options *options, struct recording *recording, const sigset_t *mask)
{
	struct child child;
	int r, status;

	r = child_find(options->command[0]);
	if (r < 0)
		return target_fail_command(options->command[0], r);
	r = child_fork(options->command, mask, &child);
	if (r < 0)
		return cli_fail(EXIT_FAILED, "a process cannot be started: %s", strerror(-r));
	recording->pid = child.pid;
	recording->is_child = true;
	status = start_command(options, recording, &child);
	if (status != EXIT_OK) {
		child_abandon(&child);
		return status;
	}
	status = run(options, recording);
	return status == EXIT_OK ? end_like_child(recording->child_status) : status;
}

static int run_record(int argc, char **argv)
{
	struct record_options options = {
		.capture = { .hz = DEFAULT_HZ, .stack_bytes = SAMPLE_STACK_BYTES },
		.pipeline = { .metrics_ns = 1000000000, .rows = true },
	};
	struct recording recording = { .background.report = -1 };
	CLEANUP(tracepoint_freep) struct tracepoint *tracepoint = NULL;
	sigset_t mask;
	int status = EXIT_OK;

	cli_parse(&record_argp, argc, argv, ARGP_IN_ORDER, &options);
	options.capture.connect_agent = agent_find_socket;
	options.capture.agent_why = target_agent_why();
	if (options.event_name && strcmp(options.event_name, "list") == 0)
		return record_list_events();
	status = record_choose_event(&options, &tracepoint);
	if (status != EXIT_OK)
		return status;
	if (options.is_background) {
		int r = background_begin(&recording.background);

		if (r < 0)
			return cli_fail(EXIT_FAILED, "a process cannot be started: %s", strerror(-r));
	}
	recording.picture = &options.picture;
	recording_block_signals(&mask);
	if (options.metrics_only) {
		status = record_metrics(&options, &recording.background);
		target_options_done(&options.targets);
		background_done(&recording.background);
		free(options.own_path);
		return status;
	}
	status = picture_prepare(&options.picture, options.path, options.mode, options.quiet);
	if (status == EXIT_OK && options.control)
		status = target_open_control(options.control, &recording.control);
	if (status == EXIT_OK && options.command)
		status = record_command(&options, &recording, &mask);
	else if (status == EXIT_OK)
		status = record_targets(&options, &recording);
	control_close(&recording.control);
	pipeline_free(recording.pipeline);
	capture_free(recording.capture);
	matching_free(recording.matching);
	targets_done(&recording.targets);
	target_options_done(&options.targets);
	picture_done(&options.picture);
	background_done(&recording.background);
	free(options.own_path);
	glob_list_done(&options.pipeline.filter.threads);
	glob_list_done(&options.pipeline.filter.functions);
	return status;
}

const struct verb verb_record = {
	.name = "record",
	.aliases = NULL,
	.target = "--pid",
	.summary = "record a running process or a command",
	.argp = &record_argp,
	.run = run_record,
};
