/* SPDX-License-Identifier: MIT */
/* metrics.c - see record.h.
 *
 * One thread reads /proc at each tick, and writes what it has read: there is nothing to sample, to unwind or to name. It keeps
 * the privileges of --source poll.
 */
#include "src/cli/record/record.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/rank.h"
#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/record/least_privilege.h"
#include "src/cli/new_file_options.h"
#include "src/cli/target_errors.h"
#include "src/metrics/metrics.h"

#define CREDIT_NS UINT64_C(200000000)
enum {
	MAX_SHARE = 100,  /* reading and writing take at most this part of a processor */
	LOOKS_EACH = 4,   /* a process may exec another program, which matches */
	TRIM_EVERY = 64,  /* ticks */
	TRIM_S = 2,       /* at least between two times, unless there were as many ticks */
	ROOM_PARTS = 8,   /* of a file that is full, so much is made free */
	SLACK_PARTS = 32, /* a row may exceed its retention time by 1/32 */
};

/* A process that was there at the last tick, sorted by PID. */
struct seen {
	pid_t pid, parent;
	unsigned n_looks;
	bool is_recorded;
	uint64_t started_ns;
	char *name, *command;
	struct rank_identity *rank; /* NULL: none */
};

struct seen_list {
	struct seen *items;
	size_t n, allocated;
};

struct agent {
	struct record_options *options;
	struct store *store;
	struct metrics *metrics;
	struct seen_list seen;
	struct targets named; /* by number */
	pid_t *pids;          /* of one tick */
	size_t n_pids, pids_allocated;
	uint64_t n_ticks, n_rows, n_late;
	uint64_t began_ns, began_cpu_ns; /* CLOCK_MONOTONIC, and CPU time, before the first tick */
	double first_seconds;            /* of the oldest rows in the file */
	double trimmed_seconds;          /* when old rows were dropped the last time, or the first tick */
};

static void seen_done(struct seen_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		free(list->items[i].name);
		free(list->items[i].command);
		free(list->items[i].rank);
	}
	free(list->items);
	*list = (struct seen_list){ 0 };
}

/* ---- Rows ---- */

static int put_row(void *data, const char *table, const struct metric_value *values, size_t n)
{
	struct agent *agent = data;

	agent->n_rows++;
	return store_put_metric(agent->store, table, values, n);
}

static int put_process(struct agent *agent, const struct seen *seen, uint64_t ended_ns)
{
	const struct process_row row = {
		.pid = seen->pid,
		.parent_pid = seen->parent,
		.name = seen->name,
		.command = seen->command,
		.started_ns = seen->started_ns,
		.ended_ns = ended_ns,
		.rank = seen->rank,
	};

	return store_put_process(agent->store, &row);
}

/* ---- Which processes ---- */

static bool is_named(const struct agent *agent, pid_t pid)
{
	for (size_t i = 0; i < agent->named.n; i++)
		if (agent->named.pids[i] == pid)
			return true;
	return false;
}

static bool is_recorded(const struct agent *agent, pid_t pid)
{
	for (size_t i = 0; i < agent->n_pids; i++) /* as of the last tick */
		if (agent->pids[i] == pid)
			return true;
	return false;
}

static bool is_wanted(const struct agent *agent, pid_t pid, pid_t parent)
{
	const struct target_options *targets = &agent->options->targets;

	if (!targets_are_asked_for(targets) || is_named(agent, pid))
		return true;
	if (targets_are_matched(targets) && targets_match(targets, pid))
		return true;
	return !agent->options->capture.no_children && is_recorded(agent, parent);
}

static int judge(struct agent *agent, struct seen *seen, uint64_t now_ns)
{
	struct proc_stat stat;

	if (seen->is_recorded || seen->n_looks >= LOOKS_EACH || seen->pid == getpid())
		return 0;
	seen->n_looks++;
	if (proc_stat_read(seen->pid, 0, &stat) < 0 || stat.is_kernel_thread || stat.parent == getpid() ||
	    proc_has_ended(&stat) || !is_wanted(agent, seen->pid, stat.parent))
		return 0;
	seen->name = proc_text(seen->pid, "comm", 64);
	seen->command = proc_text(seen->pid, "cmdline", 4096);
	seen->rank = malloc(sizeof *seen->rank);
	if (!seen->name || !seen->command || !seen->rank)
		return -ENOMEM;
	if (rank_of_process(seen->pid, seen->rank) <= 0)
		free(TAKE(seen->rank));
	seen->is_recorded = true;
	seen->parent = stat.parent;
	seen->started_ns = now_ns;
	return put_process(agent, seen, 0);
}

