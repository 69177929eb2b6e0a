/* SPDX-License-Identifier: MIT */
/* record_hosts.c - see cluster.h.
 *
 * Two questions to all hosts: for their time, over one connection each, then for a recording that begins at the same moment
 * by all clocks. Answers are files of other machines: they are read as any foreign recording is.
 */
#include "src/cli/cluster/cluster.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/new_file.h"
#include "base/path.h"
#include "base/util.h"
#include "src/archive/archive.h"
#include "src/cli/cli.h"
#include "src/cli/cluster/hosts.h"
#include "src/cli/duration.h"
#include "src/cli/exporters.h"
#include "src/cli/format.h"
#include "src/cli/inputs.h"
#include "src/cli/live_recording.h"
#include "src/cli/progress.h"

extern char **environ;

enum {
	MAX_RECORDING_BYTES = 1 << 30,
	MAX_SENTENCE = 1024,
	CHUNK = 1 << 16,
	MAX_MORE = 40,
	MAX_MERGED = 1 << 10,
	MIN_LINKS = 3,
	SLOW_TIMES = 3,
	SLOW_NS = 5000000
};
#define MAX_RECORDINGS_BYTES ((size_t)8 << 30)
#define DEFAULT_S 10.0
#define START_S 2.0   /* until all hosts have understood the question */
#define FINISH_S 60.0 /* names are resolved, and the recording is sent */
#define MAX_OFFSET_NS INT64_C(4000000000000000000)

struct host {
	struct clock_offset clock;
	bool has_clock;
	char *start; /* "--start-at=..." */
	char *path;  /* of its recording; NULL: there is none */
};

struct asking {
	const struct cluster_options *options;
	struct host *hosts;
	struct live_recording folder;
	size_t n_failed;
};

static size_t index_of(const struct asking *asking, const char *name)
{
	for (size_t i = 0; i < asking->options->hosts.n; i++)
		if (strcmp(asking->options->hosts.words[i], name) == 0)
			return i;
	return 0;
}

static bool has_answered(const struct command *command)
{
	return command->error >= 0 && WIFEXITED(command->wait_status) && WEXITSTATUS(command->wait_status) == 0;
}

static void say_failure(struct asking *asking, const char *host, const struct command *command)
{
	char why[MAX_SENTENCE];

	command_explain(command, why, sizeof why);
	cli_say("probing: host %s: %s\n", host, why);
	asking->n_failed++;
}

/* ---- Clocks ---- */

static int take_clock(void *data, const struct cluster_asked *asked, const struct command *command)
{
	const char *name = asked->hosts[0];
	struct asking *asking = data;
	struct host *host = &asking->hosts[index_of(asking, name)];
	int64_t offset_ns, error_ns;

	if (!has_answered(command)) {
		say_failure(asking, name, command);
		return 0;
	}
	if (!command->output || sscanf(command->output, "%" SCNd64 " %" SCNd64, &offset_ns, &error_ns) != 2 ||
	    offset_ns < -MAX_OFFSET_NS || offset_ns > MAX_OFFSET_NS || error_ns < 0) {
		cli_say("probing: host %s: its answer is not a time\n", name);
		asking->n_failed++;
		return 0;
	}
	host->clock = (struct clock_offset){ offset_ns, error_ns };
	host->has_clock = true;
	return 0;
}

static int measure_clocks(struct asking *asking)
{
	static const char *const before[] = { "/proc/self/exe", "cluster", "clock", NULL };
	static const char *const words[] = { "clock", NULL };
	struct cluster_options options = *asking->options;

	options.before = before;
	options.is_file = true;
	return cluster_ask(&options, words, MAX_SENTENCE, take_clock, asking);
}

