/* SPDX-License-Identifier: MIT */
/*
 * waits.c - see waits.h.
 *
 * A wait is a stack that ends with a frame of kind wait, or with two: the kind of the wait, and its object. Two other frames
 * matter:
 *
 * 1. the caller: the innermost Python frame; in a thread without Python the innermost function outside of libc;
 * 2. the function: the builtin that Python called, if all frames below it belong to the builtin's own module or to
 *    libc (select.select, lock.acquire); else the innermost function outside of libc, or, if there is
 *    none, the outermost one of libc (pthread_cond_wait, not its internals). Waiting for the GIL is the
 *    interpreter's own work, so there only a builtin counts.
 *
 * A task of asyncio (kind await) has only Python frames. The caller is the innermost one outside of asyncio's own modules;
 * the function is the one of asyncio that it awaits (sleep, Queue.get).
 *
 * A stack without native frames has no function. If all other waits of that line and kind
 * have the same one, it is used; otherwise the wait is a row of its own.
 */
#include "src/report/waits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/id_map.h"
#include "base/text.h"
#include "base/util.h"
#include "src/report/grouping.h"
#include "src/report/print.h"
#include "src/report/table.h"

#define NO_WAIT UINT32_MAX

struct summing {
	const struct profile *profile;
	struct grouping lines, functions;
	struct id_map pairs, index; /* (caller, wait) -> number; (number, function) -> item */
	struct id_map objects;      /* (item, object) -> object sum */
	struct wait_sums sums;
	uint32_t *item_of;  /* by stack; NO_WAIT: not a wait */
	int32_t *object_of; /* by stack: its frame; -1: unknown */
	uint32_t *pair_of;  /* by item */
	size_t pairs_allocated;
	int error;
};

static void summing_done(struct summing *self)
{
	grouping_done(&self->lines);
	grouping_done(&self->functions);
	id_map_done(&self->pairs);
	id_map_done(&self->index);
	id_map_done(&self->objects);
	wait_sums_done(&self->sums);
	free(self->item_of);
	free(self->object_of);
	free(self->pair_of);
}

/* ---- Relevant frames ---- */

/* "io" of "[io]". */
static int bare_name(const struct profile_frame *wait, char *to, size_t n_bytes)
{
	size_t n = strlen(wait->name);

	return snprintf(to, n_bytes, "%.*s", n > 2 ? (int)n - 2 : 0, wait->name + (n > 2));
}

static bool is_state(const struct profile_frame *wait, enum thread_state state)
{
	char word[24];

	bare_name(wait, word, sizeof word);
	return strcmp(word, thread_state_name(state)) == 0;
}

static bool is_own(const struct profile_frame *frame)
{
	return frame->kind == FRAME_NATIVE && !profile_frame_is_libc(frame);
}

static bool is_same_module(const struct profile_frame *a, const struct profile_frame *b)
{
	return strcmp(a->module ?: "", b->module ?: "") == 0;
}

/* @path: native and kernel frames from the caller on, without the wait. NULL: Python called no builtin. */
static const struct profile_frame *builtin_of(const struct profile *profile, const int32_t *path, size_t n)
{
	for (size_t i = n; i > 0; i--) {
		const struct profile_frame *frame = &profile->frames[path[i - 1]];

		if (frame->kind != FRAME_NATIVE || frame->role != ROLE_BUILTIN)
			continue;
		for (size_t k = i; k < n; k++)
			if (is_own(&profile->frames[path[k]]) && !is_same_module(frame, &profile->frames[path[k]]))
				return NULL;
		return frame;
	}
	return NULL;
}

static const struct profile_frame *innermost_own(const struct profile *profile, const int32_t *path, size_t n)
{
	while (n > 0 && !is_own(&profile->frames[path[n - 1]]))
		n--;
	return n > 0 ? &profile->frames[path[n - 1]] : NULL;
}

/* The libc function that was called last. */
static const struct profile_frame *libc_entry(const struct profile *profile, const int32_t *path, size_t n)
{
	const struct profile_frame *entry = NULL;

	for (; n > 0 && !is_own(&profile->frames[path[n - 1]]); n--)
		if (profile->frames[path[n - 1]].kind == FRAME_NATIVE)
			entry = &profile->frames[path[n - 1]];
	return entry;
}

static bool is_asyncio(const struct profile_frame *frame)
{
	const char *name = frame->file ? strrchr(frame->file, '/') : NULL;
	const size_t n = sizeof "/asyncio" - 1;

	return name && (size_t)(name - frame->file) >= n && strncmp(name - n, "/asyncio", n) == 0;
}

static struct wait_sum describe_task(const struct profile *profile, const int32_t *path, size_t n)
{
	struct wait_sum wait = { .wait = &profile->frames[path[n - 1]] };
	size_t at = n - 1;

