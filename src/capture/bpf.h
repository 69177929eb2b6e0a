/* SPDX-License-Identifier: MIT */
/* bpf.h - Python frames from the sampling interrupt. Private.
 *
 * A BPF program is attached to the sampling events. Before the kernel writes a sample the program
 * writes a record of the thread's Python frames into the same ring: the two are adjacent
 * there, or one of them was lost.
 */
#ifndef PROBING_CAPTURE_BPF_H
#define PROBING_CAPTURE_BPF_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/python_record.h"
#include "src/capture/perf_ring.h"

struct bpf_source;

/* Properties of the sampling. */
struct bpf_source_options {
	uint64_t tracepoint;    /* number of the sampled one; then the program runs from now on, in every thread that
				* passes it. 0: none, see bpf_source_attach() */
	bool samples_switches;  /* threads that leave their processor, too */
	bool in_interrupt;      /* each sample is taken with interrupts off: the program may follow page tables */
	bool wake_on_live_read; /* some layouts that it watches have calls_for_new */
};

/*
 * bpf_source_new - load the program, and open its output.
 * @rings: borrowed, outlive the source.
 * @ret:   ended with bpf_source_free().
 * Errors: -ENOSYS built without it; -EPERM; errors of the kernel. See bpf_source_explain().
 */
int bpf_source_new(const struct perf_rings *rings, const struct bpf_source_options *options, struct bpf_source **ret);
void bpf_source_free(struct bpf_source *source);
void bpf_source_freep(struct bpf_source **source);

/* bpf_source_stop - no more frames of a tracepoint; existing records remain readable. */
void bpf_source_stop(struct bpf_source *source);

/* bpf_source_attach - run the program at each sample of an event, before anything inherits it.
 * @at_switch: the event samples threads that leave their processor; then only some of them. Requires the option. */
int bpf_source_attach(const struct bpf_source *source, int event_fd, bool at_switch);

/* bpf_source_watch - how to read a process' frames from now on; copied. -ENOSPC too many processes. */
int bpf_source_watch(struct bpf_source *source, pid_t pid, const struct python_layout *layout);
void bpf_source_forget(struct bpf_source *source, pid_t pid);

/*
 * bpf_source_judge - whether to write samples of a process; those of unjudged processes are written.
 * -E2BIG too many, which is harmless.
 */
int bpf_source_judge(struct bpf_source *source, pid_t pid, bool wanted);
void bpf_source_unjudge(struct bpf_source *source, pid_t pid);

/* bpf_source_direct_refusal - why frames are copied with the kernel's helper instead of by page tables: an error of
 * direct_map_find(), of loading the program that uses them, or -EOPNOTSUPP outside of interrupts. 0: by page tables. */
int bpf_source_direct_refusal(const struct bpf_source *source);

/* bpf_source_judged - the map of judged processes. Borrowed. */
int bpf_source_judged(const struct bpf_source *source);

/*
 * bpf_source_set_floor - samples of a thread wake the reader of the rings only if its stack pointer is
 * below this, or its frames are unreadable; until then each does. Best effort: at worst it is woken for
 * nothing.
 */
void bpf_source_set_floor(struct bpf_source *source, pid_t tid, uint64_t floor);
void bpf_source_clear_floor(struct bpf_source *source, pid_t tid);
/* A judgement of this number applies to all processes, before any other. */
enum { BPF_PAUSED = 0 };

/* The reason for an error of bpf_source_new(): "needs root, or CAP_BPF and CAP_PERFMON". */
void bpf_source_explain(int error, char *to, size_t n_bytes);

#endif
