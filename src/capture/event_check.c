/* SPDX-License-Identifier: MIT */
/* event_check.c - whether events are available here, and why not; see event.h.
 *
 * The kernel's rules, beside those for any sampling (explain.c): events in the kernel
 * need the right to see that side (perf_event_paranoid at most 1, or
 * CAP_PERFMON), and a tracepoint's values need perf_event_paranoid -1, except for those of system
 * calls. Source: kernel/events/core.c, kernel/trace/trace_event_perf.c, Linux 6.12.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/capture/event.h"

static int open_own(const struct sampled_event *event, bool with_kernel)
{
	struct perf_event_attr attr = {
		.size = sizeof attr,
		.type = event->type,
		.config = event->config,
		.sample_period = 1u << 30,
		.sample_type = event->kind == EVENT_TRACEPOINT ? PERF_SAMPLE_RAW : PERF_SAMPLE_TID,
		.disabled = 1,
		.exclude_kernel = !with_kernel,
		.exclude_hv = 1,
	};
	CLEANUP(closep) int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : 0;
}

int event_check(const struct sampled_event *event)
{
	int r = open_own(event, true);

	if ((r == -EACCES || r == -EPERM) && !event->in_kernel)
		r = open_own(event, false);
	return r;
}

static void format_missing(const struct sampled_event *event, char *to, size_t n_bytes)
{
	if (event->kind == EVENT_HARDWARE)
		snprintf(to, n_bytes,
			 "this machine cannot count %s: its processor or virtual machine has no such counter. `--event "
			 "cpu-clock` (CPU time) and `--event page-faults` need none; `--event list` shows the "
			 "available events",
			 event->name);
	else if (event->kind == EVENT_TRACEPOINT)
		snprintf(to, n_bytes, "this kernel has no tracepoint %s; `--event list` shows its tracepoints",
			 event->name);
	else
		snprintf(to, n_bytes, "this kernel cannot count %s; `--event list` shows the available events",
			 event->name);
}

static void format_refused(const struct sampled_event *event, char *to, size_t n_bytes)
{
	long paranoid = proc_number("/proc/sys/kernel/perf_event_paranoid", 2);
	const char *capability = paranoid < 3 ? ", give it CAP_PERFMON" : ""; /* see explain.c */

	if (event->kind == EVENT_TRACEPOINT && event->config == 0)
		snprintf(to, n_bytes,
			 "only root may read tracefs, which describes %s: run probing as root, or, as root, `mount -o "
			 "remount,mode=755,gid=%u /sys/kernel/tracing`%s",
			 event->name, getgid(), event->in_kernel ? " and `sysctl kernel.perf_event_paranoid=-1`" : "");
	else if (event->kind == EVENT_TRACEPOINT)
		snprintf(to, n_bytes,
			 "perf_event_paranoid is %ld, and %s takes -1: run probing as root%s, or run "
			 "`sysctl kernel.perf_event_paranoid=-1` as root",
			 paranoid, event->name, capability);
	else if (event->in_kernel && paranoid > 1)
		snprintf(to, n_bytes,
			 "%s happen inside the kernel, and perf_event_paranoid is %ld: run probing as root%s, or run "
			 "`sysctl kernel.perf_event_paranoid=1` as root",
			 event->name, paranoid, capability);
	else
		snprintf(to, n_bytes,
			 "the kernel refuses to sample %s, although perf_event_paranoid is %ld: run probing "
			 "as root, or give it CAP_PERFMON",
			 event->name, paranoid);
}

void event_explain(int error, const struct sampled_event *event, char *to, size_t n_bytes)
{
	switch (error) {
	case -ENOENT:
	case -EOPNOTSUPP:
		format_missing(event, to, n_bytes);
		break;
	case -EACCES:
	case -EPERM:
		format_refused(event, to, n_bytes);
		break;
	case -ENODEV:
		if (event->kind != EVENT_TRACEPOINT) {
			format_missing(event, to, n_bytes);
			break;
		}
		snprintf(to, n_bytes,
			 "tracefs, which describes %s, is not mounted: as root, run `mount -t tracefs none "
			 "/sys/kernel/tracing`",
			 event->name);
		break;
	case -EBADMSG:
		snprintf(to, n_bytes, "the kernel's description of %s is not understood", event->name);
		break;
	case -EINVAL:
		snprintf(to, n_bytes, "the kernel does not take samples of %s", event->name);
		break;
	default:
		snprintf(to, n_bytes, "%s cannot be sampled: %s", event->name, strerror(-error));
	}
}
