/* SPDX-License-Identifier: MIT */
/* print.c - stacks as text, innermost frame first.
 *
 * Names are foreign: terminal controls are removed.
 */
#include "src/backtrace/print.h"

#include <errno.h>
#include <string.h>

#include "base/path.h"
#include "base/text.h"
#include "base/util.h"
#include "src/backtrace/groups.h"
#include "src/columns/columns.h"

enum {
	KERNEL_NAME_BYTES = 15,
	MAX_ALIKE_NAMED = 12,
	LONG_VALUE = 48, /* always print shorter values: a reference to them would be as long */
	MAX_SEEN = 4096,
};

/* A variable that was printed with its value. */
struct seen {
	const struct py_local *local;
	const char *function;
	pid_t tid;
};

struct page {
	FILE *out;
	bool colour;
	struct seen *seen; /* array of MAX_SEEN */
	size_t n_seen;
};

const char *print_state(char state)
{
	static const struct {
		char state;
		const char *meaning;
	} states[] = {
		{ 'R', "running" }, { 'S', "sleeping" }, { 'D', "uninterruptible sleep" },
		{ 'T', "stopped" }, { 't', "traced" },   { 'Z', "ended" },
		{ 'X', "ended" },   { 'I', "idle" },
	};

	for (size_t i = 0; i < N_ELEMENTS(states); i++)
		if (states[i].state == state)
			return states[i].meaning;
	return "unknown";
}

const char *print_reason(enum backtrace_stop stop)
{
	static const char *const reasons[] = {
		[STOP_NOT_WANTED] = "--no-stop",
		[STOP_REFUSED] = "not permitted",
		[STOP_TIMED_OUT] = "not possible",
		[STOP_HAS_ENDED] = "it has ended",
		[STOP_OTHER_MACHINE] = "it runs 32-bit code",
		[STOP_DUMPED] = "it has ended",
	};

	return reasons[stop];
}

const char *print_lock(enum backtrace_lock lock)
{
	static const char *const names[] = {
		[LOCK_GIL] = "GIL",
		[LOCK_MUTEX] = "mutex",
		[LOCK_PYTHON] = "threading.Lock",
		[LOCK_RECURSIVE] = "threading.RLock",
		[LOCK_FILE] = "file lock",
	};

	return names[lock];
}

/* The kernel truncates names (TASK_COMM_LEN), maybe within a character. */
bool print_is_same_name(const char *kernel, const char *python)
{
	size_t n = strlen(kernel);

	return strncmp(kernel, python, n) == 0 && (python[n] == '\0' || n == KERNEL_NAME_BYTES);
}

static void put(const struct page *page, enum style style, const char *text)
{
	style_start(page->out, page->colour, style);
	cell_put_all(page->out, text);
	style_end(page->out, page->colour, style);
}

static void put_parent(const struct page *page, const struct backtrace_place *place)
{
	if (place && place->parent != 0)
		fprintf(page->out, ", child of %d", (int)place->parent);
}

static void put_problem(const struct page *page, const struct backtrace_place *place)
{
	char text[64];

	snprintf(text, sizeof text, "Process %d", (int)place->pid);
	put(page, STYLE_HEAD, text);
	put_parent(page, place);
	fputs(": ", page->out);
	put(page, STYLE_PLAIN, place->problem);
	fputc('\n', page->out);
}

static void put_head(const struct page *page, const struct backtrace *backtrace, const struct backtrace_place *place)
{
	char text[64];

	snprintf(text, sizeof text, backtrace->is_dumped ? "Core of process %d" : "Process %d", (int)backtrace->pid);
	put(page, STYLE_HEAD, text);
	put_parent(page, place);
	if (backtrace->python[0])
		fprintf(page->out, ", Python %s", backtrace->python);
	else
		fputs(", no Python", page->out);
	fputs(": ", page->out);
	put(page, STYLE_PLAIN, backtrace->command);
	fputc('\n', page->out);
	if (backtrace->signal != 0)
		fprintf(page->out, "Ended by signal %d (%s), which thread %d received\n", backtrace->signal,
			strsignal(backtrace->signal), (int)backtrace->signalled);
}

