/* SPDX-License-Identifier: MIT */
/* names.c - see names.h.
 *
 * One read transaction an update, so that references are of one
 * moment. Stacks refer to earlier stacks and to frames written before them; any
 * other reference is -EBADMSG.
 */
#include "src/top/names.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"

enum statement {
	READ_VERSION,
	READ_MODULES,
	READ_FUNCTIONS,
	READ_FRAMES,
	READ_FRAME,
	READ_STACKS,
	READ_THREADS,
	N_STATEMENTS
};

#define FRAME_COLUMNS "SELECT frame, kind, function, line, module, address, is_eval, inlined_into FROM frame "

static const char *const statements_sql[N_STATEMENTS] = {
	[READ_VERSION] = "PRAGMA data_version",
	[READ_MODULES] = "SELECT module, path FROM module", /* ids follow mappings and are unsorted */
	[READ_FUNCTIONS] = "SELECT function, name, role, file, first_line, module FROM function"
			   " WHERE function > ?1 ORDER BY function",
	[READ_FRAMES] = FRAME_COLUMNS "WHERE frame > ?1 AND frame < ?2 ORDER BY frame",
	[READ_FRAME] = FRAME_COLUMNS "WHERE frame = ?1",
	[READ_STACKS] = "SELECT stack, parent, frame FROM stack WHERE stack > ?1 ORDER BY stack",
	[READ_THREADS] = "SELECT pid, tid, name FROM thread",
};

/* Samples assign ids below this, names assign ids above; each kind is ascending. */
#define FIRST_LATER_FRAME (1LL << 32)

enum { MAX_INLINED = 64, MAX_TRIES_SHIFT = 6, AWAITED_CALLS = 10 };

struct top_names {
	sqlite3 *db;
	sqlite3_stmt *statements[N_STATEMENTS];
	struct profile profile; /* frames and stacks; `strings` stays NULL */
	size_t frames_allocated, stacks_allocated;
	int32_t *frame_functions; /* by frame: index, -1: none */
	size_t frame_functions_allocated;
	struct name_function *functions;
	size_t n_functions, functions_allocated;
	const char **modules;
	size_t n_modules, modules_allocated;
	struct id_map module_index, function_index, frame_index, thread_index;
	const char **thread_names;
	size_t n_threads, threads_allocated;
	char **strings; /* all returned strings; they live as long as this */
	size_t n_strings, strings_allocated;
	struct unnamed *unnamed;
	size_t n_unnamed, unnamed_allocated;
	int64_t last_function, last_frame, last_later_frame;
	int64_t version;    /* data version of the last read */
	uint32_t n_updates; /* number of reads with new data */
	uint32_t n_calls;
};

/* ---- Life ---- */

static int prepare(struct top_names *names)
{
	for (int i = 0; i < N_STATEMENTS; i++) {
		int code = sqlite3_prepare_v3(names->db, statements_sql[i], -1, SQLITE_PREPARE_PERSISTENT,
					      &names->statements[i], NULL);

		if (code != SQLITE_OK)
			return store_errno(names->db, code);
	}
	return 0;
}

int top_names_new(sqlite3 *reader, struct top_names **ret)
{
	struct top_names *names = calloc(1, sizeof *names);
	int r;

	if (!names)
		return -ENOMEM;
	names->db = reader;
	names->last_later_frame = FIRST_LATER_FRAME - 1;
	names->version = -1;
	r = prepare(names);
	if (r < 0) {
		names->db = NULL; /* the caller keeps it */
		top_names_free(names);
		return r;
	}
	*ret = names;
	return 0;
}

void top_names_free(struct top_names *names)
{
	if (!names)
		return;
	for (int i = 0; i < N_STATEMENTS; i++)
		sqlite3_finalize(names->statements[i]);
	sqlite3_close(names->db);
	for (size_t i = 0; i < names->n_strings; i++)
		free(names->strings[i]);
	id_map_done(&names->module_index);
	id_map_done(&names->function_index);
	id_map_done(&names->frame_index);
	id_map_done(&names->thread_index);
	free(names->profile.frames);
	free(names->profile.stacks);
	free(names->frame_functions);
	free(names->functions);
	free(names->modules);
	free(names->thread_names);
	free(names->strings);
	free(names->unnamed);
	free(names);
}

/* ---- Values ---- */

static int store_name(struct top_names *names, char *text, const char **ret)
{
	if (!text)
		return -ENOMEM;
	if (grow(&names->strings, names->n_strings, &names->strings_allocated, sizeof *names->strings) < 0) {
		free(text);
		return -ENOMEM;
	}
	names->strings[names->n_strings++] = text;
	*ret = text;
	return 0;
}

