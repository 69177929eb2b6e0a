/* SPDX-License-Identifier: MIT */
/* feed.c - see feed.h. */
#include "src/fleet/feed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
	MAX_DEPTH = 8192,  /* of a stack */
	MAX_INLINED = 100, /* as the view stack_path has it */
	MAX_ENVIRONMENT = 1 << 20,
};

static const char stack_sql[] = "SELECT parent, frame FROM main.stack WHERE stack = ?1";
static const char frame_sql[] =
	"SELECT frame.kind, frame.line, frame.is_eval, frame.inlined_into, frame.address, function.name, function.role,"
	" function.file, function.first_line, module.path, module.build_id FROM main.frame"
	" LEFT JOIN main.function USING(function)"
	" LEFT JOIN main.module ON module.module = coalesce(frame.module, function.module) WHERE frame = ?1";
enum { F_KIND, F_LINE, F_IS_EVAL, F_INLINED, F_ADDRESS, F_NAME, F_ROLE, F_FILE, F_FIRST_LINE, F_MODULE, F_BUILD_ID };
static const char run_sql[] = "SELECT host, command, mode, unit, event, stack_source, python, kernel, probing, hz, "
			      "started, ended, cpus FROM main.run ORDER BY run";

/* ---- The run ---- */

static char *copy_text(sqlite3_stmt *row, int column)
{
	const char *text = (const char *)sqlite3_column_text(row, column);

	return strdup(text ? text : "");
}

static void run_done(struct feed_run *run)
{
	char *texts[] = { run->host,   run->command, run->mode,    run->unit,        run->event,
			  run->python, run->kernel,  run->probing, run->stack_source };

	for (size_t i = 0; i < N_ELEMENTS(texts); i++)
		free(texts[i]);
	*run = (struct feed_run){ 0 };
}

static int read_run(sqlite3_stmt *row, struct feed_run *run)
{
	run->host = copy_text(row, 0);
	run->command = copy_text(row, 1);
	run->mode = copy_text(row, 2);
	run->unit = copy_text(row, 3);
	run->event = copy_text(row, 4);
	run->stack_source = copy_text(row, 5);
	run->python = copy_text(row, 6);
	run->kernel = copy_text(row, 7);
	run->probing = copy_text(row, 8);
	run->hz = sqlite3_column_double(row, 9);
	run->started = sqlite3_column_double(row, 10);
	run->ended = sqlite3_column_double(row, 11);
	run->cpus = (unsigned)sqlite3_column_int(row, 12);
	return run->host && run->command && run->mode && run->unit && run->event && run->stack_source && run->python &&
			       run->kernel && run->probing
		       ? 0
		       : -ENOMEM;
}

/* What no two recordings share: host, command, and the beginning to a quarter of a microsecond. */
static void add_identity(struct fleet_bytes *bytes, const struct feed_run *run, int *r)
{
	double started = run->started;

	if (*r == 0)
		*r = fleet_append(bytes, run->host, strlen(run->host) + 1);
	if (*r == 0)
		*r = fleet_append(bytes, run->command, strlen(run->command) + 1);
	if (*r == 0)
		*r = fleet_append(bytes, &started, sizeof started);
}

/* A merged recording has several: the first one describes it, all identify it. */
static int load_run(struct feed *feed)
{
	struct fleet_bytes identity = { 0 };
	struct feed_run run = { 0 }, other = { 0 };
	sqlite3_stmt *rows = NULL;
	int code = sqlite3_prepare_v2(feed->db, run_sql, -1, &rows, NULL), r = 0;
	bool is_first = true;

	while (code == SQLITE_OK && r == 0 && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		r = read_run(rows, is_first ? &run : &other);
		add_identity(&identity, is_first ? &run : &other, &r);
		run_done(&other);
		is_first = false;
		code = SQLITE_OK;
	}
	sqlite3_finalize(rows);
	if (r == 0 && code != SQLITE_DONE)
		r = store_errno(feed->db, code);
	if (r == 0 && is_first)
		r = -EMEDIUMTYPE;
	if (r == 0) {
		run.hash = fleet_hash(identity.at, identity.n);
		run.run = fleet_id(&run.hash);
		run_done(&feed->run);
		feed->run = run;
	} else {
		run_done(&run);
	}
	free(identity.at);
	return r;
}

/* ---- Passes ---- */

