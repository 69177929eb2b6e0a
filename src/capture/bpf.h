/* SPDX-License-Identifier: MIT */
/* bpf.h - Python frames out of the sampling interrupt. Private.
 *
 * A program is attached to the events that sample. Before the kernel writes a sample it
 * writes a record of the thread's Python frames into the same ring: the two are neighbours
 * there, whatever happens, or one of them was lost.
 */
#ifndef PROBING_CAPTURE_BPF_H
#define PROBING_CAPTURE_BPF_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/python_record.h"
#include "src/capture/ring.h"

struct bpf_source;

/* What will be sampled. */
struct bpf_source_options {
	uint64_t tracepoint; /* number of the one that is, each time; then the program runs from now on, whenever anybody
				* passes there. 0: none, see bpf_source_attach() */
	bool samples_switches; /* threads that leave their processor, too */
	bool in_interrupt;     /* each sample is taken with interrupts off: memory may be read by page tables */
};

/*
 * bpf_source_new - load the program, and open what it writes to.
 * @rings: borrowed, outlive the source.
 * @ret:   ended with bpf_source_free().
 * Errors: -ENOSYS built without it; -EPERM; whatever the kernel reports. See bpf_source_explain().
 */
int bpf_source_new(const struct rings *rings, const struct bpf_source_options *options, struct bpf_source **ret);
void bpf_source_free(struct bpf_source *source);
void bpf_source_freep(struct bpf_source **source);

/* bpf_source_stop - no more frames of a tracepoint; what was written can still be read. */
void bpf_source_stop(struct bpf_source *source);

/* bpf_source_attach - run the program at each sample of an event, before anything inherits it.
 * @at_switch: the event samples threads that leave their processor: not all of them then. Only where that was announced. */
int bpf_source_attach(const struct bpf_source *source, int event_fd, bool at_switch);

/* bpf_source_watch - how to read a process' frames from now on; copied. -ENOSPC too many processes. */
int bpf_source_watch(struct bpf_source *source, pid_t pid, const struct python_layout *layout);
void bpf_source_forget(struct bpf_source *source, pid_t pid);

/*
 * Of a process whose samples are not wanted none is written any more; of one that was not judged
 * they are. -E2BIG too many, which does no harm.
 */
int bpf_source_judge(struct bpf_source *source, pid_t pid, bool wanted);
void bpf_source_unjudge(struct bpf_source *source, pid_t pid);

/* bpf_source_direct_refusal - why frames are copied with the kernel's helper, and not read by page tables: an error of
 * direct_map_find(), what the kernel says to the program that does, or -EOPNOTSUPP outside of interrupts. 0: they are. */
int bpf_source_direct_refusal(const struct bpf_source *source);

/* bpf_source_judged - the map of what bpf_source_judge() has said. Borrowed. */
int bpf_source_judged(const struct bpf_source *source);

/*
 * bpf_source_set_floor - samples of a thread wake the reader of the rings only where its stack pointer is
 * below this, or where its frames could not be read; until then each does. Best effort: at worst
 * it is woken for nothing.
 */
void bpf_source_set_floor(struct bpf_source *source, pid_t tid, uint64_t floor);
void bpf_source_clear_floor(struct bpf_source *source, pid_t tid);
/* Judged under this number it is all processes, whatever else was said of them. */
enum { BPF_PAUSED = 0 };

/* What bpf_source_new() was refused for: "needs root, or CAP_BPF and CAP_PERFMON". */
void bpf_source_explain(int error, char *to, size_t n_bytes);

#endif
