/* SPDX-License-Identifier: MIT */
/* torch_calls.c - see torch_calls.h. */
#include "src/agent/torch_calls.h"

#include <pthread.h>
#include <stdlib.h>

#include "src/agent/python.h"
#include "src/agent/rows.h"
#include "src/agent/torch.h"
#include "src/agent/trace.h"

struct torch_tracing traced;

/* ---- Modules ---- */

/* Of the tables below and of threads; the interpreter is not called with it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct map modules; /* module: its struct known; keys are not owned */

void known_drop(struct known *known)
{
	if (__atomic_sub_fetch(&known->n_refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	forget(&known->name_text);
	forget(&known->class_text);
	forget(&known->end_from);
	forget(&known->end_to);
	free(known);
}

struct known *find_known(const object *module)
{
	struct known *known;

	pthread_mutex_lock(&lock);
	known = map_get(&modules, module);
	if (known)
		__atomic_add_fetch(&known->n_refs, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
	return known;
}

bool known_put(object *module, struct known *known)
{
	struct known *old;
	bool is_put;

	pthread_mutex_lock(&lock);
	old = map_remove(&modules, module);
	is_put = map_put(&modules, module, known);
	pthread_mutex_unlock(&lock);
	if (old)
		known_drop(old);
	if (!is_put)
		known_drop(known);
	return is_put;
}

void known_remove(const object *module)
{
	struct known *old;

	pthread_mutex_lock(&lock);
	old = map_remove(&modules, module);
	pthread_mutex_unlock(&lock);
	if (old)
		known_drop(old);
}

void known_remove_all(void)
{
	struct map old;

	pthread_mutex_lock(&lock);
	old = modules;
	modules = (struct map){ 0 };
	pthread_mutex_unlock(&lock);
	for (size_t i = 0; i < old.n_slots; i++)
		if (old.slots[i].key)
			known_drop(old.slots[i].value);
	free(old.slots);
}

/* ---- Calls ---- */

struct call *call_keep(struct call *call)
{
	__atomic_add_fetch(&call->n_refs, 1, __ATOMIC_RELAXED);
	return call;
}

static void calls_done(struct calls *calls)
{
	for (uint32_t i = 0; i < calls->n; i++)
		call_drop(calls->items[i]);
	free(calls->items);
}

void call_drop(struct call *call)
{
	if (__atomic_sub_fetch(&call->n_refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	known_drop(call->known);
	forget(&call->event);
	forget(&call->backward_event);
	objects_done(&call->inputs);
	calls_done(&call->same_start);
	calls_done(&call->same_end);
	free(call);
}

bool calls_add(struct calls *calls, struct call *call)
{
	if (calls->n == calls->allocated) {
		uint32_t n = calls->allocated > 0 ? 2 * calls->allocated : 2;
		struct call **larger = realloc(calls->items, n * sizeof *larger);

		if (!larger)
			return false;
		calls->items = larger;
		calls->allocated = n;
	}
	calls->items[calls->n++] = call_keep(call);
	return true;
}

/* ---- What is traced ---- */

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

int64_t next_seq(void)
{
	return __atomic_fetch_add(&traced.seq, 1, __ATOMIC_RELAXED);
}

enum { COLUMNS = 19 };

void append_row(const struct known *known, const char *stage, size_t n_stage, int64_t seq, uint64_t began_ns,
		uint64_t ended_ns)
{
	double began = seconds(began_ns), duration = (double)(ended_ns - began_ns) / 1e9;
	const struct ring_value missing = { .kind = RING_NULL };
	const struct ring_value values[COLUMNS] = {
		traced.step,
		{ .kind = RING_IS_INTEGER, .integer = seq },
		{ .kind = RING_IS_TEXT, .text = known->name, .n_text = known->n_name },
		{ .kind = RING_IS_TEXT, .text = stage, .n_text = n_stage },
		missing,
		missing,
		missing,
		missing,
		{ .kind = RING_IS_REAL, .real = began - traced.step_began },
		{ .kind = RING_IS_REAL, .real = duration },
		{ .kind = RING_IS_TEXT, .text = known->class, .n_text = known->n_class },
		{ .kind = RING_IS_REAL, .real = duration * 1e3 },
		traced.local_step,
		traced.global_step,
		traced.rank,
		{ .kind = RING_IS_INTEGER, .integer = trace_thread_id() },
		{ .kind = RING_IS_REAL, .real = began },
		{ .kind = RING_IS_REAL, .real = duration * 1e3 },
		missing,
	};

	if (traced.is_on && traced.table)
		rows_append(traced.table, ended_ns, values);
}

/* An exception of ours: trace.fail() says it, and ends tracing. NULL: it is one of the program's (KeyboardInterrupt). */
static object *fail(void)
{
	object *type, *value, *where, *told;

	if (!py.Error())
		(void)py.NoMemory();
	if (!py.IsError(*py.exception))
		return NULL;
	py.ErrorFetch(&type, &value, &where);
	py.ErrorNormalize(&type, &value, &where);
	traced.is_on = false;
	told = py.CallMethod(traced.trace, traced.names.fail, value ? value : py.none, where ? where : py.none, NULL);
	if (!told)
		py.ErrorClear();
	forget(&told);
	forget(&type);
	forget(&value);
	forget(&where);
	return none();
}

object *answer(bool is_done)
{
	return is_done ? none() : fail();
}

/* ---- The GPU ---- */

bool begin_on_gpu(object **ret)
{
	*ret = traced.cuda ? py.CallMethod(traced.cuda, traced.names.begin, NULL) : NULL;
	if (*ret == py.none)
		replace(ret, NULL);
	return *ret || !traced.cuda || !py.Error();
}

object *gpu_arguments(const struct call *call, object *event, int64_t seq, uint64_t began_ns, uint64_t now)
{
	return py.BuildValue("(OLOOdd)", event, (long long)seq, call->known->name_text, call->known->class_text,
			     seconds(began_ns), seconds(now));
}

/* ---- A thread ---- */

__thread struct thread *own;
static struct thread *threads; /* all of them; with the lock */

void clear_graph(struct thread *thread)
{
	struct thread ended = *thread;

	thread->owners = (struct map){ 0 };
	thread->entries = NULL;
	thread->n_entries = thread->n_allocated = 0;
	thread->n_calls = thread->n_past = thread->stack.n > 0 ? thread->n_calls : 0;
	for (size_t i = 0; i < ended.owners.n_slots; i++)
		if (ended.owners.slots[i].key) {
			call_drop(ended.owners.slots[i].value);
			py.Forget(ended.owners.slots[i].key);
		}
	free(ended.owners.slots);
	for (uint32_t i = 0; i < ended.n_entries; i++)
		objects_done(&ended.entries[i]);
	free(ended.entries);
}

void clear(struct thread *thread)
{
	struct calls left = thread->stack;

	thread->stack = (struct calls){ 0 };
	calls_done(&left);
	clear_graph(thread);
}

/* The interpreter ends the thread's values of traced.local. */
static void end_thread(object *capsule)
{
	struct thread *thread = py.CapsulePointer(capsule, NULL);

	if (own == thread)
		own = NULL;
	pthread_mutex_lock(&lock);
	for (struct thread **at = &threads; *at; at = &(*at)->next)
		if (*at == thread) {
			*at = thread->next;
			break;
		}
	pthread_mutex_unlock(&lock);
	clear(thread);
	forget(&thread->dummy);
	free(thread->stack.items);
	free(thread);
}

struct thread *get_thread(void)
{
	struct thread *made;
	object *capsule;

	if (own)
		return own;
	made = calloc(1, sizeof *made);
	capsule = made ? py.CapsuleNew(made, NULL, end_thread) : NULL;
	if (!capsule) {
		free(made);
		return NULL;
	}
	own = made;
	pthread_mutex_lock(&lock);
	made->next = threads;
	threads = made;
	pthread_mutex_unlock(&lock);
	if (py.SetAttribute(traced.local, traced.names.state, capsule) < 0)
		made = NULL; /* it ends with the capsule */
	py.Forget(capsule);
	return made;
}

struct objects *entry_of(struct thread *thread, uint32_t index)
{
	uint32_t at = index - thread->n_past;

	return index >= thread->n_past && at < thread->n_entries ? &thread->entries[at] : NULL;
}

bool put_entry(struct thread *thread, uint32_t index, struct objects *nodes)
{
	uint32_t at = index - thread->n_past;

	if (index < thread->n_past) { /* the graph has been cleared since it returned */
		objects_done(nodes);
		return true;
	}
	if (at >= thread->n_allocated) {
		uint32_t n = (at + 32) * 2;
		struct objects *larger = realloc(thread->entries, n * sizeof *larger);

		if (!larger) {
			objects_done(nodes);
			return false;
		}
		thread->entries = larger;
		thread->n_allocated = n;
	}
	while (thread->n_entries <= at)
		thread->entries[thread->n_entries++] = (struct objects){ 0 };
	thread->entries[at] = *nodes;
	*nodes = (struct objects){ 0 };
	return true;
}

void clear_threads(void)
{
	struct thread *left;

	if (own)
		clear(own);
	if (python_is_free_threaded()) /* without the interpreter's lock the others may be using theirs */
		return;
	do {
		pthread_mutex_lock(&lock);
		left = threads;
		while (left && left->stack.n == 0 && left->owners.n == 0)
			left = left->next;
		pthread_mutex_unlock(&lock);
		if (left)
			clear(left);
	} while (left);
}

void torch_fork(void)
{
	const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;

	lock = unlocked; /* a thread that is not here may have had it */
}
