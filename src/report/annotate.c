/* SPDX-License-Identifier: MIT */
/* annotate.c - which files and lines are meant, and which of a file are shown. */
#include "src/report/annotate.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "base/util.h"
#include "src/report/print.h"

enum { DEFAULT_FILES = 3, MAX_TRIED = 100 };

struct annotation {
	const struct profile *profile;
	const struct annotate_options *options;
	struct report_sums sums; /* by line, sorted; selected lines first */
	struct annotated *files;
	size_t n_files, files_allocated;
	size_t n_passed; /* files not shown, because they are missing, with more time than a shown one */
};

static void annotation_done(struct annotation *self)
{
	report_sums_done(&self->sums);
	free(self->files);
}

/* ---- Selection ---- */

static bool has_place(const struct profile_frame *frame)
{
	return frame && frame->file && frame->line > 0;
}

/* Match the whole path, or the part after any slash. */
static bool is_file_meant(const struct glob_list *what, const char *file)
{
	while (file) {
		if (glob_list_match(what, file))
			return true;
		file = strchr(file, '/');
		file = file ? file + 1 : NULL;
	}
	return false;
}

static bool is_meant(const struct glob_list *what, const struct profile_frame *frame)
{
	return has_place(frame) &&
	       (what->n == 0 || glob_list_match_function(what, frame->name) || is_file_meant(what, frame->file));
}

static int compare_places(const void *a, const void *b)
{
	const struct report_sum *left = a, *right = b;

	return order_by_source(left->frame, right->frame);
}

/* A line may have several functions: one match suffices. */
static int pick_lines(struct annotation *self)
{
	struct report_sums *sums = &self->sums;
	CLEANUP(freep) bool *wanted = calloc(sums->n_items + 1, sizeof *wanted);
	size_t n = 0;

	if (!wanted)
		return -ENOMEM;
	for (size_t i = 0; i < sums->n_items; i++)
		if (has_place(sums->items[i].frame))
			sums->items[n++] = sums->items[i];
	sums->n_items = n;
	qsort(sums->items, n, sizeof *sums->items, compare_places);
	for (size_t i = 0; i < self->profile->n_frames; i++) {
		struct report_sum key = { .frame = &self->profile->frames[i] }, *found = NULL;

		if (is_meant(self->options->what, key.frame) && n > 0)
			found = bsearch(&key, sums->items, n, sizeof key, compare_places);
		if (found)
			wanted[found - sums->items] = true;
	}
	sums->n_items = 0;
	for (size_t i = 0; i < n; i++)
		if (wanted[i])
			sums->items[sums->n_items++] = sums->items[i];
	return sums->n_items > 0 ? 0 : -ENODATA;
}

static int compare_files(const void *a, const void *b)
{
	const struct annotated *left = a, *right = b;

	if (left->self != right->self)
		return left->self > right->self ? -1 : 1;
	return strcmp(left->file, right->file);
}

static int list_files(struct annotation *self)
{
	const struct report_sums *sums = &self->sums;

	for (size_t i = 0; i < sums->n_items; i++) {
		const struct report_sum *sum = &sums->items[i];
		struct annotated *last = self->n_files > 0 ? &self->files[self->n_files - 1] : NULL;

		if (!last || strcmp(last->file, sum->frame->file) != 0) {
			if (grow(&self->files, self->n_files, &self->files_allocated, sizeof *self->files) < 0)
				return -ENOMEM;
			last = &self->files[self->n_files++];
			*last = (struct annotated){ .file = sum->frame->file,
						    .label = sum->frame->file_label ?: sum->frame->file,
						    .lines = sum };
		}
		last->n_lines++;
		last->self += sum->self;
	}
	qsort(self->files, self->n_files, sizeof *self->files, compare_files);
	return 0;
}

static size_t count_shown(const struct annotation *self)
{
	size_t max = self->options->max_files ?: self->options->what->n == 0 ? DEFAULT_FILES : self->n_files;

	return MIN(max, self->n_files);
}

/* Without a selection, prefer files that exist: the others have no lines to show. */
static int prefer_existing(struct annotation *self)
{
	size_t n_wanted = count_shown(self), n = MIN(self->n_files, (size_t)MAX_TRIED), n_found = 0, n_missing = 0;

	for (size_t i = 0; i < n && n_found < n_wanted && self->options->what->n == 0; i++) {
		CLEANUP(source_done) struct source source = {};
		const struct annotated file = self->files[i];
		int r = source_find(self->options->roots, file.file, &source);

		if (r == -ENOMEM)
			return r;
		n_missing += r < 0;
		if (r < 0)
			continue;
		memmove(&self->files[n_found + 1], &self->files[n_found], (i - n_found) * sizeof *self->files);
		self->files[n_found++] = file;
		self->n_passed = n_missing;
	}
	self->n_passed -= MIN(self->n_passed, n_wanted - n_found); /* these are shown after the others */
	return 0;
}