static int prepare(struct feed *feed)
{
	int code = sqlite3_prepare_v2(feed->db, stack_sql, -1, &feed->stack, NULL);

	if (code == SQLITE_OK)
		code = sqlite3_prepare_v2(feed->db, frame_sql, -1, &feed->frame, NULL);
	/* Fails where older recordings lack the column. */
	sqlite3_prepare_v2(feed->db, "SELECT rank FROM main.process WHERE pid = ?1 AND rank >= 0", -1, &feed->rank,
			   NULL);
	return code == SQLITE_OK ? 0 : -EMEDIUMTYPE;
}

/* Names may have come since: forget stacks and frames, not which functions were sent. */
static void forget_names(struct feed *feed)
{
	id_map_clear(&feed->stacks_by_id);
	id_map_clear(&feed->stacks_by_hash);
	id_map_clear(&feed->frames_by_id);
	feed->n_stacks = feed->n_frames = feed->n_parts = 0;
	feed->has_nameless = false;
}

/* Before the file is opened: one that is replaced in between is taken for another the next time, too. */
static bool is_other_file(struct feed *feed)
{
	struct stat st;
	bool is_other = stat(feed->path, &st) == 0 && (st.st_dev != feed->device || st.st_ino != feed->inode);

	if (is_other) {
		feed->device = st.st_dev;
		feed->inode = st.st_ino;
	}
	return is_other;
}

