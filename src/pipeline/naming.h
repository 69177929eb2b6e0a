/* naming.h - modules, functions and frames get their rows and names. Private,
 * used by the writing thread alone. */
#ifndef PROBING_NAMING_H
#define PROBING_NAMING_H

#include "src/pipeline/batch.h"
#include "src/store/store.h"

struct naming;

/* @store: borrowed. */
int naming_new(struct store *store, struct naming **ret);
void naming_free(struct naming *names);

/* Inside a transaction of the caller's: */
int naming_put_modules(struct naming *names, const struct new_module *modules, size_t n);
/* Python frames are named at once, others wait for naming_look_up. */
int naming_put_frames(struct naming *names, const struct new_frame *frames, size_t n);
int naming_look_up(struct naming *names, size_t max);

/*
 * naming_trim - give memory back, when the files that names come from take much of it.
 * Call now and then; costs a system call when there is nothing to do.
 */
void naming_trim(struct naming *names);

/* Frames still without a name. */
size_t naming_waiting(const struct naming *names);

#endif
