/* SPDX-License-Identifier: MIT */
/* dumps.h - registers and stack copies of a running process, kept in memory. */
#ifndef PROBING_BENCH_DUMPS_H
#define PROBING_BENCH_DUMPS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/sample.h"

struct dump_options {
	pid_t pid;
	double seconds, hz;
	size_t stack_bytes; /* copied per stack */
};

/* Dumps of one recording, with consecutive bytes. */
struct dumps {
	struct sample *samples;
	size_t n;
	uint8_t *bytes;
	size_t n_bytes;
	uint64_t n_lost;
};

/* @dumps: zeroed; call dumps_done() also after an error. -ENOMEM. */
int dumps_init(struct dumps *dumps);
void dumps_done(struct dumps *dumps);

/* Sample a process for a time. Errors: see capture_attach(). */
int dumps_record(const struct dump_options *options, struct dumps *dumps);

#endif
