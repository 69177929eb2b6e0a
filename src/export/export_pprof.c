/* SPDX-License-Identifier: MIT */
/*
 * export_pprof.c - pprof's format: profile.proto of github.com/google/pprof, compressed.
 *
 * A sample there is a stack with labels and a count: samples with equal thread, stack, verdict,
 * state, GIL and garbage collection are one. Each has two values, the count and the weight. The innermost place
 * comes first. Lines are always there; the reader chooses how to group functions.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/util.h"
#include "src/export/entries.h"
#include "src/export/export.h"
#include "src/export/gzip.h"
#include "src/export/pprof.h"
#include "src/export/stacks.h"

typedef Perftools__Profiles__Sample sample_message;
typedef Perftools__Profiles__Label label_message;
typedef Perftools__Profiles__ValueType value_type;

enum { MAX_VALUES = 2, MAX_LABELS = 8, NO_STACK = 0, REST = 1 };

struct writing {
	struct pprof pprof;
	const struct profile *profile;
	const struct export_options *options;
	struct entries entries;
	struct stacks stacks;
	uint64_t *locations;
	size_t locations_allocated;
	size_t n_values; /* 1: no weights */
};

static void writing_done(struct writing *writing)
{
	pprof_done(&writing->pprof);
	entries_done(&writing->entries);
	stacks_done(&writing->stacks);
	free(writing->locations);
}

/* ---- Stacks ---- */

static int put_locations(struct writing *writing, int32_t stack, size_t *ret)
{
	struct stacks *stacks = &writing->stacks;
	const char *nowhere;
	size_t n = 0;
	int r;

	r = stacks_read(stacks, stack);
	if (r < 0)
		return r;
	r = grow(&writing->locations, stacks->path.n + 1, &writing->locations_allocated, sizeof *writing->locations);
	if (r < 0)
		return r;
	nowhere = stacks_nowhere(stacks);
	if (nowhere) {
		*ret = 1;
		return pprof_nowhere(&writing->pprof, nowhere, stacks->is_rest ? REST : NO_STACK,
				     &writing->locations[0]);
	}
	for (size_t at = stacks->path.n; r == 0 && at > 0;) {
		unsigned n_inlined = stacks_count_inlined(stacks, at - 1);

		r = pprof_location(&writing->pprof, stacks->path.frames[at - 1], n_inlined, &writing->locations[n++]);
		at -= n_inlined;
	}
	*ret = n;
	return r;
}

/* ---- Labels ---- */

struct label_list {
	struct pprof *pprof;
	label_message labels[MAX_LABELS], *list[MAX_LABELS];
	size_t n;
	int error;
};

static label_message *add_label(struct label_list *list, const char *key)
{
	label_message *label = list->list[list->n] = &list->labels[list->n];
	int r;

	list->n++;
	*label = (label_message)PERFTOOLS__PROFILES__LABEL__INIT;
	r = pprof_string(list->pprof, key, &label->key);
	if (r < 0)
		list->error = r;
	return label;
}

static void label_number(struct label_list *list, const char *key, int64_t number)
{
	add_label(list, key)->num = number;
}

static void label_text(struct label_list *list, const char *key, const char *text)
{
	int r;

	if (!text || !*text)
		return;
	r = pprof_string(list->pprof, text, &add_label(list, key)->str);
	if (r < 0)
		list->error = r;
}

static const char *answer_name(enum answer answer)
{
	return answer == ANSWER_UNKNOWN ? NULL : answer == ANSWER_YES ? "yes" : "no";
}

static void label_entry(struct label_list *list, const struct entry *entry)
{
	label_number(list, "pid", entry->pid);
	label_number(list, "tid", entry->tid);
	label_text(list, "process", entry->thread ? entry->thread->process : NULL);
	label_text(list, "thread", entry->thread ? entry->thread->name : NULL);
	if (!entry->has_words)
		return;
	label_text(list, "verdict", verdict_name(entry->verdict));
	label_text(list, "state", thread_state_name(entry->state));
	label_text(list, "gil", answer_name(entry->gil));
	label_text(list, "gc", answer_name(entry->gc));
}

