/* SPDX-License-Identifier: MIT */
/*
 * import_pprof.c - pprof's profile.proto, with or without gzip: Go, perf_to_profile, py-spy's and our own.
 *
 * A sample has a value of each type; the importer uses pprof's default: default_sample_type, else the last. A location
 * is a place with its inlined functions, innermost first. Samples have no time.
 * Source: github.com/google/pprof, proto/profile.proto.
 */
#include <errno.h>
#include <stdio.h>

#include "src/import/decimal.h"
#include "src/import/pprof.h"
#include "src/import/unzip.h"

enum { PPROF_PID = 1 };

enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE,
	PROFILE_MAPPING,
	PROFILE_LOCATION,
	PROFILE_FUNCTION,
	PROFILE_STRING,
	PROFILE_TIME = 9,
	PROFILE_DURATION,
	PROFILE_PERIOD = 12,
	PROFILE_DEFAULT = 14
};

static void pprof_done(struct pprof *pprof)
{
	free(pprof->strings);
	free(pprof->functions);
	free(pprof->mappings);
	free(pprof->frames);
	id_map_done(&pprof->function_ids);
	id_map_done(&pprof->mapping_ids);
	id_map_done(&pprof->location_ids);
}

static int damaged(const struct pprof *pprof, const char *what)
{
	return sink_explain(pprof->sink, -EBADMSG, "%s", what);
}

/* ---- Samples ---- */

struct numbers {
	uint64_t *items;
	size_t n, allocated;
};

static int add_number(const struct pprof *pprof, uint64_t number, struct numbers *to)
{
	int r;

	if (to->n == PPROF_MAX_LOCATIONS)
		return sink_explain(pprof->sink, -EBADMSG, "a sample has more than %d locations or values",
				    PPROF_MAX_LOCATIONS);
	r = grow(&to->items, to->n, &to->allocated, sizeof *to->items);
	if (r >= 0)
		to->items[to->n++] = number;
	return r;
}

/* Numbers are packed, or each has its own field. */
static int add_numbers(const struct pprof *pprof, const struct wire_field *field, struct numbers *to)
{
	struct cursor in = wire_within(field->bytes);
	int r = 0;

	if (!field->bytes.at)
		return add_number(pprof, field->value, to);
	while (r >= 0 && cursor_left(&in) > 0 && !in.failed)
		r = add_number(pprof, wire_varint(&in), to);
	return r < 0 ? r : in.failed ? -EBADMSG : 0;
}

struct labels {
	pid_t pid, tid;
	struct piece thread;
};

static bool is_one_of(struct piece text, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (text.n == strlen(words[i]) && memcmp(text.at, words[i], text.n) == 0)
			return true;
	return false;
}

/* Read the labels that profilers use for threads and processes; ignore others. */
static void read_label(const struct pprof *pprof, struct piece message, struct labels *to)
{
	static const char *const threads[] = { "thread", "thread_name", "thread name" };
	static const char *const tids[] = { "tid", "thread_id", "thread id", "thread" };
	static const char *const pids[] = { "pid", "process_id", "process id" };
	struct piece key;
	uint64_t of[5];

	if (!pprof_numbers(message, of, N_ELEMENTS(of)))
		return;
	key = pprof_string(pprof, of[1]);
	if (of[2] != 0 && is_one_of(key, threads, N_ELEMENTS(threads)))
		to->thread = pprof_string(pprof, of[2]);
	if (of[3] == 0 || of[3] > INT32_MAX)
		return;
	if (is_one_of(key, tids, N_ELEMENTS(tids)))
		to->tid = (pid_t)of[3];
	else if (is_one_of(key, pids, N_ELEMENTS(pids)))
		to->pid = (pid_t)of[3];
}

