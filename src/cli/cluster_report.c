/* SPDX-License-Identifier: MIT */
/* cluster_report.c - probing cluster report: which rank is slow, and what it does differently.
 *
 * Ranks are looked at again and again for some seconds: counters of /proc at both ends, stacks of the main threads between.
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

enum { OPTION_SAMPLES = 0x200, MIN_SAMPLES = 10, MAX_SAMPLES = 1000 };

struct options {
	struct cluster_options cluster;
	double seconds;
	unsigned n_samples;
};

static const struct argp_option option_list[] = {
	CLUSTER_OPTION_ROWS,
	{ "duration", 'd', "TIME", 0, "Sample for this time (default: 5s)", 0 },
	{ "samples", OPTION_SAMPLES, "N", 0, "Sample each main thread N times (default: 20)", 0 },
	{ 0 },
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case 'd':
		options->seconds = cli_parse_duration(state, argument, "--duration", 0.2, 600);
		return 0;
	case OPTION_SAMPLES:
		options->n_samples = (unsigned)cli_parse_number(state, argument, "--samples", 1, MAX_SAMPLES);
		return 0;
	default:
		return cluster_options_parse(key, argument, state, &options->cluster);
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "[PATTERN]",
	.doc = "Watch all ranks of a job for some seconds, and say which one differs from the others, by how much, and in what: CPU "
	       "time, time in a queue for a processor, throttling, the length of its steps (probing.step), and the lines its main "
	       "thread is in.\v"
	       "Examples:\n"
	       "  probing cluster report\n"
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
	int status;

	(void)options;
	gather_say_hidden(cluster);
	status = output_write("-", 0, put, fail, cluster);
	return status != EXIT_OK ? status : gather_status(cluster);
}

static const struct cluster_question question = {
	.argp = &argp, .here = watch_here, .hosts = watch_hosts, .show = show
};

static int run_cluster_report(int argc, char **argv)
{
	struct options options = { .seconds = 5, .n_samples = 20 };

	cluster_options_init(&options.cluster);
	return cluster_run(&question, &options.cluster, argc, argv);
}

const struct verb cluster_verb_report = {
	.name = "report",
	.aliases = "straggler",
	.summary = "find the rank that differs from the others",
	.argp = &argp,
	.run = run_cluster_report,
};
