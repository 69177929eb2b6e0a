/* SPDX-License-Identifier: MIT */
/* frame_labels.h - how the files of a recording are called, for frames that are read one stack at a time. */
#ifndef PROBING_SQL_FUNCTIONS_FRAME_LABELS_H
#define PROBING_SQL_FUNCTIONS_FRAME_LABELS_H

#include <sqlite3.h>

#include "src/profile/profile.h"

struct frame_labels;

/*
 * frame_labels_load - read names, files and modules of all frames.
 * @ret: ended with frame_labels_free(). Errors: -ENOMEM; -EIO, with SQLite's message.
 */
int frame_labels_load(sqlite3 *db, struct frame_labels **ret);
void frame_labels_free(struct frame_labels *labels);

/* frame_labels_set - label a frame as profile_label_files() does. Labels are parts of its own strings. */
void frame_labels_set(const struct frame_labels *labels, struct profile_frame *frame);

#endif
