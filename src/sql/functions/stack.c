/* SPDX-License-Identifier: MIT */
/*
 * stack.c - a stack in one text: stack_text(stack) and folded(stack).
 *
 * Its frames are read from the file as a small profile of one stack, so that the shown ones are
 * those of profile_path(), as everywhere. A connection caches some texts until the file changes, for names
 * may come later. It caches no statement: sqlite3_close() would refuse. For many stacks, all
 * are read at once (stack_tree.c), unless that does not support the file.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

#include "base/util.h"
#include "src/sql/functions/stack.h"
#include "src/sql/functions/functions_private.h"
#include "src/sql/text.h"
#include "src/profile/profile.h"
#include "src/store/store.h"

enum {
	N_KEPT = 4096,
	N_SINGLE = 30,          /* read this many stacks one by one */
	MAX_KEPT_BYTES = 16384, /* per text */
	MAX_PLACES = 100000,    /* rows read per stack */
};

/* Rows from the innermost frame outwards, in each from the innermost inlined function outwards. */
static const char places_sql[] =
	"WITH RECURSIVE up(parent, frame, above) AS ("
	"  SELECT parent, frame, 0 FROM stack WHERE stack = ?1"
	"  UNION ALL SELECT stack.parent, stack.frame, above + 1 FROM up JOIN stack ON stack.stack = up.parent"
	"  WHERE above < 50000),"
	" place(above, rank, frame) AS ("
	"  SELECT above, 0, frame FROM up"
	"  UNION ALL SELECT above, rank + 1, inlined_into FROM place JOIN frame USING(frame)"
	"  WHERE inlined_into IS NOT NULL AND rank < 100)"
	" SELECT above, kind, name, role, file, line, module, is_eval FROM place JOIN named_frame USING(frame)"
	" ORDER BY above, rank";

struct kept {
	int64_t stack;
	char *text; /* NULL: free slot */
};

/* One per connection. */
struct stacks {
	sqlite3 *db;
	unsigned seen_version;
	struct kept kept[2][N_KEPT]; /* by form and slot */
	unsigned n_read;             /* stacks read since the file changed */
	struct stack_tree *tree;     /* NULL: not loaded */
	struct frame_labels *labels; /* NULL: not loaded */
};

enum form { FORM_TEXT, FORM_FOLDED };

static void forget(struct stacks *stacks)
{
	stack_tree_free(stacks->tree);
	stacks->tree = NULL;
	frame_labels_free(stacks->labels);
	stacks->labels = NULL;
	stacks->n_read = 0;
	for (size_t form = 0; form < 2; form++)
		for (size_t i = 0; i < N_KEPT; i++) {
			free(stacks->kept[form][i].text);
			stacks->kept[form][i].text = NULL;
		}
}

/* Another connection, or this one, may have written. */
static void forget_if_changed(struct stacks *stacks)
{
	unsigned version = 0;

	sqlite3_file_control(stacks->db, "main", SQLITE_FCNTL_DATA_VERSION, &version);
	version += (unsigned)sqlite3_total_changes(stacks->db);
	if (version != stacks->seen_version)
		forget(stacks);
	stacks->seen_version = version;
}

/* ---- One stack as a profile ---- */

struct reading {
	struct profile profile;
	char **strings;
	size_t n_strings, strings_allocated, frames_allocated, stacks_allocated;
};

static void reading_done(struct reading *reading)
{
	for (size_t i = 0; i < reading->n_strings; i++)
		free(reading->strings[i]);
	free(reading->strings);
	free(reading->profile.frames);
	free(reading->profile.stacks);
}

/* Copy a column's text for the lifetime of the reading; NULL stays NULL. */
static int take_text(struct reading *reading, sqlite3_stmt *row, int column, const char **ret)
{
	const char *text = (const char *)sqlite3_column_text(row, column);
	int r;

	*ret = NULL;
	if (!text)
		return 0;
	r = grow(&reading->strings, reading->n_strings, &reading->strings_allocated, sizeof *reading->strings);
	if (r < 0)
		return r;
	*ret = reading->strings[reading->n_strings] = strdup(text);
	if (!*ret)
		return -ENOMEM;
	reading->n_strings++;
	return 0;
}

static enum frame_kind kind_of(const char *text)
{
	enum frame_kind kind = FRAME_NATIVE;

	frame_kind_parse(text, &kind); /* an unknown kind keeps the default */
	return kind;
}

