/* SPDX-License-Identifier: MIT */
/*
 * profile_rows.c - one row of each table of a recording, into the profile.
 *
 * Modules and functions are joined to frames here, by index, which is quicker
 * than a join in SQL and keeps one copy of each string. A frame's name is the
 * one that the view named_frame shows.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "src/store/profile_private.h"

/* ---- From ids to indices ---- */

/*
 * Our writer assigns dense ids: then an id's index is its distance from the first. Search for other ids; rows are
 * sorted by id.
 */
int row_index_add(struct row_index *map, int64_t id)
{
	int r;

	if (map->n >= INT32_MAX || (map->n > 0 && id <= map->ids[map->n - 1]))
		return -EBADMSG;
	r = grow(&map->ids, map->n, &map->allocated, sizeof *map->ids);
	if (r < 0)
		return r;
	map->ids[map->n++] = id;
	return 0;
}

int row_index_find(const struct row_index *map, int64_t id, int32_t *ret)
{
	size_t low = 0, high = map->n;
	uint64_t guess;

	if (map->n == 0 || id < map->ids[0])
		return -EBADMSG;
	guess = (uint64_t)id - (uint64_t)map->ids[0];
	if (guess < map->n && map->ids[guess] == id) {
		*ret = (int32_t)guess;
		return 0;
	}
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (map->ids[middle] < id)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == map->n || map->ids[low] != id)
		return -EBADMSG;
	*ret = (int32_t)low;
	return 0;
}

/* ---- Values of the current row ---- */

bool row_is_null(const struct loader *loader, int column)
{
	return sqlite3_column_type(loader->row, column) == SQLITE_NULL;
}

int row_integer(const struct loader *loader, int column, int64_t least, int64_t most, int64_t *ret)
{
	int64_t value;

	value = row_is_null(loader, column) ? least : sqlite3_column_int64(loader->row, column);
	if (value < least || value > most)
		return -EBADMSG;
	*ret = value;
	return 0;
}

int row_int32(const struct loader *loader, int column, int32_t *ret)
{
	int64_t value;
	int r;

	r = row_integer(loader, column, 0, INT32_MAX, &value);
	if (r < 0)
		return r;
	*ret = (int32_t)value;
	return 0;
}

int row_string(const struct loader *loader, int column, const char **ret)
{
	const char *text;

	if (row_is_null(loader, column)) {
		*ret = NULL;
		return 0;
	}
	text = (const char *)sqlite3_column_text(loader->row, column);
	if (!text)
		return -ENOMEM;
	return profile_add_string(loader->profile, text, strlen(text), ret);
}

int row_reference(const struct loader *loader, int column, const struct row_index *map, int32_t *ret)
{
	if (row_is_null(loader, column)) {
		*ret = -1;
		return 0;
	}
	return row_index_find(map, sqlite3_column_int64(loader->row, column), ret);
}

int row_time(const struct loader *loader, int column, uint64_t *ret_ns)
{
	double seconds = sqlite3_column_double(loader->row, column);

	if (!(seconds >= 0 && seconds < (double)INT64_MAX / 1e9))
		return -EBADMSG;
	*ret_ns = (uint64_t)(seconds * 1e9);
	return 0;
}

/* A reference to a row that may come later: return -1 and note it. */
static int get_forward(const struct loader *loader, int column, const struct row_index *map, size_t from,
		       struct forwards *later, int32_t *ret)
{
	int r;

	r = row_reference(loader, column, map, ret);
	if (r != -EBADMSG)
		return r;
	r = grow(&later->items, later->n, &later->allocated, sizeof *later->items);
	if (r < 0)
		return r;
	later->items[later->n++] = (struct forward){
		.from = (int32_t)from,
		.to_id = sqlite3_column_int64(loader->row, column),
	};
	*ret = -1;
	return 0;
}

/* Parse an enumeration stored as a word. */
static int get_kind(const struct loader *loader, int column, enum frame_kind *ret)
{
	const char *text = (const char *)sqlite3_column_text(loader->row, column);

	return frame_kind_parse(text, ret) < 0 ? -EBADMSG : 0;
}

/* ---- One row of each table ---- */

int load_module(struct loader *loader)
{
	int r;

	r = grow(&loader->module_rows, loader->modules.n, &loader->module_room, sizeof *loader->module_rows);
	if (r < 0)
		return r;
	r = row_string(loader, 1, &loader->module_rows[loader->modules.n].path);
	if (r == 0)
		r = row_string(loader, 2, &loader->module_rows[loader->modules.n].build_id);
	if (r < 0)
		return r;
	return row_index_add(&loader->modules, sqlite3_column_int64(loader->row, 0));
}

