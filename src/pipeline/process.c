/* SPDX-License-Identifier: MIT */
/* process.c - see process.h.
 *
 * An interpreter is searched for when the executable mappings have changed,
 * and, while one is there that has not started up yet, every few milliseconds.
 *
 * Programs fork all the time, so ended ones are evicted:
 * a process after its end and after the batches that may point to its code objects
 * have been written, a program when neither a process nor a fork of it is left.
 */
#include "src/pipeline/process.h"

#include <errno.h>
#include <string.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/pipeline/cfi_client.h"

enum { RETRY_NS = 5000000, LOAD_FIRST_NS = 5000000, LOAD_LAST_NS = 1000000000, SEEK_BATCHES = 64, MANY_CODES = 8192 };

int processes_init(struct processes *processes, struct cfi_client *cfi)
{
	int r;

	memset(processes, 0, sizeof *processes);
	r = module_table_new(&processes->modules);
	if (r < 0)
		return r;
	module_table_set_reader(processes->modules, cfi_client_reader(cfi));
	r = native_unwinder_new(processes->modules, &processes->unwinder);
	if (r >= 0)
		native_unwinder_set_source(processes->unwinder, cfi_client_rows(cfi));
	return r;
}

/* Drop one reference; the last one frees the program and maybe those it was forked from. */
static void release_program(struct processes *processes, struct program *program)
{
	while (program && --program->n_users == 0) {
		struct program *parent = program->parent, *last = processes->programs[--processes->n_programs];

		processes->programs[program->index] = last;
		last->index = program->index;
		free(program);
		program = parent;
	}
}

static int add_program(struct processes *processes, struct process *process)
{
	struct program *program;
	int r;

	r = grow(&processes->programs, processes->n_programs, &processes->programs_allocated,
		 sizeof *processes->programs);
	if (r < 0)
		return r;
	program = calloc(1, sizeof *program);
	if (!program)
		return -ENOMEM;
	processes->programs[processes->n_programs++] = program;
	program->index = processes->n_programs - 1;
	program->id = ++processes->last_program;
	program->pid = process->pid;
	program->n_users = 1;
	release_program(processes, process->program);
	process->program = program;
	return 0;
}

static void process_free(struct process *process)
{
	native_process_free(process->native);
	py_runtime_free(process->runtime);
	address_space_free(process->space);
	remote_free(process->remote);
	free(process->name);
	free(process->command);
	free(process->forked_name);
	free(process->rank);
	free(process);
}

static void free_retired(struct retired *retired)
{
	py_runtime_free(retired->runtime);
	py_codes_free(retired->codes);
}

void processes_done(struct processes *processes)
{
	for (size_t i = 0; i < processes->n; i++)
		process_free(processes->processes[i]);
	for (size_t i = 0; i < processes->n_retired; i++)
		free_retired(&processes->retired[i]);
	for (size_t i = 0; i < processes->n_programs; i++)
		free(processes->programs[i]);
	free(processes->programs);
	free(processes->processes);
	free(processes->retired);
	id_map_done(&processes->by_pid);
	native_unwinder_free(processes->unwinder);
	module_table_free(processes->modules);
	memset(processes, 0, sizeof *processes);
}

struct process *processes_find(const struct processes *processes, pid_t pid)
{
	const struct id_slot *slot = id_map_find(&processes->by_pid, (uint64_t)pid + 1);

	return slot ? processes->processes[slot->id] : NULL;
}

static int fill(struct processes *processes, struct process *process)
{
	int r;

	if (!process->space) {
		r = address_space_new(process->pid, processes->modules, &process->space);
		if (r < 0)
			return r;
	}
	r = remote_open_process(process->pid, &process->remote);
	if (r < 0)
		return r;
	process->python_error = -ENOENT;
	process->generation_tried = address_space_generation(process->space) - 1;
	return native_process_new(processes->unwinder, process->space, &process->native);
}

static int insert(struct processes *processes, struct process *process)
{
	struct id_slot *slot = id_map_find(&processes->by_pid, (uint64_t)process->pid + 1);
	int r;

	r = grow(&processes->processes, processes->n, &processes->allocated, sizeof *processes->processes);
	if (r < 0)
		return r;
	if (slot)
		slot->id = (uint32_t)processes->n;
	else
		r = id_map_add(&processes->by_pid, (uint64_t)process->pid + 1, (uint32_t)processes->n);
	if (r < 0)
		return r;
	processes->processes[processes->n++] = process;
	return 0;
}