static void put_python_state(const struct page *page, const struct py_state *state, enum py_answer waits_for_gil)
{
	if (state->interpreter != 0)
		fprintf(page->out, ", interpreter %llu", (unsigned long long)state->interpreter);
	if (state->holds_gil == PY_YES)
		fputs(", holds the GIL", page->out);
	if (waits_for_gil == PY_YES)
		fputs(", waits for the GIL", page->out);
	if (state->collects == PY_YES)
		fputs(", while garbage is collected", page->out);
}

/* Describe what is missing from a stack that should be complete. */
static void put_shortcomings(const struct page *page, const struct backtrace_thread *thread)
{
	bool is_whole = thread->end == STACK_COMPLETE || thread->end == STACK_COMPLETED;

	if (thread->state == 'T')
		fputs(", stopped by a signal", page->out);
	if (thread->verdict == VERDICT_APPROXIMATE)
		fputs(", approximate: some Python frames may be missing", page->out);
	if (!is_whole)
		fprintf(page->out, ", native frames end early: %s", stack_end_name(thread->end));
}

static void put_wchan(const struct page *page, const struct backtrace_thread *thread)
{
	if (!thread->wchan[0])
		return;
	fputs(" in ", page->out);
	put(page, STYLE_PLAIN, thread->wchan);
}

static void put_idle(const struct page *page, const struct backtrace_thread *thread)
{
	fputs(", idle", page->out);
	put_wchan(page, thread);
}

static void put_thread(const struct page *page, const struct backtrace_thread *thread)
{
	char text[32];

	snprintf(text, sizeof text, "\nThread %d ", (int)thread->tid);
	style_start(page->out, page->colour, STYLE_HEAD);
	fputs(text, page->out);
	fputc('"', page->out);
	put(page, STYLE_HEAD, thread->name);
	style_start(page->out, page->colour, STYLE_HEAD);
	fputc('"', page->out);
	style_end(page->out, page->colour, STYLE_HEAD);
	if (thread->python_name && !print_is_same_name(thread->name, thread->python_name)) {
		fputs(", in Python \"", page->out);
		put(page, STYLE_PLAIN, thread->python_name);
		fputc('"', page->out);
	}
	if (thread->is_python)
		put_python_state(page, &thread->python, thread->waits_for_gil);
	if (thread->is_idle && thread->stop != STOP_TIMED_OUT)
		put_idle(page, thread);
	if (thread->stop == STOP_DONE || thread->stop == STOP_DUMPED) {
		put_shortcomings(page, thread);
	} else if (thread->stop == STOP_TIMED_OUT) {
		fprintf(page->out, ", not stopped: %c (%s)", thread->state, print_state(thread->state));
		put_wchan(page, thread);
		fputs("; Python frames from memory", page->out);
	} else if (thread->stop == STOP_HAS_ENDED) {
		fputs(", has ended", page->out);
	} else {
		fprintf(page->out, ", not stopped: %s; Python frames from memory", print_reason(thread->stop));
	}
	fputc('\n', page->out);
}

static void put_descriptors(const struct page *page, const struct backtrace_wait *wait)
{
	fputs(wait->n_descriptors + wait->n_more > 1 ? " for descriptors " : " for descriptor ", page->out);
	for (size_t i = 0; i < wait->n_descriptors; i++) {
		const struct backtrace_descriptor *descriptor = &wait->descriptors[i];

		fprintf(page->out, "%s%d: ", i > 0 ? "; " : "", descriptor->number);
		put(page, STYLE_PLAIN, descriptor->what ? descriptor->what : strerror(-descriptor->error));
	}
	if (wait->n_more > 0)
		fprintf(page->out, "; and %zu more", wait->n_more);
}

static void put_holder(const struct page *page, const struct backtrace *backtrace, const struct backtrace_wait *wait)
{
	if (wait->holder == 0)
		return;
	fprintf(page->out, ", held by %s %d", wait->lock == LOCK_FILE ? "process" : "thread", (int)wait->holder);
	for (size_t i = 0; wait->lock != LOCK_FILE && i < backtrace->n_threads; i++) {
		const struct backtrace_thread *thread = &backtrace->threads[i];

		if (thread->tid != wait->holder)
			continue;
		fputs(" \"", page->out);
		put(page, STYLE_PLAIN, thread->python_name ? thread->python_name : thread->name);
		fputc('"', page->out);
	}
	if (wait->depth > 1)
		fprintf(page->out, ", acquired %ju times", (uintmax_t)wait->depth);
}