static int put_entry(struct writing *writing, const struct entry *entry)
{
	struct label_list labels = { .pprof = &writing->pprof };
	int64_t values[MAX_VALUES] = { (int64_t)entry->samples, (int64_t)entry->weight };
	sample_message sample = PERFTOOLS__PROFILES__SAMPLE__INIT, *samples = &sample;
	int r;

	r = put_locations(writing, entry->stack, &sample.n_location_id);
	if (r < 0)
		return r;
	label_entry(&labels, entry);
	if (labels.error < 0)
		return labels.error;
	sample.location_id = writing->locations;
	sample.value = values;
	sample.n_value = writing->n_values;
	sample.label = labels.list;
	sample.n_label = labels.n;
	return pprof_put(&writing->pprof, &PPROF_PIECE(.n_sample = 1, .sample = &samples));
}

/* ---- Profile ---- */

static int value_type_of(struct pprof *pprof, const char *type, const char *unit, value_type *ret)
{
	int r;

	*ret = (value_type)PERFTOOLS__PROFILES__VALUE_TYPE__INIT;
	r = pprof_string(pprof, type, &ret->type);
	return r < 0 ? r : pprof_string(pprof, unit, &ret->unit);
}

static int put_head(struct writing *writing)
{
	const struct profile_run *run = &writing->profile->run;
	const char *title = writing->options->title ?: run->command;
	const char *unit = writing->profile->unit;
	value_type samples, weight, *types[] = { &samples, &weight };
	pprof_piece head = PPROF_PIECE(.n_sample_type = writing->n_values);
	int64_t comment = 0;
	int r;

	r = value_type_of(&writing->pprof, "samples", "count", &samples);
	if (r == 0 && writing->n_values == MAX_VALUES)
		r = value_type_of(&writing->pprof, unit ?: run->mode ?: "cpu", unit ? "count" : "nanoseconds", &weight);
	if (r == 0 && title)
		r = pprof_string(&writing->pprof, title, &comment);
	if (r < 0)
		return r;
	head.sample_type = types;
	head.default_sample_type = types[writing->n_values - 1]->type;
	head.period_type = types[writing->n_values - 1];
	head.period = run->hz > 0 && !unit && writing->n_values == MAX_VALUES ? (int64_t)(1e9 / run->hz) : 0;
	head.time_nanos = (int64_t)run->started_ns;
	head.duration_nanos = run->ended_ns > run->started_ns ? (int64_t)(run->ended_ns - run->started_ns) : 0;
	head.comment = &comment;
	head.n_comment = comment != 0;
	return pprof_put(&writing->pprof, &head);
}

static int write_pieces(struct writing *writing)
{
	int r;

	r = stacks_init(writing->profile, writing->options, &writing->stacks);
	if (r == 0)
		r = entries_init(writing->profile, &writing->entries);
	if (r == 0)
		r = put_head(writing);
	for (size_t i = 0; r == 0 && i < writing->entries.n; i++)
		r = put_entry(writing, &writing->entries.items[i]);
	return r;
}

static int write_pprof(const struct profile *profile, const struct export_options *options, FILE *out)
{
	CLEANUP(writing_done)
	struct writing writing = { .profile = profile,
				   .options = options,
				   .n_values = profile_has_weights(profile) ? MAX_VALUES : 1 };
	FILE *compressed;
	int r;

	r = gzip_open(out, &compressed);
	if (r < 0)
		return r;
	r = pprof_open(profile, compressed, &writing.pprof);
	if (r == 0)
		r = write_pieces(&writing);
	if (fclose(compressed) != 0 && r == 0)
		r = -EIO;
	return r < 0 ? r : text_finish(out);
}

const struct exporter export_pprof = {
	.name = "pprof",
	.endings = ".pb.gz .pprof",
	.summary = "for pprof and compatible readers: lines, inlined functions, build ids, labels",
	.needs_samples = true,
	.write = write_pprof,
};
