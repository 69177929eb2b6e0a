/* SPDX-License-Identifier: MIT */
/* cluster_report.c - probing cluster report: which rank is slow, and what it does differently.
 *
 * Ranks are looked at again and again for some seconds: counters of /proc at both ends, stacks of the main threads between.
 * Of a fleet the report is of the samples that were sent: of hours or days.
 */
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/cli/cluster.h"
#include "src/cli/cluster_ask.h"
#include "src/cli/cluster_gather.h"
#include "src/cli/cluster_run.h"
#include "src/cli/fleet_source.h"

enum { OPTION_SAMPLES = 0x200, MIN_SAMPLES = 10, MAX_SAMPLES = 1000 };

struct options {
	struct cluster_options cluster;
	double seconds;
	unsigned n_samples;
	struct view view; /* of a fleet */
	const char *address;
	bool is_live; /* an option of live ranks was given */
	int status;   /* of reading a fleet */
};

static const struct argp_option option_list[] = {
	CLUSTER_OPTION_ROWS,
	{ "duration", 'd', "TIME", 0, "Sample for this time (default: 5s)", 0 },
	{ "samples", OPTION_SAMPLES, "N", 0, "Sample each main thread N times (default: 20)", 0 },
	{ NULL, 0, NULL, 0, "Of a fleet (clickhouse://...):", 1 },
	{ "since", KEY_VIEW_SINCE, "TIME", 0, "Only samples from TIME on, as '2026-03-01 14:00'", 1 },
	{ "until", KEY_VIEW_UNTIL, "TIME", 0, "Only samples before TIME", 1 },
	{ "host", KEY_VIEW_HOST, "LIST", 0, "Only these hosts; globs", 1 },
	{ "rank", KEY_VIEW_RANK, "LIST", 0, "Only these ranks, as 0,8-15", 1 },
	{ "where", KEY_VIEW_WHERE, "CONDITION", 0, "Only samples that match this, as 'gil = 1'", 1 },
	{ "partial", KEY_VIEW_PARTIAL, NULL, 0, "Compare the others if a server does not answer", 1 },
	{ 0 },
};

static void check_source(struct argp_state *state, const struct options *options)
{
	const struct cluster_options *live = &options->cluster;
	const struct view *view = &options->view;

	if (!options->address &&
	    (view->since.text || view->until.text || view->hosts.n > 0 || view->ranks || view->where || view->partial))
		argp_error(state, "--since, --until, --host, --rank, --where and --partial are for a fleet, "
				  "clickhouse://USER@HOST/DATABASE");
	if (options->address && (options->is_live || live->hosts.n > 0 || live->selection.n_pids > 0 ||
				 live->selection.launcher > 0 || live->selection.pattern))
		argp_error(state,
			   "a fleet's samples are there already: of the options of live ranks only --job is for it");
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case 'd':
		options->seconds = cli_parse_duration(state, argument, "--duration", 0.2, 600);
		options->is_live = true;
		return 0;
	case OPTION_SAMPLES:
		options->n_samples = (unsigned)cli_parse_number(state, argument, "--samples", 1, MAX_SAMPLES);
		options->is_live = true;
		return 0;
	case KEY_VIEW_SINCE:
	case KEY_VIEW_UNTIL:
	case KEY_VIEW_HOST:
	case KEY_VIEW_RANK:
	case KEY_VIEW_WHERE:
	case KEY_VIEW_PARTIAL:
		return view_parse(key, argument, state, &options->view);
	case ARGP_KEY_ARG:
		if (options->address || !fleet_source_is_one(argument))
			return cluster_options_parse(key, argument, state, &options->cluster);
		options->address = argument;
		options->cluster.is_from_files = true;
		return 0;
	case ARGP_KEY_END:
		check_source(state, options);
		return cluster_options_parse(key, argument, state, &options->cluster);
	default:
		return cluster_options_parse(key, argument, state, &options->cluster);
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "[PATTERN]\nclickhouse://USER@HOST/DATABASE",
	.doc = "Watch all ranks of a job for some seconds, and say which one differs from the others, by how much, and in what: CPU "
	       "time, time in a queue for a processor, throttling, the length of its steps (probing.step), and the lines its main "
	       "thread is in. Of a fleet (docs/fleet.md) the report is of the samples that were sent, of hours or days: CPU time, and "
	       "the functions that all threads are in.\v"
	       "Examples:\n"
	       "  probing cluster report\n"
	       "  probing cluster report 'clickhouse://reader@ch/prod?job=llm-7' --since '2026-03-01 00:00' --until '2026-03-02 00:00'\n"
	       "  probing cluster report --hosts node[01-64] -d 10s --samples 50\n",
};

