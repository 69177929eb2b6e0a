/* roster.h - which functions are the same, and stacks of them as one tree. */
#ifndef PROBING_COMPARE_ROSTER_H
#define PROBING_COMPARE_ROSTER_H

#include "src/compare/compare.h"

/* roster_begin - another recording comes: paths of the one before are no reason to tell functions apart. */
void roster_begin(struct roster *roster);

int roster_new(struct roster **ret);
void roster_free(struct roster *roster);

/* name_clean - a name as valid UTF-8 on one line. For free(3); NULL: no memory. */
char *name_clean(const char *name);

/*
 * roster_enter_frame - the function of a frame, made where missing.
 * Places without a name of their own ("libx.so+0x12a0") are one function a module: offsets are of one build.
 */
int roster_enter_frame(struct compare *compare, const struct profile_frame *frame, uint32_t *ret);

/* roster_enter_node - the node that a caller's node calls. -ENOMEM, -EOVERFLOW. */
int roster_enter_node(struct compare *compare, uint32_t parent, uint32_t function, uint32_t *ret);

/* roster_forget_nodes - the tree is the root alone again. -ENOMEM. */
int roster_forget_nodes(struct compare *compare);

/*
 * roster_match_moved - functions that base alone and head alone have, and that are one: of the same kind and name,
 * when a side has but one of it. Nodes are changed to the one that head has.
 */
int roster_match_moved(struct compare *compare);

#endif
