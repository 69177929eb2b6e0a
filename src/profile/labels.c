/* SPDX-License-Identifier: MIT */
/*
 * labels.c - displayed names of files.
 *
 * Labels are unique among all files and modules of the recording, not only in the displayed part, so that every output
 * uses the same name for a file. Frames share their strings by function, so each string is processed once.
 */
#include <errno.h>
#include <string.h>

#include "base/file_labels.h"
#include "base/id_map.h"
#include "base/util.h"
#include "src/profile/profile.h"

/* ---- Labels ---- */

struct labelling {
	struct id_map known; /* address of a string -> its number */
	const char **paths, **labels;
	size_t n, allocated;
};

static void labelling_done(struct labelling *labelling)
{
	id_map_done(&labelling->known);
	free(labelling->paths);
	free(labelling->labels);
}

/* @path NULL: there is none. */
static int add_path(struct labelling *labelling, const char *path)
{
	int r;

	if (!path || id_map_find(&labelling->known, (uintptr_t)path))
		return 0;
	if (labelling->n >= UINT32_MAX)
		return -EOVERFLOW;
	r = grow(&labelling->paths, labelling->n, &labelling->allocated, sizeof *labelling->paths);
	if (r >= 0)
		r = id_map_add(&labelling->known, (uintptr_t)path, (uint32_t)labelling->n);
	if (r >= 0)
		labelling->paths[labelling->n++] = path;
	return r;
}

static const char *label_of(const struct labelling *labelling, const char *path)
{
	return path ? labelling->labels[id_map_find(&labelling->known, (uintptr_t)path)->id] : NULL;
}

static int label_frames(struct profile *profile)
{
	CLEANUP(labelling_done) struct labelling labelling = { 0 };
	int r = 0;

	for (size_t i = 0; i < profile->n_frames && r >= 0; i++) {
		r = add_path(&labelling, profile->frames[i].file);
		if (r >= 0)
			r = add_path(&labelling, profile->frames[i].module);
	}
	if (r < 0)
		return r;
	labelling.labels = calloc(labelling.n + 1, sizeof *labelling.labels);
	if (!labelling.labels)
		return -ENOMEM;
	r = file_labels_find(labelling.paths, labelling.n, labelling.labels);
	for (size_t i = 0; i < profile->n_frames && r >= 0; i++) {
		struct profile_frame *frame = &profile->frames[i];

		frame->file_label = label_of(&labelling, frame->file);
		frame->module_label = label_of(&labelling, frame->module);
	}
	return r;
}

void profile_show_full_paths(struct profile *profile)
{
	for (size_t i = 0; i < profile->n_frames; i++) {
		profile->frames[i].file_label = profile->frames[i].file;
		profile->frames[i].module_label = profile->frames[i].module;
	}
}

/* ---- Names shared by several native functions ---- */

static int compare_texts(const char *a, const char *b)
{
	return a == b ? 0 : strcmp(a ? a : "", b ? b : "");
}

static int compare_functions(const void *a, const void *b)
{
	const struct profile_frame *left = *(struct profile_frame *const *)a,
				   *right = *(struct profile_frame *const *)b;
	int order = compare_texts(left->name, right->name);

	if (order == 0)
		order = compare_texts(left->file, right->file);
	return order != 0 ? order : compare_texts(left->module, right->module);
}

/* In the same module, a function with a known file and one without count as the same. */
static bool is_other(const struct profile_frame *a, const struct profile_frame *b)
{
	if (a->file && b->file)
		return strcmp(a->file, b->file) != 0;
	return compare_texts(a->module, b->module) != 0;
}

static void mark(struct profile_frame **sorted, size_t n)
{
	for (size_t first = 0, end; first < n; first = end) {
		bool is_shared = false;

		for (end = first + 1; end < n && strcmp(sorted[first]->name, sorted[end]->name) == 0; end++)
			is_shared |= is_other(sorted[end - 1], sorted[end]);
		for (size_t i = first; i < end; i++)
			sorted[i]->is_shared_name = is_shared;
	}
}

static int mark_shared_names(struct profile *profile)
{
	CLEANUP(freep) struct profile_frame **sorted = calloc(profile->n_frames + 1, sizeof *sorted);
	size_t n = 0;

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_frames; i++)
		if (profile->frames[i].kind == FRAME_NATIVE)
			sorted[n++] = &profile->frames[i];
	qsort(sorted, n, sizeof *sorted, compare_functions);
	mark(sorted, n);
	return 0;
}

int profile_label_files(struct profile *profile)
{
	int r = label_frames(profile);

	return r < 0 ? r : mark_shared_names(profile);
}

/* ---- Shown labels ---- */

const char *profile_frame_place(const struct profile_frame *frame)
{
	const char *file = frame->file && *frame->file ? frame->file_label ?: frame->file : NULL;
	const char *module = frame->module && *frame->module ? frame->module_label ?: frame->module : NULL;

	if (frame->kind == FRAME_PYTHON)
		return file;
	return frame->is_shared_name ? file ?: module : NULL;
}