/* NULL if the column is NULL. */
static int get_string(struct top_names *names, sqlite3_stmt *row, int column, const char **ret)
{
	const char *text = (const char *)sqlite3_column_text(row, column);

	if (!text) {
		*ret = NULL;
		return 0;
	}
	return store_name(names, strdup(text), ret);
}

/* Index for an id; -1 for NULL. -EBADMSG: unknown id. */
static int get_index(sqlite3_stmt *row, int column, const struct id_map *map, int32_t *ret)
{
	const struct id_slot *slot;

	if (sqlite3_column_type(row, column) == SQLITE_NULL) {
		*ret = -1;
		return 0;
	}
	slot = id_map_find(map, (uint64_t)sqlite3_column_int64(row, column));
	if (!slot)
		return -EBADMSG;
	*ret = (int32_t)slot->id;
	return 0;
}

static enum frame_role get_role(sqlite3_stmt *row, int column)
{
	return frame_role_parse((const char *)sqlite3_column_text(row, column));
}

static int get_kind(sqlite3_stmt *row, int column, enum frame_kind *ret)
{
	return frame_kind_parse((const char *)sqlite3_column_text(row, column), ret) < 0 ? -EBADMSG : 0;
}

/* ---- Rows ---- */

static int take_module(struct top_names *names, sqlite3_stmt *row)
{
	uint64_t id = (uint64_t)sqlite3_column_int64(row, 0);
	int r;

	if (id_map_find(&names->module_index, id))
		return 0;
	r = grow(&names->modules, names->n_modules, &names->modules_allocated, sizeof *names->modules);
	if (r >= 0)
		r = get_string(names, row, 1, &names->modules[names->n_modules]);
	if (r < 0)
		return r;
	return id_map_add(&names->module_index, id, (uint32_t)names->n_modules++);
}

static int take_function(struct top_names *names, sqlite3_stmt *row)
{
	struct name_function function = { .role = get_role(row, 2), .first_line = sqlite3_column_int(row, 4) };
	int32_t module;
	int r;

	r = grow(&names->functions, names->n_functions, &names->functions_allocated, sizeof *names->functions);
	if (r >= 0)
		r = get_string(names, row, 1, &function.name);
	if (r >= 0)
		r = get_string(names, row, 3, &function.file);
	if (r >= 0)
		r = get_index(row, 5, &names->module_index, &module);
	if (r < 0)
		return r;
	if (!function.name)
		return -EBADMSG;
	function.module = module >= 0 ? names->modules[module] : NULL;
	names->functions[names->n_functions] = function;
	names->last_function = sqlite3_column_int64(row, 0);
	return id_map_add(&names->function_index, (uint64_t)names->last_function, (uint32_t)names->n_functions++);
}

/* Name of a frame without a known function, as in the view named_frame. */
static int name_place(struct top_names *names, struct profile_frame *frame, uint64_t address)
{
	const char *slash;
	char *text = NULL;
	int n;

	if (frame->kind != FRAME_NATIVE) {
		n = asprintf(&text, "[%s]", frame_kind_name(frame->kind));
	} else if (!frame->module) {
		n = asprintf(&text, "[anonymous]");
	} else {
		slash = strrchr(frame->module, '/');
		n = asprintf(&text, "%s+0x%" PRIx64, slash ? slash + 1 : frame->module, address);
	}
	return store_name(names, n < 0 ? NULL : text, &frame->name);
}

/* Chains of inlined functions must end: each refers to an earlier frame. */
static int check_inlined(const struct top_names *names, const struct profile_frame *frame)
{
	int64_t at = frame->inlined_into;

	for (int n = 0; at >= 0; n++) {
		if (n > MAX_INLINED)
			return -EBADMSG;
		at = names->profile.frames[at].inlined_into;
	}
	return 0;
}

static int read_frame(struct top_names *names, sqlite3_stmt *row, struct profile_frame *ret, int32_t *ret_function)
{
	struct profile_frame frame = { .line = sqlite3_column_int(row, 3), .is_eval = sqlite3_column_int(row, 6) };
	int32_t module, into, function;
	int r;

	r = get_kind(row, 1, &frame.kind);
	if (r >= 0)
		r = get_index(row, 2, &names->function_index, &function);
	if (r >= 0)
		r = get_index(row, 4, &names->module_index, &module);
	if (r >= 0)
		r = get_index(row, 7, &names->frame_index, &into);
	if (r < 0)
		return r;
	frame.inlined_into = into;
	if (function >= 0) {
		const struct name_function *known = &names->functions[function];

		frame.function = function + 1;
		frame.name = known->name;
		frame.file = known->file;
		frame.module = known->module;
		frame.role = known->role;
	}
	if (module >= 0)
		frame.module = names->modules[module];
	*ret = frame;
	*ret_function = function;
	return check_inlined(names, &frame);
}