/* "  waits in accept4 for descriptor 3: tcp 127.0.0.1:8000, listening" */
static void put_wait(const struct page *page, const struct backtrace *backtrace, const struct backtrace_wait *wait)
{
	if (wait->n_descriptors == 0 && wait->lock == LOCK_UNKNOWN && !wait->is_for_child)
		return;
	fputs("  waits", page->out);
	if (wait->lock == LOCK_UNKNOWN || wait->lock == LOCK_FILE)
		fprintf(page->out, " in %s", wait->call);
	if (wait->n_descriptors > 0)
		put_descriptors(page, wait);
	else if (wait->is_for_child && wait->child > 0)
		fprintf(page->out, " for process %d", (int)wait->child);
	else if (wait->is_for_child)
		fputs(" for any child process", page->out);
	else
		fprintf(page->out, " for %s%s", wait->lock == LOCK_GIL ? "the " : "a ", print_lock(wait->lock));
	put_holder(page, backtrace, wait);
	fputc('\n', page->out);
}

static void put_place(const struct page *page, const struct backtrace_frame *frame)
{
	if (frame->kind != FRAME_PYTHON && frame->module) {
		fputs("  [", page->out);
		put(page, STYLE_PLAIN, path_base_name(frame->module));
		fputc(']', page->out);
	}
	if (!frame->file || !frame->file[0])
		return;
	fputs("  (", page->out);
	put(page, STYLE_PLAIN, path_base_name(frame->file));
	if (frame->line > 0)
		fprintf(page->out, ":%d", frame->line);
	fputc(')', page->out);
}

static void put_frame(const struct page *page, const struct backtrace_frame *frame)
{
	fputs("  ", page->out);
	put(page,
	    frame->kind == FRAME_PYTHON ? STYLE_PYTHON
	    : frame->is_builtin         ? STYLE_BUILTIN
					: STYLE_NATIVE,
	    frame->name[0] ? frame->name : "[unnamed]");
	put_place(page, frame);
	fputc('\n', page->out);
}

static void put_task_name(const struct page *page, const struct backtrace_task *task)
{
	/* A task without a name is shown by its coroutine. */
	const char *name = task->n_frames > 0 ? task->frames[task->n_frames - 1].name : "?";

	fputc('"', page->out);
	put(page, STYLE_PLAIN, task->name[0] ? task->name : name);
	fputc('"', page->out);
}

/* List the other members of a group; @name writes one of them. */
static void put_alike(const struct page *page, const size_t *leaders, size_t n, size_t leader, const char *what,
		      void (*name)(const struct page *page, const void *data, size_t i), const void *data)
{
	size_t n_alike = 0, n_named = 0;

	for (size_t i = leader + 1; i < n; i++)
		n_alike += leaders[i] == leader;
	if (n_alike == 0)
		return;
	fprintf(page->out, "  and %zu %s%s like it: ", n_alike, what, n_alike > 1 ? "s" : "");
	for (size_t i = leader + 1; i < n && n_named < MAX_ALIKE_NAMED; i++) {
		if (leaders[i] != leader)
			continue;
		fputs(n_named++ > 0 ? ", " : "", page->out);
		name(page, data, i);
	}
	fputs(n_alike > n_named ? ", ...\n" : "\n", page->out);
}

static void name_task(const struct page *page, const void *data, size_t i)
{
	const struct backtrace_thread *thread = data;

	put_task_name(page, &thread->tasks[i]);
}

static void name_thread(const struct page *page, const void *data, size_t i)
{
	const struct backtrace *backtrace = data;
	const struct backtrace_thread *thread = &backtrace->threads[i];

	fprintf(page->out, "%d \"", (int)thread->tid);
	put(page, STYLE_PLAIN, thread->python_name ? thread->python_name : thread->name);
	fputc('"', page->out);
}