	while (at > 0 &&
	       (profile->frames[path[at - 1]].kind != FRAME_PYTHON || is_asyncio(&profile->frames[path[at - 1]])))
		at--;
	if (at == 0) /* all frames belong to asyncio */
		at = n - 1;
	wait.caller = at > 0 ? &profile->frames[path[at - 1]] : NULL;
	wait.function = at < n - 1 ? &profile->frames[path[at]] : NULL;
	return wait;
}

static struct wait_sum describe(const struct profile *profile, const int32_t *path, size_t n)
{
	struct wait_sum wait = { .wait = &profile->frames[path[n - 1]] };
	size_t first = n - 1;

	if (is_state(wait.wait, STATE_RUNNABLE))
		return wait;
	if (is_state(wait.wait, STATE_AWAIT))
		return describe_task(profile, path, n);
	while (first > 0 && profile->frames[path[first - 1]].kind != FRAME_PYTHON)
		first--;
	path += first;
	n -= first + 1;
	if (first == 0) {
		wait.caller = innermost_own(profile, path, n);
		wait.function = libc_entry(profile, path, n);
		return wait;
	}
	wait.caller = &profile->frames[path[-1]];
	wait.function = builtin_of(profile, path, n);
	if (!wait.function && !is_state(wait.wait, STATE_GIL))
		wait.function = innermost_own(profile, path, n) ?: libc_entry(profile, path, n);
	return wait;
}

/* ---- Add up ---- */

static uint32_t group_of(const struct grouping *grouping, const struct profile *profile,
			 const struct profile_frame *frame)
{
	return frame ? grouping->of_frame[frame - profile->frames] + 1 : 0;
}

/* Number of a pair of numbers; @next for a new pair. */
static int number_of(struct id_map *map, uint32_t a, uint32_t b, uint32_t next, uint32_t *ret)
{
	uint64_t key = ((uint64_t)a << 32 | b) + 1;
	const struct id_slot *slot = id_map_find(map, key);

	*ret = slot ? slot->id : next;
	return slot ? 0 : id_map_add(map, key, next);
}

static int find_item(struct summing *self, const struct wait_sum *wait, uint32_t *ret)
{
	uint32_t line = group_of(&self->lines, self->profile, wait->caller);
	uint32_t kind = group_of(&self->functions, self->profile, wait->wait);
	uint32_t function = group_of(&self->functions, self->profile, wait->function);
	uint32_t pair;
	int r;

	r = number_of(&self->pairs, line, kind, (uint32_t)self->pairs.n, &pair);
	if (r >= 0)
		r = number_of(&self->index, pair, function, (uint32_t)self->sums.n_items, ret);
	if (r < 0 || *ret < self->sums.n_items)
		return r;
	r = grow(&self->sums.items, self->sums.n_items, &self->sums.allocated, sizeof *self->sums.items);
	if (r >= 0)
		r = grow(&self->pair_of, self->sums.n_items, &self->pairs_allocated, sizeof *self->pair_of);
	if (r < 0)
		return r;
	self->pair_of[self->sums.n_items] = pair;
	self->sums.items[self->sums.n_items++] = *wait;
	return 0;
}

static void take_path(void *data, const int32_t *path, size_t n_path, const struct profile_total *total)
{
	struct summing *self = data;
	const struct profile_frame *frames = self->profile->frames;
	struct wait_sum wait;

	if (self->error < 0 || n_path == 0 || frames[path[n_path - 1]].kind != FRAME_WAIT)
		return;
	if (n_path > 1 && frames[path[n_path - 2]].kind == FRAME_WAIT)
		self->object_of[total->stack] = path[--n_path];
	wait = describe(self->profile, path, n_path);
	self->error = find_item(self, &wait, &self->item_of[total->stack]);
}

static int compare_threads(const void *a, const void *b, void *context)
{
	const struct profile_total *totals = context;
	const struct profile_total *left = &totals[*(const uint32_t *)a], *right = &totals[*(const uint32_t *)b];

	if (left->pid != right->pid)
		return left->pid < right->pid ? -1 : 1;
	return left->tid < right->tid ? -1 : left->tid > right->tid;
}

static int add_object(struct summing *self, const struct profile_total *total)
{
	struct wait_sums *sums = &self->sums;
	uint32_t item = self->item_of[total->stack], number;
	const struct profile_frame *object = &self->profile->frames[self->object_of[total->stack]];
	int r;

	r = number_of(&self->objects, item, group_of(&self->functions, self->profile, object),
		      (uint32_t)sums->n_objects, &number);
	if (r >= 0 && number == sums->n_objects) {
		r = grow(&sums->objects, sums->n_objects, &sums->objects_allocated, sizeof *sums->objects);
		if (r >= 0)
			sums->objects[sums->n_objects++] = (struct wait_object_sum){ .object = object, .item = item };
	}
	if (r >= 0)
		sums->objects[number].value += whole_value(&sums->whole, total);
	return r;
}