static int wait_for_name(struct top_names *names, int64_t id, size_t index)
{
	if (grow(&names->unnamed, names->n_unnamed, &names->unnamed_allocated, sizeof *names->unnamed) < 0)
		return -ENOMEM;
	names->unnamed[names->n_unnamed++] = (struct unnamed){ .frame = id,
							       .index = (uint32_t)index,
							       .since = names->n_calls };
	return 0;
}

static int take_frame(struct top_names *names, sqlite3_stmt *row)
{
	int64_t id = sqlite3_column_int64(row, 0);
	struct profile *profile = &names->profile;
	struct profile_frame frame;
	int32_t function;
	int r;

	r = grow(&profile->frames, profile->n_frames, &names->frames_allocated, sizeof *profile->frames);
	if (r >= 0)
		r = grow(&names->frame_functions, profile->n_frames, &names->frame_functions_allocated,
			 sizeof *names->frame_functions);
	if (r >= 0)
		r = read_frame(names, row, &frame, &function);
	if (r >= 0 && function < 0)
		r = name_place(names, &frame, (uint64_t)sqlite3_column_int64(row, 5));
	if (r >= 0 && function < 0)
		r = wait_for_name(names, id, profile->n_frames);
	if (r >= 0)
		r = id_map_add(&names->frame_index, (uint64_t)id, (uint32_t)profile->n_frames);
	if (r < 0)
		return r;
	if (id < FIRST_LATER_FRAME)
		names->last_frame = id;
	else
		names->last_later_frame = id;
	names->frame_functions[profile->n_frames] = function;
	profile->frames[profile->n_frames++] = frame;
	return 0;
}

static int take_stack(struct top_names *names, sqlite3_stmt *row)
{
	int64_t id = sqlite3_column_int64(row, 0), parent = sqlite3_column_int64(row, 1);
	struct profile *profile = &names->profile;
	int32_t frame;
	int r;

	r = grow(&profile->stacks, profile->n_stacks, &names->stacks_allocated, sizeof *profile->stacks);
	if (r >= 0)
		r = get_index(row, 2, &names->frame_index, &frame);
	if (r < 0)
		return r;
	if (frame < 0 || id != (int64_t)profile->n_stacks + 1 || parent < 0 || parent >= id || id > INT32_MAX)
		return -EBADMSG;
	profile->stacks[profile->n_stacks++] = (struct profile_stack){ (int32_t)parent - 1, frame };
	return 0;
}

static uint64_t thread_key(pid_t pid, pid_t tid)
{
	return ((uint64_t)(uint32_t)pid << 32 | (uint32_t)tid) + 1;
}

/* Threads are read completely each time, because their names change. */
static int take_thread(struct top_names *names, sqlite3_stmt *row)
{
	uint64_t key = thread_key(sqlite3_column_int(row, 0), sqlite3_column_int(row, 1));
	const char *name = (const char *)sqlite3_column_text(row, 2);
	const struct id_slot *slot = id_map_find(&names->thread_index, key);
	int r;

	if (slot && strcmp(names->thread_names[slot->id], name ? name : "") == 0)
		return 0;
	if (slot)
		return store_name(names, strdup(name ? name : ""), &names->thread_names[slot->id]);
	r = grow(&names->thread_names, names->n_threads, &names->threads_allocated, sizeof *names->thread_names);
	if (r >= 0)
		r = store_name(names, strdup(name ? name : ""), &names->thread_names[names->n_threads]);
	return r < 0 ? r : id_map_add(&names->thread_index, key, (uint32_t)names->n_threads++);
}

/* ---- Incremental reads ---- */

static int read_rows(struct top_names *names, enum statement which,
		     int (*take)(struct top_names *names, sqlite3_stmt *row))
{
	sqlite3_stmt *row = names->statements[which];
	int code = SQLITE_DONE, r = 0;

	while (r >= 0 && (code = sqlite3_step(row)) == SQLITE_ROW)
		r = take(names, row);
	if (r >= 0 && code != SQLITE_DONE)
		r = store_errno(names->db, code);
	sqlite3_reset(row);
	return r;
}

static int read_from(struct top_names *names, enum statement which, int64_t last,
		     int (*take)(struct top_names *names, sqlite3_stmt *row))
{
	sqlite3_bind_int64(names->statements[which], 1, last);
	return read_rows(names, which, take);
}