static int put_stack(struct pprof *pprof, const struct numbers *locations, int64_t *ret)
{
	int64_t stack = 0;
	int r = 0;

	for (size_t i = locations->n; i > 0 && r >= 0; i--) {
		const struct id_slot *slot = locations->items[i - 1] != 0
						     ? id_map_find(&pprof->location_ids, locations->items[i - 1])
						     : NULL;

		if (!slot)
			return damaged(pprof, "a sample refers to a missing location");
		r = sink_stack(pprof->sink, stack, pprof->frames[slot->id], &stack);
	}
	*ret = stack;
	return r;
}

static int put_sample(struct pprof *pprof, const struct numbers *locations, const struct numbers *values,
		      struct labels labels)
{
	double value;
	int64_t weight, count = 1, stack = 0;
	int r;

	if (pprof->shown >= values->n)
		return damaged(pprof, "a sample has not a value of each type");
	value = (double)(int64_t)values->items[pprof->shown];
	weight = (int64_t)values->items[pprof->shown];
	if (pprof->unit > 1 && !whole_number(value * pprof->unit, &weight))
		return damaged(pprof, "a value is too large");
	if (pprof->counted < values->n)
		count = (int64_t)values->items[pprof->counted];
	if (weight <= 0 || count < 0) { /* from a difference of two profiles, or of freed memory */
		if (weight < 0)
			sink_skip(pprof->sink);
		return 0;
	}
	if (labels.tid == 0)
		labels.tid = labels.pid;
	r = sink_thread(pprof->sink, labels.pid, labels.tid, labels.thread);
	if (r >= 0)
		r = put_stack(pprof, locations, &stack);
	return r < 0 ? r : sink_total(pprof->sink, labels.pid, labels.tid, stack, (uint64_t)count, (uint64_t)weight);
}

static int read_sample(struct pprof *pprof, struct piece message)
{
	struct cursor in = wire_within(message);
	struct numbers locations = { 0 }, values = { 0 };
	struct labels labels = { .pid = PPROF_PID };
	struct wire_field field;
	int r = 0;

	while (r >= 0 && wire_next(&in, &field)) {
		if (field.number == 1)
			r = add_numbers(pprof, &field, &locations);
		else if (field.number == 2)
			r = add_numbers(pprof, &field, &values);
		else if (field.number == 3 && field.bytes.at)
			read_label(pprof, field.bytes, &labels);
	}
	if (r >= 0)
		r = in.failed ? -EBADMSG : put_sample(pprof, &locations, &values, labels);
	free(locations.items);
	free(values.items);
	return r;
}

/* ---- Profile ---- */

static int read_type(struct pprof *pprof, struct piece message)
{
	uint64_t of[3];

	if (!pprof_numbers(message, of, N_ELEMENTS(of)) || pprof->n_types == PPROF_MAX_VALUES)
		return -EBADMSG;
	pprof->types[pprof->n_types].type = of[1];
	pprof->types[pprof->n_types++].unit = of[2];
	return 0;
}

static int add_string(struct pprof *pprof, struct piece text)
{
	int r = pprof_grow(pprof, &pprof->strings, pprof->n_strings, &pprof->strings_allocated, sizeof *pprof->strings);

	if (r >= 0)
		pprof->strings[pprof->n_strings++] = text;
	return r;
}

static void choose_value(struct pprof *pprof)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = { { "nanoseconds", 1 }, { "microseconds", 1e3 }, { "milliseconds", 1e6 }, { "seconds", 1e9 } };
	struct sink_run *run = sink_run(pprof->sink);
	struct piece type, unit;

	pprof->shown = pprof->n_types - 1;
	pprof->counted = PPROF_MAX_VALUES;
	for (size_t i = 0; i < pprof->n_types; i++) {
		if (pprof->default_type != 0 && pprof->types[i].type == pprof->default_type)
			pprof->shown = i;
		if (is_one_of(pprof_string(pprof, pprof->types[i].type), (const char *const[]){ "samples", "sample" },
			      2))
			pprof->counted = i;
	}
	type = pprof_string(pprof, pprof->types[pprof->shown].type);
	unit = pprof_string(pprof, pprof->types[pprof->shown].unit);
	for (size_t i = 0; i < N_ELEMENTS(units); i++)
		if (is_one_of(unit, &units[i].name, 1))
			pprof->unit = units[i].ns;
	run->counts = pprof->unit == 0;
	snprintf(run->event, sizeof run->event, "%.*s", (int)MIN(type.n, sizeof run->event - 1),
		 type.n > 0 ? type.at : "");
}