/* ---- Lines of a file ---- */

static size_t line_of(const struct annotated *file, size_t i)
{
	return (size_t)file->lines[i].frame->line;
}

/* @next: index of the first line with time after it. */
static bool is_near(const struct annotated *file, size_t next, size_t number, size_t context)
{
	return (next > 0 && number - line_of(file, next - 1) <= context) ||
	       (next < file->n_lines && line_of(file, next) - number <= context);
}

int annotate_each_line(const struct annotated *file, const struct source *source,
		       const struct annotate_options *options,
		       int (*put)(void *data, const struct annotated_line *line), void *data)
{
	size_t next = 0, last = 0;
	int r = 0;

	for (size_t number = 1; source && number <= source->n_lines && r >= 0; number++) {
		struct annotated_line line = { .number = (int)number, .text = source->lines[number - 1] };

		if (next < file->n_lines && line_of(file, next) == number)
			line.sum = &file->lines[next++];
		else if (!options->all_lines && !is_near(file, next, number, options->context))
			continue;
		line.follows_gap = last > 0 && number > last + 1;
		last = number;
		r = put(data, &line);
	}
	/* The source is missing, or has become shorter. */
	for (; next < file->n_lines && r >= 0; next++)
		r = put(data,
			&(struct annotated_line){ .number = (int)line_of(file, next), .sum = &file->lines[next] });
	return r;
}

/* ---- Print ---- */

static int print_file(const struct annotation *self, const struct annotated *file, struct json *json, FILE *out)
{
	CLEANUP(source_done) struct source source = {};
	const struct annotate_options *options = self->options;
	const struct source *found;
	enum annotate_source what = ANNOTATE_FOUND;
	int r;

	r = source_find(options->roots, file->file, &source);
	if (r == -ENOMEM)
		return r;
	found = r < 0 ? NULL : &source;
	if (r < 0)
		what = ANNOTATE_MISSING;
	else if (options->recorded_ns > 0 && source.changed_ns > options->recorded_ns)
		what = ANNOTATE_NEWER;
	if (options->tell)
		options->tell(options->data, file->file, what, r);
	if (json)
		annotate_put_json(file, found, &self->sums.whole, options, json);
	else
		annotate_put(file, found, &self->sums.whole, options, out);
	return 0;
}

static int print_all(const struct annotation *self, FILE *out)
{
	size_t n = count_shown(self);
	int r = 0;

	for (size_t i = 0; i < n && r >= 0; i++) {
		if (i > 0)
			fputc('\n', out);
		r = print_file(self, &self->files[i], NULL, out);
	}
	if (n < self->n_files)
		fprintf(out, "\n(%zu more file%s", self->n_files - n, self->n_files - n == 1 ? "" : "s");
	if (n < self->n_files && self->n_passed > 0)
		fprintf(out, ", %zu of them with more time but without a source: name its folder with --source-root",
			self->n_passed);
	if (n < self->n_files)
		fputs(")\n", out);
	return r;
}

static int print_json(const struct annotation *self, FILE *out)
{
	CLEANUP(to_json_done) struct json json = { 0 };
	size_t n = count_shown(self);
	int r;

	r = print_json_begin(&self->sums.whole, &json);
	if (r < 0)
		return r;
	to_json_put_array(&json, "files");
	for (size_t i = 0; i < n && r >= 0; i++)
		r = print_file(self, &self->files[i], &json, NULL);
	to_json_array_end(&json);
	to_json_put_integer(&json, "left_out", (int64_t)(self->n_files - n));
	to_json_object_end(&json);
	return r < 0 ? r : to_json_finish(&json, out);
}

int report_annotate(const struct profile *profile, const struct annotate_options *options, FILE *out)
{
	CLEANUP(annotation_done) struct annotation self = { .profile = profile, .options = options };
	int r;

	r = report_sums_of_frames(profile, options->show_interpreter, order_by_source, &self.sums);
	if (r >= 0)
		r = pick_lines(&self);
	if (r >= 0)
		r = list_files(&self);
	if (r >= 0)
		r = prefer_existing(&self);
	if (r >= 0)
		r = options->json ? print_json(&self, out) : print_all(&self, out);
	return r < 0 ? r : text_finish(out);
}
