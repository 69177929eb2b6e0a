/* SPDX-License-Identifier: MIT */
/* profile_private.h - declarations for the parts of loading a profile. */
#ifndef PROBING_STORE_PROFILE_PRIVATE_H
#define PROBING_STORE_PROFILE_PRIVATE_H

#include "src/profile/profile.h"
#include "src/store/store.h"

/* ---- profile_rows.c ---- */

/* Map from ids of rows to indices. Ids ascend, because rows come in their order. */
struct row_index {
	int64_t *ids;
	size_t n, allocated;
};

/* The id of the next row. -EBADMSG not above the last one, or too many; -ENOMEM. */
int row_index_add(struct row_index *map, int64_t id);

/* Index of the row with that id. -EBADMSG: there is none. */
int row_index_find(const struct row_index *map, int64_t id, int32_t *ret);

struct function {
	const char *name, *symbol, *role, *file;
	int first_line;
	int32_t module; /* index, -1: none */
};

struct module {
	const char *path, *build_id;
};

/* A reference to a row that had not come yet. */
struct forward {
	int32_t from;
	int64_t to_id;
};

struct forwards {
	struct forward *items;
	size_t n, allocated;
};

struct loader {
	sqlite3 *db;
	sqlite3_stmt *row; /* of the pass at work */
	struct profile *profile;
	struct row_index modules, functions, frames, stacks;
	struct module *module_rows;
	struct function *function_rows;
	struct forwards parents, inlined;
	size_t module_room, function_room, frame_room, stack_room, total_room, thread_room, sample_room;
	const char *totals, *samples; /* SQL of these; samples NULL: none */
	const struct profile_filter *filter;
	uint64_t n_samples_all;  /* for filter->show; 0: unknown */
	size_t n_sorted_threads; /* those of the table; others were added by samples */
	int32_t last_thread;
	int64_t samples_left, weight_left; /* so that no sum over totals overflows */
};

/*
 * Load the current row; its columns are those of the queries in profile.c.
 * Errors: -EBADMSG, -ENOMEM.
 */
int load_module(struct loader *loader);
int load_function(struct loader *loader);
int load_frame(struct loader *loader);
int load_stack(struct loader *loader);
int load_total(struct loader *loader);
int load_thread(struct loader *loader);
int load_event(struct loader *loader);
int load_run(struct loader *loader);

/* Values of the current row. NULL reads as the least allowed value, or as no text. Errors: -EBADMSG, -ENOMEM. */
bool row_is_null(const struct loader *loader, int column);
int row_integer(const struct loader *loader, int column, int64_t least, int64_t most, int64_t *ret);
int row_int32(const struct loader *loader, int column, int32_t *ret);
int row_string(const struct loader *loader, int column, const char **ret);
int row_time(const struct loader *loader, int column, uint64_t *ret_ns); /* NULL: 0 */
/* Index of the row that a column refers to; -1 for NULL. */
int row_reference(const struct loader *loader, int column, const struct row_index *map, int32_t *ret);

/* ---- profile_samples.c ---- */

/* Columns: timestamp, pid, tid, cpu, weight, verdict, stack, gil, gc, state. Threads have been loaded. */
int load_sample(struct loader *loader);
/* The same of all samples with a number above one, from their blocks. Errors: -EBADMSG; -ENOMEM; those of reading. */
int load_blocks(struct loader *loader, int64_t after);

/* ---- profile_view.c ---- */

/* Whether SQL can be prepared: there are such tables and columns. */
bool profile_can_ask(sqlite3 *db, const char *sql);
/* Whether the samples of a recording are blocks, and not rows of a plain table, as before version 2. */
bool profile_has_blocks(sqlite3 *db);

/*
 * profile_view_sql - a filter's queries; both ended with sqlite3_free().
 * @ret_samples: NULL if no samples are requested.
 * Errors: as profile_load_view().
 */
int profile_view_sql(sqlite3 *db, const struct profile_filter *filter, char **ret_totals, char **ret_samples);

#endif