int feed_begin(struct feed *feed)
{
	bool is_other = is_other_file(feed);
	int r = store_open_reader(feed->path, &feed->db);

	if (r < 0)
		return r;
	if (is_other || feed->has_nameless)
		forget_names(feed);
	if (is_other)
		feed->n_ranks = 0;
	r = load_run(feed);
	if (r == 0)
		r = prepare(feed);
	if (r < 0)
		feed_end(feed);
	return r;
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

void feed_end(struct feed *feed)
{
	sqlite3_finalize(TAKE(feed->stack));
	sqlite3_finalize(TAKE(feed->frame));
	sqlite3_finalize(TAKE(feed->rank));
	sqlite3_close(TAKE(feed->db));
}

void feed_done(struct feed *feed)
{
	feed_end(feed);
	run_done(&feed->run);
	for (size_t i = 0; i < feed->n_functions; i++)
		function_done(&feed->functions[i]);
	free(feed->functions);
	free(feed->stacks);
	free(feed->frames);
	free(feed->parts);
	free(feed->ranks);
	free(feed->rows);
	id_map_done(&feed->stacks_by_id);
	id_map_done(&feed->stacks_by_hash);
	id_map_done(&feed->frames_by_id);
	id_map_done(&feed->functions_by_hash);
	*feed = (struct feed){ 0 };
}

/* ---- Samples ---- */

int feed_newest(struct feed *feed, int64_t *ret)
{
	sqlite3_stmt *row = NULL;
	int code = sqlite3_prepare_v2(feed->db,
				      "SELECT first + samples - 1 FROM main.sample_block ORDER BY first DESC LIMIT 1",
				      -1, &row, NULL);

	if (code == SQLITE_OK)
		code = sqlite3_step(row);
	if (code == SQLITE_ROW || code == SQLITE_DONE)
		*ret = code == SQLITE_ROW ? sqlite3_column_int64(row, 0) : 0;
	sqlite3_finalize(row);
	return code == SQLITE_ROW || code == SQLITE_DONE ? 0
	       : code == SQLITE_ERROR                    ? -EMEDIUMTYPE
							 : store_errno(feed->db, code);
}

struct loading {
	struct feed *feed;
	uint64_t horizon_ns;
	size_t max;
};

static int take_row(void *data, int64_t number, const struct sample_row *row)
{
	struct loading *loading = data;
	struct feed *feed = loading->feed;
	int r;

	if (row->time_ns > loading->horizon_ns || feed->n_rows == loading->max)
		return 1;
	r = grow(&feed->rows, feed->n_rows, &feed->rows_room, sizeof *feed->rows);
	if (r < 0)
		return r;
	feed->rows[feed->n_rows++] = *row;
	feed->first = feed->n_rows == 1 ? number : feed->first;
	feed->last = number;
	return 0;
}

int feed_load(struct feed *feed, int64_t first, int64_t last, uint64_t horizon_ns, size_t max)
{
	struct loading loading = { feed, horizon_ns, max };
	int r;

	feed->n_rows = 0;
	feed->first = feed->last = 0;
	r = store_each_sample(feed->db, first, last, take_row, &loading);
	return r < 0 ? r : 0;
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
	const char *kind = (const char *)sqlite3_column_text(row, F_KIND);
	const char *path = (const char *)sqlite3_column_text(row, F_MODULE);
	const char *slash = path ? strrchr(path, '/') : NULL;
	char *name = NULL;
	int n;

	if (!kind || strcmp(kind, "native") != 0)
		n = asprintf(&name, "[%s]", kind ? kind : "");
	else if (!path)
		n = asprintf(&name, "[anonymous]");
	else
		n = asprintf(&name, "%s+0x%llx", slash ? slash + 1 : path,
			     (unsigned long long)sqlite3_column_int64(row, F_ADDRESS));
	return n < 0 ? NULL : name;
}

/* @is_eval: its place is the interpreter's loop; then all functions that are inlined there are. */
static int read_function(struct feed *feed, sqlite3_stmt *row, bool is_eval, struct feed_function *ret)
{
	bool is_named = sqlite3_column_type(row, F_NAME) != SQLITE_NULL;

	ret->kind = copy_text(row, F_KIND);
	ret->role = is_eval ? strdup("eval") : copy_text(row, F_ROLE);
	ret->name = is_named ? copy_text(row, F_NAME) : make_name(row);
	ret->file = copy_text(row, F_FILE);
	ret->module = copy_text(row, F_MODULE);
	ret->build_id = copy_text(row, F_BUILD_ID);
	ret->line = (uint32_t)sqlite3_column_int64(row, F_FIRST_LINE);
	if (!ret->kind || !ret->role || !ret->name || !ret->file || !ret->module || !ret->build_id)
		return -ENOMEM;
	feed->has_nameless |= !is_named;
	return hash_function(ret);
}

/* The index of the function in the current row; a new one is added. */
static int intern_function(struct feed *feed, sqlite3_stmt *row, bool is_eval, uint32_t *ret)
{
	struct feed_function function = { 0 };
	struct id_slot *slot;
	int r = read_function(feed, row, is_eval, &function);

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

/* ---- Frames ---- */

/* One place: the current row of feed->frame is that. */
static int step_frame(struct feed *feed, int64_t frame)
{
	int code;

	sqlite3_reset(feed->frame);
	code = sqlite3_bind_int64(feed->frame, 1, frame);
	if (code == SQLITE_OK)
		code = sqlite3_step(feed->frame);
	return code == SQLITE_ROW ? 0 : code == SQLITE_DONE ? -EBADMSG : store_errno(feed->db, code);
}

/* The functions of a place, innermost first, into @found. */
static int follow_inlined(struct feed *feed, int64_t frame, uint32_t *found, size_t *n, uint32_t *ret_line)
{
	bool is_eval = false;
	int r;

	for (*n = 0; *n < MAX_INLINED; frame = sqlite3_column_int64(feed->frame, F_INLINED)) {
		r = step_frame(feed, frame);
		if (r == 0 && *n == 0)
			is_eval = sqlite3_column_int(feed->frame, F_IS_EVAL) != 0;
		if (r == 0)
			r = intern_function(feed, feed->frame, is_eval, &found[*n]);
		if (r < 0)
			return r;
		if (*n == 0)
			*ret_line = (uint32_t)sqlite3_column_int64(feed->frame, F_LINE);
		++*n;
		if (sqlite3_column_type(feed->frame, F_INLINED) == SQLITE_NULL)
			return 0;
	}
	return -EBADMSG;
}

static int add_frame(struct feed *feed, int64_t id, uint32_t *ret)
{
	struct feed_frame frame = { .first = feed->n_parts };
	uint32_t found[MAX_INLINED];
	size_t n;
	int r = follow_inlined(feed, id, found, &n, &frame.line);

	for (frame.n = 0; r == 0 && frame.n < n; frame.n++) {
		r = grow(&feed->parts, feed->n_parts, &feed->parts_room, sizeof *feed->parts);
		if (r == 0)
			feed->parts[feed->n_parts++] = found[n - 1 - frame.n];
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

static int add_stack(struct feed *feed, int64_t id, int64_t frame, uint32_t parent, uint32_t *ret)
{
	struct feed_stack stack = { .parent = parent, .same = (uint32_t)feed->n_stacks };
	struct id_slot *same;
	int r = find_frame(feed, frame, &stack.frame);

	if (r == 0)
		r = grow(&feed->stacks, feed->n_stacks, &feed->stacks_room, sizeof *feed->stacks);
	if (r == 0)
		r = id_map_add(&feed->stacks_by_id, (uint64_t)id, (uint32_t)feed->n_stacks);
	if (r < 0)
		return r;
	stack.leaf = find_leaf(feed, &stack);
	stack.hash = hash_stack(feed, &stack);
	same = id_map_find(&feed->stacks_by_hash, fleet_id(&stack.hash));
	if (same)
		stack.same = same->id;
	else
		r = id_map_add(&feed->stacks_by_hash, fleet_id(&stack.hash), stack.same);
	if (r < 0)
		return r;
	*ret = (uint32_t)feed->n_stacks;
	feed->stacks[feed->n_stacks++] = stack;
	return 0;
}

static int read_stack(struct feed *feed, int64_t id, int64_t *parent, int64_t *frame)
{
	int code;

	sqlite3_reset(feed->stack);
	code = sqlite3_bind_int64(feed->stack, 1, id);
	if (code == SQLITE_OK)
		code = sqlite3_step(feed->stack);
	if (code != SQLITE_ROW)
		return code == SQLITE_DONE ? -EBADMSG : store_errno(feed->db, code);
	*parent = sqlite3_column_int64(feed->stack, 0);
	*frame = sqlite3_column_int64(feed->stack, 1);
	return 0;
}

/* Up to the first known caller, and down again. */
int feed_resolve(struct feed *feed, int64_t stack, uint32_t *ret)
{
	int64_t ids[MAX_DEPTH], frames[MAX_DEPTH];
	uint32_t parent = FEED_NONE;
	struct id_slot *slot = NULL;
	size_t n = 0;
	int r = 0;

	while (stack > 0 && !(slot = id_map_find(&feed->stacks_by_id, (uint64_t)stack))) {
		if (n == MAX_DEPTH)
			return -EBADMSG;
		ids[n] = stack;
		r = read_stack(feed, stack, &stack, &frames[n]);
		if (r < 0)
			return r;
		n++;
	}
	if (stack < 0)
		return -EBADMSG;
	parent = slot ? slot->id : FEED_NONE;
	while (n > 0 && r == 0) {
		n--;
		r = add_stack(feed, ids[n], frames[n], parent, &parent);
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

/* ---- Ranks ---- */

/* A number that one of the launchers' variables has; -1: none. */
static int32_t rank_of(const char *environment, size_t n)
{
	static const char *const names[] = { "RANK=", "OMPI_COMM_WORLD_RANK=", "PMI_RANK=", "SLURM_PROCID=" };
	const char *end = environment + n;

	for (size_t i = 0; i < N_ELEMENTS(names); i++)
		for (const char *at = environment; at < end; at += strlen(at) + 1) {
			char *rest;
			long rank;

			if (strncmp(at, names[i], strlen(names[i])) != 0)
				continue;
			rank = strtol(at + strlen(names[i]), &rest, 10);
			if (*rest == '\0' && rank >= 0 && rank <= INT32_MAX)
				return (int32_t)rank;
		}
	return -1;
}

static int32_t ask_process(const struct feed *feed, uint32_t pid)
{
	CLEANUP(freep) char *environment = NULL;
	char path[64];
	size_t n;

	if (!feed->is_live) /* its number may be another's by now */
		return -1;
	snprintf(path, sizeof path, "/proc/%u/environ", pid);
	return read_file(path, MAX_ENVIRONMENT, &environment, &n) < 0 ? -1 : rank_of(environment, n);
}

/* What the recorder found; -1: nothing. */
static int32_t read_rank(struct feed *feed, uint32_t pid)
{
	int64_t rank = -1;

	if (!feed->rank)
		return -1;
	sqlite3_bind_int64(feed->rank, 1, pid);
	if (sqlite3_step(feed->rank) == SQLITE_ROW)
		rank = sqlite3_column_int64(feed->rank, 0);
	sqlite3_reset(feed->rank);
	return rank <= INT32_MAX ? (int32_t)rank : -1;
}

int feed_find_rank(struct feed *feed, uint32_t pid, int32_t *ret)
{
	int32_t rank;
	int r;

	for (size_t i = 0; i < feed->n_ranks; i++)
		if (feed->ranks[i].pid == pid) {
			*ret = feed->ranks[i].rank;
			return 0;
		}
	r = grow(&feed->ranks, feed->n_ranks, &feed->ranks_room, sizeof *feed->ranks);
	if (r < 0)
		return r;
	rank = read_rank(feed, pid);
	if (rank < 0)
		rank = ask_process(feed, pid);
	*ret = rank >= 0 ? rank : feed->default_rank;
	feed->ranks[feed->n_ranks++] = (struct feed_rank){ pid, *ret };
	return 0;
}