static int read_frames(struct top_names *names, int64_t last, int64_t end)
{
	sqlite3_bind_int64(names->statements[READ_FRAMES], 2, end);
	return read_from(names, READ_FRAMES, last, take_frame);
}

/* Returns 1 if the frame has a name now. */
static int name_again(struct top_names *names, const struct unnamed *unnamed)
{
	sqlite3_stmt *row = names->statements[READ_FRAME];
	struct profile_frame frame;
	int32_t function = -1;
	int code, r;

	sqlite3_bind_int64(row, 1, unnamed->frame);
	code = sqlite3_step(row);
	if (code == SQLITE_ROW)
		r = read_frame(names, row, &frame, &function);
	else
		r = code == SQLITE_DONE ? -EBADMSG : store_errno(names->db, code);
	sqlite3_reset(row);
	if (r < 0 || function < 0)
		return r;
	names->profile.frames[unnamed->index] = frame;
	names->frame_functions[unnamed->index] = function;
	return 1;
}

/* Check frames that stay unnamed at growing intervals. */
static int name_unnamed(struct top_names *names, bool *ret_renamed, bool *ret_put_off)
{
	size_t n_left = 0;
	int r = 0;

	for (size_t i = 0; i < names->n_unnamed; i++) {
		struct unnamed *unnamed = &names->unnamed[i];
		bool is_due = names->n_updates % (1u << MIN(unnamed->tries / 8, (uint32_t)MAX_TRIES_SHIFT)) == 0;

		if (r >= 0 && is_due) {
			r = name_again(names, unnamed);
			unnamed->tries++;
			if (r > 0) {
				*ret_renamed = true;
				continue;
			}
		}
		*ret_put_off |= !is_due;
		names->unnamed[n_left++] = *unnamed;
	}
	names->n_unnamed = n_left;
	return MIN(r, 0);
}

static int read_all(struct top_names *names, bool *ret_renamed, bool *ret_put_off)
{
	int r;

	r = read_rows(names, READ_THREADS, take_thread);
	if (r >= 0)
		r = read_rows(names, READ_MODULES, take_module);
	if (r >= 0)
		r = read_from(names, READ_FUNCTIONS, names->last_function, take_function);
	if (r >= 0)
		r = read_frames(names, names->last_later_frame, INT64_MAX);
	if (r >= 0)
		r = read_frames(names, names->last_frame, FIRST_LATER_FRAME);
	if (r >= 0)
		r = name_unnamed(names, ret_renamed, ret_put_off);
	if (r >= 0)
		r = read_from(names, READ_STACKS, (int64_t)names->profile.n_stacks, take_stack);
	return r;
}

/* The version changes with each commit of another connection. */
static int read_version(struct top_names *names, int64_t *ret)
{
	sqlite3_stmt *row = names->statements[READ_VERSION];
	int code = sqlite3_step(row), r;

	r = code == SQLITE_ROW ? 0 : store_errno(names->db, code);
	if (r >= 0)
		*ret = sqlite3_column_int64(row, 0);
	sqlite3_reset(row);
	return r;
}

int top_names_update(struct top_names *names, bool *ret_renamed)
{
	bool put_off = false;
	int64_t version = 0;
	int r, code;

	names->n_calls++;
	r = read_version(names, &version);
	if (r < 0 || version == names->version)
		return r;
	code = sqlite3_exec(names->db, "BEGIN", NULL, NULL, NULL);
	if (code != SQLITE_OK)
		return store_errno(names->db, code);
	names->n_updates++;
	r = read_all(names, ret_renamed, &put_off);
	code = sqlite3_exec(names->db, "COMMIT", NULL, NULL, NULL);
	if (r >= 0)
		names->version = put_off ? -1 : version;
	return r < 0 || code == SQLITE_OK ? r : store_errno(names->db, code);
}

const struct profile *top_names_profile(const struct top_names *names)
{
	return &names->profile;
}

bool top_names_are_awaited(const struct top_names *names)
{
	for (size_t i = 0; i < names->n_unnamed; i++)
		if (names->unnamed[i].since + AWAITED_CALLS > names->n_calls)
			return true;
	return false;
}

uint32_t top_names_last_stack(const struct top_names *names)
{
	return (uint32_t)names->profile.n_stacks;
}

const struct name_function *top_names_function(const struct top_names *names, size_t frame)
{
	int32_t function = names->frame_functions[frame];

	return function >= 0 ? &names->functions[function] : NULL;
}

const char *top_names_thread(const struct top_names *names, pid_t pid, pid_t tid)
{
	const struct id_slot *slot = id_map_find(&names->thread_index, thread_key(pid, tid));

	return slot ? names->thread_names[slot->id] : "";
}
