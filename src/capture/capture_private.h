/* SPDX-License-Identifier: MIT */
/* capture_private.h - the parts of a capture. */
#ifndef PROBING_CAPTURE_CAPTURE_PRIVATE_H
#define PROBING_CAPTURE_CAPTURE_PRIVATE_H

#include "src/capture/accounts.h"
#include "src/capture/agent_source.h"
#include "src/capture/bpf_switches.h"
#include "src/capture/events.h"
#include "src/capture/reader_affinity.h"
#include "src/capture/merge.h"
#include "src/capture/own_periods.h"
#include "src/capture/sample_periods.h"
#include "src/capture/frame_sample_match.h"
#include "src/capture/poller.h"
#include "src/capture/capture.h"
#include "src/capture/run_times.h"
#include "src/capture/stolen.h"
#include "src/capture/dup_events.h"

struct capture {
	struct perf_rings rings;
	struct event_set events;
	struct event_set switches; /* samples as threads leave the processor; empty: none */
	struct merge merge;
	struct dup_events *dup_events; /* NULL: no late events */
	struct own_periods own_periods;
	struct bpf_source *bpf;            /* NULL: another source */
	struct bpf_switches *bpf_switches; /* NULL: perf records report switches, or nothing does */
	int switch_refusal;                /* why; 0: see capture_switch_refusal() */
	struct frame_sample_match matches;
	struct sample_periods periods; /* of events that are counted by the kernel, at a frequency */
	struct task_set wanted;        /* if all processes are sampled: those whose samples are wanted */
	bool wake_on_live_read;        /* only samples that need live memory make the rings readable at once */
	bool no_children;              /* drop samples of other processes */
	pid_t awaits_exec;             /* then: the child that has not called exec yet; 0: it has, or does not matter */
	struct capture_counts counts;
	uint64_t lost_records; /* by LOST records */
	uint64_t lost_before;  /* before capture_begin(), by the kernel's count */
	uint64_t began_ns;
	uint64_t since_ns; /* CLOCK_MONOTONIC, of capture_begin(): earlier samples are dropped */
	bool stopped;
	struct reader_affinity affinity; /* where memory is read right after each sample */
	bool reads_at_once;
	bool hides_switches;        /* they are there for descheduled.c alone */
	uint64_t paused_ns;         /* CLOCK_MONOTONIC, since when; 0: it is not paused */
	int clock;                  /* for readers of waiting threads; -1: none */
	uint64_t stopped_ns;        /* of the pending CAPTURE_END; 0: none */
	bool has_ended;             /* CAPTURE_END was returned */
	struct accounts accounts;   /* of the sampled processes; if is_accounted */
	uint64_t period_ns;         /* weight of a sample then */
	bool is_accounted;          /* weights are CPU time, and ought to add up to the accounts */
	struct run_times run_times; /* where records of switches come with samples of CPU time */
	bool times_runs;
	struct stolen stolen; /* where is_accounted */
	bool has_pending;     /* an event waits until the one before it has been given out */
	struct capture_event pending;
	uint64_t given_ns;          /* of CAPTURE_UNSAMPLED, up to now */
	uint64_t before_ns;         /* by the events' count at capture_begin() */
	uint64_t used_ns;           /* by them, once it is stopped */
	uint64_t missing_ns;        /* its part in no sample and no earlier CAPTURE_UNSAMPLED */
	uint64_t unsampled_ns;      /* of the pending CAPTURE_UNSAMPLED ... */
	size_t next_unsampled;      /* ... from this account on */
	struct poller *poller;      /* instead of all of the above; NULL: perf events */
	struct agent_source *agent; /* the same */
	int refusal;                /* the reason, if SOURCE_AUTO chose it */
};

#endif
