/* SPDX-License-Identifier: MIT */
/*
 * stack_tree.c - frames and stacks from the file, in the order of their numbers.
 *
 * The text of every stack would otherwise need a query for each one's path. The file is not
 * trusted: a stack's parent has a smaller number, as recorders assign them, and chains of inlined
 * functions end, so no walk is a cycle.
 */
#include "src/sql/functions/stack.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"

enum { MAX_INLINED = 100 };

struct ids {
	int64_t *items; /* sorted */
	size_t n, allocated;
};

struct stack_tree {
	struct profile profile;
	struct ids frame_ids, stack_ids;
	size_t frames_allocated, stacks_allocated;
	struct ids inlined_into; /* by frame: 0: none; only while loading */
	char **strings;
	size_t n_strings, strings_allocated;
};

DEFINE_CLEANUP(struct stack_tree *, stack_tree_free)

static int ids_add(struct ids *ids, int64_t id)
{
	int r = grow(&ids->items, ids->n, &ids->allocated, sizeof *ids->items);

	if (r == 0)
		ids->items[ids->n++] = id;
	return r;
}

static int32_t ids_find(const struct ids *ids, int64_t id)
{
	size_t low = 0, high = ids->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ids->items[middle] == id)
			return (int32_t)middle;
		if (ids->items[middle] < id)
			low = middle + 1;
		else
			high = middle;
	}
	return -1;
}

/* Copy a column's text; NULL stays NULL. Reuse the previous row's text if equal. */
static int take_text(struct stack_tree *tree, sqlite3_stmt *row, int column, const char *before, const char **ret)
{
	const char *text = (const char *)sqlite3_column_text(row, column);
	int r;

	*ret = before;
	if (!text || (before && strcmp(before, text) == 0)) {
		*ret = text ? before : NULL;
		return 0;
	}
	r = grow(&tree->strings, tree->n_strings, &tree->strings_allocated, sizeof *tree->strings);
	if (r < 0)
		return r;
	*ret = tree->strings[tree->n_strings] = strdup(text);
	if (!*ret)
		return -ENOMEM;
	tree->n_strings++;
	return 0;
}

static enum frame_kind kind_of(const char *text)
{
	enum frame_kind kind = FRAME_NATIVE;

	frame_kind_parse(text, &kind); /* an unknown kind keeps the default */
	return kind;
}

static int take_frame(struct stack_tree *tree, sqlite3_stmt *row)
{
	struct profile *profile = &tree->profile;
	struct profile_frame none = { 0 };
	const struct profile_frame *before = profile->n_frames > 0 ? &profile->frames[profile->n_frames - 1] : &none;
	struct profile_frame frame = {
		.kind = kind_of((const char *)sqlite3_column_text(row, 1)),
		.role = frame_role_parse((const char *)sqlite3_column_text(row, 3)),
		.line = sqlite3_column_int(row, 5),
		.is_eval = sqlite3_column_int(row, 7) != 0,
		.inlined_into = -1,
	};
	int r;

	r = take_text(tree, row, 2, before->name, &frame.name);
	if (r == 0)
		r = take_text(tree, row, 4, before->file, &frame.file);
	if (r == 0)
		r = take_text(tree, row, 6, before->module, &frame.module);
	if (r == 0)
		r = ids_add(&tree->frame_ids, sqlite3_column_int64(row, 0));
	if (r == 0)
		r = ids_add(&tree->inlined_into, sqlite3_column_int64(row, 8));
	if (r == 0)
		r = grow(&profile->frames, profile->n_frames, &tree->frames_allocated, sizeof *profile->frames);
	if (r < 0)
		return r;
	frame.name = frame.name ?: "";
	profile->frames[profile->n_frames++] = frame;
	return 0;
}

static int take_stack(struct stack_tree *tree, sqlite3_stmt *row)
{
	struct profile *profile = &tree->profile;
	bool has_parent = sqlite3_column_type(row, 1) != SQLITE_NULL;
	struct profile_stack stack = {
		.parent = has_parent ? ids_find(&tree->stack_ids, sqlite3_column_int64(row, 1)) : -1,
		.frame = ids_find(&tree->frame_ids, sqlite3_column_int64(row, 2)),
	};
	int r;

	if (stack.frame < 0 || (has_parent && stack.parent < 0))
		return -EBADMSG;
	r = grow(&profile->stacks, profile->n_stacks, &tree->stacks_allocated, sizeof *profile->stacks);
	if (r == 0)
		r = ids_add(&tree->stack_ids, sqlite3_column_int64(row, 0));
	if (r == 0)
		profile->stacks[profile->n_stacks++] = stack;
	return r;
}

static int load_rows(struct stack_tree *tree, sqlite3 *db, const char *sql,
		     int (*take)(struct stack_tree *tree, sqlite3_stmt *row))
{
	sqlite3_stmt *row = NULL;
	int code, r = 0;

	code = sqlite3_prepare_v2(db, sql, -1, &row, NULL);
	if (code == SQLITE_OK)
		while (r == 0 && (code = sqlite3_step(row)) == SQLITE_ROW)
			r = tree->profile.n_stacks < INT32_MAX && tree->profile.n_frames < INT32_MAX ? take(tree, row)
												     : -EBADMSG;
	if (r == 0 && code != SQLITE_DONE)
		r = code == SQLITE_NOMEM ? -ENOMEM : -EIO;
	sqlite3_finalize(row);
	return r;
}

static int resolve_inlined(struct stack_tree *tree)
{
	struct profile *profile = &tree->profile;

	for (size_t i = 0; i < profile->n_frames; i++) {
		if (tree->inlined_into.items[i] == 0)
			continue;
		profile->frames[i].inlined_into = ids_find(&tree->frame_ids, tree->inlined_into.items[i]);
		if (profile->frames[i].inlined_into < 0)
			return -EBADMSG;
	}
	for (size_t i = 0; i < profile->n_frames; i++) {
		int64_t frame = (int64_t)i;
		unsigned n = 0;

		while (frame >= 0 && n <= MAX_INLINED) {
			frame = profile->frames[frame].inlined_into;
			n++;
		}
		if (n > MAX_INLINED)
			return -EBADMSG;
	}
	return 0;
}

int stack_tree_load(sqlite3 *db, struct stack_tree **ret)
{
	CLEANUP(stack_tree_freep) struct stack_tree *tree = calloc(1, sizeof *tree);
	int r;

	if (!tree)
		return -ENOMEM;
	r = load_rows(tree, db,
		      "SELECT frame, kind, name, role, file, line, module, is_eval, inlined_into FROM named_frame"
		      " ORDER BY frame",
		      take_frame);
	if (r == 0)
		r = resolve_inlined(tree);
	if (r == 0)
		r = load_rows(tree, db, "SELECT stack, parent, frame FROM stack ORDER BY stack", take_stack);
	if (r == 0)
		r = profile_label_files(&tree->profile);
	if (r < 0)
		return r;
	*ret = TAKE(tree);
	return 0;
}

void stack_tree_free(struct stack_tree *tree)
{
	if (!tree)
		return;
	for (size_t i = 0; i < tree->n_strings; i++)
		free(tree->strings[i]);
	free(tree->strings);
	free(tree->profile.frames);
	free(tree->profile.stacks);
	free(tree->frame_ids.items);
	free(tree->stack_ids.items);
	free(tree->inlined_into.items);
	free(tree);
}

int32_t stack_tree_find(const struct stack_tree *tree, int64_t stack)
{
	return ids_find(&tree->stack_ids, stack);
}

const struct profile *stack_tree_profile(const struct stack_tree *tree)
{
	return &tree->profile;
}