static int compare_trips(const void *a, const void *b)
{
	const int64_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

/*
 * A link that is slow for us is often slow for the job. The shortest of sixteen round trips does not depend on load; ssh,
 * whose other end is a process, adds the same to all.
 */
static int say_slow_links(const struct asking *asking)
{
	size_t n_hosts = asking->options->hosts.n, n = 0;
	CLEANUP(freep) int64_t *trips = calloc(n_hosts + 1, sizeof *trips);
	int64_t median;

	if (!trips)
		return -ENOMEM;
	for (size_t i = 0; i < n_hosts; i++)
		if (asking->hosts[i].has_clock)
			trips[n++] = 2 * asking->hosts[i].clock.error_ns;
	if (n < MIN_LINKS)
		return 0;
	qsort(trips, n, sizeof *trips, compare_trips);
	median = trips[n / 2];
	for (size_t i = 0; i < n_hosts; i++) {
		int64_t trip = 2 * asking->hosts[i].clock.error_ns;

		if (asking->hosts[i].has_clock && trip > SLOW_TIMES * median && trip > median + SLOW_NS)
			cli_say("probing: host %s: its link is slow: the shortest round trip takes %.1f ms, the median of all hosts "
				"%.1f ms\n",
				asking->options->hosts.words[i], (double)trip / 1e6, (double)median / 1e6);
	}
	return 0;
}

/* ---- Recordings ---- */

static int write_all(int fd, const char *bytes, size_t n)
{
	while (n > 0) {
		ssize_t written = write(fd, bytes, n);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		bytes += written;
		n -= (size_t)written;
	}
	return 0;
}

static int take_recording(void *data, const struct cluster_asked *asked, const struct command *command)
{
	const char *name = asked->hosts[0];
	struct asking *asking = data;
	size_t i = index_of(asking, name);
	CLEANUP(closep) int fd = -1;
	char *path;
	int r;

	if (!has_answered(command)) {
		say_failure(asking, name, command);
		return 0;
	}
	if (asprintf(&path, "%s/%zu.db", asking->folder.folder.path, i) < 0)
		return -ENOMEM;
	asking->hosts[i].path = path;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = write_all(fd, command->output ? command->output : "", command->output_bytes);
	return r;
}

/* Only hosts whose clock is known are asked; all of them at once, however many. */
static int record_all(struct asking *asking, char *const *words, double seconds)
{
	static const char *const question[] = { "record", NULL };
	struct cluster_options options = *asking->options;
	CLEANUP(freep) char **own = calloc(options.hosts.n + 1, sizeof *own);
	CLEANUP(freep) char **names = calloc(options.hosts.n + 1, sizeof *names);
	uint64_t start_ns = realtime_ns() + (uint64_t)(START_S * 1e9);
	size_t n = 0;

	if (!own || !names)
		return -ENOMEM;
	for (size_t i = 0; i < options.hosts.n; i++) {
		struct host *host = &asking->hosts[i];

		if (!host->has_clock)
			continue;
		if (asprintf(&host->start, "--start-at=%" PRId64, (int64_t)start_ns + host->clock.offset_ns) < 0) {
			host->start = NULL;
			return -ENOMEM;
		}
		own[n] = host->start;
		names[n++] = options.hosts.words[i];
	}
	if (n == 0)
		return 0;
	options.hosts = (struct glob_list){ .words = names, .n = n };
	options.own = own;
	options.is_file = true;
	options.more = words;
	options.fan_out = MAX(options.fan_out, (unsigned)n);
	options.max_all_bytes = MAX_RECORDINGS_BYTES;
	if (options.host_timeout_s <= 0)
		options.host_timeout_s = START_S + seconds + FINISH_S + options.timeout_s;
	return cluster_ask(&options, question, MAX_RECORDING_BYTES, take_recording, asking);
}

/* ---- Merge ---- */

static void say_result(const struct asking *asking, const char *out, const struct copy_result *result)
{
	char samples[32];

	format_count(result->n_samples, samples);
	cli_say("probing: wrote %s: %s samples of %" PRIu64 " host%s\n", out, samples, result->n_runs,
		result->n_runs == 1 ? "" : "s");
	for (size_t i = 0; i < asking->options->hosts.n; i++) {
		const struct host *host = &asking->hosts[i];

		if (host->path && llabs(host->clock.offset_ns) > host->clock.error_ns)
			cli_say("probing: the clock of %s is %.3f ms %s (+- %.3f ms): its times are corrected\n",
				asking->options->hosts.words[i], (double)llabs(host->clock.offset_ns) / 1e6,
				host->clock.offset_ns > 0 ? "ahead" : "behind", (double)host->clock.error_ns / 1e6);
	}
}

/* An existing file stays as OUT.old, as those of record do. */
static int keep_old(const char *out)
{
	CLEANUP(freep) char *old = NULL;

	if (access(out, F_OK) < 0)
		return 0;
	if (asprintf(&old, "%s.old", out) < 0) {
		old = NULL;
		return -ENOMEM;
	}
	return rename(out, old) < 0 ? -errno : 0;
}

static int merge(struct asking *asking, const char *out)
{
	CLEANUP(new_file_abandon) struct new_file file = { 0 };
	CLEANUP(inputs_done) struct inputs sources = { 0 };
	size_t n_hosts = asking->options->hosts.n, n = 0;
	CLEANUP(freep) const char **paths = calloc(n_hosts + 1, sizeof *paths);
	CLEANUP(freep) struct copy_clock *clocks = calloc(n_hosts + 1, sizeof *clocks);
	struct copy_options wanted = { .clocks = clocks };
	struct copy_result result;
	int r, status;

	if (!paths || !clocks)
		return cli_fail(EXIT_FAILED, "not enough memory");
	for (size_t i = 0; i < n_hosts; i++) {
		const struct host *host = &asking->hosts[i];

		if (!host->path)
			continue;
		clocks[n] = (struct copy_clock){ true, host->clock.offset_ns, host->clock.error_ns };
		paths[n++] = host->path;
	}
	if (n == 0)
		return cli_fail(EXIT_FAILED, "no host has recorded, for the reasons above");
	status = inputs_open(paths, n, &sources);
	if (status != EXIT_OK)
		return status;
	r = keep_old(out);
	if (r >= 0)
		r = new_file_reserve(&file, out, false, 0);
	if (r < 0)
		return inputs_fail_place(out, r);
	r = copy_recordings(sources.dbs, sources.n, file.path, &wanted, &result);
	if (r < 0)
		return inputs_fail(&sources, out, r, &result);
	r = new_file_finish(&file);
	if (r < 0)
		return inputs_fail_place(out, r);
	say_result(asking, out, &result);
	return EXIT_OK;
}

/* ---- Words for record ---- */

/* Words without -o, which is of this machine. */
struct record_words {
	char *words[MAX_MORE + 3]; /* end with NULL */
	size_t n;
	const char *out; /* NULL: none */
	double seconds;
};

/* "-o X", "-oX", "--output X", "--output=X": the value, or NULL; *ret_n: how many words that are. */
static const char *value_of(char **words, char letter, const char *name, size_t *ret_n)
{
	size_t n = strlen(name);

	*ret_n = 1;
	if (words[0][0] == '-' && words[0][1] == letter && words[0][2])
		return words[0] + 2;
	if (strncmp(words[0], "--", 2) == 0 && strncmp(words[0] + 2, name, n) == 0 && words[0][2 + n] == '=')
		return words[0] + 3 + n;
	if (words[1] && ((words[0][0] == '-' && words[0][1] == letter && !words[0][2]) ||
			 (strncmp(words[0], "--", 2) == 0 && strcmp(words[0] + 2, name) == 0))) {
		*ret_n = 2;
		return words[1];
	}
	return NULL;
}

static int read_words(char **words, struct record_words *ret)
{
	bool has_duration = false;
	size_t n;

	*ret = (struct record_words){ .seconds = DEFAULT_S };
	for (; words && *words; words += n) {
		const char *value = value_of(words, 'o', "output", &n);

		if (value) {
			ret->out = value;
			continue;
		}
		value = value_of(words, 'd', "duration", &n);
		if (value && duration_parse(value, &ret->seconds) < 0)
			return cli_fail(EXIT_USAGE, "%s is not a duration: give 30, 500ms, 2m or 1h", value);
		has_duration |= value != NULL;
		if (ret->n + n > MAX_MORE)
			return cli_fail(EXIT_USAGE, "more than %d words for probing record", MAX_MORE);
		for (size_t i = 0; i < n; i++)
			ret->words[ret->n++] = words[i];
	}
	if (!has_duration) {
		ret->words[ret->n++] = (char *)"-d";
		ret->words[ret->n++] = (char *)"10s";
	}
	return EXIT_OK;
}

/* "cluster.svg": "cluster.db". */
static char *beside(const char *picture)
{
	char *path;

	return asprintf(&path, "%.*s.db", (int)path_stem_bytes(picture), picture) < 0 ? NULL : path;
}

static int draw(const char *recording, const char *out)
{
	execl("/proc/self/exe", "probing", "flamegraph", recording, "--by", "rank", "-o", out, NULL);
	return cli_fail(EXIT_FAILED, "probing flamegraph cannot be started: %s", strerror(errno));
}

static int run_all(struct asking *asking, const struct record_words *words, const char *out)
{
	int r;

	asking->hosts = calloc(asking->options->hosts.n, sizeof *asking->hosts);
	if (!asking->hosts)
		return cli_fail(EXIT_FAILED, "not enough memory");
	r = live_folder(&asking->folder);
	if (r < 0)
		return cli_fail(EXIT_NO_OUTPUT, "no folder for recordings can be made in $TMPDIR or /tmp: %s",
				strerror(-r));
	r = measure_clocks(asking);
	if (r >= 0)
		r = say_slow_links(asking);
	if (r >= 0)
		r = record_all(asking, words->words, words->seconds);
	if (r < 0)
		return cli_fail(cli_status(r), "the hosts cannot be recorded: %s", strerror(-r));
	return merge(asking, out);
}

int cluster_record_hosts(struct cluster_options *options, char **words, bool is_drawn)
{
	CLEANUP(freep) char *recording = NULL;
	struct asking asking = { .options = options };
	struct record_words read;
	struct progress progress;
	int status = read_words(words, &read);

	if (status != EXIT_OK)
		return status;
	if (!read.out)
		read.out = is_drawn ? "cluster.svg" : "cluster.db";
	recording = is_drawn ? beside(read.out) : strdup(read.out);
	if (!recording)
		return cli_fail(EXIT_FAILED, "not enough memory");
	if (options->hosts.n > MAX_MERGED)
		return cli_fail(EXIT_USAGE, "at most %d hosts at a time", MAX_MERGED);
	if (!is_drawn && exporters_ending(read.out)[0] && strcmp(exporters_ending(read.out), ".db") != 0)
		return cli_fail(EXIT_USAGE,
				"with --hosts, -o names a recording, not %s: probing cluster flamegraph draws",
				read.out);
	progress_begin(&progress, true); /* a signal leaves no folder behind */
	status = run_all(&asking, &read, recording);
	for (size_t i = 0; asking.hosts && i < options->hosts.n; i++) {
		free(asking.hosts[i].start);
		free(asking.hosts[i].path);
	}
	free(asking.hosts);
	live_recording_done(&asking.folder);
	progress_end(&progress, status);
	return status == EXIT_OK && is_drawn ? draw(recording, read.out) : status;
}

/* ---- The other side ---- */

/* What it prints goes to stderr: stdout is the recording's. */
static int run_record(char **argv)
{
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int r, status;

	r = posix_spawn_file_actions_init(&actions);
	if (r != 0)
		return cli_fail(EXIT_FAILED, "not enough memory");
	r = posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
	r = r ? r : posix_spawn(&pid, "/proc/self/exe", &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (r != 0)
		return cli_fail(EXIT_FAILED, "probing record cannot be started: %s", strerror(r));
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return cli_fail(EXIT_FAILED, "probing record cannot be waited for: %s", strerror(errno));
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILED;
}

static int print_file(const char *path)
{
	CLEANUP(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	char bytes[CHUNK];
	ssize_t n;
	int r = fd < 0 ? -errno : 0;

	while (r >= 0 && (n = read(fd, bytes, sizeof bytes)) != 0)
		r = n < 0 ? -errno : write_all(STDOUT_FILENO, bytes, (size_t)n);
	return r < 0 ? cli_fail(EXIT_FAILED, "the recording cannot be sent: %s", strerror(-r)) : EXIT_OK;
}

static void wait_until(uint64_t time_ns)
{
	struct timespec at = { (time_t)(time_ns / 1000000000), (long)(time_ns % 1000000000) };

	while (time_ns > 0 && !progress_is_stopped() &&
	       clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

int cluster_record_for_another(const char *pids, char **words, uint64_t start_ns)
{
	CLEANUP(live_recording_done) struct live_recording file = { 0 };
	const char *argv[MAX_MORE + 10] = { "probing", "record", "--no-summary", "--pid", pids, "--output" };
	struct progress progress;
	size_t n = 6;
	int r = live_folder(&file), status;

	if (r < 0)
		return cli_fail(EXIT_NO_OUTPUT, "no folder for the recording can be made in $TMPDIR or /tmp: %s",
				strerror(-r));
	argv[n++] = file.path;
	for (size_t i = 0; words && words[i]; i++) {
		if (i > MAX_MORE)
			return cli_fail(EXIT_USAGE, "more than %d words for probing record", MAX_MORE);
		cluster_decode(words[i]);
		argv[n++] = words[i];
	}
	progress_begin(&progress, true);
	wait_until(start_ns);
	if (progress_is_stopped())
		status = EXIT_FAILED;
	else
		status = run_record((char **)argv);
	if (status == EXIT_OK)
		status = print_file(file.path);
	live_recording_done(&file);
	return progress_end(&progress, status);
}