static int compare_objects(const void *a, const void *b)
{
	const struct wait_object_sum *left = a, *right = b;

	if (left->item != right->item)
		return left->item < right->item ? -1 : 1;
	if (left->value != right->value)
		return left->value > right->value ? -1 : 1;
	return strcmp(left->object->name, right->object->name);
}

/* Each item has its part of the sorted array. */
static void give_objects(struct wait_sums *sums)
{
	if (sums->n_objects > 0)
		qsort(sums->objects, sums->n_objects, sizeof *sums->objects, compare_objects);
	for (size_t i = sums->n_objects; i > 0; i--) {
		struct wait_sum *item = &sums->items[sums->objects[i - 1].item];

		item->objects = &sums->objects[i - 1];
		item->n_objects++;
	}
}

static int add_totals(struct summing *self)
{
	const struct profile *profile = self->profile;
	CLEANUP(freep) uint32_t *order = calloc(profile->n_totals + 1, sizeof *order);
	int r = 0;

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_totals; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, profile->n_totals, sizeof *order, compare_threads, profile->totals);
	for (size_t i = 0; i < profile->n_totals && r >= 0; i++) {
		const struct profile_total *total = &profile->totals[order[i]];
		struct wait_sum *item;

		if (total->stack < 0 || self->item_of[total->stack] == NO_WAIT)
			continue;
		item = &self->sums.items[self->item_of[total->stack]];
		item->threads += item->last_pid != total->pid || item->last_tid != total->tid;
		item->last_pid = total->pid;
		item->last_tid = total->tid;
		item->samples += total->samples;
		item->value += whole_value(&self->sums.whole, total);
		if (self->object_of[total->stack] >= 0)
			r = add_object(self, total);
	}
	give_objects(&self->sums);
	return r;
}

/* Give stacks without a known function the only function of their line and kind; see above. */
static int find_functions(struct summing *self)
{
	enum { NONE = -1, SEVERAL = -2 };
	CLEANUP(freep) int64_t *only = calloc(self->pairs.n + 1, sizeof *only);

	if (!only)
		return -ENOMEM;
	for (size_t i = 0; i < self->pairs.n; i++)
		only[i] = NONE;
	for (size_t i = 0; i < self->sums.n_items; i++)
		if (self->sums.items[i].function)
			only[self->pair_of[i]] = only[self->pair_of[i]] == NONE ? (int64_t)i : SEVERAL;
	for (size_t i = 0; i < self->profile->n_stacks; i++) {
		uint32_t item = self->item_of[i];

		if (item != NO_WAIT && !self->sums.items[item].function && only[self->pair_of[item]] >= 0)
			self->item_of[i] = (uint32_t)only[self->pair_of[item]];
	}
	return 0;
}

static int compare_waits(const void *a, const void *b)
{
	const struct wait_sum *left = a, *right = b;
	int order;

	if (left->value != right->value)
		return left->value > right->value ? -1 : 1;
	order = strcmp(left->wait->name, right->wait->name);
	if (order == 0)
		order = strcmp(left->caller ? left->caller->name : "", right->caller ? right->caller->name : "");
	if (order == 0 && left->caller && right->caller)
		order = order_by_source(left->caller, right->caller);
	if (order == 0)
		order = strcmp(left->function ? left->function->name : "",
			       right->function ? right->function->name : "");
	return order;
}

static void finish(struct wait_sums *sums)
{
	size_t n = 0;

	for (size_t i = 0; i < sums->n_items; i++) {
		if (sums->items[i].samples == 0)
			continue;
		sums->value += sums->items[i].value;
		sums->items[n++] = sums->items[i];
	}
	sums->n_items = n;
	if (n > 0)
		qsort(sums->items, n, sizeof *sums->items, compare_waits);
}

static int add_up(struct summing *self)
{
	const struct profile *profile = self->profile;
	int r;

	self->item_of = calloc(profile->n_stacks + 1, sizeof *self->item_of);
	self->object_of = calloc(profile->n_stacks + 1, sizeof *self->object_of);
	if (!self->item_of || !self->object_of)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_stacks; i++) {
		self->item_of[i] = NO_WAIT;
		self->object_of[i] = -1;
	}
	r = grouping_make(profile, order_by_line, &self->lines);
	if (r >= 0)
		r = grouping_make(profile, order_by_function, &self->functions);
	if (r >= 0)
		r = paths_each(profile, false, take_path, self);
	if (r >= 0)
		r = self->error;
	if (r >= 0)
		r = find_functions(self);
	return r < 0 ? r : add_totals(self);
}

static bool has_waits(const struct profile *profile)
{
	for (size_t i = 0; i < profile->n_frames; i++)
		if (profile->frames[i].kind == FRAME_WAIT)
			return true;
	return false;
}