static const struct options *of(const struct cluster_options *cluster)
{
	return (const struct options *)cluster; /* its first member */
}

/* ---- Counters ---- */

/* Totals since the start of a process; negative: unknown. */
struct counters {
	double cpu_s, queued_s, throttled_s, stolen_s;
};

static void add_thread_times(pid_t pid, pid_t tid, struct counters *counters)
{
	CLEANUP(freep) char *text = NULL;
	unsigned long long run_ns, queued_ns;
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", (int)pid, (int)tid);
	if (read_file(path, 256, &text, NULL) < 0 || sscanf(text, "%llu %llu", &run_ns, &queued_ns) != 2)
		return;
	counters->cpu_s = MAX(counters->cpu_s, 0) + (double)run_ns / 1e9;
	counters->queued_s = MAX(counters->queued_s, 0) + (double)queued_ns / 1e9;
}

/* Source: Documentation/admin-guide/cgroup-v2.rst, cpu.stat. */
static double throttled_of(pid_t pid)
{
	CLEANUP(freep) char *group = NULL, *path = NULL, *stat = NULL;
	const char *at, *value;
	size_t n_bytes;

	if (proc_read(pid, "cgroup", 1 << 16, &group, &n_bytes) < 0)
		return -1;
	at = strstr(group, "0::/");
	if (!at || asprintf(&path, "/sys/fs/cgroup%.*s/cpu.stat", (int)strcspn(at + 3, "\n"), at + 3) < 0) {
		path = NULL;
		return -1;
	}
	if (read_file(path, 1 << 16, &stat, NULL) < 0)
		return -1;
	value = strstr(stat, "throttled_usec ");
	return value ? strtod(value + strlen("throttled_usec "), NULL) / 1e6 : -1;
}

/* Source: proc_stat(5). */
static double stolen_of_machine(void)
{
	CLEANUP(freep) char *text = NULL;
	unsigned long long stolen;

	if (read_file("/proc/stat", 4096, &text, NULL) < 0 ||
	    sscanf(text, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &stolen) != 1)
		return -1;
	return (double)stolen / (double)sysconf(_SC_CLK_TCK);
}

static void read_counters(pid_t pid, struct counters *ret)
{
	CLEANUP(freep) pid_t *tids = NULL;
	size_t n = 0;

	*ret = (struct counters){ .cpu_s = -1, .queued_s = -1 };
	if (proc_tasks(pid, &tids, &n) >= 0)
		for (size_t i = 0; i < n; i++)
			add_thread_times(pid, tids[i], ret);
	ret->throttled_s = throttled_of(pid);
	ret->stolen_s = stolen_of_machine();
}

/* A thread that has ended meanwhile takes its time along: the difference may even be negative. */
static double difference(double before, double after)
{
	return before < 0 || after < 0 ? -1 : MAX(after - before, 0);
}

static void measure(struct cluster_rank *rank, const struct counters *before, double seconds)
{
	struct counters after;

	read_counters(rank->pid, &after);
	rank->usage.seconds = seconds;
	rank->usage.cpu_s = difference(before->cpu_s, after.cpu_s);
	rank->usage.queued_s = difference(before->queued_s, after.queued_s);
	rank->usage.throttled_s = difference(before->throttled_s, after.throttled_s);
	rank->usage.stolen_s = difference(before->stolen_s, after.stolen_s);
}

/* ---- Looks ---- */

static int take_look(struct cluster *cluster, struct cluster_rank *rank, const struct command *command)
{
	return cluster_read_backtrace(cluster, rank, command->output ? command->output : "", command->output_bytes);
}

