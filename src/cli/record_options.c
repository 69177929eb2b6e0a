/* record_options.c - what can be asked of probing record. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/cli/record_options.h"

enum { MAX_HZ = 20000, MAX_STACK_BYTES = 65528 };
enum { KEY_STACK_BYTES = 0x200, KEY_NO_KERNEL, KEY_NO_SYMBOLS, KEY_SOURCE, KEY_ASYNC, KEY_MODE };

static const struct argp_option option_list[] = {
	{ "pid", 'p', "PID", 0, "Record this running process and the children that it starts from now on", 0 },
	{ "duration", 'd', "SECONDS", 0, "End after this time (default: Ctrl-C, or the process' end)", 0 },
	{ "frequency", 'F', "HZ", 0, "Samples per second of CPU time and thread (default: 99)", 0 },
	{ "rate", 'r', "HZ", OPTION_ALIAS, NULL, 0 },
	{ "output", 'o', "FILE", 0, "Where to write (default: probing.db; what is there becomes FILE.old)", 0 },
	{ "stack-bytes", KEY_STACK_BYTES, "N", 0,
	  "Bytes of each thread's stack to capture, a multiple of 8 up to 65528 (default: 32768; "
	  "deeper stacks are completed from memory)", 0 },
	{ "source", KEY_SOURCE, "NAME", 0,
	  "Where Python frames come from: bpf, memory inside the interrupt that samples; read, memory right after "
	  "each sample; poll, memory alone, at intervals, without native frames; auto, the best that is allowed "
	  "here (default)", 0 },
	{ "mode", KEY_MODE, "NAME", 0,
	  "Which time is recorded: cpu, on a processor (default); offcpu, waiting, with its true duration, and for "
	  "what; wall, both", 0 },
	{ "no-kernel", KEY_NO_KERNEL, NULL, 0, "Leave out time inside the kernel", 0 },
	{ "no-symbols", KEY_NO_SYMBOLS, NULL, 0,
	  "Store modules, build-ids and addresses only, which spares this machine the work; 'probing "
	  "symbolize' finds the names later, also elsewhere", 0 },
	{ "async", KEY_ASYNC, NULL, 0,
	  "Say in which asyncio task a sample was taken, and which tasks wait for that one: they stand in its "
	  "stack, so that flame graphs group by task", 0 },
	{ "quiet", 'q', NULL, 0, "Say nothing but errors", 0 },
	{ 0 },
};

static double parse_number(struct argp_state *state, const char *text, const char *what, double low,
			   double high)
{
	char *end;
	double value;

	errno = 0;
	value = strtod(text, &end);
	if (end == text || *end != '\0' || errno != 0 || !(value >= low && value <= high))
		argp_error(state, "%s must be a number from %g to %g, not %s", what, low, high, text);
	return value;
}

/* As the option names them, and the column run.stack_source. */
const char *const record_source_names[] = {
	[SOURCE_AUTO] = "auto",
	[SOURCE_BPF] = "bpf",
	[SOURCE_READ] = "read",
	[SOURCE_POLL] = "poll",
};

static enum capture_source parse_source(struct argp_state *state, const char *text)
{
	for (size_t i = 0; i < N_ELEMENTS(record_source_names); i++) {
		if (strcmp(text, record_source_names[i]) == 0)
			return (enum capture_source)i;
	}
	argp_error(state, "--source must be auto, bpf, read or poll, not %s", text);
	return SOURCE_AUTO;
}

/* As the option names them, and the column run.mode. */
const char *const record_mode_names[] = {
	[MODE_CPU] = "cpu",
	[MODE_WALL] = "wall",
	[MODE_OFFCPU] = "offcpu",
};

static enum capture_mode parse_mode(struct argp_state *state, const char *text)
{
	for (size_t i = 0; i < N_ELEMENTS(record_mode_names); i++) {
		if (strcmp(text, record_mode_names[i]) == 0)
			return (enum capture_mode)i;
	}
	argp_error(state, "--mode must be cpu, wall or offcpu, not %s", text);
	return MODE_CPU;
}

static void check(struct argp_state *state, const struct record_options *options)
{
	if (options->command && options->pid)
		argp_error(state, "give either --pid or a command, not both");
	if (!options->command && !options->pid)
		argp_error(state, "what to record? Give --pid PID, or -- COMMAND");
	if (options->capture.stack_bytes % 8 != 0)
		argp_error(state, "--stack-bytes must be a multiple of 8");
	if (options->capture.mode != MODE_CPU && options->capture.source == SOURCE_POLL)
		argp_error(state, "--mode %s needs perf events, which tell when threads wait: --source poll does without "
			   "them and sees threads that run alone", record_mode_names[options->capture.mode]);
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct record_options *options = state->input;

	switch (key) {
	case 'p':
		options->pid = (pid_t)parse_number(state, argument, "the process id", 1, 1 << 22);
		return 0;
	case 'd':
		options->duration_s = parse_number(state, argument, "the duration", 0.001, 1e9);
		return 0;
	case 'F':
	case 'r':
		options->capture.hz = parse_number(state, argument, "the frequency", 0.1, MAX_HZ);
		return 0;
	case 'o':
		options->path = argument;
		return 0;
	case KEY_STACK_BYTES:
		options->capture.stack_bytes =
			(size_t)parse_number(state, argument, "--stack-bytes", 256, MAX_STACK_BYTES);
		return 0;
	case KEY_SOURCE:
		options->capture.source = parse_source(state, argument);
		return 0;
	case KEY_MODE:
		options->capture.mode = options->pipeline.mode = parse_mode(state, argument);
		return 0;
	case KEY_NO_KERNEL:
		options->capture.no_kernel = true;
		return 0;
	case KEY_ASYNC:
		options->pipeline.async = true;
		return 0;
	case KEY_NO_SYMBOLS:
		options->pipeline.no_symbols = true;
		return 0;
	case 'q':
		options->quiet = true;
		return 0;
	case ARGP_KEY_ARG:
		return ARGP_ERR_UNKNOWN; /* leave it and the rest to ARGP_KEY_ARGS */
	case ARGP_KEY_ARGS:
		options->command = state->argv + state->next;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		check(state, options);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp record_argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "--pid PID\n-- COMMAND [ARGUMENT...]",
	.doc = "Record where a Python program spends its time: Python and native frames in one stack, "
	       "into one SQLite file. The program is never stopped, written to or signalled.\v"
	       "Examples:\n"
	       "  probing record --pid 4242 -d 20\n"
	       "  probing record --mode wall --pid 4242 -d 20\n"
	       "  probing record -F 999 -o run.db -- python3 train.py --epochs 1\n"
	       "Then: probing flamegraph, probing report, probing sql \"SELECT ...\".\n\n"
	       "A command's output, input and exit status are its own. Signals sent to probing are "
	       "passed on to it.",
};