int load_function(struct loader *loader)
{
	struct function *function;
	int64_t first_line = 0;
	int r;

	r = grow(&loader->function_rows, loader->functions.n, &loader->function_room, sizeof *loader->function_rows);
	if (r < 0)
		return r;
	function = &loader->function_rows[loader->functions.n];
	r = row_string(loader, 1, &function->name);
	if (r == 0)
		r = row_string(loader, 2, &function->role);
	if (r == 0)
		r = row_string(loader, 3, &function->file);
	if (r == 0)
		r = row_reference(loader, 4, &loader->modules, &function->module);
	if (r == 0)
		r = row_string(loader, 5, &function->symbol);
	if (r == 0)
		r = row_integer(loader, 6, INT32_MIN, INT32_MAX, &first_line);
	if (r < 0)
		return r;
	/* Code objects may contain any values. */
	function->first_line = (int32_t)MAX(first_line, 0);
	if (!function->name)
		return -EBADMSG;
	return row_index_add(&loader->functions, sqlite3_column_int64(loader->row, 0));
}

/* Name of a frame without a known function, as in the view named_frame. */
static int name_place(struct loader *loader, const struct profile_frame *frame, uint64_t address, const char **ret)
{
	CLEANUP(freep) char *text = NULL;
	const char *slash;
	int n;

	if (frame->kind != FRAME_NATIVE) {
		n = asprintf(&text, "[%s]", frame_kind_name(frame->kind));
	} else if (!frame->module) {
		n = asprintf(&text, "[anonymous]");
	} else {
		slash = strrchr(frame->module, '/');
		n = asprintf(&text, "%s+0x%" PRIx64, slash ? slash + 1 : frame->module, address);
	}
	if (n < 0)
		return -ENOMEM;
	return profile_add_string(loader->profile, text, (size_t)n, ret);
}

static void set_module(const struct loader *loader, struct profile_frame *frame, int32_t module)
{
	if (module < 0)
		return;
	frame->module = loader->module_rows[module].path;
	frame->build_id = loader->module_rows[module].build_id;
}

static int load_frame_function(struct loader *loader, struct profile_frame *frame)
{
	const struct function *function;
	int32_t index;
	int r;

	r = row_reference(loader, 2, &loader->functions, &index);
	if (r < 0)
		return r;
	if (index < 0)
		return 0;
	function = &loader->function_rows[index];
	frame->function = loader->functions.ids[index];
	frame->name = function->name;
	frame->role = frame_role_parse(function->role);
	frame->file = function->file;
	frame->symbol = function->symbol;
	frame->first_line = function->first_line;
	set_module(loader, frame, function->module);
	return 0;
}

int load_frame(struct loader *loader)
{
	struct profile *profile = loader->profile;
	struct profile_frame frame = { .inlined_into = -1 };
	int32_t module, inlined_into, is_eval = 0;
	int r;

	r = grow(&profile->frames, profile->n_frames, &loader->frame_room, sizeof *profile->frames);
	if (r == 0)
		r = get_kind(loader, 1, &frame.kind);
	if (r == 0)
		r = load_frame_function(loader, &frame);
	if (r == 0)
		r = row_int32(loader, 3, &frame.line);
	if (r == 0)
		r = row_reference(loader, 4, &loader->modules, &module);
	if (r == 0)
		r = row_int32(loader, 6, &is_eval);
	if (r == 0)
		r = get_forward(loader, 7, &loader->frames, profile->n_frames, &loader->inlined, &inlined_into);
	if (r < 0)
		return r;
	frame.is_eval = is_eval != 0;
	frame.inlined_into = inlined_into;
	set_module(loader, &frame, module);
	frame.has_address = frame.kind == FRAME_NATIVE && !row_is_null(loader, 5);
	frame.address = (uint64_t)sqlite3_column_int64(loader->row, 5);
	if (!frame.name)
		r = name_place(loader, &frame, frame.address, &frame.name);
	if (r < 0)
		return r;
	profile->frames[profile->n_frames++] = frame;
	return row_index_add(&loader->frames, sqlite3_column_int64(loader->row, 0));
}

