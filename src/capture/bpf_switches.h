/* SPDX-License-Identifier: MIT */
/* bpf_switches.h - switches told by a BPF program, instead of by records of perf events. Private.
 *
 * It costs the threads that switch a fifth of what those do, and tells only of processes that are wanted: of
 * those that bpf_source_judge() has said so of, and of those that nobody has judged yet.
 */
#ifndef PROBING_CAPTURE_BPF_SWITCHES_H
#define PROBING_CAPTURE_BPF_SWITCHES_H

#include "src/capture/bpf.h"
#include "src/capture/switch_rings.h"

struct bpf_switches;

/*
 * bpf_switches_new - load the program, and have it tell of switches from now on.
 * @source: borrowed until then only. @n_cpus: one more than the highest number of a processor.
 * @ret:    ended with bpf_switches_free().
 * Errors: -ENOSYS built without it; -ENOMEM; what the kernel, or libbpf where it is without BTF, reports.
 */
int bpf_switches_new(const struct bpf_source *source, size_t n_cpus, struct bpf_switches **ret);
void bpf_switches_free(struct bpf_switches *switches);
void bpf_switches_freep(struct bpf_switches **switches);

/*
 * bpf_switches_tend - let go of what is not needed here. To be called now and then, for a while.
 * Some kernels run no programs in some tasks, whose successors another program tells of, where there is a place for it. After a second in which
 * none was found that is taken away.
 * @now_ns: CLOCK_MONOTONIC.
 */
void bpf_switches_tend(struct bpf_switches *switches, uint64_t now_ns);

/* bpf_switches_stop - no more; what was told can still be read. */
void bpf_switches_stop(struct bpf_switches *switches);

/* What it tells. Borrowed. */
struct switch_rings *bpf_switches_rings(struct bpf_switches *switches);

#endif
