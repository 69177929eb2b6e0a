/* SPDX-License-Identifier: MIT */
/* options.c - the options of probing record. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/duration.h"
#include "src/cli/new_file_options.h"
#include "src/cli/record/record.h"
#include "src/cli/record/target_options.h"
#include "src/http/http.h"

enum {
	MAX_HZ = 20000,
	MAX_STACK_BYTES = 65528,
	MAX_SELDOM_HZ = 100, /* even then, with many busy threads, a few thousand samples come between two ticks */
};
#define MAX_COUNT 1e15
enum { KEY_STACK_BYTES = 0x200, KEY_NO_KERNEL, KEY_NO_SYMBOLS, KEY_SOURCE, KEY_ASYNC, KEY_EVENTS, KEY_MODE, KEY_TASKS };
enum {
	KEY_CONTROL = 0x280,
	KEY_DELAY,
	KEY_PAUSED,
	KEY_MAX_SIZE,
	KEY_RETENTION,
	KEY_INTERVAL,
	KEY_NO_SUMMARY,
	KEY_METRICS,
	KEY_BACKGROUND,
	KEY_DISTINCT,
	KEY_NO_ROWS,
	KEY_TO,
	KEY_METRICS_ONLY
};

/* clang-format off */
static const struct argp_option option_list[] = {
	TARGET_OPTION_ROWS,
	{ "duration", 'd', "TIME", 0,
	  "Stop after TIME without pauses: 30, 500ms, 2m, 1h (default: unlimited, until Ctrl-C or until the last "
	  "process ends)", 0 },
	{ "delay", KEY_DELAY, "TIME", 0, "Start after TIME; -1: as --paused", 0 },
	{ "paused", KEY_PAUSED, NULL, 0,
	  "Start paused; SIGUSR2 (with --pid) or 'resume' on --control starts sampling", 0 },
	{ "control", KEY_CONTROL, "FIFO[,REPLY]", 0,
	  "Read commands from this FIFO, one per line: pause, resume, flush, stop, status; write replies to REPLY. "
	  "Missing FIFOs are created, and removed at the end", 0 },
	{ "max-size", KEY_MAX_SIZE, "BYTES[K|M|G]", 0,
	  "Keep the file below BYTES: drop the oldest samples (at least 1M)", 0 },
	{ "retention", KEY_RETENTION, "TIME", 0,
	  "Drop samples older than TIME, such as 90, 10m, 1h, 2d (default: the process' "
	  "probing.retention_days, PROBING_RETENTION_DAYS from the environment, or keep all)", 0 },
	{ "event", 'e', "NAME", 0,
	  "Sample on this event instead of CPU time: cycles, cache-misses, page-faults, context-switches, "
	  "syscalls:sys_enter_write...; 'list' prints the events of this machine", 0 },
	{ "events", KEY_EVENTS, NULL, OPTION_HIDDEN, NULL, 0 },
	{ "count", 'c', "N", 0,
	  "Sample every Nth event (default: 100 for page faults, 1 for rarer events and tracepoints; hardware "
	  "events use the frequency of -F)", 0 },
	{ "frequency", 'F', "HZ", 0, "Samples per second of CPU time, per thread (default: the process' probing.sample_rate, else "
	  "PROBING_SAMPLE_RATE from the environment, in seconds, else 99)", 0 },
	{ "rate", 'r', "HZ", 0, "The same as --frequency", 0 },
	{ "interval", KEY_INTERVAL, "TIME", 0, "Sample every TIME instead: 10ms; a plain number is in microseconds", 0 },
	{ "output", 'o', "OUT", 0,
	  "Write the recording to OUT (default: probing.db; an existing one becomes OUT.old). If OUT ends in .svg, "
	  ".html, .json, .folded or another export format, write that as well, with the recording beside it: "
	  "profile.svg and profile.db",
	  0 },
	PICTURE_OPTION_ROWS,
	CHMOD_OPTION_ROW,
	{ "stack-bytes", KEY_STACK_BYTES, "N", 0,
	  "Capture N bytes of each thread's stack, a multiple of 8 up to 65528 (default: 32768; deeper stacks are "
	  "completed from memory)", 0 },
	{ "source", KEY_SOURCE, "NAME", 0,
	  "Read Python frames by bpf (in the sampling interrupt), wakeup (after each sample), poll (on a timer, without "
	  "native frames) or agent (in the process); auto: the best permitted (default)", 0 },
	{ "mode", KEY_MODE, "NAME", 0,
	  "Record time on a CPU (cpu, default), off a CPU (offcpu: the reason and duration of each wait), or both "
	  "(wall)", 0 },
	{ "no-kernel", KEY_NO_KERNEL, NULL, 0, "Exclude time in the kernel", 0 },
	{ "no-symbols", KEY_NO_SYMBOLS, NULL, 0,
	  "Store build-ids and addresses instead of native names; 'probing symbolize' resolves them later, on any "
	  "machine", 0 },
	{ "async", KEY_ASYNC, NULL, 0,
	  "Add the asyncio task, and the tasks that await it, to each stack, so that flame graphs group by task", 0 },
	{ "tasks", KEY_TASKS, NULL, 0,
	  "With --mode wall or offcpu: add a row for each pending asyncio task, with the line where it waits "
	  "(state await)", 0 },
	{ "metrics", KEY_METRICS, "TIME", 0,
	  "Store memory, CPU time and I/O of the processes and the machine every TIME (default: 1s; 0: never): "
	  "process_usage, machine_usage, cgroup_usage, pressure, disk_usage, network_usage, gpu_metrics...", 0 },
	{ "metrics-only", KEY_METRICS_ONLY, NULL, 0,
	  "Take no samples: store metrics alone, of the selected processes or of the whole machine", 0 },
	{ "to", KEY_TO, "URL", 0,
	  "Also send the recording to http[s]://USER@HOST[:PORT]/DATABASE or otlp+http[s]://HOST[:PORT] meanwhile, by a probing "
	  "ship of its own; the recorder does not wait for it, and its messages are in OUT.ship.log", 0 },
	{ "background", KEY_BACKGROUND, NULL, 0,
	  "Return once recording has begun: print the recorder's PID and file, and go on in a process of its own, with "
	  "messages in OUT.log; SIGTERM to that PID ends it", 0 },
	{ "distinct", KEY_DISTINCT, NULL, OPTION_HIDDEN, NULL, 0 },
	{ "no-rows", KEY_NO_ROWS, NULL, 0,
	  "Do not store the rows that the program writes with probing.log, event, step, span and ExternalTable", 0 },
	{ "quiet", 'q', NULL, 0, "Print errors only", 0 },
	{ "no-summary", KEY_NO_SUMMARY, NULL, OPTION_HIDDEN, NULL, 0 },
	{ 0 },
};
/* clang-format on */