/* Read a field of the profile. Fields may come in any order, so there is one pass per kind. */
enum pass { PASS_STRINGS, PASS_FUNCTIONS, PASS_LOCATIONS, PASS_SAMPLES, N_PASSES };

static int read_field(struct pprof *pprof, enum pass pass, const struct wire_field *field)
{
	static const struct {
		enum pass pass;
		unsigned number;
		int (*read)(struct pprof *pprof, struct piece message);
	} readers[] = {
		{ PASS_STRINGS, PROFILE_SAMPLE_TYPE, read_type },
		{ PASS_STRINGS, PROFILE_STRING, add_string },
		{ PASS_FUNCTIONS, PROFILE_FUNCTION, pprof_read_function },
		{ PASS_FUNCTIONS, PROFILE_MAPPING, pprof_read_mapping },
		{ PASS_LOCATIONS, PROFILE_LOCATION, pprof_read_location },
		{ PASS_SAMPLES, PROFILE_SAMPLE, read_sample },
	};
	struct sink_run *run = sink_run(pprof->sink);

	if (pass == PASS_STRINGS && !field->bytes.at) {
		if (field->number == PROFILE_TIME && field->value < INT64_MAX)
			run->started_ns = field->value;
		else if (field->number == PROFILE_DURATION && field->value < INT64_MAX / 4 &&
			 run->started_ns < INT64_MAX / 2)
			run->ended_ns = run->started_ns + field->value;
		else if (field->number == PROFILE_DEFAULT)
			pprof->default_type = field->value;
	}
	for (size_t i = 0; i < N_ELEMENTS(readers); i++)
		if (readers[i].pass == pass && readers[i].number == field->number && field->bytes.at)
			return readers[i].read(pprof, field->bytes);
	return 0;
}

static int read_profile(struct pprof *pprof, struct piece bytes)
{
	struct wire_field field;
	int r = 0;

	for (enum pass pass = PASS_STRINGS; pass < N_PASSES && r >= 0; pass++) {
		struct cursor in = wire_within(bytes);

		if (pass == PASS_SAMPLES) {
			if (pprof->n_types == 0)
				return damaged(pprof, "it does not name its values");
			choose_value(pprof);
		}
		while (r >= 0 && wire_next(&in, &field)) {
			r = read_field(pprof, pass, &field);
			if (r >= 0)
				r = sink_read(pprof->sink, (pass + 1) * bytes.n - cursor_left(&in), N_PASSES * bytes.n);
		}
		if (r >= 0 && in.failed)
			r = -EBADMSG;
	}
	return r == -EBADMSG ? damaged(pprof, "its messages are damaged") : r;
}

static int read_pprof(const struct import_input *input, struct sink *sink)
{
	CLEANUP(pprof_done) struct pprof pprof = { .sink = sink };
	CLEANUP(freep) uint8_t *unpacked = NULL;
	struct piece bytes;
	int r;

	r = unzip_input(input, sink, &unpacked, &bytes);
	return r < 0 ? r : read_profile(&pprof, bytes);
}

/* Compressed, or the first field is a value type of at most two short numbers. */
static bool is_pprof(const uint8_t *bytes, size_t n_bytes)
{
	return is_gzip(bytes, n_bytes) || (n_bytes > 8 && bytes[0] == (PROFILE_SAMPLE_TYPE << 3 | 2) && bytes[1] >= 2 &&
					   bytes[1] <= 12 && bytes[2] == (1 << 3));
}

/* clang-format off */
const struct importer import_pprof = {
	.name = "pprof",
	.summary = "pprof's profile.proto, compressed or not",
	.recognise = is_pprof,
	.read = read_pprof,
};
/* clang-format on */
