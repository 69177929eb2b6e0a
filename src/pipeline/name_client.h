/* SPDX-License-Identifier: MIT */
/* name_client.h - resolves symbols by files that another process reads, which has no privilege. Private.
 *
 * The recorder opens the files and sends their descriptors (name_wire.h, name_server.h). If the other process dies of
 * a file, or answers nonsense, that file's functions are named by offsets, and a new process resolves the rest.
 * Used by one thread at a time.
 */
#ifndef PROBING_NAME_CLIENT_H
#define PROBING_NAME_CLIENT_H

#include "src/pipeline/batch.h"
#include "src/pipeline/generated_names.h"
#include "src/pipeline/pipeline.h"

struct name_client;

/* name_client_start - start the processes; before there are threads. Errors: of fork(2) and socketpair(2); -ENOMEM. */
int name_client_start(struct name_client **ret);
/* The same with a given worker, which cannot be restarted; for tests. @worker: ownership passes. -ENOMEM. */
int name_client_over(int worker, struct name_client **ret);
void name_client_free(struct name_client *client);

/* The module is borrowed, and must be open, or not to be opened. -ENOMEM. */
int name_client_put_module(struct name_client *client, const struct new_module *module);
/* Takes ownership of the descriptors of dumps. -ENOMEM. */
int name_client_put_programs(struct name_client *client, const struct new_program *programs, size_t n_programs,
			     struct new_dump *dumps, size_t n_dumps);

/* Some program may still write. */
bool name_client_is_open(const struct name_client *client);

/* Receiver of names. Strings are valid during the call. Negative errno ends everything. */
struct name_taker {
	/* A frame in a file; functions innermost first, at least one. */
	int (*take_native)(void *data, const struct new_frame *frame, const struct symbol *symbols, int n);
	/* A frame in generated code, of which id and role are set. @symbol: NULL: unknown so far. */
	int (*take_generated)(void *data, const struct new_frame *frame, const struct generated_symbol *symbol);
	void *data;
};

/*
 * name_client_look_up - name frames in files and in generated code, in no order.
 * A frame whose module has no file is left out.
 */
int name_client_look_up(struct name_client *client, const struct new_frame *frames, size_t n,
			const struct name_taker *taker);

/* The same as generated_names_refresh(). */
int name_client_refresh(struct name_client *client, const struct name_taker *taker, struct stale_places *stale);

/* Names that were given up for their limits, by all processes so far. */
void name_client_limited(const struct name_client *client, struct symbol_limited *ret);

void name_client_troubles(const struct name_client *client, struct pipeline_name_troubles *ret);

#endif
