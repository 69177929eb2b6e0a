/* SPDX-License-Identifier: MIT */
/* event.c - probing record --event: the event, its period, and messages if it is unavailable. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/record/record.h"
#include "src/columns/columns.h"

static int fail_event(const struct sampled_event *event, int error)
{
	char text[1024];

	event_explain(error, event, text, sizeof text);
	return cli_fail(error == -ENODEV || error == -ENOENT || error == -EOPNOTSUPP ? EXIT_FAILED : cli_status(error),
			"%s", text);
}

/* If every event is refused, do not blame this one. */
static int fail_check(const struct sampled_event *event, int error, pid_t pid)
{
	struct sampled_event clock;
	char text[1024];
	int r;

	r = event_find("cpu-clock", &clock);
	if (r >= 0)
		r = event_check(&clock);
	if (r >= 0)
		return fail_event(event, error);
	capture_explain(r, pid > 0 ? pid : getpid(), text, sizeof text);
	return cli_fail(cli_status(r), "%s", text);
}

/* The default event, which has its own fallbacks. */
static bool is_usual(const struct sampled_event *event)
{
	return strcmp(event->name, "cpu-clock") == 0;
}

static int check_options(const struct record_options *options)
{
	const struct sampled_event *event = &options->event;

	if (options->capture.source == SOURCE_POLL && !is_usual(event))
		return cli_fail(EXIT_USAGE, "--source poll reads stacks on a timer and has no events");
	if (options->capture.source == SOURCE_AGENT && !is_usual(event))
		return cli_fail(EXIT_USAGE, "--source agent samples by CPU clocks and has no other events");
	if (options->capture.source == SOURCE_BPF && event->kind == EVENT_TRACEPOINT &&
	    (options->capture.count > 1 || options->hz_given))
		return cli_fail(EXIT_USAGE, "--source bpf reads frames at a tracepoint each time: omit --source, or "
					    "--count and --frequency");
	if (store_has_limits(&options->pipeline.limits) && event->kind == EVENT_TRACEPOINT)
		return cli_fail(EXIT_USAGE,
				"--max-size and --retention drop samples, but not values of tracepoints: omit them, "
				"and end the recording with --duration");
	if (options->capture.no_kernel && event->in_kernel)
		return cli_fail(EXIT_USAGE, "%s happens in the kernel: omit --no-kernel", event->name);
	if (options->capture.count > 0 && event->kind == EVENT_CLOCK)
		return cli_fail(EXIT_USAGE, "%s is a clock: set the rate with -F", event->name);
	return EXIT_OK;
}

static int find_event(const char *name, struct sampled_event *ret)
{
	int r = event_find(name, ret);

	if (r == -EINVAL)
		return cli_fail(EXIT_USAGE, "a tracepoint is GROUP:NAME, as in sched:sched_switch, not %s", name);
	if (r < 0)
		return cli_fail(EXIT_USAGE, "there is no event %s; `probing record --event list` shows them", name);
	return EXIT_OK;
}

int record_choose_event(struct record_options *options, struct tracepoint **ret)
{
	struct sampled_event *event = &options->event;
	int r, status;

	if (!options->event_name)
		return EXIT_OK;
	status = find_event(options->event_name, event);
	if (status == EXIT_OK)
		status = check_options(options);
	if (status != EXIT_OK || is_usual(event))
		return status;
	r = event_resolve(event, ret);
	if (r < 0)
		return fail_event(event, r);
	r = event_check(event);
	if (r < 0)
		return fail_check(event, r, options->targets.n_pids > 0 ? options->targets.pids[0] : 0);
	if (options->capture.count == 0 && !options->hz_given && event->usual_count > 0)
		options->capture.count = event->usual_count;
	options->capture.event = event;
	options->pipeline.tracepoint = *ret;
	options->pipeline.is_sparse = event->kind != EVENT_CLOCK;
	if (event->kind == EVENT_TRACEPOINT && !*ret && !options->quiet)
		cli_say("the values of %s are not stored: that needs a build with libtraceevent\n", event->name);
	return EXIT_OK;
}

/* ---- List of events ---- */

static int print_tracepoint(void *data, const char *name)
{
	(void)data;
	printf("%s\n", name);
	return 0;
}

int record_list_events(void)
{
	struct sampled_event event, any = { .kind = EVENT_TRACEPOINT, .name = "a tracepoint", .in_kernel = true };
	static const struct column list[] = { { "", 24, 0, true }, { "", 0, 2, true } };
	struct columns columns = { .list = list, .n = N_ELEMENTS(list), .out = stdout };
	size_t n_hardware = 0;
	char text[1024];
	int r;

	for (size_t n = 0; event_nth(n, &event); n++) {
		r = event_check(&event);
		n_hardware += r == 0 && event.kind == EVENT_HARDWARE;
		if (r != 0)
			continue;
		columns_put(&columns, event.name);
		columns_put(&columns, event_summary(&event));
		columns_end(&columns);
	}
	r = event_each_tracepoint(print_tracepoint, NULL);
	if (fflush(stdout) != 0)
		return cli_fail_write("-", -errno);
	if (n_hardware == 0)
		fputs("no hardware events: the processor, or the virtual machine, shows no counters\n", stderr);
	if (r < 0) {
		event_explain(r, &any, text, sizeof text);
		cli_say("no tracepoints: %s\n", text);
	}
	return EXIT_OK;
}

/* ---- Description ---- */

const char *record_unit(const struct record_options *options)
{
	return options->capture.event && options->event.kind != EVENT_CLOCK ? options->event.name : NULL;
}

int record_put_event(struct store *store, const struct record_options *options)
{
	if (!options->capture.event)
		return 0;
	return store_set_run_event(store, options->event.name, record_unit(options), options->capture.count);
}

const char *record_pace(const struct record_options *options, char *to, size_t n_bytes)
{
	const char *unit = record_unit(options);

	if (!unit)
		snprintf(to, n_bytes, "at %g Hz", options->capture.hz);
	else if (options->capture.count == 1)
		snprintf(to, n_bytes, "each of its %s", unit);
	else if (options->capture.count > 0)
		snprintf(to, n_bytes, "one in %llu of its %s", (unsigned long long)options->capture.count, unit);
	else
		snprintf(to, n_bytes, "its %s, at %g Hz", unit, options->capture.hz);
	return to;
}
