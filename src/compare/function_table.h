/* SPDX-License-Identifier: MIT */
/* function_table.h - equality of functions, and stacks of functions as one tree. */
#ifndef PROBING_COMPARE_FUNCTION_TABLE_H
#define PROBING_COMPARE_FUNCTION_TABLE_H

#include "src/compare/compare.h"

/* function_table_begin - begin another recording: paths of the previous one do not distinguish functions of this one.
 * */
void function_table_begin(struct function_table *roster);

int function_table_new(struct function_table **ret);
void function_table_free(struct function_table *roster);

/* name_clean - a name as valid UTF-8 on one line. For free(3); NULL: no memory. */
char *name_clean(const char *name);

/*
 * function_table_enter_frame - the function of a frame; adds a new one.
 * Frames without a name ("libx.so+0x12a0") are one function per module: offsets belong to one build.
 */
int function_table_enter_frame(struct compare *compare, const struct profile_frame *frame, uint32_t *ret);

/* function_table_enter_node - the node that a caller's node calls. -ENOMEM, -EOVERFLOW. */
int function_table_enter_node(struct compare *compare, uint32_t parent, uint32_t function, uint32_t *ret);

/* function_table_forget_nodes - the tree is the root alone again. -ENOMEM. */
int function_table_forget_nodes(struct compare *compare);

/*
 * function_table_match_moved - match functions that only base has with functions that only head has: of the same kind
 * and name, if each side has exactly one. Nodes change to head's function.
 */
int function_table_match_moved(struct compare *compare);

#endif