/* Takes ownership of space on success. */
static int add(struct processes *processes, pid_t pid, pid_t parent_pid, struct address_space *space,
	       struct process **ret)
{
	struct process *older = processes_find(processes, pid), *process;
	int r;

	process = calloc(1, sizeof *process);
	if (!process)
		return -ENOMEM;
	process->pid = pid;
	process->parent_pid = parent_pid;
	process->space = space;
	process->started_ns = realtime_ns();
	process->is_new = true;
	r = fill(processes, process);
	if (r >= 0)
		r = add_program(processes, process);
	if (r >= 0)
		r = insert(processes, process);
	if (r < 0) {
		if (process->space == space)
			process->space = NULL;
		release_program(processes, process->program);
		process_free(process);
		return r;
	}
	if (older)
		process_end(older, older->left_ns ?: process->started_ns);
	*ret = process;
	return 0;
}

int processes_add(struct processes *processes, pid_t pid, pid_t parent_pid, struct process **ret)
{
	return add(processes, pid, parent_pid, NULL, ret);
}

int processes_fork(struct processes *processes, struct process *parent, pid_t pid, uint64_t time_ns,
		   struct process **ret)
{
	CLEANUP(address_space_freep) struct address_space *space = NULL;
	int r;

	if (!parent->space)
		return processes_add(processes, pid, parent->pid, ret);
	r = address_space_fork(parent->space, pid, &space);
	if (r < 0)
		return r;
	r = add(processes, pid, parent->pid, space, ret);
	if (r < 0)
		return r;
	TAKE(space);
	(*ret)->program->parent = parent->program;
	parent->program->n_users++;
	(*ret)->program->forked_ns = time_ns;
	return 0;
}

static int retire(struct processes *processes, const struct retired *retired)
{
	int r;

	r = grow(&processes->retired, processes->n_retired, &processes->retired_allocated, sizeof *processes->retired);
	if (r >= 0)
		processes->retired[processes->n_retired++] = *retired;
	return r;
}

int process_exec(struct processes *processes, struct process *process)
{
	int r;

	if (!process->space)
		return 0;
	if (process->runtime) {
		r = retire(processes, &(struct retired){ .runtime = process->runtime });
		if (r < 0)
			return r;
		process->runtime = NULL;
	}
	process->python_error = -ENOENT;
	process->python[0] = '\0';
	process->is_new = true;
	process->next_load_ns = process->load_period_ns = 0;
	process->left_ns = 0; /* whichever thread called exec, it is the leader now */
	address_space_clear(process->space);
	process->generation_tried = address_space_generation(process->space);
	return add_program(processes, process);
}

int process_rename(struct process *process, const char *name)
{
	char *copy = strdup(name);

	if (!copy)
		return -ENOMEM;
	free(process->name);
	process->name = copy;
	process->is_new = true;
	return 0;
}

int process_set_forked_name(struct process *process, const char *name, bool in_python)
{
	char *copy = name ? strdup(name) : NULL;

	if (name && !copy)
		return -ENOMEM;
	free(process->forked_name);
	process->forked_name = copy;
	process->forked_in_python = in_python;
	return 0;
}

void process_end(struct process *process, uint64_t time_ns)
{
	if (process->ended_ns)
		return;
	process->ended_ns = time_ns;
	process->is_new = true;
}

/* Other threads may outlive the leader, whose end normally ends the process. */
static bool process_is_gone(pid_t pid)
{
	struct proc_stat stat;
	int r;

	r = proc_stat_read(pid, 0, &stat);
	return r < 0 ? r == -ESRCH : proc_has_ended(&stat);
}

/* While other threads are ending, /proc may still list the process; processes_seek_ended() checks again (left_ns). */
void process_leave(struct process *process, bool is_main, uint64_t time_ns)
{
	if (!is_main && process->left_ns == 0)
		return;
	process->left_ns = time_ns;
	if (process_is_gone(process->pid))
		process_end(process, time_ns);
}

static bool is_gone(const struct processes *processes, const struct process *process)
{
	/* Another process may have this PID. */
	return processes_find(processes, process->pid) != process || process_is_gone(process->pid);
}

static bool may_forget(const struct processes *processes, struct process *process, uint64_t batch, uint64_t written)
{
	if (process->ended_ns == 0 || process->is_new)
		return false;
	if (process->last_batch == 0 && is_gone(processes, process))
		process->last_batch = batch;
	return process->last_batch != 0 && process->last_batch <= written;
}