static int compare(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static int list_all(struct seen_list *ret)
{
	CLEANUP(closedirp) DIR *folder = opendir("/proc");
	struct dirent *entry;

	if (!folder)
		return -errno;
	while ((entry = readdir(folder)) != NULL) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid <= 0)
			continue;
		if (grow(&ret->items, ret->n, &ret->allocated, sizeof *ret->items) < 0)
			return -ENOMEM;
		ret->items[ret->n++] = (struct seen){ .pid = pid };
	}
	qsort(ret->items, ret->n, sizeof *ret->items, compare);
	return 0;
}

/* Take over what is known of the processes of the last tick. Those that are not there any more have ended. */
static int carry_over(struct agent *agent, struct seen_list *now, uint64_t now_ns)
{
	size_t at = 0;
	int r = 0;

	for (size_t i = 0; i < agent->seen.n && r >= 0; i++) {
		struct seen *before = &agent->seen.items[i];
		bool is_there;

		while (at < now->n && now->items[at].pid < before->pid)
			at++;
		is_there = at < now->n && now->items[at].pid == before->pid;
		if (before->is_recorded && (!is_there || metrics_saw_end(agent->metrics, before->pid))) {
			r = put_process(agent, before, now_ns);
			before->is_recorded = false;
			before->n_looks = LOOKS_EACH; /* a zombie keeps its PID */
		}
		if (is_there) {
			now->items[at] = *before;
			before->name = before->command = NULL;
			before->rank = NULL;
		}
	}
	return r;
}

static int find_processes(struct agent *agent, uint64_t now_ns)
{
	CLEANUP(seen_done) struct seen_list now = { 0 };
	struct seen_list before;
	int r;

	r = list_all(&now);
	if (r >= 0)
		r = carry_over(agent, &now, now_ns);
	if (r < 0)
		return r;
	for (size_t i = 0; i < now.n && r >= 0; i++)
		r = judge(agent, &now.items[i], now_ns);
	before = agent->seen;
	agent->seen = now;
	now = before;
	agent->n_pids = 0;
	for (size_t i = 0; i < agent->seen.n && r >= 0; i++) {
		if (!agent->seen.items[i].is_recorded)
			continue;
		r = grow(&agent->pids, agent->n_pids, &agent->pids_allocated, sizeof *agent->pids);
		if (r >= 0)
			agent->pids[agent->n_pids++] = agent->seen.items[i].pid;
	}
	return r;
}

/* Whether the recording goes on: processes that were named by number have not all ended. */
static bool has_targets(const struct agent *agent)
{
	if (agent->named.n == 0 || targets_are_matched(&agent->options->targets))
		return true;
	return agent->n_pids > 0;
}

/* ---- Ticks ---- */

static int finish_batch(struct agent *agent, int r)
{
	if (r >= 0)
		r = store_commit(agent->store);
	if (r < 0)
		store_rollback(agent->store);
	return r;
}

static int take(struct agent *agent, uint64_t now_ns)
{
	const struct metric_sink sink = { put_row, agent };
	struct metrics_moment moment = { .seconds = store_seconds(now_ns) };
	int r;

	if (agent->first_seconds == 0)
		agent->first_seconds = agent->trimmed_seconds = moment.seconds;
	r = find_processes(agent, now_ns);
	moment.pids = agent->pids;
	moment.n_pids = agent->n_pids;
	if (r >= 0)
		r = metrics_put(agent->metrics, NULL, &moment, &sink);
	if (r >= 0)
		r = metrics_put_gpu(agent->metrics, &sink);
	metrics_ask_gpu(agent->metrics, moment.seconds);
	return r;
}

/* Drop the oldest rows where a limit asks for that. */
static int trim(struct agent *agent, double now)
{
	const struct store_limits *limits = &agent->options->pipeline.limits;
	double keep = (double)limits->keep_ns / 1e9, kept = keep > 0 ? now - keep : 0, before = kept;
	struct store_space space;
	int r;

	if (limits->max_bytes > 0) {
		r = store_read_space(agent->store, &space);
		if (r < 0)
			return r;
		if (space.used_bytes > limits->max_bytes - limits->max_bytes / ROOM_PARTS)
			before = MAX(before, agent->first_seconds + (now - agent->first_seconds) / ROOM_PARTS);
	}
	if (before <= agent->first_seconds)
		return 0;
	r = store_begin(agent->store);
	if (r >= 0)
		r = store_drop_metrics_before(agent->store, before);
	if (r >= 0 && keep > 0)
		r = store_cut_metrics(agent->store, kept - keep / SLACK_PARTS, kept);
	if (r >= 0)
		r = store_drop_processes_before(agent->store, before);
	r = finish_batch(agent, r);
	agent->first_seconds = before;
	return r;
}

