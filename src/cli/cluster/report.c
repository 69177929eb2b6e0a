/* SPDX-License-Identifier: MIT */
/* report.c - probing cluster report: which rank is slow, since when, and what it does differently.
 *
 * Ranks are looked at again and again for some seconds: counters of /proc at both ends, stacks of the main threads between.
 * Then come the times of their last steps, by the tables that agents write.
 * Of a fleet the report is of the samples that were sent: of hours or days.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "src/cli/cluster/cluster.h"
#include "src/cli/cluster/counters.h"
#include "src/cli/exporters.h"
#include "src/cli/fleet_source.h"

enum {
	OPTION_SAMPLES = 0x200,
	OPTION_PATHS,
	OPTION_DIFF,
	MIN_SAMPLES = 10,
	MAX_SAMPLES = 1000,
	DEFAULT_PATHS = 5,
	MAX_PATHS = 1000,
};

struct options {
	struct cluster_options cluster;
	double seconds;
	unsigned n_samples;
	struct view view; /* of a fleet */
	const char *address;
	bool is_live; /* an option of live ranks was given */
	int status;   /* of reading a fleet */
	struct cluster_output output;
	unsigned n_paths;
	int64_t diff; /* rank of the picture; -1: the one that differs most */
};

static const struct argp_option option_list[] = {
	CLUSTER_OPTION_ROWS,
	{ "duration", 'd', "TIME", 0, "Sample for this time (default: 5s)", 0 },
	{ "samples", OPTION_SAMPLES, "N", 0, "Sample each main thread N times (default: 20)", 0 },
	{ "paths", OPTION_PATHS, "N", 0, "Show N paths of stacks in which a rank differs (default: 5)", 0 },
	CLUSTER_OUTPUT_ROWS,
	{ "diff", OPTION_DIFF, "RANK", 0,
	  "With svg and html: draw the stacks of this rank against the others' (default: the one that differs most)",
	  0 },
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

static void check_picture(struct argp_state *state, const struct options *options)
{
	if (options->diff >= 0 && !cluster_output_is_drawn(&options->output))
		argp_error(state, "--diff chooses the rank of a picture: add -o diff.svg, or --format html");
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
	case OPTION_PATHS:
		options->n_paths = (unsigned)cli_parse_number(state, argument, "--paths", 0, MAX_PATHS);
		return 0;
	case CLUSTER_OPTION_FORMAT:
	case 'j':
	case 'o':
		return cluster_output_parse(key, argument, state, &options->output);
	case OPTION_DIFF:
		options->diff = (int64_t)cli_parse_number(state, argument, "--diff", 0, RANK_MAX_NUMBER);
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
		cluster_output_end(&options->output);
		check_picture(state, options);
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
	.doc = "Watch all ranks of a job for some seconds, and name the rank that differs from the others, by how much, "
	       "and in which number. The numbers are CPU time, time in a queue for a processor, throttling, memory, "
	       "steps, forward and backward passes, communication, and waits for data. Functions of the main thread "
	       "count, too. For a slow rank the report has the step since "
	       "which it is slow, as far as the agent keeps steps. Of a fleet (docs/fleet.md) the report compares CPU "
	       "time and the functions of all threads, by the samples of hours or days.\v"
	       "Examples:\n"
	       "  probing cluster report\n"
	       "  probing cluster report 'clickhouse://reader@ch/prod?job=llm-7' --since '2026-03-01 00:00' --until '2026-03-02 00:00'\n"
	       "  probing cluster report --hosts node[01-64] -d 10s --samples 50\n"
	       "  probing cluster report -o diff.svg --diff 17\n",
};

static const struct options *of(const struct cluster_options *cluster)
{
	return (const struct options *)cluster; /* its first member */
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

/* ---- Steps ---- */

/* A process without the agent has no such tables. */
static int take_steps(struct cluster *cluster, struct cluster_rank *rank, const struct command *command)
{
	(void)cluster;
	return cluster_read_steps(rank, command->output ? command->output : "", command->output_bytes);
}

static int take_comm(struct cluster *cluster, struct cluster_rank *rank, const struct command *command)
{
	const char *text = command->output ? command->output : "", *rows = strstr(text, "\"rows\":[[");
	double seconds = -1;

	(void)cluster;
	if (rows && sscanf(rows, "\"rows\":[[%lf", &seconds) == 1 && seconds >= 0)
		rank->usage.comm_s = seconds;
	return 0;
}

static int read_steps(const struct options *options, struct cluster *cluster)
{
	const char *words[6 + N_STEPS_SQL + 1] = { "cluster", "rows", "--pid", "%p", "--each", "--" };

	for (size_t i = 0; i < N_STEPS_SQL; i++)
		words[6 + i] = cluster_steps_sql[i];
	return gather_extra(&options->cluster, words, take_steps, cluster);
}

/* Operations that overlap count once, those of GPUs each: cluster_steps_sql. */
static int read_comm(const struct options *options, struct cluster *cluster)
{
	CLEANUP(freep) char *sql = NULL;
	const char *words[] = { "cluster", "rows", "--pid", "%p", "--each", "--", NULL, NULL };

	if (asprintf(
		    &sql,
		    "WITH call AS (SELECT time_ns / 1e9 AS ended, min(latency_ms / 1e3, %.3f) AS length,"
		    " coalesce(backend LIKE '%%nccl%%', 0) AS on_gpu FROM python.comm_metrics WHERE latency_ms IS NOT NULL AND"
		    " timestamp > (julianday('now') - 2440587.5) * 86400.0 - %.3f), covered AS (SELECT *, max(ended) OVER"
		    " (PARTITION BY on_gpu ORDER BY ended - length ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS until"
		    " FROM call) SELECT coalesce(sum(CASE WHEN on_gpu OR until IS NULL THEN length"
		    " ELSE max(0, ended - max(until, ended - length)) END), 0.0) FROM covered",
		    options->seconds, options->seconds) < 0) {
		sql = NULL;
		return -ENOMEM;
	}
	words[6] = sql;
	return gather_extra(&options->cluster, words, take_comm, cluster);
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
		counters_read(cluster->ranks[i].pid, &before[i]);
	r = look_repeatedly(options, cluster, began_ns);
	for (size_t i = 0; r >= 0 && i < cluster->n_ranks; i++)
		if (cluster->ranks[i].status == RANK_READ)
			counters_usage(cluster->ranks[i].pid, &before[i], (double)(monotonic_ns() - began_ns) / 1e9,
				       &cluster->ranks[i].usage);
	if (r >= 0)
		r = read_comm(options, cluster); /* of the time that was watched: at once */
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
	ranks->rank->usage = rank_usage_unknown;
	ranks->rank->usage.seconds = rank->seconds;
	ranks->rank->usage.cpu_s = rank->cpu_s;
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

struct result {
	const struct options *options;
	const struct cluster *cluster;
};

static int put(const void *data, FILE *out)
{
	const struct result *result = data;
	const struct options *options = result->options;

	switch (options->output.format) {
	case CLUSTER_JSON:
		return cluster_report_json(result->cluster, options->n_paths, out);
	case CLUSTER_SVG:
	case CLUSTER_HTML:
		return cluster_report_picture(result->cluster, options->diff, options->output.format == CLUSTER_HTML,
					      out);
	default:
		return cluster_report(result->cluster, options->n_paths, out);
	}
}

static int fail(const void *data, int error)
{
	const struct result *result = data;

	if (error != -ENOENT)
		return cli_fail(EXIT_FAILED, "printing failed: %s", strerror(-error));
	if (result->options->diff >= 0)
		return cli_fail(EXIT_BAD_DATA, "there is no rank %jd with samples, and another one to compare it with",
				(intmax_t)result->options->diff);
	return cli_fail(EXIT_BAD_DATA, "there are no two ranks with samples to compare");
}

static int show(const struct cluster_options *options, struct cluster *cluster)
{
	const struct result result = { of(options), cluster };
	int status = of(options)->status;

	if (status != EXIT_OK)
		return status;
	gather_say_hidden(cluster);
	status = output_write(of(options)->output.path, 0, put, fail, &result);
	return status != EXIT_OK ? status : gather_status(cluster);
}

static int check_format(struct cluster_options *asked)
{
	return cluster_output_check(&of(asked)->output);
}

static const struct cluster_question question = {
	.argp = &argp, .check = check_format, .here = read_ranks, .hosts = watch_hosts, .show = show
};

static int run_cluster_report(int argc, char **argv)
{
	struct options options = {
		.seconds = 5, .n_samples = 20, .output = { CLUSTER_BY_NAME, "-" }, .n_paths = DEFAULT_PATHS, .diff = -1
	};
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
	.pages = true,
	.run = run_cluster_report,
};
