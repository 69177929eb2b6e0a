/* SPDX-License-Identifier: MIT */
/* groups.c - see groups.h.
 *
 * Sorting by hash puts candidates side by side; these are compared completely.
 */
#include "src/backtrace/groups.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"

/* ---- Equality ---- */

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_locals(const struct py_locals *a, const struct py_locals *b)
{
	if (!a || !b)
		return a == b;
	if (a->n != b->n || a->is_cut != b->is_cut)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (strcmp(a->locals[i].name, b->locals[i].name) != 0 ||
		    strcmp(a->locals[i].value, b->locals[i].value) != 0)
			return false;
	return true;
}

static bool same_frame(const struct backtrace_frame *a, const struct backtrace_frame *b)
{
	return a->kind == b->kind && a->is_builtin == b->is_builtin && a->line == b->line &&
	       same_text(a->name, b->name) && same_text(a->file, b->file) && same_text(a->module, b->module) &&
	       same_locals(a->locals, b->locals);
}

static bool same_frames(const struct backtrace_frame *a, size_t n_a, const struct backtrace_frame *b, size_t n_b)
{
	if (n_a != n_b)
		return false;
	for (size_t i = 0; i < n_a; i++)
		if (!same_frame(&a[i], &b[i]))
			return false;
	return true;
}

static bool same_state(const struct py_state *a, const struct py_state *b)
{
	return a->interpreter == b->interpreter && a->holds_gil == b->holds_gil && a->collects == b->collects;
}

/* Locks with unknown holders count as equal. */
static bool same_wait(const struct backtrace_wait *a, const struct backtrace_wait *b)
{
	if (!same_text(a->call, b->call) || a->n_descriptors != b->n_descriptors || a->n_more != b->n_more ||
	    a->lock != b->lock || a->holder != b->holder || a->depth != b->depth ||
	    a->is_for_child != b->is_for_child || a->child != b->child)
		return false;
	for (size_t i = 0; i < a->n_descriptors; i++)
		if (a->descriptors[i].number != b->descriptors[i].number ||
		    !same_text(a->descriptors[i].what, b->descriptors[i].what))
			return false;
	return true;
}

static bool same_thread(const void *data, size_t left, size_t right)
{
	const struct backtrace *backtrace = data;
	const struct backtrace_thread *a = &backtrace->threads[left], *b = &backtrace->threads[right];

	return a->n_tasks == 0 && b->n_tasks == 0 && a->is_idle == b->is_idle && a->state == b->state &&
	       same_text(a->wchan, b->wchan) && a->stop == b->stop && a->verdict == b->verdict && a->end == b->end &&
	       a->is_python == b->is_python && a->waits_for_gil == b->waits_for_gil &&
	       same_state(&a->python, &b->python) && same_wait(&a->wait, &b->wait) &&
	       same_frames(a->frames, a->n_frames, b->frames, b->n_frames);
}

static bool same_task(const void *data, size_t left, size_t right)
{
	const struct backtrace_thread *thread = data;
	const struct backtrace_task *a = &thread->tasks[left], *b = &thread->tasks[right];

	return a->is_running == b->is_running && a->n_awaiters == b->n_awaiters &&
	       (a->n_awaiters == 0 || memcmp(a->awaiters, b->awaiters, a->n_awaiters * sizeof *a->awaiters) == 0) &&
	       same_frames(a->frames, a->n_frames, b->frames, b->n_frames);
}

/* ---- Groups ---- */

static uint64_t hash_text(uint64_t hash, const char *text)
{
	for (; text && *text; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211); /* FNV-1a */
	return hash;
}

static uint64_t hash_frames(const struct backtrace_frame *frames, size_t n)
{
	uint64_t hash = UINT64_C(14695981039346656037) ^ n;

	for (size_t i = 0; i < n; i++)
		hash = hash_text(hash, frames[i].name) + (uint64_t)frames[i].line;
	return hash;
}

struct hashed {
	uint64_t hash;
	size_t index;
};

static int compare_hashed(const void *a, const void *b)
{
	const struct hashed *left = a, *right = b;

	if (left->hash != right->hash)
		return left->hash < right->hash ? -1 : 1;
	return left->index < right->index ? -1 : left->index > right->index;
}

/* Sorts @items. Compares only with the few leaders of the same hash. */
static size_t *lead(struct hashed *items, size_t n, bool (*is_same)(const void *data, size_t left, size_t right),
		    const void *data)
{
	size_t *leaders = calloc(n + 1, sizeof *leaders);

	if (!leaders)
		return NULL;
	qsort(items, n, sizeof *items, compare_hashed);
	for (size_t i = 0, first = 0; i < n; i++) {
		size_t index = items[i].index;

		if (items[i].hash != items[first].hash)
			first = i;
		leaders[index] = index;
		for (size_t k = first; k < i && leaders[index] == index; k++)
			if (leaders[items[k].index] == items[k].index && is_same(data, items[k].index, index))
				leaders[index] = items[k].index;
	}
	return leaders;
}

size_t *groups_of_threads(const struct backtrace *backtrace)
{
	CLEANUP(freep) struct hashed *items = calloc(backtrace->n_threads + 1, sizeof *items);

	if (!items)
		return NULL;
	for (size_t i = 0; i < backtrace->n_threads; i++)
		items[i] = (struct hashed){ hash_frames(backtrace->threads[i].frames, backtrace->threads[i].n_frames),
					    i };
	return lead(items, backtrace->n_threads, same_thread, backtrace);
}

size_t *groups_of_tasks(const struct backtrace_thread *thread)
{
	CLEANUP(freep) struct hashed *items = calloc(thread->n_tasks + 1, sizeof *items);

	if (!items)
		return NULL;
	for (size_t i = 0; i < thread->n_tasks; i++)
		items[i] = (struct hashed){ hash_frames(thread->tasks[i].frames, thread->tasks[i].n_frames), i };
	return lead(items, thread->n_tasks, same_task, thread);
}
