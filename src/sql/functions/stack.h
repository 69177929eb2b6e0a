/* SPDX-License-Identifier: MIT */
/* stack.h - the stacks and labels of frames that the functions of SQL read. Private to this folder. */
#ifndef PROBING_SQL_FUNCTIONS_STACK_H
#define PROBING_SQL_FUNCTIONS_STACK_H

#include <sqlite3.h>

#include "src/profile/profile.h"

/* ---- frame_labels.c ---- */

struct frame_labels;

/*
 * frame_labels_load - read names, files and modules of all frames.
 * @ret: ended with frame_labels_free(). Errors: -ENOMEM; -EIO, with SQLite's message.
 */
int frame_labels_load(sqlite3 *db, struct frame_labels **ret);
void frame_labels_free(struct frame_labels *labels);

/* frame_labels_set - label a frame as profile_label_files() does. Labels are parts of its own strings. */
void frame_labels_set(const struct frame_labels *labels, struct profile_frame *frame);

/* ---- stack_tree.c ---- */

struct stack_tree;

/*
 * stack_tree_load - read frames, with their names, and stacks.
 * @ret: ended with stack_tree_free(). Strings live as long as it does.
 * Errors: -ENOMEM; -EIO, with SQLite's message; -EBADMSG a stack before its parent, a frame inlined
 *         into itself, or a number without a row.
 */
int stack_tree_load(sqlite3 *db, struct stack_tree **ret);
void stack_tree_free(struct stack_tree *tree);

/* The stack of that number in the profile; -1: there is none. */
int32_t stack_tree_find(const struct stack_tree *tree, int64_t stack);
const struct profile *stack_tree_profile(const struct stack_tree *tree);

#endif
