/* SPDX-License-Identifier: MIT */
/* feed_stacks.c - the functions and stacks of a recording, and the hashes of their contents; see feed.h.
 *
 * A hash takes a microsecond, so each content is hashed once: a function for all frames in it, and a path of functions for
 * all stacks that differ in lines alone. Rows of stacks are read in groups: a stack, its callers and the next stacks
 * have numbers that are near to each other.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/fleet/feed.h"

enum {
	MAX_DEPTH = 8192,  /* of a stack */
	MAX_INLINED = 100, /* as the view stack_path has it */
};

/* All values are numbers: a function of a kind that is not listed is read for each of its frames. */
static const char stack_sql[] = "SELECT stack, parent, frame FROM main.stack WHERE stack BETWEEN ?1 AND ?2";
enum { S_STACK, S_PARENT, S_FRAME };
static const char frame_sql[] =
	"SELECT frame, line, is_eval, coalesce(inlined_into, 0), coalesce(function, 0), coalesce(module, -1),"
	" CASE kind WHEN 'python' THEN 1 WHEN 'native' THEN 2 WHEN 'kernel' THEN 3 ELSE 0 END"
	" FROM main.frame WHERE frame BETWEEN ?1 AND ?2";
enum { F_FRAME, F_LINE, F_IS_EVAL, F_INLINED, F_FUNCTION, F_MODULE, F_KIND };
static const char function_sql[] =
	"SELECT frame.kind, frame.address, function.name, function.role, function.file, function.first_line,"
	" module.path, module.build_id FROM main.frame LEFT JOIN main.function USING(function)"
	" LEFT JOIN main.module ON module.module = coalesce(frame.module, function.module) WHERE frame = ?1";
enum { N_KIND, N_ADDRESS, N_NAME, N_ROLE, N_FILE, N_FIRST_LINE, N_PATH, N_BUILD_ID };

/* ---- Release ---- */

void feed_end_stacks(struct feed *feed)
{
	sqlite3_finalize(TAKE(feed->stack_rows.statement));
	sqlite3_finalize(TAKE(feed->frame_rows.statement));
	sqlite3_finalize(TAKE(feed->function));
}

static void function_done(struct feed_function *function)
{
	free(function->kind);
	free(function->role);
	free(function->name);
	free(function->file);
	free(function->module);
	free(function->build_id);
}

void feed_stacks_done(struct feed *feed)
{
	struct id_map *maps[] = { &feed->stacks_by_id,   &feed->stacks_by_hash, &feed->stacks_by_step,
				  &feed->frames_by_id,   &feed->lists,          &feed->functions_by_hash,
				  &feed->functions_by_id };

	for (size_t i = 0; i < feed->n_functions; i++)
		function_done(&feed->functions[i]);
	free(feed->functions);
	free(feed->seen);
	free(feed->stacks);
	free(feed->frames);
	free(feed->parts);
	free(feed->links);
	free(feed->nameless);
	for (size_t i = 0; i < N_ELEMENTS(maps); i++)
		id_map_done(maps[i]);
}

/* ---- Rows ---- */

static int load_group(const struct feed *feed, struct feed_rows *rows, struct feed_group *group, int64_t first)
{
	int n_columns = sqlite3_column_count(rows->statement), code;

	group->n = 0;
	code = sqlite3_bind_int64(rows->statement, 1, first);
	if (code == SQLITE_OK)
		code = sqlite3_bind_int64(rows->statement, 2, first + FEED_GROUP - 1);
	if (code != SQLITE_OK)
		return store_errno(feed->db, code);
	while ((code = sqlite3_step(rows->statement)) == SQLITE_ROW && group->n < FEED_GROUP) {
		for (int i = 0; i < n_columns; i++)
			group->rows[group->n][i] = sqlite3_column_int64(rows->statement, i);
		group->n++;
	}
	sqlite3_reset(rows->statement);
	return code == SQLITE_DONE || code == SQLITE_ROW ? 0 : store_errno(feed->db, code);
}

static const int64_t *find_in(const struct feed_group *group, int64_t number)
{
	for (size_t i = 0; i < group->n; i++)
		if (group->rows[i][0] == number)
			return group->rows[i];
	return NULL;
}

/*
 * The row of a positive number; *ret is valid until the next call. A group without it is read again: the recorder may
 * have added it since.
 */