static void put_task(const struct page *page, const struct backtrace_thread *thread, const size_t *leaders, size_t i)
{
	const struct backtrace_task *task = &thread->tasks[i];

	fputs("  Task ", page->out);
	put_task_name(page, task);
	if (task->is_running)
		fputs(", running", page->out);
	for (size_t k = 0; k < task->n_awaiters; k++) {
		fputs(k == 0 ? ", awaited by " : ", ", page->out);
		put_task_name(page, &thread->tasks[task->awaiters[k]]);
	}
	fputc('\n', page->out);
	put_alike(page, leaders, thread->n_tasks, i, "task", name_task, thread);
	for (size_t k = 0; k < task->n_frames; k++) {
		fputs("  ", page->out);
		put_frame(page, &task->frames[k]);
	}
}

static int put_tasks(const struct page *page, const struct backtrace_thread *thread)
{
	CLEANUP(freep) size_t *leaders = groups_of_tasks(thread);

	if (!leaders)
		return -ENOMEM;
	for (size_t i = 0; i < thread->n_tasks; i++)
		if (leaders[i] == i)
			put_task(page, thread, leaders, i);
	if (thread->tasks_cut)
		fputs("  and more tasks\n", page->out);
	return 0;
}

/*
 * The earlier print of an object with this value; NULL: none. The address may hold another object with another value by
 * now.
 */
static const struct seen *find_seen(const struct page *page, const struct py_local *local)
{
	for (size_t i = 0; i < page->n_seen; i++)
		if (page->seen[i].local->object == local->object &&
		    strcmp(page->seen[i].local->value, local->value) == 0)
			return &page->seen[i];
	return NULL;
}

static void put_value(struct page *page, const struct py_local *local, const char *function, pid_t tid)
{
	bool is_long = text_columns_shown(local->value) > LONG_VALUE;
	const struct seen *seen = is_long ? find_seen(page, local) : NULL;

	if (!seen) {
		put(page, STYLE_PLAIN, local->value);
		if (is_long && page->n_seen < MAX_SEEN)
			page->seen[page->n_seen++] = (struct seen){ local, function, tid };
		return;
	}
	fputs("<same object as ", page->out);
	put(page, STYLE_PLAIN, seen->local->name);
	fputs(" in ", page->out);
	put(page, STYLE_PLAIN, seen->function);
	if (seen->tid != tid)
		fprintf(page->out, " of thread %d", (int)seen->tid);
	fputs(" above>", page->out);
}

/* Print "name = value" below the frame, and the number of omitted variables. */
static void put_locals(struct page *page, const struct py_locals *locals, const char *function, pid_t tid)
{
	for (size_t i = 0; i < locals->n; i++) {
		fputs("      ", page->out);
		put(page, STYLE_PLAIN, locals->locals[i].name);
		fputs(" = ", page->out);
		put_value(page, &locals->locals[i], function, tid);
		fputc('\n', page->out);
	}
	if (locals->is_cut)
		fputs("      ...\n", page->out);
}

static int put_threads(struct page *page, const struct backtrace *backtrace)
{
	CLEANUP(freep) size_t *leaders = groups_of_threads(backtrace);
	int r = leaders ? 0 : -ENOMEM;

	for (size_t i = 0; r >= 0 && i < backtrace->n_threads; i++) {
		const struct backtrace_thread *thread = &backtrace->threads[i];

		if (leaders[i] != i)
			continue;
		put_thread(page, thread);
		put_alike(page, leaders, backtrace->n_threads, i, "thread", name_thread, backtrace);
		put_wait(page, backtrace, &thread->wait);
		for (size_t k = 0; k < thread->n_frames; k++) {
			put_frame(page, &thread->frames[k]);
			if (thread->frames[k].locals)
				put_locals(page, thread->frames[k].locals, thread->frames[k].name, thread->tid);
		}
		r = put_tasks(page, thread);
	}
	return r;
}

int backtrace_print_text(const struct backtrace *backtrace, const struct backtrace_place *place, bool colour, FILE *out)
{
	CLEANUP(freep) struct seen *seen = calloc(MAX_SEEN, sizeof *seen);
	struct page page = { .out = out, .colour = colour, .seen = seen };
	int r = 0;

	if (!seen)
		return -ENOMEM;
	if (backtrace)
		put_head(&page, backtrace, place);
	else
		put_problem(&page, place);
	if (backtrace)
		r = put_threads(&page, backtrace);
	return r < 0 ? r : ferror(out) ? -EIO : 0;
}
