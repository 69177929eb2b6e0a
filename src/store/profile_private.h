/* profile_private.h - what the parts of loading a profile share. */
#ifndef PROBING_STORE_PROFILE_PRIVATE_H
#define PROBING_STORE_PROFILE_PRIVATE_H

#include "src/store/store.h"

/* ---- profile_rows.c ---- */

/* Where a row with a certain id went. Ids ascend, as the rows come in order of them. */
struct row_index {
	int64_t *ids;
	size_t n, allocated;
};

struct function {
	const char *name, *role, *file, *module;
	int32_t first_line;
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
	const char **module_paths;
	struct function *function_rows;
	struct forwards parents, inlined;
	size_t module_room, function_room, frame_room, stack_room, total_room, thread_room;
	const char *totals; /* SQL of these */
	int64_t samples_left, weight_left; /* so that no sum over totals overflows */
};

/*
 * Take the row at hand; its columns are those that the passes of profile.c ask for.
 * Errors: -EBADMSG, -ENOMEM.
 */
int load_module(struct loader *loader);
int load_function(struct loader *loader);
int load_frame(struct loader *loader);
int load_stack(struct loader *loader);
int load_total(struct loader *loader);
int load_thread(struct loader *loader);
int load_event(struct loader *loader);

/* ---- profile_order.c ---- */

/* A function inlined deeper than this is damage; compilers stop far earlier. */
enum { MAX_INLINED = 64 };

/* The id of the next row. -EBADMSG not above the last one, or too many; -ENOMEM. */
int row_index_add(struct row_index *map, int64_t id);

/* Index of the row with that id. -EBADMSG: there is none. */
int row_index_find(const struct row_index *map, int64_t id, int32_t *ret);

/*
 * profile_check_inlined - every chain of inlined functions ends, within MAX_INLINED.
 * Errors: -EBADMSG.
 */
int profile_check_inlined(const struct profile *profile);

/*
 * profile_order_stacks - bring parents before their children.
 * Stacks' parents and totals' stacks are valid indices or -1; they follow.
 * Errors: -EBADMSG a stack is its own ancestor; -ENOMEM.
 */
int profile_order_stacks(struct profile *profile);

#endif