static int find_row(const struct feed *feed, struct feed_rows *rows, int64_t number, const int64_t **ret)
{
	struct feed_group *group = &rows->groups[number / FEED_GROUP % FEED_GROUPS];
	int r = 0;

	*ret = find_in(group, number);
	if (!*ret) {
		r = load_group(feed, rows, group, number - number % FEED_GROUP);
		*ret = find_in(group, number);
	}
	return r < 0 ? r : *ret ? 0 : -EBADMSG;
}

/* ---- Functions ---- */

static void add_part(struct fleet_bytes *bytes, const char *text, int *r)
{
	if (*r == 0)
		*r = fleet_append(bytes, text, strlen(text) + 1);
}

/* The number is printed: all hosts hash the same bytes, whatever their order. */
static int hash_function(struct feed_function *function)
{
	struct fleet_bytes bytes = { 0 };
	char line[16];
	int r = 0;

	snprintf(line, sizeof line, "%u", function->line);
	add_part(&bytes, function->kind, &r);
	add_part(&bytes, function->role, &r);
	add_part(&bytes, function->name, &r);
	add_part(&bytes, function->file, &r);
	add_part(&bytes, line, &r);
	add_part(&bytes, function->module, &r);
	add_part(&bytes, function->build_id, &r);
	if (r == 0)
		function->hash = fleet_hash(bytes.at, bytes.n);
	free(bytes.at);
	return r;
}

/* The name of a frame without a function, as the view named_frame has it. */
static char *make_name(sqlite3_stmt *row)
{
	const char *kind = (const char *)sqlite3_column_text(row, N_KIND);
	const char *path = (const char *)sqlite3_column_text(row, N_PATH);
	const char *slash = path ? strrchr(path, '/') : NULL;
	char *name = NULL;
	int n;

	if (!kind || strcmp(kind, "native") != 0)
		n = asprintf(&name, "[%s]", kind ? kind : "");
	else if (!path)
		n = asprintf(&name, "[anonymous]");
	else
		n = asprintf(&name, "%s+0x%llx", slash ? slash + 1 : path,
			     (unsigned long long)sqlite3_column_int64(row, N_ADDRESS));
	return n < 0 ? NULL : name;
}

static int take_function(sqlite3_stmt *row, bool is_eval, struct feed_function *ret, bool *ret_is_named)
{
	bool is_named = sqlite3_column_type(row, N_NAME) != SQLITE_NULL;

	ret->kind = feed_copy_text(row, N_KIND);
	ret->role = is_eval ? strdup("eval") : feed_copy_text(row, N_ROLE);
	ret->name = is_named ? feed_copy_text(row, N_NAME) : make_name(row);
	ret->file = feed_copy_text(row, N_FILE);
	ret->module = feed_copy_text(row, N_PATH);
	ret->build_id = feed_copy_text(row, N_BUILD_ID);
	ret->line = (uint32_t)sqlite3_column_int64(row, N_FIRST_LINE);
	if (!ret->kind || !ret->role || !ret->name || !ret->file || !ret->module || !ret->build_id)
		return -ENOMEM;
	*ret_is_named = is_named;
	return hash_function(ret);
}

/* @is_eval: its place is the interpreter's loop; then all functions that are inlined there are. */
static int read_function(const struct feed *feed, int64_t frame, bool is_eval, struct feed_function *ret,
			 bool *ret_is_named)
{
	sqlite3_stmt *row = feed->function;
	int code, r;

	code = sqlite3_bind_int64(row, 1, frame);
	if (code == SQLITE_OK)
		code = sqlite3_step(row);
	if (code == SQLITE_ROW)
		r = take_function(row, is_eval, ret, ret_is_named);
	else
		r = code == SQLITE_DONE ? -EBADMSG : store_errno(feed->db, code);
	sqlite3_reset(row); /* otherwise the recorder's log cannot begin again until the next function is read */
	return r;
}

static int add_function(struct feed *feed, int64_t frame, bool is_eval, uint32_t *ret, bool *ret_is_named)
{
	struct feed_function function = { 0 };
	struct id_slot *slot;
	int r = read_function(feed, frame, is_eval, &function, ret_is_named);

	if (r == 0 && (slot = id_map_find(&feed->functions_by_hash, fleet_id(&function.hash)))) {
		*ret = slot->id;
		function_done(&function);
		return 0;
	}
	if (r == 0)
		r = grow(&feed->functions, feed->n_functions, &feed->functions_room, sizeof *feed->functions);
	if (r == 0)
		r = id_map_add(&feed->functions_by_hash, fleet_id(&function.hash), (uint32_t)feed->n_functions);
	if (r < 0) {
		function_done(&function);
		return r;
	}
	*ret = (uint32_t)feed->n_functions;
	feed->functions[feed->n_functions++] = function;
	return 0;
}