/* A unit after a number is a factor. Without a unit: the number alone. */
struct unit {
	char letter;
	double factor;
};

static double parse_with_unit(struct argp_state *state, const char *text, const char *what, const struct unit *units,
			      double low, double high)
{
	char number[32];
	size_t n = strlen(text);
	double factor = 1, value;

	for (; n > 0 && units->letter; units++)
		if ((text[n - 1] | 0x20) == units->letter)
			break;
	if (n == 0 || n >= sizeof number)
		argp_error(state, "%s cannot be '%s'", what, text);
	if (units->letter) {
		factor = units->factor;
		n--;
	}
	memcpy(number, text, n);
	number[n] = '\0';
	value = cli_parse_number(state, number, what, 0, 1e15) * factor;
	if (!(value >= low && value <= high))
		argp_error(state, "%s must be from %.10g to %.10g, not %s", what, low, high, text);
	return value;
}

/* 0: unlimited. */
static double parse_duration(struct argp_state *state, const char *text)
{
	return strcmp(text, "unlimited") == 0 ? 0 : cli_parse_duration(state, text, "the duration", 0.001, 1e9);
}

/* A number without a unit is in microseconds, as in austin. */
static double parse_interval_hz(struct argp_state *state, const char *text)
{
	bool is_number = text[strspn(text, "0123456789.")] == '\0';
	double interval_s = 0;
	int r = duration_parse(text, &interval_s);

	interval_s *= is_number ? 1e-6 : 1;
	if (r < 0 || !(interval_s >= 1.0 / MAX_HZ && interval_s <= 10))
		argp_error(
			state,
			"the interval must be from 50us to 10s, such as 10ms (a number alone is of microseconds), not %s",
			text);
	return 1 / interval_s;
}