/* Ticks may be minutes apart, and the retention time some of them. */
static bool is_trim_due(struct agent *agent, double now)
{
	double keep = (double)agent->options->pipeline.limits.keep_ns / 1e9;
	bool is_due = agent->n_ticks++ % TRIM_EVERY == TRIM_EVERY - 1 ||
		      (keep > 0 && now - agent->trimmed_seconds >= MAX(keep / SLACK_PARTS, (double)TRIM_S));

	if (is_due)
		agent->trimmed_seconds = now;
	return is_due;
}

static int tick(struct agent *agent)
{
	uint64_t now_ns = realtime_ns();
	int r;

	r = store_begin(agent->store);
	if (r >= 0)
		r = finish_batch(agent, take(agent, now_ns));
	if (r >= 0 && is_trim_due(agent, store_seconds(now_ns)))
		r = trim(agent, store_seconds(now_ns));
	return r;
}

/* Wait until a time (CLOCK_MONOTONIC). True: a signal ends the recording. */
static bool wait_until(uint64_t until_ns)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	for (;;) {
		uint64_t now_ns = monotonic_ns(), left_ns = until_ns - MIN(now_ns, until_ns);
		struct timespec left = { (time_t)(left_ns / 1000000000u), (long)(left_ns % 1000000000u) };
		int signal = sigtimedwait(&signals, NULL, &left);

		if (signal > 0)
			return true;
		if (errno == EAGAIN && monotonic_ns() >= until_ns)
			return false;
	}
}

/* How much later the next tick must be. The credit is for the first ticks, which read the name of each process. */
static uint64_t overdrawn_ns(const struct agent *agent, uint64_t now_ns)
{
	uint64_t used_ns = thread_cpu_ns() - agent->began_cpu_ns;
	uint64_t allowed_ns = CREDIT_NS + (now_ns - agent->began_ns) / MAX_SHARE;

	return used_ns > allowed_ns ? (used_ns - allowed_ns) * MAX_SHARE : 0;
}

static int run_ticks(struct agent *agent)
{
	uint64_t period_ns = agent->options->pipeline.metrics_ns, due_ns = monotonic_ns(), end_ns = UINT64_MAX;
	double duration_s = agent->options->duration_s;
	int r = 0;

	agent->began_ns = due_ns;
	agent->began_cpu_ns = thread_cpu_ns();
	if (duration_s > 0)
		end_ns = due_ns + (uint64_t)(duration_s * 1e9);
	while (r >= 0) {
		uint64_t now_ns, late_ns;

		r = tick(agent);
		now_ns = monotonic_ns();
		if (r < 0 || !has_targets(agent) || now_ns >= end_ns)
			break;
		/* A late tick does not move those after it, unless it is a whole period late. */
		due_ns = due_ns + period_ns > now_ns ? due_ns + period_ns : now_ns + period_ns;
		late_ns = overdrawn_ns(agent, now_ns);
		agent->n_late += now_ns + late_ns > due_ns;
		due_ns = MIN(MAX(due_ns, now_ns + late_ns), end_ns);
		if (wait_until(due_ns))
			break;
	}
	return r;
}

/* ---- Beginning and end ---- */

static int put_run(struct agent *agent, pid_t pid)
{
	const struct record_options *options = agent->options;
	CLEANUP(freep)
	char *command = targets_are_asked_for(&options->targets) ? proc_text(pid, "cmdline", 4096)
								 : strdup("(all processes)");
	char cpu_model[128];
	struct utsname name;
	struct run_row row = {
		.started_ns = realtime_ns(),
		.command = command,
		.mode = "cpu",
		.stack_source = "none",
		.probing = cli_version,
		.pid = pid,
		.cpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN),
	};
	int r;

	if (!command)
		return -ENOMEM;
	uname(&name);
	row.host = name.nodename;
	row.kernel = name.release;
	proc_cpu_model(cpu_model, sizeof cpu_model);
	r = store_put_run(agent->store, &row);
	return r < 0 || !cpu_model[0] ? r : store_set_run_cpu(agent->store, cpu_model);
}

/* The run's row names a process, which must have a row of its own. */
static pid_t first_pid(const struct agent *agent)
{
	for (size_t i = 0; i < agent->n_pids; i++)
		if (agent->named.n == 0 || agent->pids[i] == agent->named.pids[0])
			return agent->pids[i];
	return agent->n_pids > 0 ? agent->pids[0] : getpid();
}