static void sleep_until(uint64_t then_ns)
{
	uint64_t now_ns = monotonic_ns(), left_ns = then_ns > now_ns ? then_ns - now_ns : 0;
	struct timespec pause = { (time_t)(left_ns / 1000000000), (long)(left_ns % 1000000000) };

	nanosleep(&pause, NULL);
}

/* Looks that take longer than their share of the time are fewer, but enough to tell ranks apart. */
static int look_repeatedly(const struct options *options, struct cluster *cluster, uint64_t began_ns)
{
	static const char *const words[] = { "backtrace", "%p", "%p", "--json", "--no-native", NULL };
	uint64_t whole_ns = (uint64_t)(options->seconds * 1e9);
	int r = 0;

	for (unsigned i = 0; r >= 0 && i < options->n_samples; i++) {
		sleep_until(began_ns + whole_ns * i / options->n_samples);
		if (i >= MIN_SAMPLES && monotonic_ns() > began_ns + whole_ns)
			break;
		r = gather_run(&options->cluster, words, take_look, cluster);
	}
	sleep_until(began_ns + whole_ns);
	return r;
}

/* The mean of the last steps that the program has written with probing.step(). A process without them has no such table. */
static int take_steps(struct cluster *cluster, struct cluster_rank *rank, const struct command *command)
{
	const char *text = command->output ? command->output : "", *rows = strstr(text, "\"rows\":[[");
	double mean = -1;

	(void)cluster;
	if (rows && sscanf(rows, "\"rows\":[[%lf", &mean) == 1 && mean >= 0)
		rank->usage.step_ms = mean;
	return 0;
}

static int read_steps(const struct options *options, struct cluster *cluster)
{
	static const char *const words[] = {
		"cluster",
		"rows",
		"--pid",
		"%p",
		"--each",
		"--",
		"SELECT avg(last_ms) FROM (SELECT last_ms FROM steps WHERE last_ms IS NOT NULL ORDER BY step DESC LIMIT 20)",
		NULL
	};

	for (size_t i = 0; i < cluster->n_ranks; i++)
		cluster->ranks[i].usage.step_ms = -1;
	return gather_run(&options->cluster, words, take_steps, cluster);
}

static int watch_here(const struct cluster_options *asked, struct cluster *cluster)
{
	const struct options *options = of(asked);
	CLEANUP(freep) struct counters *before = NULL;
	uint64_t began_ns;
	int r = gather_find(&options->cluster, cluster);

	if (r < 0)
		return r;
	before = calloc(cluster->n_ranks + 1, sizeof *before);
	if (!before)
		return -ENOMEM;
	began_ns = monotonic_ns();
	for (size_t i = 0; i < cluster->n_ranks; i++)
		read_counters(cluster->ranks[i].pid, &before[i]);
	r = look_repeatedly(options, cluster, began_ns);
	for (size_t i = 0; r >= 0 && i < cluster->n_ranks; i++)
		if (cluster->ranks[i].status == RANK_READ)
			measure(&cluster->ranks[i], &before[i], (double)(monotonic_ns() - began_ns) / 1e9);
	if (r >= 0)
		r = read_steps(options, cluster);
	return r < 0 ? r : gather_collectives(&options->cluster, cluster);
}

/* Hosts need the time itself, too. */
static int watch_hosts(const struct cluster_options *asked, struct cluster *cluster)
{
	const struct options *options = of(asked);
	struct cluster_options how = options->cluster;
	char duration[32], samples[32];
	const char *words[] = { "report", duration, samples, NULL };

	snprintf(duration, sizeof duration, "--duration=%.0fms", options->seconds * 1000);
	snprintf(samples, sizeof samples, "--samples=%u", options->n_samples);
	if (how.host_timeout_s <= 0)
		how.host_timeout_s = 2 * options->seconds + 2 * how.timeout_s + 10;
	return gather_hosts(&how, words, cluster);
}

/* ---- A fleet ---- */

/* A cluster that is made of a fleet's ranks. */
struct fleet_ranks {
	struct cluster *cluster;
	struct cluster_rank *rank; /* the last one */
	const char *job;
	uint32_t *frames; /* of a stack */
	size_t n_frames, frames_allocated;
};

