/* SPDX-License-Identifier: MIT */
/*
 * frame_labels.c - see stack.h.
 *
 * A label depends on all files of the recording. So names, files and modules are read once, each combination as a frame
 * of a profile without stacks, and are found again by their texts.
 */
#include "src/sql/functions/stack.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"

struct frame_labels {
	struct profile profile; /* frames sorted by compare_frames() */
	size_t frames_allocated, strings_allocated;
	char **strings;
	size_t n_strings;
};

DEFINE_CLEANUP(struct frame_labels *, frame_labels_free)

static int take_text(struct frame_labels *labels, sqlite3_stmt *row, int column, const char **ret)
{
	const char *text = (const char *)sqlite3_column_text(row, column);
	int r;

	*ret = NULL;
	if (!text)
		return 0;
	r = grow(&labels->strings, labels->n_strings, &labels->strings_allocated, sizeof *labels->strings);
	if (r < 0)
		return r;
	*ret = labels->strings[labels->n_strings] = strdup(text);
	if (!*ret)
		return -ENOMEM;
	labels->n_strings++;
	return 0;
}

static int take_row(struct frame_labels *labels, sqlite3_stmt *row)
{
	struct profile *profile = &labels->profile;
	struct profile_frame frame = { .kind = FRAME_NATIVE, .inlined_into = -1 };
	int r;

	frame_kind_parse((const char *)sqlite3_column_text(row, 0), &frame.kind); /* or keep the default */
	r = take_text(labels, row, 1, &frame.name);
	if (r >= 0)
		r = take_text(labels, row, 2, &frame.file);
	if (r >= 0)
		r = take_text(labels, row, 3, &frame.module);
	if (r >= 0)
		r = grow(&profile->frames, profile->n_frames, &labels->frames_allocated, sizeof *profile->frames);
	if (r < 0)
		return r;
	frame.name = frame.name ?: "";
	profile->frames[profile->n_frames++] = frame;
	return 0;
}

static int load_rows(struct frame_labels *labels, sqlite3 *db)
{
	sqlite3_stmt *row = NULL;
	int code, r = 0;

	code = sqlite3_prepare_v2(db, "SELECT DISTINCT kind, name, file, module FROM named_frame", -1, &row, NULL);
	if (code == SQLITE_OK)
		while (r == 0 && (code = sqlite3_step(row)) == SQLITE_ROW)
			r = take_row(labels, row);
	if (r == 0 && code != SQLITE_DONE)
		r = code == SQLITE_NOMEM ? -ENOMEM : -EIO;
	sqlite3_finalize(row);
	return r;
}

static int compare_texts(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

static int compare_frames(const void *a, const void *b)
{
	const struct profile_frame *left = a, *right = b;
	int order = (int)left->kind - (int)right->kind;

	if (order == 0)
		order = compare_texts(left->name, right->name);
	if (order == 0)
		order = compare_texts(left->file, right->file);
	return order != 0 ? order : compare_texts(left->module, right->module);
}

int frame_labels_load(sqlite3 *db, struct frame_labels **ret)
{
	CLEANUP(frame_labels_freep) struct frame_labels *labels = calloc(1, sizeof *labels);
	int r;

	if (!labels)
		return -ENOMEM;
	r = load_rows(labels, db);
	if (r >= 0)
		r = profile_label_files(&labels->profile);
	if (r < 0)
		return r;
	if (labels->profile.n_frames > 0)
		qsort(labels->profile.frames, labels->profile.n_frames, sizeof *labels->profile.frames, compare_frames);
	*ret = TAKE(labels);
	return 0;
}

void frame_labels_free(struct frame_labels *labels)
{
	if (!labels)
		return;
	for (size_t i = 0; i < labels->n_strings; i++)
		free(labels->strings[i]);
	free(labels->strings);
	free(labels->profile.frames);
	free(labels);
}

/* The same suffix of an equal text. */
static const char *same_end(const char *text, const char *path, const char *label)
{
	return text && path && label ? text + (label - path) : text;
}

void frame_labels_set(const struct frame_labels *labels, struct profile_frame *frame)
{
	const struct profile *profile = &labels->profile;
	const struct profile_frame *known = profile->n_frames > 0 ? bsearch(frame, profile->frames, profile->n_frames,
									    sizeof *frame, compare_frames)
								  : NULL;

	if (!known)
		return;
	frame->file_label = same_end(frame->file, known->file, known->file_label);
	frame->module_label = same_end(frame->module, known->module, known->module_label);
	frame->is_shared_name = known->is_shared_name;
}