/* The index of the function of a frame; a new one is added. */
static int intern_function(struct feed *feed, int64_t frame, bool is_eval, uint32_t *ret)
{
	bool is_named;
	int r = add_function(feed, frame, is_eval, ret, &is_named);

	if (r < 0 || is_named)
		return r;
	r = grow(&feed->nameless, feed->n_nameless, &feed->nameless_room, sizeof *feed->nameless);
	if (r == 0)
		feed->nameless[feed->n_nameless++] = (struct feed_nameless){ frame, *ret, is_eval };
	return r;
}

static int add_seen(struct feed *feed, uint64_t id, const struct feed_seen *seen)
{
	int r = grow(&feed->seen, feed->n_seen, &feed->seen_room, sizeof *feed->seen);

	if (r == 0)
		r = id_map_add(&feed->functions_by_id, id, (uint32_t)feed->n_seen);
	if (r == 0)
		feed->seen[feed->n_seen++] = *seen;
	return r;
}

/* The function of a frame. If one of its number was seen, only what else decides about its texts can make it another one. */
static int find_function(struct feed *feed, const int64_t *row, bool is_eval, uint32_t *ret)
{
	struct feed_seen seen = { .module = row[F_MODULE], .kind = (int)row[F_KIND], .is_eval = is_eval };
	int64_t id = row[F_FUNCTION];
	const struct id_slot *slot = id > 0 ? id_map_find(&feed->functions_by_id, (uint64_t)id) : NULL;
	const struct feed_seen *before = slot ? &feed->seen[slot->id] : NULL;
	int r;

	if (before && before->module == seen.module && before->kind == seen.kind && before->is_eval == is_eval) {
		*ret = before->function;
		return 0;
	}
	r = intern_function(feed, row[F_FRAME], is_eval, &seen.function);
	*ret = seen.function;
	return r < 0 || before || id <= 0 || seen.kind == 0 ? r : add_seen(feed, (uint64_t)id, &seen);
}

/* ---- Passes ---- */

static int prepare(struct feed *feed)
{
	const struct {
		sqlite3_stmt **to;
		const char *sql;
	} all[] = { { &feed->stack_rows.statement, stack_sql },
		    { &feed->frame_rows.statement, frame_sql },
		    { &feed->function, function_sql } };

	for (size_t i = 0; i < N_ELEMENTS(all); i++)
		if (sqlite3_prepare_v2(feed->db, all[i].sql, -1, all[i].to, NULL) != SQLITE_OK)
			return -EMEDIUMTYPE;
	return 0;
}

/* Not which functions were sent. */
static void forget_names(struct feed *feed)
{
	id_map_clear(&feed->stacks_by_id);
	id_map_clear(&feed->stacks_by_hash);
	id_map_clear(&feed->stacks_by_step);
	id_map_clear(&feed->frames_by_id);
	id_map_clear(&feed->functions_by_id);
	id_map_clear(&feed->lists);
	feed->n_stacks = feed->n_frames = feed->n_parts = feed->n_seen = feed->n_nameless = 0;
}

/* Whether a frame that had no name has another function now, or is gone. Less than 0: it cannot be read. */
static int is_other_function(const struct feed *feed, const struct feed_nameless *before)
{
	struct feed_function now = { 0 };
	bool is_named;
	int r = read_function(feed, before->frame, before->is_eval, &now, &is_named);

	if (r == 0)
		r = memcmp(&now.hash, &feed->functions[before->function].hash, sizeof now.hash) != 0;
	function_done(&now);
	return r == -EBADMSG ? 1 : r;
}

static int has_new_names(const struct feed *feed)
{
	int r = 0;

	for (size_t i = 0; i < feed->n_nameless && r == 0; i++)
		r = is_other_function(feed, &feed->nameless[i]);
	return r;
}