/* Add the frame to the current stack, or start the next one. */
static int take_stack(struct reading *reading, int64_t above)
{
	struct profile *profile = &reading->profile;
	int32_t frame = (int32_t)profile->n_frames;
	int r;

	if ((size_t)above < profile->n_stacks) {
		profile->frames[frame - 1].inlined_into = frame;
		return 0;
	}
	r = grow(&profile->stacks, profile->n_stacks, &reading->stacks_allocated, sizeof *profile->stacks);
	if (r < 0)
		return r;
	if (profile->n_stacks > 0)
		profile->stacks[profile->n_stacks - 1].parent = (int32_t)profile->n_stacks;
	profile->stacks[profile->n_stacks++] = (struct profile_stack){ .parent = -1, .frame = frame };
	return 0;
}

static int take_row(struct reading *reading, sqlite3_stmt *row)
{
	struct profile *profile = &reading->profile;
	struct profile_frame frame = {
		.kind = kind_of((const char *)sqlite3_column_text(row, 1)),
		.role = frame_role_parse((const char *)sqlite3_column_text(row, 3)),
		.line = sqlite3_column_int(row, 5),
		.is_eval = sqlite3_column_int(row, 7) != 0,
		.inlined_into = -1,
	};
	int r;

	r = grow(&profile->frames, profile->n_frames, &reading->frames_allocated, sizeof *profile->frames);
	if (r == 0)
		r = take_text(reading, row, 2, &frame.name);
	if (r == 0)
		r = take_text(reading, row, 4, &frame.file);
	if (r == 0)
		r = take_text(reading, row, 6, &frame.module);
	if (r == 0)
		r = take_stack(reading, sqlite3_column_int64(row, 0));
	if (r < 0)
		return r;
	frame.name = frame.name ?: "";
	profile->frames[profile->n_frames++] = frame;
	return 0;
}

static int read_stack(struct stacks *stacks, int64_t stack, struct reading *reading)
{
	sqlite3_stmt *places = NULL;
	int code, r = 0;

	code = sqlite3_prepare_v2(stacks->db, places_sql, -1, &places, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_bind_int64(places, 1, stack);
	while (r == 0 && code == SQLITE_OK && (code = sqlite3_step(places)) == SQLITE_ROW) {
		r = reading->profile.n_frames < MAX_PLACES ? take_row(reading, places) : -EBADMSG;
		code = SQLITE_OK;
	}
	if (r == 0 && code != SQLITE_DONE)
		r = -EIO;
	sqlite3_finalize(places);
	return r;
}

/* ---- Text ---- */

/* Write a name on one line; replace ';' if it is the separator. */
static int put_name(struct sql_text *text, const char *name, enum form form)
{
	const utf8proc_uint8_t *at = (const utf8proc_uint8_t *)(name && *name ? name : "[unnamed]");
	int r = 0;

	while (*at && r == 0) {
		utf8proc_int32_t c = 0;
		utf8proc_ssize_t n = utf8proc_iterate(at, (utf8proc_ssize_t)strnlen((const char *)at, 4), &c);

		if (n <= 0 || c == 0xfffe || c == 0xffff)
			r = sql_text_put(text, "\xef\xbf\xbd", 3);
		else if (c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029)
			r = sql_text_put(text, " ", 1);
		else if (c == ';' && form == FORM_FOLDED)
			r = sql_text_put(text, ":", 1);
		else
			r = sql_text_put(text, (const char *)at, (size_t)n);
		at += n > 0 ? n : 1;
	}
	return r;
}

static int put_frame(struct sql_text *text, const struct profile_frame *frame, enum form form)
{
	bool with_line = frame->file && *frame->file && form == FORM_TEXT;
	const char *place = with_line ? frame->file_label ?: frame->file : profile_frame_place(frame);
	char line[32] = "";
	int r;

	r = put_name(text, frame->name, form);
	if (r == 0 && place) {
		if (with_line && frame->line > 0)
			snprintf(line, sizeof line, ":%d", frame->line);
		r = sql_text_put(text, " (", 2);
		if (r == 0)
			r = put_name(text, place, form);
		if (r == 0)
			r = sql_text_put(text, line, strlen(line));
		if (r == 0)
			r = sql_text_put(text, ")", 1);
	}
	if (r == 0 && frame->kind == FRAME_KERNEL && form == FORM_FOLDED)
		r = sql_text_put(text, "_[k]", 4);
	return r;
}

/* Folded: outermost first, separated by ';'. Text: innermost first, one per line. */
static int put_path(struct sql_text *text, const struct profile *profile, const int32_t *path, size_t n, enum form form)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		const struct profile_frame *frame = &profile->frames[path[form == FORM_FOLDED ? i : n - 1 - i]];

		if (i > 0)
			r = sql_text_put(text, form == FORM_FOLDED ? ";" : "\n", 1);
		if (r == 0)
			r = put_frame(text, frame, form);
	}
	return r < 0 ? r : sql_text_put(text, "", 1);
}

