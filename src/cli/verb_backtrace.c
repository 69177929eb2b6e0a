/* verb_backtrace.c - where a running process is now, all of its threads. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/backtrace/backtrace.h"
#include "src/cli/cli.h"

enum { OPTION_JSON = 0x200, OPTION_NO_STOP, OPTION_NO_NATIVE, OPTION_INTERPRETER, OPTION_ASYNC, OPTION_LOCALS,
       OPTION_CORE, MAX_ID = 1 << 22 };

struct options {
	struct backtrace_options look;
	const char *words[2]; /* that are no options, to be understood when all options are known */
	bool json;
};

static const struct argp_option option_list[] = {
	{ "json", OPTION_JSON, NULL, 0, "Print one JSON object", 0 },
	{ "core", OPTION_CORE, "FILE", 0,
	  "Look into a core file instead; PROGRAM is its program's file, where that has moved", 0 },
	{ "no-stop", OPTION_NO_STOP, NULL, 0,
	  "Stop no thread: Python frames alone, as memory shows them while the threads run", 0 },
	{ "no-native", OPTION_NO_NATIVE, NULL, 0, "Show Python frames alone", 0 },
	{ "async", OPTION_ASYNC, NULL, 0,
	  "Show the asyncio tasks of each event loop too: where they wait, and for whom", 0 },
	{ "interpreter-frames", OPTION_INTERPRETER, NULL, 0,
	  "Show the interpreter's own functions too", 0 },
	{ "locals", OPTION_LOCALS, NULL, 0,
	  "Show the variables of Python frames: read, without running anything in the process", 0 },
	{ 0 },
};

static pid_t parse_id(const char *argument, const char *what, struct argp_state *state)
{
	char *end;
	long id;

	errno = 0;
	id = strtol(argument, &end, 10);
	if (errno != 0 || end == argument || *end != '\0' || id < 1 || id > MAX_ID)
		argp_error(state, "the %s id must be a number from 1 to %d, not %s", what, MAX_ID, argument);
	return (pid_t)id;
}

/* Of a core file: the program's path, and the id of a thread, which is a number. */
static void parse_of_core(struct options *options, const char *argument, struct argp_state *state)
{
	if (argument[strspn(argument, "0123456789")] == '\0' && !options->look.tid)
		options->look.tid = parse_id(argument, "thread", state);
	else if (!options->look.executable)
		options->look.executable = argument;
	else
		argp_error(state, "one program's path, and one thread's id: but what is %s?", argument);
}

static void parse_of_process(struct options *options, const char *argument, struct argp_state *state)
{
	if (!options->look.pid)
		options->look.pid = parse_id(argument, "process", state);
	else
		options->look.tid = parse_id(argument, "thread", state);
}

static void keep_word(struct options *options, const char *argument, struct argp_state *state)
{
	if (options->words[1])
		argp_error(state, "one process, and one thread of it: but what is %s?", argument);
	options->words[options->words[0] != NULL] = argument;
}

static void understand(struct argp_state *state, struct options *options)
{
	for (size_t i = 0; i < N_ELEMENTS(options->words) && options->words[i]; i++)
		(options->look.core ? parse_of_core : parse_of_process)(options, options->words[i], state);
	if (options->look.core && options->look.no_stop)
		argp_error(state, "--no-stop is for processes: nobody runs in a core file");
	if (!options->look.core && !options->look.pid)
		argp_error(state, "of which process? Give its PID, or --core FILE");
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case OPTION_JSON:
		options->json = true;
		return 0;
	case OPTION_CORE:
		options->look.core = argument;
		return 0;
	case OPTION_NO_STOP:
		options->look.no_stop = true;
		return 0;
	case OPTION_NO_NATIVE:
		options->look.no_native = true;
		return 0;
	case OPTION_ASYNC:
		options->look.async = true;
		return 0;
	case OPTION_INTERPRETER:
		options->look.show_interpreter = true;
		return 0;
	case OPTION_LOCALS:
		options->look.locals = true;
		return 0;
	case ARGP_KEY_ARG:
		keep_word(options, argument, state);
		return 0;
	case ARGP_KEY_END:
		understand(state, options);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = parse,
	.args_doc = "PID [TID]\n--core FILE [PROGRAM] [TID]",
	.doc = "Print where each thread of a running process is, or was when it died: Python and native frames in one stack, "
	       "innermost first, with the lines that are being executed. Each thread is stopped for about a "
	       "millisecond, one after the other, and goes on by itself whatever happens to probing.\v"
	       "Examples:\n"
	       "  probing backtrace 4242\n"
	       "  probing backtrace 4242 4250 --no-native --locals\n"
	       "  probing backtrace 4242 --json\n"
	       "  probing backtrace --core core.4242\n\n"
	       "Where stopping is refused but reading is not, Python frames come from memory, as with "
	       "--no-stop. A system call that a stop interrupts goes on afterwards; a few report EINTR to "
	       "the program, as after SIGSTOP: see signal(7).",
};

/* The process that a thread belongs to; 0: unknown. */
static pid_t process_of(pid_t tid)
{
	CLEANUP(freep) char *status = NULL;
	const char *value;
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/status", (int)tid);
	if (read_file(path, 1 << 16, &status, NULL) < 0)
		return 0;
	value = proc_status_value(status, "Tgid");
	return value ? (pid_t)strtol(value, NULL, 10) : 0;
}

