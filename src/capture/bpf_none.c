/* SPDX-License-Identifier: MIT */
/* bpf_none.c - bpf.h and bpf_switches.h where the programs could not be built. */
#include <errno.h>
#include <stddef.h>

#include "src/capture/bpf_switches.h"

int bpf_source_new(const struct perf_rings *rings, const struct bpf_source_options *options, struct bpf_source **ret)
{
	(void)rings, (void)options, (void)ret;
	return -ENOSYS;
}

void bpf_source_free(struct bpf_source *source)
{
	(void)source;
}

void bpf_source_freep(struct bpf_source **source)
{
	(void)source;
}

void bpf_source_stop(struct bpf_source *source)
{
	(void)source;
}

int bpf_source_attach(const struct bpf_source *source, int event_fd, bool at_switch)
{
	(void)source, (void)event_fd, (void)at_switch;
	return -ENOSYS;
}

int bpf_source_watch(struct bpf_source *source, pid_t pid, const struct python_layout *layout)
{
	(void)source, (void)pid, (void)layout;
	return -ENOSYS;
}

void bpf_source_forget(struct bpf_source *source, pid_t pid)
{
	(void)source, (void)pid;
}

int bpf_source_judge(struct bpf_source *source, pid_t pid, bool wanted)
{
	(void)source, (void)pid, (void)wanted;
	return -ENOSYS;
}

void bpf_source_unjudge(struct bpf_source *source, pid_t pid)
{
	(void)source, (void)pid;
}

int bpf_source_direct_refusal(const struct bpf_source *source)
{
	(void)source;
	return -ENOSYS;
}

void bpf_source_set_floor(struct bpf_source *source, pid_t tid, uint64_t floor)
{
	(void)source, (void)tid, (void)floor;
}

void bpf_source_clear_floor(struct bpf_source *source, pid_t tid)
{
	(void)source, (void)tid;
}

int bpf_switches_new(const struct bpf_source *source, size_t n_cpus, struct bpf_switches **ret)
{
	(void)source, (void)n_cpus, (void)ret;
	return -ENOSYS;
}

void bpf_switches_free(struct bpf_switches *switches)
{
	(void)switches;
}

void bpf_switches_stop(struct bpf_switches *switches)
{
	(void)switches;
}

void bpf_switches_tend(struct bpf_switches *switches, uint64_t now_ns)
{
	(void)switches, (void)now_ns;
}

struct switch_rings *bpf_switches_rings(struct bpf_switches *switches)
{
	(void)switches;
	return NULL;
}
