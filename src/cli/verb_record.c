/* verb_record.c - probing record: from the arguments to a finished file.
 *
 * Order matters: permission and arguments are settled before the file is made,
 * so that a recording that cannot start leaves everything as it was; and
 * sampling is set up before a command is let go, so that its first instruction
 * is seen.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/cli/child.h"
#include "src/cli/cli.h"
#include "src/cli/recording_run.h"
#include "src/cli/summary.h"
#include "unwind/cpython/cpython.h"

enum { DEFAULT_HZ = 99, MAX_HZ = 20000, MAX_STACK_BYTES = 65528 };
enum { KEY_STACK_BYTES = 0x200, KEY_NO_KERNEL, KEY_NO_SYMBOLS, KEY_SOURCE, KEY_ASYNC };

struct arguments {
	pid_t pid;
	double duration_s;
	struct capture_options capture;
	const char *path;
	char **command; /* NULL: attach to pid */
	struct pipeline_options pipeline;
	bool quiet;
};

static const struct argp_option options[] = {
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
static const char *const source_names[] = {
	[SOURCE_AUTO] = "auto",
	[SOURCE_BPF] = "bpf",
	[SOURCE_READ] = "read",
	[SOURCE_POLL] = "poll",
};

static enum capture_source parse_source(struct argp_state *state, const char *text)
{
	for (size_t i = 0; i < N_ELEMENTS(source_names); i++) {
		if (strcmp(text, source_names[i]) == 0)
			return (enum capture_source)i;
	}
	argp_error(state, "--source must be auto, bpf, read or poll, not %s", text);
	return SOURCE_AUTO;
}

static void check(struct argp_state *state, const struct arguments *arguments)
{
	if (arguments->command && arguments->pid)
		argp_error(state, "give either --pid or a command, not both");
	if (!arguments->command && !arguments->pid)
		argp_error(state, "what to record? Give --pid PID, or -- COMMAND");
	if (arguments->capture.stack_bytes % 8 != 0)
		argp_error(state, "--stack-bytes must be a multiple of 8");
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct arguments *arguments = state->input;

	switch (key) {
	case 'p':
		arguments->pid = (pid_t)parse_number(state, argument, "the process id", 1, 1 << 22);
		return 0;
	case 'd':
		arguments->duration_s = parse_number(state, argument, "the duration", 0.001, 1e9);
		return 0;
	case 'F':
	case 'r':
		arguments->capture.hz = parse_number(state, argument, "the frequency", 0.1, MAX_HZ);
		return 0;
	case 'o':
		arguments->path = argument;
		return 0;
	case KEY_STACK_BYTES:
		arguments->capture.stack_bytes =
			(size_t)parse_number(state, argument, "--stack-bytes", 256, MAX_STACK_BYTES);
		return 0;
	case KEY_SOURCE:
		arguments->capture.source = parse_source(state, argument);
		return 0;
	case KEY_NO_KERNEL:
		arguments->capture.no_kernel = true;
		return 0;
	case KEY_ASYNC:
		arguments->pipeline.async = true;
		return 0;
	case KEY_NO_SYMBOLS:
		arguments->pipeline.no_symbols = true;
		return 0;
	case 'q':
		arguments->quiet = true;
		return 0;
	case ARGP_KEY_ARG:
		return ARGP_ERR_UNKNOWN; /* leave it and the rest to ARGP_KEY_ARGS */
	case ARGP_KEY_ARGS:
		arguments->command = state->argv + state->next;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		check(state, arguments);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.args_doc = "--pid PID\n-- COMMAND [ARGUMENT...]",
	.doc = "Record where a Python program spends its time: Python and native frames in one stack, "
	       "into one SQLite file. The program is never stopped, written to or signalled.\v"
	       "Examples:\n"
	       "  probing record --pid 4242 -d 20\n"
	       "  probing record -F 999 -o run.db -- python3 train.py --epochs 1\n"
	       "Then: probing flamegraph, probing report, probing sql \"SELECT ...\".\n\n"
	       "A command's output, input and exit status are its own. Signals sent to probing are "
	       "passed on to it.",
};

/* The recording's process in words. Owned by the caller. */
static char *describe(const struct arguments *arguments)
{
	char *text = NULL;

	if (!arguments->command)
		return proc_text(arguments->pid, "cmdline", 4096);
	for (char **word = arguments->command; *word; word++) {
		char *longer;

		if (asprintf(&longer, "%s%s%s", text ? text : "", text ? " " : "", *word) < 0)
			break;
		free(text);
		text = longer;
	}
	return text;
}

static int put_run(struct store *store, const struct arguments *arguments, pid_t pid,
		   const struct capture *capture, const char *command)
{
	struct utsname name;
	struct run_row row = {
		.started_ns = realtime_ns(),
		.command = command,
		.mode = "cpu",
		.stack_source = source_names[capture_source(capture)],
		.probing = cli_version,
		.pid = pid,
		.hz = arguments->capture.hz,
		.kernel_frames = capture_has_kernel(capture),
		.cpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN),
	};
	int r;

	uname(&name);
	row.host = name.nodename;
	row.kernel = name.release;
	r = store_begin(store);
	if (r >= 0)
		r = store_put_run(store, &row);
	if (r >= 0)
		r = store_commit(store);
	return r;
}

/* Make the file and what fills it. Returns an exit status. */
static int open_pipeline(const struct arguments *arguments, struct recording *recording)
{
	CLEANUP(store_closep) struct store *store = NULL;
	CLEANUP(freep) char *command = describe(arguments);
	bool kept = false;
	int r;

	if (!command)
		return cli_fail(EXIT_FAILED, "not enough memory");
	r = store_create(arguments->path, &kept, &store);
	if (r == -EBUSY)
		return cli_fail(EXIT_NO_OUTPUT, "%s is being written by another recorder; choose another "
				"file with -o", arguments->path);
	if (r < 0)
		return cli_fail_open(arguments->path, r);
	if (kept && !arguments->quiet)
		fprintf(stderr, "%s existed: kept as %s.old\n", arguments->path, arguments->path);
	r = put_run(store, arguments, recording->pid, recording->capture, command);
	if (r >= 0)
		r = pipeline_new(store, &arguments->pipeline, &recording->pipeline);
	if (r < 0)
		return cli_fail(cli_status(r), "%s cannot be written: %s", arguments->path, strerror(-r));
	TAKE(store);
	pipeline_read_inside(recording->pipeline, recording->capture);
	return EXIT_OK;
}

static int fail_capture(int error, pid_t pid)
{
	char text[1024];

	if (error == -EPROTONOSUPPORT) {
		capture_explain_source(text, sizeof text);
		return cli_fail(EXIT_NOT_PERMITTED, "--source bpf %s", text);
	}
	if (error == -ESRCH)
		return cli_fail(EXIT_NO_INPUT, "there is no process %d", (int)pid);
	capture_explain(error, pid, text, sizeof text);
	return cli_fail(cli_status(error), "%s", text);
}

/*
 * Sampling a process and reading its memory are two permissions: Yama's
 * ptrace_scope guards only the second. Returns 0 or an exit status.
 */
static int check_memory(pid_t pid)
{
	int r = capture_check_memory(pid);

	if (r != -EPERM && r != -EACCES && r != -ENOSYS)
		return EXIT_OK;
	return cli_fail(EXIT_NOT_PERMITTED,
			"the memory of process %d may not be read%s: run as root or with CAP_SYS_PTRACE, or, "
			"for your own processes, `sysctl kernel.yama.ptrace_scope=0`",
			(int)pid, r == -ENOSYS ? " (a filter hides process_vm_readv)" : "");
}

/* By the class in its executable's header, elf(5). */
static bool is_32_bit(pid_t pid)
{
	char path[64], header[EI_NIDENT];
	CLEANUP(closep) int fd = -1;

	snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && read(fd, header, sizeof header) == sizeof header &&
	       memcmp(header, ELFMAG, SELFMAG) == 0 && header[EI_CLASS] == ELFCLASS32;
}

/* How stacks are taken, why not better, and what would change that. */
static void announce_source(const struct arguments *arguments, const struct recording *recording)
{
	enum capture_source source = capture_source(recording->capture);
	char why[1024] = "as asked for";

	if (source == SOURCE_POLL) {
		if (capture_refusal(recording->capture) < 0)
			capture_explain(capture_refusal(recording->capture), recording->pid, why, sizeof why);
		fprintf(stderr, "stack source: poll (memory alone, without native frames: %s)\n", why);
		return;
	}
	if (source == SOURCE_BPF) {
		fprintf(stderr, "stack source: bpf (exact: frames are read inside the sampling interrupt)\n");
	} else if (arguments->capture.source == SOURCE_READ) {
		fprintf(stderr, "stack source: read (memory read right after each sample)\n");
	} else {
		capture_explain_source(why, sizeof why);
		fprintf(stderr, "stack source: read (memory read right after each sample; bpf %s)\n", why);
	}
	if (capture_rings_are_small(recording->capture))
		fprintf(stderr, "rings of %zu KiB per CPU, for no more may be locked: raise kernel.perf_event_mlock_kb "
				"or `ulimit -l`, or give probing CAP_IPC_LOCK, should samples be lost\n",
			capture_ring_bytes(recording->capture) / 1024);
}

/* What is recorded, and what is missing for more. */
static void announce(const struct arguments *arguments, const struct recording *recording,
		     const char *python, int python_error)
{
	bool is_polled = capture_source(recording->capture) == SOURCE_POLL;
	const char *what = is_polled ? "when it runs, not where" : "its native frames";
	char known[128];

	if (arguments->quiet)
		return;
	announce_source(arguments, recording);
	if (!is_polled && !capture_has_kernel(recording->capture) && !arguments->capture.no_kernel)
		fprintf(stderr, "time inside the kernel is not seen: needs root, CAP_PERFMON, or "
				"`sysctl kernel.perf_event_paranoid=1`\n");
	if (recording->is_child)
		return;
	if (python_error == -EOPNOTSUPP)
		fprintf(stderr, "Python %s in process %d cannot be read (%s can): recording %s\n",
			python, (int)recording->pid, py_known_versions(known, sizeof known), what);
	else if (is_32_bit(recording->pid))
		fprintf(stderr, "process %d is a 32-bit program, whose stacks cannot be read: recording "
				"when it runs, not where\n", (int)recording->pid);
	else if (!python[0])
		fprintf(stderr, "no Python in process %d: recording %s\n", (int)recording->pid, what);
	else
		fprintf(stderr, "recording Python %s, process %d, at %g Hz%s\n", python,
			(int)recording->pid, arguments->capture.hz,
			arguments->duration_s > 0 ? "" : "; Ctrl-C ends it");
}

static int finish(const struct arguments *arguments, struct recording *recording)
{
	struct pipeline_counter counters[SUMMARY_MAX_COUNTERS];
	struct summary summary = {
		.path = arguments->path,
		.seconds = (double)(monotonic_ns() - recording->started_ns) / 1e9,
		.source = capture_source(recording->capture),
	};
	int r;

	r = pipeline_flush(recording->pipeline);
	capture_read_counts(recording->capture, &summary.captured);
	pipeline_read_counts(recording->pipeline, &summary.counts);
	summary_counters(&summary.captured, &summary.counts, counters);
	if (r >= 0)
		r = pipeline_finish(recording->pipeline, counters);
	if (recording->error < 0)
		r = recording->error;
	if (r < 0)
		return cli_fail(cli_status(r), "recording stopped: %s; %s holds what was written until then",
				strerror(-r), arguments->path);
	if (arguments->quiet)
		return EXIT_OK;
	if (recording->is_child && !pipeline_python(recording->pipeline)[0] && summary.counts.of_32_bit == 0)
		fprintf(stderr, "no Python was found in it%s\n",
			summary.source == SOURCE_POLL ? "" : ": these are native frames");
	summary_print(&summary);
	if (arguments->pipeline.no_symbols)
		fprintf(stderr, "native functions have no names yet: probing symbolize %s\n", arguments->path);
	summary_report(arguments->path);
	return EXIT_OK;
}

static int run(const struct arguments *arguments, struct recording *recording)
{
	int r, status;

	recording->duration_s = arguments->duration_s;
	recording->progress = !arguments->quiet && isatty(STDERR_FILENO) && !recording->is_child;
	r = recording_run(recording);
	if (r < 0)
		recording->error = r;
	status = finish(arguments, recording);
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
	signal(WTERMSIG(status), SIG_DFL);
	sigfillset(&all);
	pthread_sigmask(SIG_UNBLOCK, &all, NULL);
	raise(WTERMSIG(status));
	return 128 + WTERMSIG(status);
}

static int record_pid(const struct arguments *arguments, struct recording *recording)
{
	int r, status, python_error = 0;
	char python[64] = "";

	recording->pid = arguments->pid;
	r = capture_attach(&arguments->capture, arguments->pid, &recording->capture);
	if (r < 0)
		return fail_capture(r, arguments->pid);
	status = check_memory(arguments->pid);
	if (status == EXIT_OK)
		status = open_pipeline(arguments, recording);
	if (status != EXIT_OK)
		return status;
	r = pipeline_attach(recording->pipeline, arguments->pid, python, sizeof python, &python_error);
	if (r < 0 && r != -ESRCH)
		return fail_capture(r, arguments->pid);
	announce(arguments, recording, python, python_error);
	return run(arguments, recording);
}

static int fail_command(const char *command, int error)
{
	if (error == -ENOENT)
		return cli_fail(EXIT_NOT_FOUND, "%s: command not found", command);
	return cli_fail(EXIT_NOT_EXECUTABLE, "%s cannot be run: %s", command, strerror(-error));
}

/* From the fork to the exec; the child is abandoned by the caller on failure. */
static int start_command(const struct arguments *arguments, struct recording *recording,
			 struct child *child)
{
	int r, status;

	r = capture_launch(&arguments->capture, child->pid, &recording->capture);
	if (r < 0)
		return fail_capture(r, child->pid);
	status = capture_source(recording->capture) == SOURCE_POLL ? check_memory(child->pid) : EXIT_OK;
	if (status == EXIT_OK)
		status = open_pipeline(arguments, recording);
	if (status != EXIT_OK)
		return status;
	r = pipeline_expect(recording->pipeline, child->pid);
	if (r < 0)
		return cli_fail(EXIT_FAILED, "not enough memory");
	announce(arguments, recording, "", 0);
	recording->started_ns = monotonic_ns();
	r = child_release(child);
	return r < 0 ? fail_command(arguments->command[0], r) : EXIT_OK;
}

static int record_command(const struct arguments *arguments, struct recording *recording,
			  const sigset_t *mask)
{
	struct child child;
	int r, status;

	r = child_find(arguments->command[0]);
	if (r < 0)
		return fail_command(arguments->command[0], r);
	r = child_fork(arguments->command, mask, &child);
	if (r < 0)
		return cli_fail(EXIT_FAILED, "a process cannot be started: %s", strerror(-r));
	recording->pid = child.pid;
	recording->is_child = true;
	status = start_command(arguments, recording, &child);
	if (status != EXIT_OK) {
		child_abandon(&child);
		return status;
	}
	status = run(arguments, recording);
	return status == EXIT_OK ? end_like_child(recording->child_status) : status;
}

static int run_record(int argc, char **argv)
{
	struct arguments arguments = {
		.capture = { .hz = DEFAULT_HZ, .stack_bytes = SAMPLE_STACK_BYTES },
		.path = "probing.db",
	};
	struct recording recording = { .started_ns = monotonic_ns() };
	sigset_t mask;
	int status;

	cli_parse(&argp, argc, argv, ARGP_IN_ORDER, &arguments);
	recording_block_signals(&mask);
	if (arguments.command)
		status = record_command(&arguments, &recording, &mask);
	else
		status = record_pid(&arguments, &recording);
	pipeline_free(recording.pipeline);
	capture_free(recording.capture);
	return status;
}

const struct verb verb_record = {
	.name = "record",
	.aliases = NULL,
	.summary = "record a running process or a command into a file",
	.run = run_record,
};