static void forget_retired(struct processes *processes, uint64_t batch, uint64_t written)
{
	size_t n = 0;

	for (size_t i = 0; i < processes->n_retired; i++) {
		struct retired *retired = &processes->retired[i];

		if (retired->last_batch == 0)
			retired->last_batch = batch;
		if (retired->last_batch <= written)
			free_retired(retired);
		else
			processes->retired[n++] = *retired;
	}
	processes->n_retired = n;
}

/* Finds processes whose EXIT record was lost, came in a pause, or was that of a thread after the leader. */
void processes_seek_ended(struct processes *processes)
{
	for (size_t i = 0; i < processes->n; i++) {
		struct process *process = processes->processes[i];

		if (process->ended_ns == 0 && process_is_gone(process->pid))
			process_end(process, process->left_ns ?: realtime_ns());
	}
}

/* Of processes with the same PID, index the last one. */
static int index_anew(struct processes *processes)
{
	int r = 0;

	id_map_done(&processes->by_pid);
	for (size_t i = 0; i < processes->n && r >= 0; i++) {
		uint64_t key = (uint64_t)processes->processes[i]->pid + 1;
		struct id_slot *slot = id_map_find(&processes->by_pid, key);

		if (slot)
			slot->id = (uint32_t)i;
		else
			r = id_map_add(&processes->by_pid, key, (uint32_t)i);
	}
	return r;
}

int processes_forget(struct processes *processes, uint64_t batch, uint64_t written)
{
	size_t n_before = processes->n, n = 0;

	forget_retired(processes, batch, written);
	if (batch % SEEK_BATCHES == 0)
		processes_seek_ended(processes);
	for (size_t i = 0; i < n_before; i++)
		if (!may_forget(processes, processes->processes[i], batch, written))
			n++;
	if (n == n_before)
		return 0;
	n = 0;
	for (size_t i = 0; i < n_before; i++) {
		struct process *process = processes->processes[i];

		if (process->last_batch == 0 || process->last_batch > written) {
			processes->processes[n++] = process;
			continue;
		}
		release_program(processes, process->program);
		process_free(process);
	}
	processes->n = n;
	return index_anew(processes);
}

int processes_forget_codes(struct processes *processes)
{
	int r = 0;

	for (size_t i = 0; i < processes->n && r >= 0; i++) {
		struct py_runtime *runtime = processes->processes[i]->runtime;
		struct retired retired = { 0 };

		if (!runtime || py_code_count(runtime) < MANY_CODES)
			continue;
		r = py_codes_take(runtime, &retired.codes);
		if (r >= 0)
			r = retire(processes, &retired);
	}
	return r;
}

/* 0: unknown. A kernel thread or a zombie has no memory and thus no image. */
static uint64_t image_of(pid_t pid)
{
	struct proc_stat stat;
	pid_t living;

	return proc_live_tid(pid, &living) == 0 && proc_stat_read(pid, living, &stat) == 0 ? stat.image : 0;
}

void processes_note_images(struct processes *processes)
{
	for (size_t i = 0; i < processes->n; i++) {
		struct process *process = processes->processes[i];

		if (process->ended_ns == 0)
			process->image = image_of(process->pid);
	}
}

int process_follow_pause(struct processes *processes, struct process *process)
{
	uint64_t image;

	if (process_is_gone(process->pid)) {
		process_end(process, realtime_ns());
		return 0;
	}
	image = image_of(process->pid);
	if (process->image != 0 && image != 0 && image != process->image)
		return process_exec(processes, process);
	return 0;
}

int process_search_python(struct process *process, uint64_t now_ns)
{
	unsigned generation = address_space_generation(process->space);
	char version[32];
	int r;

	if (process->runtime)
		return 0;
	if (generation == process->generation_tried &&
	    (process->python_error != -EAGAIN || now_ns < process->next_try_ns))
		return 0;
	process->generation_tried = generation;
	process->next_try_ns = now_ns + RETRY_NS;
	r = py_runtime_find(process->space, process->remote, version, &process->runtime);
	process->python_error = r;
	if (r == -ENOMEM)
		return r;
	if (r >= 0 || version[0] != '\0') {
		memcpy(process->python, version, sizeof version);
		process->is_new = true;
	}
	return 0;
}

int process_search_unaided(struct process *process, uint64_t now_ns)
{
	int r = 0;

	if (!process->runtime && now_ns >= process->next_load_ns) {
		r = address_space_load(process->space);
		process->load_period_ns = MAX(MIN(process->load_period_ns * 3 / 2, (uint64_t)LOAD_LAST_NS),
					      (uint64_t)LOAD_FIRST_NS);
		process->next_load_ns = now_ns + process->load_period_ns;
	}
	return r == -ENOMEM ? r : process_search_python(process, now_ns);
}
