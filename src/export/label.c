/* SPDX-License-Identifier: MIT */
/* label.c - names of frames, and which frames share one.
 *
 * Every frame gets a text of its own first; sorting the frames by all properties
 * of labels brings equal ones together, and one of each run
 * remains. No hash table, and the result does not depend on addresses.
 */
#include "src/export/label.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/util.h"

const char *label_kind_name(enum label_kind kind)
{
	static const char *const names[LABEL_N_KINDS] = {
		[LABEL_PYTHON] = "Python", [LABEL_BUILTIN] = "builtin", [LABEL_NATIVE] = "native",
		[LABEL_KERNEL] = "kernel", [LABEL_TASK] = "task",       [LABEL_WAIT] = "waiting",
	};

	return names[kind];
}

static enum label_kind frame_label_kind(const struct profile_frame *frame)
{
	if (frame->kind == FRAME_KERNEL)
		return LABEL_KERNEL;
	if (frame->kind == FRAME_TASK)
		return LABEL_TASK;
	if (frame->kind == FRAME_WAIT)
		return LABEL_WAIT;
	if (frame->kind == FRAME_UNSAMPLED)
		return LABEL_GROUP;
	if (frame->role == ROLE_BUILTIN)
		return LABEL_BUILTIN;
	return frame->kind == FRAME_PYTHON ? LABEL_PYTHON : LABEL_NATIVE;
}

static void put_name(FILE *out, const char *name, bool one_line)
{
	int32_t c;

	if (!name || !*name)
		name = "[unnamed]";
	while ((c = text_next(&name)) != 0)
		text_put(out, one_line && c == ';' ? ':' : c);
}

/* Python names need their file. Native names get it with a line, or if several functions share the name. */
static void put_place(FILE *out, const struct profile_frame *frame, const struct label_options *options)
{
	bool has_file = frame->file && *frame->file, with_line = options->lines && frame->line > 0 && has_file;
	const char *place = with_line ? frame->file_label ?: frame->file : profile_frame_place(frame);

	if (!place)
		return;
	fputs(" (", out);
	put_name(out, place, options->one_line);
	if (with_line)
		fprintf(out, ":%d", frame->line);
	fputc(')', out);
}

static char *frame_text(const struct profile_frame *frame, const struct label_options *options)
{
	char *text = NULL;
	size_t n_bytes;
	FILE *out;

	out = open_memstream(&text, &n_bytes);
	if (!out)
		return NULL;
	put_name(out, frame->name, options->one_line);
	put_place(out, frame, options);
	if (options->one_line && frame->kind == FRAME_KERNEL)
		fputs("_[k]", out);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

static int compare_strings(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

static int compare_labels(const struct label *a, const struct label *b, bool one_line)
{
	int order = strcmp(a->text, b->text);

	if (order != 0 || one_line)
		return order;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->function != b->function)
		return a->function < b->function ? -1 : 1;
	order = compare_strings(a->module, b->module);
	return order != 0 ? order : compare_strings(a->file, b->file);
}

static int compare_indices(const void *a, const void *b, void *context)
{
	const struct labels *labels = context;
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	int order;

	order = compare_labels(&labels->items[left], &labels->items[right], labels->one_line);
	if (order != 0)
		return order;
	return left < right ? -1 : left > right;
}

int labels_order(const struct labels *labels, uint32_t **ret)
{
	uint32_t *order;

	order = calloc(labels->n_items + 1, sizeof *order);
	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < labels->n_items; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, labels->n_items, sizeof *order, compare_indices, (void *)labels);
	*ret = order;
	return 0;
}

static void widen_lines(struct label *label, int line)
{
	if (line <= 0)
		return;
	if (label->first_line == 0 || line < label->first_line)
		label->first_line = line;
	if (line > label->last_line)
		label->last_line = line;
}

/* One label per frame, in the frames' order. */
static int name_frames(const struct profile *profile, const struct label_options *options, struct labels *labels)
{
	labels->items = calloc(profile->n_frames + 1, sizeof *labels->items);
	labels->of_frame = calloc(profile->n_frames + 1, sizeof *labels->of_frame);
	if (!labels->items || !labels->of_frame)
		return -ENOMEM;
	labels->n_allocated = profile->n_frames + 1;
	for (size_t i = 0; i < profile->n_frames; i++) {
		const struct profile_frame *frame = &profile->frames[i];
		struct label *label = &labels->items[i];

		label->text = frame_text(frame, options);
		if (!label->text)
			return -ENOMEM;
		label->kind = frame_label_kind(frame);
		label->function = frame->function;
		label->file = frame->file;
		label->module = frame->module;
		widen_lines(label, frame->line);
		labels->n_items = i + 1;
	}
	return 0;
}

/* Keep one of several equal labels, sorted. */
static int merge_equal(struct labels *labels)
{
	CLEANUP(freep) uint32_t *order = NULL;
	struct label *merged;
	size_t n = 0;
	int r;

	r = labels_order(labels, &order);
	if (r < 0)
		return r;
	merged = calloc(labels->n_items + 1, sizeof *merged);
	if (!merged)
		return -ENOMEM;
	for (size_t i = 0; i < labels->n_items; i++) {
		struct label *label = &labels->items[order[i]];

		if (n > 0 && compare_labels(&merged[n - 1], label, labels->one_line) == 0) {
			widen_lines(&merged[n - 1], label->first_line);
			free(label->text);
		} else {
			merged[n++] = *label;
		}
		labels->of_frame[order[i]] = (uint32_t)(n - 1);
	}
	free(labels->items);
	labels->items = merged;
	labels->n_items = n;
	return 0;
}

int labels_init(const struct profile *profile, const struct label_options *options, struct labels *ret)
{
	struct labels labels = { .one_line = options->one_line };
	int r;

	r = name_frames(profile, options, &labels);
	if (r >= 0)
		r = merge_equal(&labels);
	if (r < 0) {
		labels_done(&labels);
		return r;
	}
	*ret = labels;
	return 0;
}

void labels_done(struct labels *labels)
{
	for (size_t i = 0; i < labels->n_items; i++)
		free(labels->items[i].text);
	free(labels->items);
	free(labels->of_frame);
	*labels = (struct labels){};
}

static char *group_text(const struct labels *labels, const char *name, int32_t id)
{
	char *text = NULL;
	size_t n_bytes;
	FILE *out;

	out = open_memstream(&text, &n_bytes);
	if (!out)
		return NULL;
	put_name(out, name, labels->one_line);
	if (id >= 0)
		fprintf(out, " (%d)", id);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

int labels_add_group(struct labels *labels, const char *name, int32_t id, uint32_t *ret)
{
	char *text;
	int r;

	r = grow(&labels->items, labels->n_items, &labels->n_allocated, sizeof *labels->items);
	if (r < 0)
		return r;
	text = group_text(labels, name, id);
	if (!text)
		return -ENOMEM;
	*ret = (uint32_t)labels->n_items;
	labels->items[labels->n_items++] = (struct label){ .kind = LABEL_GROUP, .text = text };
	return 0;
}