static int64_t parse_size(struct argp_state *state, const char *text)
{
	static const struct unit units[] = { { 'k', 1 << 10 }, { 'm', 1 << 20 }, { 'g', 1 << 30 }, { 0 } };

	return (int64_t)parse_with_unit(state, text, "the size in bytes", units, 1 << 20, 1e15);
}

/* As in the option and in the column run.stack_source. */
/* clang-format off */
const char *const record_source_names[] = {
	[SOURCE_AUTO] = "auto",
	[SOURCE_BPF] = "bpf",
	[SOURCE_WAKEUP] = "wakeup",
	[SOURCE_POLL] = "poll",
	[SOURCE_AGENT] = "agent",
};
/* clang-format on */

static enum capture_source parse_source(struct argp_state *state, const char *text)
{
	for (size_t i = 0; i < N_ELEMENTS(record_source_names); i++) {
		if (strcmp(text, record_source_names[i]) == 0)
			return (enum capture_source)i;
	}
	argp_error(state, "--source must be auto, bpf, wakeup, poll or agent, not %s", text);
	return SOURCE_AUTO;
}

/* As in the option and in the column run.mode. */
/* clang-format off */
const char *const record_mode_names[] = {
	[MODE_CPU] = "cpu",
	[MODE_WALL] = "wall",
	[MODE_OFFCPU] = "offcpu",
};
/* clang-format on */

/* Reject options that recording waits does not support: a wait needs both of its ends. */
static void check_mode(struct argp_state *state, const struct record_options *options)
{
	const char *mode = record_mode_names[options->capture.mode];
	const struct filter_options *filter = &options->pipeline.filter;

	if (options->capture.mode == MODE_CPU && options->pipeline.pending_tasks)
		argp_error(state, "--tasks records waiting tasks: add --mode wall, or --mode offcpu");
	if (options->capture.mode == MODE_CPU)
		return;
	if (options->event_name)
		argp_error(state, "--mode %s records time: omit --event", mode);
	if (options->capture.idle)
		argp_error(state, "--mode %s includes idle threads: omit --idle", mode);
	if (options->capture.paused || options->control)
		argp_error(state,
			   "--mode %s records each wait from start to end and cannot pause: omit --control, "
			   "--paused and --delay",
			   mode);
	if (store_has_limits(&options->pipeline.limits))
		argp_error(state, "--max-size and --retention are not for --mode %s: end the recording with --duration",
			   mode);
	if (filter->gil || filter->threads.n > 0 || filter->functions.n > 0)
		argp_error(state,
			   "--mode %s records whole threads: give --threads, --function and --gil to probing report "
			   "and flamegraph afterwards",
			   mode);
}

/* What the CPU clocks of a process' own threads cannot do. */
static void check_agent(struct argp_state *state, const struct record_options *options)
{
	if (options->command)
		argp_error(state, "--source agent is for running processes that have the agent: start the command with "
				  "PROBING=1, and give its --pid");
}

/* Limits or no terminal: it is there for long, and is to disturb little. */
bool record_is_always_on(const struct record_options *options)
{
	return store_has_limits(&options->pipeline.limits) || options->is_background;
}

static void check_background(struct argp_state *state, const struct record_options *options)
{
	if (options->command)
		argp_error(state, "--background is for running processes: a command can go to the background itself");
	if (options->path && strcmp(options->path, "-") == 0)
		argp_error(state, "--background writes a file: name it with -o");
}

/* "-a -- sleep 10" is how perf is told how long to record others. */
static void take_sleep(struct record_options *options)
{
	char **command = options->command;
	double seconds;

	if (!command || !targets_are_asked_for(&options->targets) || strcmp(command[0], "sleep") != 0 || !command[1] ||
	    command[2] || duration_parse(command[1], &seconds) < 0)
		return;
	options->command = NULL;
	options->duration_s = seconds;
}