int feed_begin_stacks(struct feed *feed, bool is_other)
{
	int r;

	for (size_t i = 0; i < FEED_GROUPS; i++)
		feed->stack_rows.groups[i].n = feed->frame_rows.groups[i].n = 0;
	r = prepare(feed);
	if (r == 0 && !is_other)
		r = has_new_names(feed);
	if (is_other || r == 1)
		forget_names(feed);
	return r < 0 ? r : 0;
}

/* ---- Frames ---- */

/* The functions of a place, innermost first, into @found. */
static int follow_inlined(struct feed *feed, int64_t frame, uint32_t *found, size_t *n, uint32_t *ret_line)
{
	bool is_eval = false;
	const int64_t *row;
	int r;

	for (*n = 0; *n < MAX_INLINED; frame = row[F_INLINED]) {
		r = frame > 0 ? find_row(feed, &feed->frame_rows, frame, &row) : -EBADMSG;
		if (r < 0)
			return r;
		if (*n == 0) {
			is_eval = row[F_IS_EVAL] != 0;
			*ret_line = (uint32_t)row[F_LINE];
		}
		r = find_function(feed, row, is_eval, &found[*n]);
		if (r < 0)
			return r;
		++*n;
		if (row[F_INLINED] == 0)
			return 0;
	}
	return -EBADMSG;
}

/* Each pair has another number, which is never 0: the last one is never UINT32_MAX. */
static uint64_t pair(uint32_t before, uint32_t last)
{
	return (uint64_t)before << 32 | (last + 1);
}

/* The number of a list of functions that is another list, and one more; 0 is that of the empty list. */
static int longer_list(struct feed *feed, uint32_t list, uint32_t function, uint32_t *ret)
{
	uint64_t key = pair(list, function);
	const struct id_slot *slot = id_map_find(&feed->lists, key);

	*ret = slot ? slot->id : (uint32_t)feed->lists.n + 1;
	return slot ? 0 : id_map_add(&feed->lists, key, *ret);
}

static int add_frame(struct feed *feed, int64_t id, uint32_t *ret)
{
	struct feed_frame frame = { .first = feed->n_parts };
	uint32_t found[MAX_INLINED];
	size_t n;
	int r = follow_inlined(feed, id, found, &n, &frame.line);

	for (frame.n = 0; r == 0 && frame.n < n; frame.n++) {
		uint32_t function = found[n - 1 - frame.n];

		r = longer_list(feed, frame.list, function, &frame.list);
		if (r == 0)
			r = grow(&feed->parts, feed->n_parts, &feed->parts_room, sizeof *feed->parts);
		if (r == 0)
			feed->parts[feed->n_parts++] = function;
	}
	frame.is_python = r == 0 && frame.n > 0 && strcmp(feed->functions[found[0]].kind, "python") == 0;
	if (r == 0)
		r = grow(&feed->frames, feed->n_frames, &feed->frames_room, sizeof *feed->frames);
	if (r == 0)
		r = id_map_add(&feed->frames_by_id, (uint64_t)id, (uint32_t)feed->n_frames);
	if (r < 0)
		return r;
	*ret = (uint32_t)feed->n_frames;
	feed->frames[feed->n_frames++] = frame;
	return 0;
}

static int find_frame(struct feed *feed, int64_t id, uint32_t *ret)
{
	struct id_slot *slot;

	if (id <= 0)
		return -EBADMSG;
	slot = id_map_find(&feed->frames_by_id, (uint64_t)id);
	if (!slot)
		return add_frame(feed, id, ret);
	*ret = slot->id;
	return 0;
}

/* ---- Stacks ---- */

/* The hash of a stack continues its parent's by the frame's functions, one by one. */
static struct fleet_hash hash_stack(const struct feed *feed, const struct feed_stack *stack)
{
	const struct feed_frame *frame = &feed->frames[stack->frame];
	struct fleet_hash hash = stack->parent == FEED_NONE ? (struct fleet_hash){ 0 }
							    : feed->stacks[stack->parent].hash;
	uint8_t both[2 * sizeof hash.bytes];

	for (size_t i = 0; i < frame->n; i++) {
		memcpy(both, hash.bytes, sizeof hash.bytes);
		memcpy(both + sizeof hash.bytes, feed->functions[feed->parts[frame->first + i]].hash.bytes,
		       sizeof hash.bytes);
		hash = fleet_hash(both, sizeof both);
	}
	return hash;
}

