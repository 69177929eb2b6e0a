/* SPDX-License-Identifier: MIT */
/* hot.h - probing's own hot paths, each on data that is always the same. */
#ifndef PROBING_BENCH_HOT_H
#define PROBING_BENCH_HOT_H

#include <stddef.h>

/* What is counted: one path, which ever call of run() goes through as often as the last. */
struct hot {
	const char *name;
	unsigned rounds; /* calls that are counted; a multiple of 10 */
	/* @root: of this project's sources. All: 0 or a negative errno. */
	int (*prepare)(const char *root, void **ret);
	int (*run)(void *data);
	void (*done)(void *data);
};

extern const struct hot hot_unwind, hot_stitch, hot_intern, hot_encode, hot_decode, hot_query;

#endif