/* What needs samples, or a command, is of no use. */
static void check_metrics_only(struct argp_state *state, const struct record_options *options)
{
	if (options->command)
		argp_error(
			state,
			"--metrics-only is for running processes: give --pid, --comm, --cmdline or --user, or none of "
			"them for the whole machine");
	if (options->pipeline.metrics_ns == 0)
		argp_error(state, "--metrics-only with --metrics 0 would record nothing");
	if (options->event_name || options->hz_given || options->capture.mode != MODE_CPU ||
	    options->capture.source != SOURCE_AUTO || options->capture.idle || options->pipeline.filter.gil ||
	    options->pipeline.filter.threads.n > 0 || options->pipeline.filter.functions.n > 0)
		argp_error(
			state,
			"--metrics-only takes no samples: omit --event, --frequency, --mode, --source, --idle and filters "
			"of samples");
	if (options->capture.paused || options->control)
		argp_error(state, "--metrics-only cannot pause: omit --control, --paused and --delay");
	if (options->picture.format || options->picture.temporary.path)
		argp_error(
			state,
			"--metrics-only has no stacks to draw: omit --format; probing report --timeline draws metrics");
}

/* Before a recording begins whose shipper would end at once, and before the address is printed. */
static void check_to(struct argp_state *state, const char *url)
{
	bool is_otlp = strncmp(url, "otlp+", strlen("otlp+")) == 0;
	struct http_place place;
	int r = http_place_parse(is_otlp ? url + strlen("otlp+") : url, &place);

	if (is_otlp && r == 0 && !place.user[0])
		return;
	if (is_otlp)
		argp_error(state,
			   "--to has no address of a receiver: write otlp+https://HOST:PORT, and put secrets into "
			   "OTEL_EXPORTER_OTLP_HEADERS");
	if (r == -EPERM)
		argp_error(state, "--to: the address has a password in it, which other users see in the list of "
				  "processes: put it into a file that PROBING_FLEET_PASSWORD_FILE names");
	if (r < 0 || !place.path[0])
		argp_error(state, "--to has no address of a database: write https://USER@HOST:PORT/DATABASE");
}