static int begin(struct agent *agent)
{
	const struct record_options *options = agent->options;
	bool kept = false;
	int r;

	r = store_create(options->path, &kept, &agent->store);
	if (r == -EBUSY)
		return cli_fail(EXIT_NO_OUTPUT, "%s is being written by another recorder; choose another file with -o",
				options->path);
	if (r < 0)
		return cli_fail_open(options->path, r);
	if (kept && !options->quiet)
		cli_say("%s existed: kept as %s.old\n", options->path, options->path);
	r = options->mode != 0 ? store_set_mode(agent->store, new_file_narrow(options->mode)) : 0;
	if (r >= 0 && options->pipeline.limits.max_bytes > 0)
		r = store_limit_log(agent->store, options->pipeline.limits.max_bytes / ROOM_PARTS);
	if (r >= 0)
		r = metrics_new(&agent->metrics);
	if (r >= 0)
		r = metrics_start_gpu(agent->metrics); /* while processes can be started */
	if (r >= 0)
		r = store_begin(agent->store);
	if (r >= 0)
		r = find_processes(agent, realtime_ns());
	if (r >= 0)
		r = put_run(agent, first_pid(agent));
	if (r >= 0)
		r = store_commit(agent->store);
	return r < 0 ? cli_fail(cli_status(r), "%s cannot be written: %s", options->path, strerror(-r)) : EXIT_OK;
}

static void announce(const struct agent *agent)
{
	const struct record_options *options = agent->options;

	if (options->quiet)
		return;
	cli_say("recording metrics of %zu process%s and the machine every %.3g s, without samples, into %s",
		agent->n_pids, agent->n_pids == 1 ? "" : "es", (double)options->pipeline.metrics_ns / 1e9,
		options->path);
	cli_say(options->duration_s > 0 ? "\n" : "; Ctrl-C ends it\n");
}

/* CPU time of the ticks, of the time since the first one. */
static double share_percent(const struct agent *agent)
{
	uint64_t wall_ns = monotonic_ns() - agent->began_ns;

	return wall_ns > 0 ? 100 * (double)(thread_cpu_ns() - agent->began_cpu_ns) / (double)wall_ns : 0;
}

static int finish(struct agent *agent, int restrict_error, int error)
{
	const struct record_options *options = agent->options;
	const char *trouble = metrics_gpu_trouble(agent->metrics);
	uint64_t ended_ns = realtime_ns();
	int r = error;

	if (r >= 0)
		r = store_finish(TAKE(agent->store), ended_ns);
	if (r < 0)
		return cli_fail(cli_status(r), "recording stopped: %s; %s has everything written so far", strerror(-r),
				options->path);
	if (options->quiet)
		return EXIT_OK;
	if (trouble)
		cli_say("GPUs were not read to the end: %s\n", trouble);
	if (restrict_error < 0)
		cli_say("the recorder kept more privileges than it needed: %s\n", strerror(-restrict_error));
	if (agent->n_late > 0)
		cli_say("%llu of %llu readings were delayed, so that reading takes at most %d %% of a processor\n",
			(unsigned long long)agent->n_late, (unsigned long long)agent->n_ticks, 100 / MAX_SHARE);
	cli_say("%llu rows of %llu readings, for %.2f %% of a processor, are in %s; probing report --timeline %s draws them\n",
		(unsigned long long)agent->n_rows, (unsigned long long)agent->n_ticks, share_percent(agent),
		options->path, options->path);
	return EXIT_OK;
}

int record_metrics(struct record_options *options, struct background *background)
{
	const struct privilege_needs needs = { SOURCE_POLL, MODE_CPU, false, options->path };
	struct agent agent = { .options = options };
	int restrict_error, status = EXIT_OK;

	if (targets_are_asked_for(&options->targets))
		status = target_find(&options->targets, &agent.named);
	if (status == EXIT_OK)
		status = begin(&agent);
	if (status == EXIT_OK && options->is_background && background_leave(background, options->path) < 0)
		status = cli_fail(EXIT_FAILED, "the command that started the recorder was interrupted");
	if (status == EXIT_OK) {
		announce(&agent);
		restrict_error = privilege_restrict(&needs);
		status = finish(&agent, restrict_error, run_ticks(&agent));
	}
	store_close(agent.store);
	metrics_free(agent.metrics);
	seen_done(&agent.seen);
	targets_done(&agent.named);
	free(agent.pids);
	return status;
}
