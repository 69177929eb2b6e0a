/* SPDX-License-Identifier: MIT */
/* bpf_switches.h - context switches traced by BPF, instead of by records of perf events. Private.
 *
 * It costs the switching threads a fifth, and reports only wanted processes: those that
 * bpf_source_judge() wants, and unjudged ones.
 */
#ifndef PROBING_CAPTURE_BPF_SWITCHES_H
#define PROBING_CAPTURE_BPF_SWITCHES_H

#include "src/capture/bpf.h"
#include "src/capture/switch_rings.h"

struct bpf_switches;

/*
 * bpf_switches_new - load the BPF program, and trace switches from now on.
 * @source: borrowed during the call. @n_cpus: one more than the highest number of a processor.
 * @ret:    ended with bpf_switches_free().
 * Errors: -ENOSYS built without it; -ENOMEM; errors of the kernel, or of libbpf for a kernel without BTF.
 */
int bpf_switches_new(const struct bpf_source *source, size_t n_cpus, struct bpf_switches **ret);
void bpf_switches_free(struct bpf_switches *switches);
void bpf_switches_freep(struct bpf_switches **switches);

/*
 * bpf_switches_tend - unload an unneeded BPF program. To be called from time to time, for a while.
 * Some kernels run no BPF programs in some tasks; a second BPF program reports their successors, if the kernel has a
 * hook for it. After a second without such a task it is unloaded.
 * @now_ns: CLOCK_MONOTONIC.
 */
void bpf_switches_tend(struct bpf_switches *switches, uint64_t now_ns);

/* bpf_switches_stop - end tracing; existing records remain readable. */
void bpf_switches_stop(struct bpf_switches *switches);

/* Its records. Borrowed. */
struct switch_rings *bpf_switches_rings(struct bpf_switches *switches);

#endif
