/* SPDX-License-Identifier: MIT */
/* stack_tree.h - all stacks of a recording in memory, to be found by their numbers. */
#ifndef PROBING_SQL_FUNCTIONS_STACK_TREE_H
#define PROBING_SQL_FUNCTIONS_STACK_TREE_H

#include <sqlite3.h>

#include "src/profile/profile.h"

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