static int text_of(const struct profile *profile, int32_t stack, enum form form, char **ret)
{
	CLEANUP(sql_text_done) struct sql_text text = { 0 };
	CLEANUP(freep) int32_t *path = NULL;
	size_t max = 0, n;
	int r;

	for (int32_t at = stack; at >= 0; at = profile->stacks[at].parent)
		for (int64_t frame = profile->stacks[at].frame; frame >= 0; frame = profile->frames[frame].inlined_into)
			max++;
	path = calloc(max, sizeof *path);
	if (!path)
		return -ENOMEM;
	n = profile_path(profile, stack, false, path, max);
	r = put_path(&text, profile, path, n, form);
	if (r == 0)
		*ret = TAKE(text.bytes);
	return r;
}

static int make_text(struct stacks *stacks, int64_t stack, enum form form, char **ret)
{
	CLEANUP(reading_done) struct reading reading = { 0 };
	int32_t at;
	int r;

	if (stacks->n_read++ == N_SINGLE) {
		r = stack_tree_load(stacks->db, &stacks->tree);
		if (r < 0 && r != -EBADMSG)
			return r;
	}
	if (stacks->tree) {
		at = stack_tree_find(stacks->tree, stack);
		return at < 0 ? -ENOENT : text_of(stack_tree_profile(stacks->tree), at, form, ret);
	}
	r = stacks->labels ? 0 : frame_labels_load(stacks->db, &stacks->labels);
	if (r == 0)
		r = read_stack(stacks, stack, &reading);
	for (size_t i = 0; r == 0 && i < reading.profile.n_frames; i++)
		frame_labels_set(stacks->labels, &reading.profile.frames[i]);
	if (r == 0 && reading.profile.n_frames == 0)
		r = -ENOENT;
	return r < 0 ? r : text_of(&reading.profile, 0, form, ret);
}

/* ---- Functions ---- */

/* Takes ownership of text. */
static void cache_text(struct kept *kept, int64_t stack, char *text)
{
	if (strlen(text) > MAX_KEPT_BYTES) {
		free(text);
		return;
	}
	free(kept->text);
	*kept = (struct kept){ stack, text };
}

static void answer(sqlite3_context *context, enum form form, int64_t stack)
{
	struct stacks *stacks = sqlite3_user_data(context);
	struct kept *kept;
	char *text = NULL;
	int r;

	forget_if_changed(stacks);
	kept = &stacks->kept[form][mix64((uint64_t)stack) % N_KEPT];
	if (kept->text && kept->stack == stack) {
		sqlite3_result_text(context, kept->text, -1, SQLITE_TRANSIENT);
		return;
	}
	r = make_text(stacks, stack, form, &text);
	if (r == 0) {
		sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
		cache_text(kept, stack, text);
	} else if (r == -ENOMEM) {
		sqlite3_result_error_nomem(context);
	} else if (r == -EBADMSG) {
		sqlite3_result_error(context, "a stack of this file is deeper than any can be", -1);
	} else if (r != -ENOENT) {
		sqlite3_result_error(context, sqlite3_errmsg(stacks->db), -1);
	}
}

static void call(sqlite3_context *context, sqlite3_value *stack, enum form form)
{
	if (sqlite3_value_type(stack) == SQLITE_NULL || sqlite3_value_int64(stack) == 0)
		sqlite3_result_text(context, "[no stack]", -1, SQLITE_STATIC);
	else
		answer(context, form, sqlite3_value_int64(stack));
}

static void call_text(sqlite3_context *context, int n, sqlite3_value **arguments)
{
	(void)n;
	call(context, arguments[0], FORM_TEXT);
}

static void call_folded(sqlite3_context *context, int n, sqlite3_value **arguments)
{
	(void)n;
	call(context, arguments[0], FORM_FOLDED);
}

const struct sql_function stack_functions[] = {
	{ .name = "stack_text",
	  .doc = "stack_text(stack): its functions with file and line, innermost first, a line each" },
	{ .name = "folded",
	  .doc = "folded(stack): its functions, outermost first, as outer;inner;innermost, as flamegraph "
		 "--format folded names them" },
	{ 0 },
};

static void stacks_free(void *data)
{
	struct stacks *stacks = data;

	forget(stacks);
	free(stacks);
}

int stack_functions_register(sqlite3 *db)
{
	struct stacks *stacks = calloc(1, sizeof *stacks);
	int code;

	if (!stacks)
		return SQLITE_NOMEM;
	stacks->db = db;
	/* Register the function that owns the data first: on failure SQLite frees it. */
	code = sqlite3_create_function_v2(db, "folded", 1, SQLITE_UTF8, stacks, call_folded, NULL, NULL, stacks_free);
	if (code == SQLITE_OK)
		code = sqlite3_create_function_v2(db, "stack_text", 1, SQLITE_UTF8, stacks, call_text, NULL, NULL,
						  NULL);
	return code;
}
