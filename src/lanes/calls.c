/* SPDX-License-Identifier: MIT */
/* calls.c - names, each once, and the tree of calls by them. Both only grow, so that numbers stay valid when a recording is read further. */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "src/lanes/lanes_private.h"

enum { MIN_SLOTS = 1024 };

static uint64_t hash_name(enum name_kind kind, const char *text, const char *file)
{
	return hash_bytes(hash_bytes(hash_bytes(HASH_START, text, strlen(text) + 1), file, strlen(file)), &kind,
			  sizeof kind);
}

static uint64_t hash_call(uint32_t parent, uint32_t name)
{
	return mix64((uint64_t)parent << 32 | name);
}

static void place(uint32_t *slots, size_t n_slots, uint64_t hash, uint32_t value)
{
	size_t at = hash & (n_slots - 1);

	while (slots[at] != 0)
		at = (at + 1) & (n_slots - 1);
	slots[at] = value;
}

static int grow_names(struct calls *calls)
{
	size_t n_slots = MAX(calls->n_name_slots * 2, (size_t)MIN_SLOTS);
	uint32_t *slots;

	if (calls->n_names * 2 < calls->n_name_slots)
		return 0;
	slots = calloc(n_slots, sizeof *slots);
	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < calls->n_names; i++)
		place(slots, n_slots, hash_name(calls->names[i].kind, calls->names[i].text, calls->names[i].file),
		      (uint32_t)i + 1);
	free(calls->name_slots);
	calls->name_slots = slots;
	calls->n_name_slots = n_slots;
	return 0;
}

static int grow_calls(struct calls *calls)
{
	size_t n_slots = MAX(calls->n_slots * 2, (size_t)MIN_SLOTS);
	uint32_t *slots;

	if (calls->n * 2 < calls->n_slots)
		return 0;
	slots = calloc(n_slots, sizeof *slots);
	if (!slots)
		return -ENOMEM;
	for (size_t i = 1; i < calls->n; i++)
		place(slots, n_slots, hash_call(calls->calls[i].parent, calls->calls[i].name), (uint32_t)i);
	free(calls->slots);
	calls->slots = slots;
	calls->n_slots = n_slots;
	return 0;
}

int lane_calls_init(struct calls *calls)
{
	int r = grow(&calls->calls, 0, &calls->allocated, sizeof *calls->calls);

	if (r < 0)
		return r;
	calls->calls[0] = (struct call){ 0 };
	calls->n = 1;
	r = grow_calls(calls);
	return r < 0 ? r : grow_names(calls);
}

int lane_calls_name(struct calls *calls, enum name_kind kind, const char *text, const char *file, uint32_t *ret)
{
	uint64_t hash = hash_name(kind, text, file);
	struct name name = { .kind = kind };
	int r;

	for (size_t at = hash & (calls->n_name_slots - 1); calls->name_slots[at] != 0;
	     at = (at + 1) & (calls->n_name_slots - 1)) {
		const struct name *known = &calls->names[calls->name_slots[at] - 1];

		if (known->kind == kind && strcmp(known->text, text) == 0 && strcmp(known->file, file) == 0) {
			*ret = calls->name_slots[at] - 1;
			return 0;
		}
	}
	if (calls->n_names >= UINT32_MAX - 1)
		return -EOVERFLOW;
	r = grow(&calls->names, calls->n_names, &calls->names_allocated, sizeof *calls->names);
	if (r < 0)
		return r;
	name.text = strdup(text);
	name.file = strdup(file);
	if (!name.text || !name.file) {
		free(name.text);
		free(name.file);
		return -ENOMEM;
	}
	calls->names[calls->n_names] = name;
	*ret = (uint32_t)calls->n_names++;
	place(calls->name_slots, calls->n_name_slots, hash, *ret + 1);
	return grow_names(calls);
}

int lane_calls_enter(struct calls *calls, uint32_t parent, uint32_t name, uint32_t *ret)
{
	uint64_t hash = hash_call(parent, name);
	int r;

	for (size_t at = hash & (calls->n_slots - 1); calls->slots[at] != 0; at = (at + 1) & (calls->n_slots - 1)) {
		const struct call *known = &calls->calls[calls->slots[at]];

		if (known->parent == parent && known->name == name) {
			*ret = calls->slots[at];
			return 0;
		}
	}
	if (calls->n >= UINT32_MAX)
		return -EOVERFLOW;
	r = grow(&calls->calls, calls->n, &calls->allocated, sizeof *calls->calls);
	if (r < 0)
		return r;
	calls->calls[calls->n] = (struct call){ parent, name, calls->calls[parent].depth + 1 };
	*ret = (uint32_t)calls->n++;
	place(calls->slots, calls->n_slots, hash, *ret);
	return grow_calls(calls);
}

uint32_t lane_calls_path(const struct calls *calls, uint32_t call, uint32_t *path, uint32_t max)
{
	uint32_t n = MIN(calls->calls[call].depth, max);

	for (; call != 0; call = calls->calls[call].parent)
		if (calls->calls[call].depth <= max)
			path[calls->calls[call].depth - 1] = call;
	return n;
}

void lane_calls_done(struct calls *calls)
{
	for (size_t i = 0; i < calls->n_names; i++) {
		free(calls->names[i].text);
		free(calls->names[i].file);
	}
	free(calls->names);
	free(calls->name_slots);
	free(calls->calls);
	free(calls->slots);
	*calls = (struct calls){ 0 };
}