/* Native code has no lines worth a sample's bytes: it counts for the line that calls it. */
static uint16_t find_leaf(const struct feed *feed, const struct feed_stack *stack)
{
	const struct feed_frame *frame = &feed->frames[stack->frame];

	if (!frame->is_python)
		return stack->parent == FEED_NONE ? 0 : feed->stacks[stack->parent].leaf;
	return frame->line <= UINT16_MAX ? (uint16_t)frame->line : 0;
}

/* Find the first stack of these functions, or become it. Inlining may cut the same functions into other frames. */
static int identify(struct feed *feed, struct feed_stack *stack)
{
	uint32_t before = stack->parent == FEED_NONE ? FEED_NONE : feed->stacks[stack->parent].same;
	uint64_t step = pair(before, feed->frames[stack->frame].list);
	const struct id_slot *same = id_map_find(&feed->stacks_by_step, step);
	int r = 0;

	if (same) {
		stack->same = same->id;
		stack->hash = feed->stacks[same->id].hash;
		return 0;
	}
	stack->hash = hash_stack(feed, stack);
	same = id_map_find(&feed->stacks_by_hash, fleet_id(&stack->hash));
	if (same)
		stack->same = same->id;
	else
		r = id_map_add(&feed->stacks_by_hash, fleet_id(&stack->hash), stack->same);
	return r < 0 ? r : id_map_add(&feed->stacks_by_step, step, stack->same);
}

static int add_stack(struct feed *feed, int64_t id, int64_t frame, uint32_t parent, uint32_t *ret)
{
	struct feed_stack stack = { .parent = parent, .same = (uint32_t)feed->n_stacks };
	int r = find_frame(feed, frame, &stack.frame);

	if (r == 0)
		r = grow(&feed->stacks, feed->n_stacks, &feed->stacks_room, sizeof *feed->stacks);
	if (r == 0)
		r = id_map_add(&feed->stacks_by_id, (uint64_t)id, (uint32_t)feed->n_stacks);
	if (r < 0)
		return r;
	stack.leaf = find_leaf(feed, &stack);
	r = identify(feed, &stack);
	if (r < 0)
		return r;
	*ret = (uint32_t)feed->n_stacks;
	feed->stacks[feed->n_stacks++] = stack;
	return 0;
}

/* Up to the first known caller, and down again. */
int feed_resolve(struct feed *feed, int64_t stack, uint32_t *ret)
{
	uint32_t parent = FEED_NONE;
	struct id_slot *slot = NULL;
	const int64_t *row;
	size_t n = 0;
	int r = 0;

	while (stack > 0 && !(slot = id_map_find(&feed->stacks_by_id, (uint64_t)stack))) {
		if (n == MAX_DEPTH)
			return -EBADMSG;
		r = find_row(feed, &feed->stack_rows, stack, &row);
		if (r == 0)
			r = grow(&feed->links, n, &feed->links_room, sizeof *feed->links);
		if (r < 0)
			return r;
		feed->links[n++] = (struct feed_link){ .stack = stack, .frame = row[S_FRAME] };
		stack = row[S_PARENT];
	}
	if (stack < 0)
		return -EBADMSG;
	parent = slot ? slot->id : FEED_NONE;
	while (n > 0 && r == 0) {
		n--;
		r = add_stack(feed, feed->links[n].stack, feed->links[n].frame, parent, &parent);
	}
	if (r == 0)
		*ret = parent;
	return r;
}

static int add_id(uint64_t **ids, size_t *n, size_t *room, uint64_t id)
{
	int r = grow(ids, *n, room, sizeof **ids);

	if (r == 0)
		(*ids)[(*n)++] = id;
	return r;
}

int feed_path(const struct feed *feed, uint32_t stack, uint64_t **ids, size_t *n, size_t *room)
{
	int r = 0;

	*n = 0;
	for (uint32_t at = stack; at != FEED_NONE; at = feed->stacks[at].parent) {
		const struct feed_frame *frame = &feed->frames[feed->stacks[at].frame];

		for (size_t i = frame->n; i > 0 && r == 0; i--)
			r = add_id(ids, n, room, fleet_id(&feed->functions[feed->parts[frame->first + i - 1]].hash));
	}
	for (size_t i = 0; i < *n / 2; i++) {
		uint64_t other = (*ids)[*n - 1 - i];

		(*ids)[*n - 1 - i] = (*ids)[i];
		(*ids)[i] = other;
	}
	return r;
}
