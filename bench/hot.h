/* SPDX-License-Identifier: MIT */
/* hot.h - probing's own hot paths, each on data that is always the same. */
#ifndef PROBING_BENCH_HOT_H
#define PROBING_BENCH_HOT_H

#include <stddef.h>

/* A measured path; every call of run() takes the same path. */
struct hot {
	const char *name;
	unsigned rounds; /* counted calls; a multiple of 10 */
	/* @root: folder of this project's sources. All return 0 or negative errno. */
	int (*prepare)(const char *root, void **ret);
	int (*run)(void *data);
	void (*done)(void *data);
};

extern const struct hot hot_unwind, hot_stitch, hot_intern, hot_encode, hot_decode, hot_query;

#endif
