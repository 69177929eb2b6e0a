/* SPDX-License-Identifier: MIT */
/* function_table.h - which functions are the same, and stacks of them as one tree. */
#ifndef PROBING_COMPARE_FUNCTION_TABLE_H
#define PROBING_COMPARE_FUNCTION_TABLE_H

#include "src/compare/compare.h"

/* function_table_begin - another recording comes: paths of the one before are no reason to tell functions apart. */
void function_table_begin(struct function_table *roster);

int function_table_new(struct function_table **ret);
void function_table_free(struct function_table *roster);

/* name_clean - a name as valid UTF-8 on one line. For free(3); NULL: no memory. */
char *name_clean(const char *name);

/*
 * function_table_enter_frame - the function of a frame, made where missing.
 * Places without a name of their own ("libx.so+0x12a0") are one function a module: offsets are of one build.
 */
int function_table_enter_frame(struct compare *compare, const struct profile_frame *frame, uint32_t *ret);

/* function_table_enter_node - the node that a caller's node calls. -ENOMEM, -EOVERFLOW. */
int function_table_enter_node(struct compare *compare, uint32_t parent, uint32_t function, uint32_t *ret);

/* function_table_forget_nodes - the tree is the root alone again. -ENOMEM. */
int function_table_forget_nodes(struct compare *compare);

/*
 * function_table_match_moved - functions that base alone and head alone have, and that are one: of the same kind and name,
 * when a side has but one of it. Nodes are changed to the one that head has.
 */
int function_table_match_moved(struct compare *compare);

#endif
