/* naming.h - modules, functions and frames get their rows and names. Private,
 * used by the writing thread alone. */
#ifndef PROBING_NAMING_H
#define PROBING_NAMING_H

#include "src/pipeline/batch.h"
#include "src/pipeline/generated_names.h"
#include "src/store/store.h"

struct naming;

/* @store: borrowed. */
int naming_new(struct store *store, struct naming **ret);
void naming_free(struct naming *names);

/* Inside a transaction of the caller's: */
int naming_put_modules(struct naming *names, const struct new_module *modules, size_t n);
/* Python frames are named at once, others wait for naming_look_up. */
int naming_put_frames(struct naming *names, const struct new_frame *frames, size_t n);
/* The batch's programs and dumps; the next naming_look_up reads on in what all programs write. */
int naming_put_programs(struct naming *names, struct batch *batch);
int naming_look_up(struct naming *names, size_t max);

/*
 * naming_trim - give memory back, when the files that names come from take much of it.
 * Call now and then; costs a system call when there is nothing to do.
 */
void naming_trim(struct naming *names);

/* Whether naming_look_up has something to do. */
bool naming_is_waiting(const struct naming *names);

/* Places in generated code where other code lies now, since the last call; appended. -ENOMEM. */
int naming_take_stale(struct naming *names, struct stale_places *to);

#endif
