/* SPDX-License-Identifier: MIT */
/* writer.h - the thread that puts batches into the store and resolves symbols. Private. */
#ifndef PROBING_WRITER_H
#define PROBING_WRITER_H

#include "src/pipeline/batch.h"
#include "src/pipeline/generated_names.h"
#include "src/pipeline/pipeline.h"
#include "src/store/store.h"

struct writer;

/* @store: taken over on success. */
int writer_start(struct store *store, const struct pipeline_options *options, struct writer **ret);

/* An empty batch to fill. -ENOMEM. */
int writer_get_batch(struct writer *writer, struct batch **ret);
/* Hand a batch over. */
void writer_put_batch(struct writer *writer, struct batch *batch);

/* Whether writer_take_stale() has results; cheap. */
bool writer_has_stale(const struct writer *writer);
/* Appends the replaced places of generated code since the last call. -ENOMEM. */
int writer_take_stale(struct writer *writer, struct stale_places *to);

/* How many batches are done with: nothing they point to is needed any more. */
uint64_t writer_written(const struct writer *writer);
/* Whether a new tree of stacks should begin, so that rows of dropped samples can be dropped. True once for each
 * request. */
bool writer_take_renewal(struct writer *writer);
/* Samples dropped by retention. */
uint64_t writer_dropped(const struct writer *writer);

/* Names given up, after the thread's end. */
void writer_limited(const struct writer *writer, struct symbol_limited *ret);

/* 0, or the error that ended writing. */
int writer_error(const struct writer *writer);
int64_t writer_bytes(const struct writer *writer);

/* See symbol_writer_troubles(); after writer_stop(). */
void writer_name_troubles(const struct writer *writer, struct pipeline_name_troubles *ret);

/*
 * writer_stop - write and resolve the rest, end the thread.
 * @names: false: leave unresolved symbols.
 * The store is still open afterwards. Returns writer_error().
 */
int writer_stop(struct writer *writer, bool names);
struct store *writer_take_store(struct writer *writer);
void writer_free(struct writer *writer);

#endif