static void check(struct argp_state *state, struct record_options *options)
{
	if (options->event_name && strcmp(options->event_name, "list") == 0)
		return;
	take_sleep(options);
	if (options->metrics_only)
		check_metrics_only(state, options);
	else
		target_options_check(state, options);
	if (options->to && options->metrics_only)
		argp_error(state, "--to sends samples, which --metrics-only does not take");
	if (options->to)
		check_to(state, options->to);
	if (options->is_background)
		check_background(state, options);
	picture_choose(state, &options->picture, &options->path);
	if (options->metrics_only && options->picture.exporter)
		argp_error(
			state,
			"--metrics-only has no stacks to export: name a recording with -o, and draw it with probing report "
			"--timeline");
	options->no_summary |= options->picture.temporary.path != NULL;
	if (!options->path)
		options->path = cli_default_recording();
	if (options->capture.count > 0 && (!options->event_name || options->hz_given))
		argp_error(state, options->hz_given ? "give either --count or --frequency, not both"
						    : "--count counts events: give --event NAME, too");
	if (options->capture.paused && options->delay_s < 0 && options->command && !options->control)
		argp_error(state, "a command that is recorded from a pause on needs --control, to end the pause "
				  "(signals are the command's own)");
	if (options->capture.stack_bytes % 8 != 0)
		argp_error(state, "--stack-bytes must be a multiple of 8");
	check_mode(state, options);
	record_defaults(state, options);
	options->capture.wake_on_live_read = record_is_always_on(options) && options->capture.hz <= MAX_SELDOM_HZ;
	if (options->capture.mode != MODE_CPU && options->capture.source == SOURCE_POLL)
		argp_error(state,
			   "--mode %s needs perf events, which report waits: --source poll has none and sees running "
			   "threads only",
			   record_mode_names[options->capture.mode]);
	if (options->capture.source == SOURCE_AGENT)
		check_agent(state, options);
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct record_options *options = state->input;

	switch (key) {
	case 'd':
		options->duration_s = parse_duration(state, argument);
		return 0;
	case KEY_DELAY:
		options->delay_s = strcmp(argument, "-1") == 0
					   ? -1
					   : cli_parse_duration(state, argument, "the delay", 0, 1e9);
		options->capture.paused = true;
		return 0;
	case KEY_PAUSED:
		options->delay_s = -1;
		options->capture.paused = true;
		return 0;
	case KEY_CONTROL:
		options->control = argument;
		return 0;
	case KEY_MAX_SIZE:
		options->pipeline.limits.max_bytes = parse_size(state, argument);
		return 0;
	case KEY_RETENTION:
		options->pipeline.limits.keep_ns =
			(uint64_t)(cli_parse_duration(state, argument, "the time to keep", 1, 1e9) * 1e9);
		return 0;
	case 'F':
	case 'r':
		options->capture.hz = cli_parse_number(state, argument, "the frequency", 0.1, MAX_HZ);
		options->hz_given = true;
		return 0;
	case KEY_INTERVAL:
		options->capture.hz = parse_interval_hz(state, argument);
		options->hz_given = true;
		return 0;
	case 'e':
		options->event_name = argument;
		return 0;
	case KEY_EVENTS:
		options->event_name = "list";
		return 0;
	case 'c':
		options->capture.count = (uint64_t)cli_parse_number(state, argument, "the count", 1, MAX_COUNT);
		return 0;
	case 'o':
		options->path = argument;
		return 0;
	case KEY_CHMOD:
		options->mode = cli_parse_mode(state, argument);
		return 0;
	case KEY_STACK_BYTES:
		options->capture.stack_bytes = (size_t)cli_parse_number(state, argument, "--stack-bytes", 256,
									MAX_STACK_BYTES);
		return 0;
	case KEY_SOURCE:
		options->capture.source = parse_source(state, argument);
		return 0;
	case KEY_MODE:
		options->capture.mode = options->pipeline.mode = (enum capture_mode)cli_parse_word(
			state, argument, "--mode", record_mode_names, N_ELEMENTS(record_mode_names));
		return 0;
	case KEY_NO_KERNEL:
		options->capture.no_kernel = true;
		return 0;
	case KEY_ASYNC:
		options->pipeline.async = true;
		return 0;
	case KEY_TASKS:
		options->pipeline.pending_tasks = true;
		return 0;
	case KEY_BACKGROUND:
		options->is_background = true;
		return 0;
	case KEY_DISTINCT:
		options->is_distinct = true;
		return 0;
	case KEY_NO_SYMBOLS:
		options->pipeline.no_symbols = true;
		return 0;
	case KEY_NO_ROWS:
		options->pipeline.rows = false;
		return 0;
	case KEY_METRICS:
		options->pipeline.metrics_ns =
			(uint64_t)(cli_parse_duration(state, argument, "the period of --metrics", 0, 1e6) * 1e9);
		return 0;
	case KEY_TO:
		options->to = argument;
		return 0;
	case KEY_METRICS_ONLY:
		options->metrics_only = true;
		return 0;
	case 'q':
		options->quiet = true;
		return 0;
	case KEY_NO_SUMMARY:
		options->no_summary = true;
		return 0;
	case ARGP_KEY_ARG: /* a word that is no PID goes to ARGP_KEY_ARGS, with the rest */
		return target_options_take_word(state, argument, options) ? 0 : ARGP_ERR_UNKNOWN;
	case ARGP_KEY_ARGS:
		options->command = state->argv + state->next;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		check(state, options);
		return 0;
	default:
		if (picture_parse(key, argument, state, &options->picture) == 0)
			return 0;
		return target_options_parse(key, argument, state, options);
	}
}

/* clang-format off */
const struct argp record_argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "PID\n--comm NAME\n--cmdline TEXT\n--user NAME\n-- COMMAND [ARGUMENT...]",
	.doc = "Record where a Python program spends its time: Python and native frames in one stack, into one "
	       "SQLite file. The program is never stopped, written to or signalled, unless its own agent takes the samples "
	       "(--source agent).\v"
	       "Examples:\n"
	       "  probing record --pid 4242 -d 20\n"
	       "  probing record --pid 4242 -d 1m -o profile.svg\n"
	       "  probing record --mode wall --pid 4242 -d 20\n"
	       "  probing record -F 999 -o run.db -- python3 train.py --epochs 1\n"
	       "  probing record -e page-faults -- python3 train.py\n"
	       "  probing record --pid 4242 -F 19 --retention 1h --max-size 500M -o always.db\n"
	       "  probing record --comm 'python3*' --threads 'loader-*' -d 20\n"
	       "  probing record --metrics-only --retention 1d -o host.db\n"
	       "Then: probing flamegraph, probing report, probing sql \"SELECT ...\".\n"
	       "\n"
	       "A command keeps its input, output and exit status; probing forwards signals to it. With --pid, "
	       "Ctrl-C and SIGTERM end the recording, SIGUSR1 flushes it to disk, SIGUSR2 pauses and resumes.",
};
/* clang-format on */