static int fail_missing(const struct backtrace_options *look)
{
	if (look->tid && process_of(look->pid) == look->pid)
		return cli_fail(EXIT_NO_INPUT, "process %d has no thread %d", (int)look->pid, (int)look->tid);
	return cli_fail(EXIT_NO_INPUT, "there is no process %d, or it has just ended", (int)look->pid);
}

static int fail_empty(pid_t pid)
{
	struct proc_stat stat;

	if (proc_stat_read(pid, 0, &stat) == 0 && stat.is_kernel_thread)
		return cli_fail(EXIT_FAILED, "process %d is a thread of the kernel: it has no stack of a program",
				(int)pid);
	if (proc_stat_read(pid, 0, &stat) == 0 && stat.state == 'Z')
		return cli_fail(EXIT_NO_INPUT,
				"process %d has ended and only waits for its parent, process %d, to take note "
				"(a zombie): it has no stack any more", (int)pid, (int)stat.parent);
	return cli_fail(EXIT_NO_INPUT, "process %d has just ended", (int)pid);
}

static int fail_core(const struct backtrace_options *look, int error)
{
	switch (error) {
	case -ESRCH:
		return cli_fail(EXIT_NO_INPUT, "%s has no thread %d", look->core, (int)look->tid);
	case -EBADMSG:
		return cli_fail(EXIT_BAD_DATA, "%s is no core file, or a damaged one", look->core);
	case -EOPNOTSUPP:
		return cli_fail(EXIT_BAD_DATA, "%s is a core file of another kind of machine, or of a 32-bit program",
				look->core);
	case -ENODATA:
		return cli_fail(EXIT_BAD_DATA, "%s tells of no thread", look->core);
	default:
		return cli_fail(cli_status(error), "%s cannot be read: %s",
				error == -ENOENT && look->executable && access(look->core, R_OK) == 0
					? look->executable : look->core, strerror(-error));
	}
}

static int fail(const struct backtrace_options *look, int error)
{
	char text[512];

	if (look->core)
		return fail_core(look, error);
	switch (error) {
	case -ESRCH:
		return fail_missing(look);
	case -ENODATA:
		return fail_empty(look->pid);
	case -EPERM:
	case -EACCES:
		backtrace_explain(look->pid, text, sizeof text);
		return cli_fail(EXIT_NOT_PERMITTED, "%s", text);
	case -EOPNOTSUPP:
		return cli_fail(EXIT_FAILED,
				"no Python that can be read is in process %d: without stopping its threads "
				"there is nothing to show", (int)look->pid);
	default:
		return cli_fail(cli_status(error), "looking at process %d failed: %s", (int)look->pid,
				strerror(-error));
	}
}

/* Why there is less than was asked for. */
static void say_shortcomings(const struct backtrace *backtrace)
{
	char text[512];

	if (backtrace->refused) {
		backtrace_explain(backtrace->pid, text, sizeof text);
		fprintf(stderr, "its threads were not stopped, these are Python frames from memory: %s\n", text);
	}
	if (backtrace->n_files_missing > 0)
		fprintf(stderr, "%zu of the files that it had mapped are not here, or are others by now: stacks may "
				"end early, and names be missing\n", backtrace->n_files_missing);
	if (backtrace->python_error == -EAGAIN)
		fprintf(stderr, "its Python is still starting up: these are native frames\n");
	else if (backtrace->python_error)
		fprintf(stderr, "Python %s in %s %d cannot be read: these are native frames\n", backtrace->python,
			backtrace->is_dumped ? "the core of process" : "process", (int)backtrace->pid);
}

static int print(const struct backtrace *backtrace, const struct options *options)
{
	CLEANUP(output_abandon) struct output output;
	int r;

	r = output_open(&output, "-");
	if (r < 0)
		return cli_fail_open("-", r);
	if (options->json)
		r = backtrace_print_json(backtrace, output.file);
	else
		r = backtrace_print_text(backtrace, cli_colour(STDOUT_FILENO), output.file);
	if (output.error < 0)
		return cli_fail_write("-", output.error);
	if (r < 0)
		return cli_fail(EXIT_FAILED, "printing failed: %s", strerror(-r));
	r = output_finish(&output);
	return r < 0 ? cli_fail_write("-", r) : EXIT_OK;
}

static int run_backtrace(int argc, char **argv)
{
	CLEANUP(backtrace_freep) struct backtrace *backtrace = NULL;
	struct options options = { 0 };
	pid_t process;
	int r;

	cli_parse(&argp, argc, argv, 0, &options);
	process = options.look.core ? 0 : process_of(options.look.pid);
	if (process != 0 && process != options.look.pid)
		return cli_fail(EXIT_NO_INPUT, "%d is a thread of process %d: probing backtrace %d %d",
				(int)options.look.pid, (int)process, (int)process, (int)options.look.pid);
	r = backtrace_take(&options.look, &backtrace);
	if (r < 0)
		return fail(&options.look, r);
	say_shortcomings(backtrace);
	return print(backtrace, &options);
}

const struct verb verb_backtrace = {
	.name = "backtrace",
	.aliases = "dump",
	.summary = "print where each thread of a running process is now",
	.run = run_backtrace,
};
