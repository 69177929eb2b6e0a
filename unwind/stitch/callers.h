/* SPDX-License-Identifier: MIT */
/* callers.h - whether callers that were read late can be believed. Private. */
#ifndef PROBING_CALLERS_H
#define PROBING_CALLERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sample.h"
#include "unwind/cpython/cpython.h"

struct callers_seen;
struct callers_lasting;
struct callers_thread;

struct callers {
	struct callers_seen *slots;
	struct callers_lasting *codes;
	struct callers_thread *threads;
};

/* How long it is waited to see whether a call is still there. */
enum { CALLERS_WAIT_NS = 200000 };

/* -ENOMEM. */
int callers_init(struct callers *callers);
void callers_done(struct callers *callers);

/* A sample was taken: its thread has run for so long. Of every sample, in order. */
void callers_ran(struct callers *callers, const struct sample *sample);

/*
 * callers_look - note the callers of a frame, and whether they are valid for the sample.
 * @frames:  n of one evaluation, innermost first; captured bytes prove the innermost;
 *           it still existed after the others had been read.
 * @now_ns:  time at which its callers were read (CLOCK_MONOTONIC).
 * @ret_ask: whether to read memory once more, after CALLERS_WAIT_NS, to learn whether calls last.
 */
bool callers_look(struct callers *callers, const struct py_frame *frames, size_t n, const struct sample *sample,
		  uint64_t now_ns, bool *ret_ask);

/* The result: are its callers still there? Only for time in which the process ran. */
void callers_waited(struct callers *callers, const struct py_code *code, bool are_there);

#endif
