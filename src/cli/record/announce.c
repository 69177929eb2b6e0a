/* SPDX-License-Identifier: MIT */
/* announce.c - the first lines of a recording: its source, its target, and missing features. */
#include <stdio.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/record/record.h"
#include "src/cli/target_errors.h"
#include "unwind/cpython/cpython.h"

enum { NAMED = 8 }; /* number of processes named in a message */

/* Print the stack source, why it is not a better one, and what would change that. */
static void announce_source(const struct record_options *options, const struct recording *recording)
{
	enum capture_source source = capture_source(recording->capture);
	char why[1024] = "as asked for";

	if (source == SOURCE_POLL) {
		if (capture_refusal(recording->capture) < 0)
			capture_explain(capture_refusal(recording->capture), recording->pid, why, sizeof why);
		cli_say("stack source: poll (memory alone, without native frames: %s)\n", why);
		return;
	}
	if (source == SOURCE_AGENT) {
		why[0] = '\0';
		if (capture_refusal(recording->capture) < 0)
			capture_explain(capture_refusal(recording->capture), recording->pid, why, sizeof why);
		cli_say("stack source: agent (exact: each thread reads its frames in a signal handler%s%s)\n",
			why[0] ? "; " : "", why);
		return;
	}
	if (source == SOURCE_BPF) {
		cli_say("stack source: bpf (exact: frames are read inside the sampling interrupt)\n");
	} else if (options->capture.source == SOURCE_WAKEUP ||
		   (options->event.kind == EVENT_TRACEPOINT && options->capture.count != 1)) {
		cli_say("stack source: wakeup (memory read right after each sample)\n");
	} else {
		capture_explain_source(why, sizeof why);
		cli_say("stack source: wakeup (memory read right after each sample; bpf %s)\n", why);
	}
	if (capture_rings_are_small(recording->capture))
		cli_say("rings of %zu KiB per CPU, the limit of locked memory: if samples are lost, raise "
			"kernel.perf_event_mlock_kb or `ulimit -l`, or give probing CAP_IPC_LOCK\n",
			capture_ring_bytes(recording->capture) / 1024);
}

/* Timers of a coarser clock than was asked for: the sums are right all the same. */
static void announce_rate(const struct record_options *options, const struct recording *recording)
{
	double max_hz = capture_max_hz(recording->capture);

	if (max_hz > 0 && options->capture.hz > max_hz)
		cli_say("at most %.0f samples per second of CPU time, the kernel's clock tick (CONFIG_HZ), instead of %g: "
			"each sample counts the time since the last one, so sums are right\n",
			max_hz, options->capture.hz);
}

void record_announce(const struct record_options *options, const struct recording *recording, const char *python,
		     int python_error)
{
	bool is_polled = capture_source(recording->capture) == SOURCE_POLL;
	bool is_by_agent = capture_source(recording->capture) == SOURCE_AGENT; /* it has the kernel's time, too */
	const char *what = is_polled ? "its times without stacks" : "its native frames";
	char known[128], pace[256];

	if (options->quiet)
		return;
	announce_source(options, recording);
	announce_rate(options, recording);
	if (!is_polled && !is_by_agent && !capture_has_kernel(recording->capture) && !options->capture.no_kernel)
		cli_say("time in the kernel is not sampled: needs root, CAP_PERFMON, or "
			"`sysctl kernel.perf_event_paranoid=1`\n");
	if (options->capture.mode != MODE_CPU && is_by_agent)
		cli_say("context switches are counted, not recorded: wait times are exact, and probing reads the reason of a wait every "
			"10 ms; kernel stacks need root or CAP_PERFMON\n");
	else if (options->capture.mode != MODE_CPU && !capture_has_switch_stacks(recording->capture))
		cli_say("stacks of waits are read during the wait, so waits of less than some milliseconds have stacks "
			"by chance; root or CAP_PERFMON gives stacks at the switch\n");
	if (recording->is_child || recording->targets.n > 1)
		return;
	if (python_error == -EOPNOTSUPP)
		cli_say("Python %s in process %d cannot be read (%s can): recording %s\n", python, (int)recording->pid,
			py_known_versions(known, sizeof known), what);
	else if (proc_is_32_bit(recording->pid))
		cli_say("process %d is a 32-bit program, whose stacks cannot be read: recording its times without "
			"stacks\n",
			(int)recording->pid);
	else if (!python[0])
		cli_say("no Python in process %d: recording %s\n", (int)recording->pid, what);
	else
		cli_say("recording Python %s, process %d, %s%s\n", python, (int)recording->pid,
			record_pace(options, pace, sizeof pace), options->duration_s > 0 ? "" : "; Ctrl-C ends it");
}

void record_announce_all(const struct record_options *options, const struct recording *recording)
{
	const struct targets *targets = &recording->targets;

	if (options->quiet)
		return;
	target_print_refused(targets, "recorded");
	if (targets->n == 1)
		return;
	cli_say("recording %zu processes: ", targets->n);
	for (size_t i = 0; i < targets->n && i < NAMED; i++) {
		CLEANUP(freep) char *name = proc_text(targets->pids[i], "comm", 64);

		cli_say("%s%d", i > 0 ? ", " : "", (int)targets->pids[i]);
		if (name && name[0])
			cli_say(" (%s)", name);
	}
	if (targets->n > NAMED)
		cli_say(" and %zu others", targets->n - NAMED);
	cli_say(", at %g Hz%s\n", options->capture.hz, options->duration_s > 0 ? "" : "; Ctrl-C ends it");
}
