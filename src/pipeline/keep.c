/* keep.c - see keep.h.
 *
 * What a thread is called is asked again now and then, for names are given late and change: soon
 * at first, then once a second. Python's names of all threads of a process are read together,
 * and serve for all its threads that are asked about at about the same time.
 */
#include "src/pipeline/keep.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/proc.h"
#include "base/words.h"

enum { NAME_BYTES = 64, SOON_NS = 20000000, LATEST_NS = 1000000000, NAMES_SERVE_NS = 20000000 };

struct keep_thread {
	pid_t pid;
	bool is_wanted, is_forgotten;
	uint64_t next_ns, wait_ns;
};

struct keep_names {
	pid_t pid;
	uint64_t read_ns;
	struct py_thread_names names;
};

void keep_init(struct keep *keep, const struct keep_options *options)
{
	*keep = (struct keep){ .options = options };
}

void keep_done(struct keep *keep)
{
	for (size_t i = 0; i < keep->n_names; i++)
		py_thread_names_done(&keep->names[i].names);
	free(keep->names);
	free(keep->threads);
	id_map_done(&keep->thread_index);
	*keep = (struct keep){ 0 };
}

/* NULL: no memory. */
static struct keep_names *names_of(struct keep *keep, pid_t pid)
{
	for (size_t i = 0; i < keep->n_names; i++)
		if (keep->names[i].pid == pid)
			return &keep->names[i];
	if (grow(&keep->names, keep->n_names, &keep->names_allocated, sizeof *keep->names) < 0)
		return NULL;
	keep->names[keep->n_names] = (struct keep_names){ .pid = pid };
	return &keep->names[keep->n_names++];
}

static bool has_python_name(struct keep *keep, struct py_runtime *runtime, pid_t pid, pid_t tid, uint64_t time_ns)
{
	struct keep_names *names = names_of(keep, pid);
	struct py_state state;
	const char *name;

	py_begin_sample(runtime);
	if (!names || py_state_of(runtime, tid, &state) < 0)
		return false;
	if (names->read_ns == 0 || time_ns - names->read_ns > NAMES_SERVE_NS) {
		names->read_ns = time_ns;
		py_thread_names_done(&names->names);
		(void)py_thread_names_read(runtime, &names->names); /* what cannot be read has no name */
	}
	name = py_thread_name(&names->names, state.ident);
	return name && words_match(&keep->options->threads, name);
}

static bool has_name(const struct keep *keep, pid_t pid, pid_t tid)
{
	CLEANUP(freep) char *name = NULL;
	char file[32];

	snprintf(file, sizeof file, "task/%d/comm", (int)tid);
	name = proc_text(pid, file, NAME_BYTES);
	return name && name[0] && words_match(&keep->options->threads, name);
}

static struct keep_thread *find(struct keep *keep, pid_t tid)
{
	struct id_slot *slot = id_map_find(&keep->thread_index, (uint64_t)tid + 1);

	return slot ? &keep->threads[slot->id] : NULL;
}

/* NULL: no memory. */
static struct keep_thread *find_or_add(struct keep *keep, pid_t pid, pid_t tid)
{
	struct keep_thread *thread = find(keep, tid);

	if (!thread) {
		if (grow(&keep->threads, keep->n_threads, &keep->threads_allocated, sizeof *keep->threads) < 0 ||
		    id_map_add(&keep->thread_index, (uint64_t)tid + 1, (uint32_t)keep->n_threads) < 0)
			return NULL;
		thread = &keep->threads[keep->n_threads++];
		*thread = (struct keep_thread){ .is_forgotten = true };
	}
	if (thread->pid != pid || thread->is_forgotten)
		*thread = (struct keep_thread){ .pid = pid, .wait_ns = SOON_NS };
	return thread;
}

bool keep_wants_thread(struct keep *keep, struct py_runtime *runtime, pid_t pid, pid_t tid, uint64_t time_ns)
{
	const struct words *wanted = &keep->options->threads;
	struct keep_thread *thread;

	if (wanted->n == 0 || words_have_number(wanted, tid))
		return true;
	if (words_are_numbers(wanted))
		return false;
	thread = find_or_add(keep, pid, tid);
	if (!thread)
		return false;
	if (time_ns < thread->next_ns)
		return thread->is_wanted;
	thread->next_ns = time_ns + thread->wait_ns;
	thread->wait_ns = MIN(thread->wait_ns * 2, (uint64_t)LATEST_NS);
	thread->is_wanted = has_name(keep, pid, tid) ||
			    (runtime && has_python_name(keep, runtime, pid, tid, time_ns));
	return thread->is_wanted;
}

void keep_forget_thread(struct keep *keep, pid_t tid)
{
	struct keep_thread *thread = find(keep, tid);

	if (thread)
		thread->is_forgotten = true;
}

static bool runs_wanted(const struct words *wanted, const struct stack *stack)
{
	for (size_t i = 0; i < stack->n_frames; i++)
		if (stack->frames[i].kind == FRAME_PYTHON &&
		    words_match_function(wanted, stack->frames[i].python.code->qualname))
			return true;
	return false;
}

bool keep_wants_sample(const struct keep *keep, const struct stack *stack, const struct hold *hold)
{
	if (keep->options->gil && hold->gil != ANSWER_YES)
		return false;
	return keep->options->functions.n == 0 || runs_wanted(&keep->options->functions, stack);
}

void keep_trim(const struct keep *keep, struct stack *stack)
{
	size_t n = 0;

	if (!keep->options->no_native)
		return;
	for (size_t i = 0; i < stack->n_frames; i++)
		if (stack->frames[i].kind == FRAME_PYTHON || stack->frames[i].kind == FRAME_TASK)
			stack->frames[n++] = stack->frames[i];
	stack->n_frames = n;
}
