/* SPDX-License-Identifier: MIT */
/* top_watch.h - state of the displayed process, from /proc and its interpreter. */
#ifndef PROBING_CLI_TOP_WATCH_H
#define PROBING_CLI_TOP_WATCH_H

#include "src/top/top.h"

struct top_watch;

/* -ENOMEM. */
int top_watch_new(pid_t pid, struct top_watch **ret);
void top_watch_free(struct top_watch *watch);

/* Read which thread holds the GIL, and whether garbage is being collected; some times a second. */
void top_watch_look(struct top_watch *watch, uint64_t now_ns);

/* top_watch_read - shares, threads and CPU time since the last call. @ret: these fields are set; borrowed. */
void top_watch_read(struct top_watch *watch, uint64_t now_ns, struct top_status *ret);

#endif