int load_stack(struct loader *loader)
{
	struct profile *profile = loader->profile;
	struct profile_stack stack;
	int r;

	r = grow(&profile->stacks, profile->n_stacks, &loader->stack_room, sizeof *profile->stacks);
	if (r == 0)
		r = get_forward(loader, 1, &loader->stacks, profile->n_stacks, &loader->parents, &stack.parent);
	if (r == 0)
		r = row_reference(loader, 2, &loader->frames, &stack.frame);
	if (r < 0)
		return r;
	if (stack.frame < 0)
		return -EBADMSG;
	profile->stacks[profile->n_stacks++] = stack;
	return row_index_add(&loader->stacks, sqlite3_column_int64(loader->row, 0));
}

/* Rows come in the order of their labels. */
static int load_label(struct loader *loader, int32_t *ret)
{
	struct profile *profile = loader->profile;
	const char *text = (const char *)sqlite3_column_text(loader->row, 5);
	int r;

	*ret = 0;
	if (!text)
		return sqlite3_column_type(loader->row, 5) == SQLITE_NULL ? 0 : -ENOMEM;
	if (profile->n_labels > 0 && strcmp(profile->labels[profile->n_labels - 1], text) == 0) {
		*ret = (int32_t)profile->n_labels;
		return 0;
	}
	if (profile->n_labels == INT32_MAX)
		return -EBADMSG;
	r = grow(&profile->labels, profile->n_labels, &profile->labels_allocated, sizeof *profile->labels);
	if (r == 0)
		r = profile_add_string(profile, text, strlen(text), &profile->labels[profile->n_labels]);
	if (r == 0)
		*ret = (int32_t)++profile->n_labels;
	return r;
}

int load_total(struct loader *loader)
{
	struct profile *profile = loader->profile;
	struct profile_total total;
	int64_t samples = 0, weight = 0;
	int r;

	r = grow(&profile->totals, profile->n_totals, &loader->total_room, sizeof *profile->totals);
	if (r == 0)
		r = row_int32(loader, 0, &total.pid);
	if (r == 0)
		r = row_int32(loader, 1, &total.tid);
	total.stack = -1;
	total.label = 0;
	if (r == 0 && sqlite3_column_count(loader->row) > 5)
		r = load_label(loader, &total.label);
	if (r == 0 && sqlite3_column_int64(loader->row, 2) != 0)
		r = row_reference(loader, 2, &loader->stacks, &total.stack);
	if (r == 0)
		r = row_integer(loader, 3, 0, loader->samples_left, &samples);
	if (r == 0)
		r = row_integer(loader, 4, 0, loader->weight_left, &weight);
	if (r < 0)
		return r;
	loader->samples_left -= samples;
	loader->weight_left -= weight;
	total.samples = (uint64_t)samples;
	total.weight = (uint64_t)weight;
	profile->totals[profile->n_totals++] = total;
	return 0;
}

int load_thread(struct loader *loader)
{
	struct profile *profile = loader->profile;
	struct profile_thread thread;
	int r;

	r = grow(&profile->threads, profile->n_threads, &loader->thread_room, sizeof *profile->threads);
	if (r == 0)
		r = row_int32(loader, 0, &thread.pid);
	if (r == 0)
		r = row_int32(loader, 1, &thread.tid);
	if (r == 0)
		r = row_string(loader, 2, &thread.name);
	if (r == 0)
		r = row_string(loader, 3, &thread.process);
	if (r < 0)
		return r;
	thread.name = thread.name ?: "";
	thread.process = thread.process ?: "";
	profile->threads[profile->n_threads++] = thread;
	return 0;
}

int load_run(struct loader *loader)
{
	struct profile_run *run = &loader->profile->run;
	int r;

	r = row_time(loader, 0, &run->started_ns);
	if (r == 0)
		r = row_time(loader, 1, &run->ended_ns);
	if (r == 0)
		r = row_int32(loader, 2, &run->pid);
	if (r == 0)
		r = row_string(loader, 3, &run->command);
	if (r == 0)
		r = row_string(loader, 4, &run->mode);
	if (r == 0)
		r = row_string(loader, 5, &run->python);
	if (r == 0)
		r = row_string(loader, 6, &run->probing);
	run->hz = sqlite3_column_double(loader->row, 7);
	if (r == 0)
		r = row_string(loader, 8, &run->host);
	return r;
}

int load_event(struct loader *loader)
{
	return row_string(loader, 0, &loader->profile->unit);
}
