/* SPDX-License-Identifier: MIT */
/* frame_names.h - frames get their names, after everybody runs again. Private. */
#ifndef PROBING_BACKTRACE_FRAME_NAMES_H
#define PROBING_BACKTRACE_FRAME_NAMES_H

#include "src/backtrace/backtrace.h"
#include "src/backtrace/target.h"

struct frame_names;

/* @session: borrowed. @target: ownership passes on success; codes belong to it. */
int frame_names_new(struct backtrace_session *session, struct target *target, struct frame_names **ret);
void frame_names_free(struct frame_names *names);
void frame_names_freep(struct frame_names **names);

/*
 * frame_names_start - begin to read the debug information that names of a stack's frames will need; before
 * frame_names_put() of all stacks. Errors: -ENOMEM.
 */
int frame_names_start(struct frame_names *names, const struct backtrace_options *options, const struct frame *frames,
		      size_t n_frames);

/*
 * frame_names_put - the displayed frames of one stack.
 * @options: which frames to omit.
 * @locals:  the variables of each frame, borrowed by the result; NULL: none.
 * @ret:     owned by the caller; its strings live as long as the names.
 * Errors: -ENOMEM.
 */
int frame_names_put(struct frame_names *names, const struct backtrace_options *options, const struct frame *frames,
		    size_t n_frames, const struct py_locals *locals, struct backtrace_frame **ret, size_t *ret_n);

#endif