int wait_sums_make(const struct profile *profile, struct wait_sums *ret)
{
	/* The waiting function is native, so load native frames even if they are not shown. */
	struct profile whole = *profile;
	CLEANUP(summing_done) struct summing self = { .profile = &whole, .sums.whole = whole_of(profile) };
	int r;

	whole.python_only = false;
	r = has_waits(profile) ? add_up(&self) : 0;
	if (r < 0)
		return r;
	finish(&self.sums);
	*ret = self.sums;
	self.sums = (struct wait_sums){ 0 };
	return 0;
}

void wait_sums_done(struct wait_sums *sums)
{
	free(sums->items);
	free(sums->objects);
	sums->items = NULL;
	sums->objects = NULL;
	sums->n_items = sums->n_objects = 0;
}

/* ---- Table ---- */

/* "Arbiter.sleep · [io] select.select [pipe] and 2 others". NULL: no memory. */
static char *name_of(const struct wait_sum *wait)
{
	char *name, others[48] = "";
	int n;

	if (wait->n_objects > 1)
		snprintf(others, sizeof others, " and %zu other%s", wait->n_objects - 1,
			 wait->n_objects > 2 ? "s" : "");
	n = asprintf(&name, "%s%s%s%s%s%s%s%s", wait->caller ? wait->caller->name : "", wait->caller ? " · " : "",
		     wait->wait->name, wait->function ? " " : "", wait->function ? wait->function->name : "",
		     wait->n_objects > 0 ? " " : "", wait->n_objects > 0 ? wait->objects[0].object->name : "", others);
	return n < 0 ? NULL : name;
}

static int make_row(const struct wait_sums *sums, const struct wait_sum *wait, char **ret_name, struct table_row *ret)
{
	*ret_name = name_of(wait);
	if (!*ret_name)
		return -ENOMEM;
	*ret = (struct table_row){
		.name = *ret_name,
		.shares = { whole_share(&sums->whole, wait->value) },
		.values = { wait->value },
		.counts = { wait->threads, wait->samples },
	};
	table_kind(wait->caller ?: wait->wait, true, ret);
	return table_place(wait->caller, &ret->place);
}

static void names_done(char ***names)
{
	for (char **name = *names; name && *name; name++)
		free(*name);
	free(*names);
}

int print_waits(const struct wait_sums *sums, const struct report_options *options, const char *heading, size_t max,
		FILE *out)
{
	size_t n = MIN(max, sums->n_items);
	CLEANUP(names_done) char **names = calloc(n + 1, sizeof *names);
	CLEANUP(table_done)
	struct table table = {
		.options = options,
		.whole = &sums->whole,
		.times = { { "total", true } },
		.count_heads = { "threads", "samples" },
		.name_head = "wait",
		.has_kind = true,
		.rows = calloc(n + 1, sizeof *table.rows),
		.n_more = sums->n_items - n,
	};
	int r = 0;

	if (!names || !table.rows)
		return -ENOMEM;
	while (table.n_rows < n && r >= 0) {
		r = make_row(sums, &sums->items[table.n_rows], &names[table.n_rows], &table.rows[table.n_rows]);
		table.n_rows++;
	}
	if (r < 0)
		return r;
	if (heading)
		fprintf(out, "\n%s\n", heading);
	table_put(&table, out);
	return 0;
}

/* ---- JSON ---- */

static void put_objects(struct json *json, const struct wait_sums *sums, const struct wait_sum *wait)
{
	to_json_put_array(json, "wait_objects");
	for (size_t i = 0; i < wait->n_objects; i++) {
		char name[256];

		bare_name(wait->objects[i].object, name, sizeof name);
		to_json_object(json);
		to_json_put_text(json, "name", name);
		print_json_time(json, &sums->whole, "total", wait->objects[i].value);
		to_json_object_end(json);
	}
	to_json_array_end(json);
}

void print_json_waits(struct json *json, const struct wait_sums *sums, const char *key, size_t max)
{
	size_t n = MIN(max, sums->n_items);

	to_json_put_array(json, key);
	for (size_t i = 0; i < n; i++) {
		const struct wait_sum *wait = &sums->items[i];
		char state[24];

		bare_name(wait->wait, state, sizeof state);
		to_json_object(json);
		print_json_frame(json, wait->caller, wait->caller ? wait->caller->name : NULL);
		to_json_put_string(json, "state", state);
		to_json_put_string(json, "wait_function", wait->function ? wait->function->name : NULL);
		put_objects(json, sums, wait);
		print_json_time(json, &sums->whole, "total", wait->value);
		to_json_put_integer(json, "threads", (int64_t)wait->threads);
		to_json_put_integer(json, "samples", (int64_t)wait->samples);
		to_json_object_end(json);
	}
	to_json_array_end(json);
}
