/* SPDX-License-Identifier: MIT */
/* frame_names.h - frames get their names, after everybody runs again. Private. */
#ifndef PROBING_BACKTRACE_FRAME_NAMES_H
#define PROBING_BACKTRACE_FRAME_NAMES_H

#include "src/backtrace/backtrace.h"
#include "src/backtrace/target.h"

struct frame_names;

/* @session: borrowed. @target: taken over on success; codes belong to it. */
int frame_names_new(struct backtrace_session *session, struct target *target, struct frame_names **ret);
void frame_names_free(struct frame_names *names);
void frame_names_freep(struct frame_names **names);

/*
 * frame_names_put - the frames of one stack as they are shown.
 * @options: what is left out.
 * @locals:  the variables of each frame, which the shown ones point to; NULL: none.
 * @ret:     owned by the caller; its strings live as long as the names.
 * Errors: -ENOMEM.
 */
int frame_names_put(struct frame_names *names, const struct backtrace_options *options, const struct frame *frames,
		    size_t n_frames, const struct py_locals *locals, struct backtrace_frame **ret, size_t *ret_n);

#endif