static int take_stack(void *data, const struct fleet_call *calls, size_t n_calls)
{
	struct fleet_ranks *ranks = data;
	uint32_t ignored;
	int r = 0;

	ranks->n_frames = 0;
	for (size_t i = 0; i < n_calls && r >= 0; i++) {
		struct cluster_frame frame = { .is_builtin = strcmp(calls[i].role, "builtin") == 0,
					       .function = calls[i].name,
					       .file = calls[i].file[0] ? calls[i].file : NULL,
					       .module = calls[i].module[0] ? calls[i].module : NULL };

		r = frame_kind_parse(calls[i].kind, &frame.kind);
		if (r >= 0)
			r = grow(&ranks->frames, ranks->n_frames, &ranks->frames_allocated, sizeof *ranks->frames);
		if (r >= 0)
			r = cluster_add_frame(ranks->cluster, &frame, &ranks->frames[ranks->n_frames++]);
	}
	return r < 0 ? r : cluster_add_stack(ranks->cluster, ranks->frames, ranks->n_frames, &ignored);
}

/* @ret: index. */
static int find_host(struct cluster *cluster, const char *name, size_t *ret)
{
	struct cluster_host *host;

	for (*ret = 0; *ret < cluster->n_hosts; ++*ret)
		if (strcmp(cluster->hosts[*ret].name, name) == 0)
			return 0;
	return cluster_add_host(cluster, name, NULL, NULL, &host);
}

static int take_rank(void *data, const struct fleet_rank *rank)
{
	struct fleet_ranks *ranks = data;
	struct rank_identity identity = { .rank = rank->rank, .local_rank = -1, .world_size = -1 };
	size_t host;
	int r = find_host(ranks->cluster, rank->host, &host);

	snprintf(identity.job, sizeof identity.job, "%s", ranks->job);
	if (r >= 0)
		r = cluster_add_rank(ranks->cluster, host, (pid_t)rank->pid, &identity, &ranks->rank);
	if (r < 0)
		return r;
	ranks->rank->usage = (struct rank_usage){ .seconds = rank->seconds,
						  .cpu_s = rank->cpu_s,
						  .queued_s = -1,
						  .throttled_s = -1,
						  .stolen_s = -1,
						  .step_ms = -1 };
	return 0;
}

static int take_samples(void *data, size_t stack, uint64_t n)
{
	return cluster_add_looks(((struct fleet_ranks *)data)->rank, (uint32_t)stack, n);
}

static int read_fleet(struct options *options, struct cluster *cluster)
{
	struct fleet_ranks ranks = { .cluster = cluster, .job = options->cluster.selection.job ?: "" };
	const struct fleet_rank_visitor visitor = { take_stack, take_rank, take_samples, &ranks };

	options->view.job = options->cluster.selection.job;
	options->status = fleet_source_ranks(options->address, &options->view, &visitor);
	free(ranks.frames);
	return 0;
}

static int read_ranks(const struct cluster_options *asked, struct cluster *cluster)
{
	struct options *options = (struct options *)of(asked);

	return options->address ? read_fleet(options, cluster) : watch_here(asked, cluster);
}

static int put(const void *data, FILE *out)
{
	return cluster_report(data, out);
}

static int fail(const void *data, int error)
{
	(void)data;
	return cli_fail(EXIT_FAILED, "printing failed: %s", strerror(-error));
}

static int show(const struct cluster_options *options, struct cluster *cluster)
{
	int status = of(options)->status;

	if (status != EXIT_OK)
		return status;
	gather_say_hidden(cluster);
	status = output_write("-", 0, put, fail, cluster);
	return status != EXIT_OK ? status : gather_status(cluster);
}

static const struct cluster_question question = {
	.argp = &argp, .here = read_ranks, .hosts = watch_hosts, .show = show
};

static int run_cluster_report(int argc, char **argv)
{
	struct options options = { .seconds = 5, .n_samples = 20 };
	int status;

	cluster_options_init(&options.cluster);
	status = cluster_run(&question, &options.cluster, argc, argv);
	view_done(&options.view);
	return status;
}

const struct verb cluster_verb_report = {
	.name = "report",
	.aliases = "straggler",
	.summary = "find the rank that differs from the others",
	.argp = &argp,
	.run = run_cluster_report,
};
