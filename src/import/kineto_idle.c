/* SPDX-License-Identifier: MIT */
/*
 * kineto_idle.c - when GPUs worked, and what the host did while they did not.
 *
 * A gap is a time in which nothing runs on any stream of a GPU. It ends with some work, which a thread of the host
 * launched. If the launch began before the gap, the host was in time: the GPU's queue or a dependency took the gap.
 * Otherwise the gap belongs to what that thread did until it began the launch, and the rest of it to the launch.
 * Until the first work of a trace, and after the last one, the GPU is idle, too.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/import/kineto.h"

enum { MAX_DEVICES = 64 }; /* each walks through all times of the host */

/* ---- A gap ---- */

struct gap {
	struct kineto *kineto;
	const char *device;
	int64_t start_ns, end_ns;
	const struct kineto_event *next, *launch;
};

static int put_part(const struct gap *gap, const char *function, uint32_t python, bool launched, int64_t duration_ns)
{
	struct kineto *kineto = gap->kineto;
	const struct kineto_thread *thread = gap->launch ? &kineto->threads[gap->launch->thread] : NULL;
	int r;

	if (duration_ns <= 0)
		return 0;
	r = gpu_put_idle(kineto->writer,
			 &(struct gpu_idle_row){ .device = gap->device,
						 .start_ns = gap->start_ns,
						 .gap_ns = gap->end_ns - gap->start_ns,
						 .duration_ns = duration_ns,
						 .function = function,
						 .python = kineto_text(kineto, python),
						 .next = gap->next ? kineto_text(kineto, gap->next->name) : NULL,
						 .launched = launched,
						 .pid = thread ? thread->sink_pid : GPU_UNKNOWN,
						 .tid = thread ? thread->sink_tid : GPU_UNKNOWN });
	return r < 0 ? r : sink_row(kineto->sink, false);
}

/* Times of the host in a gap, added up by function. */
struct parts {
	struct ids ids;
	struct part {
		uint32_t name, python;
		int64_t duration_ns;
	} * items;
	size_t n, allocated;
};

static int add_part(struct parts *parts, const struct kineto_event *event, int64_t duration_ns)
{
	const uint32_t key[] = { event->name, event->python };
	int64_t id;
	int r;

	r = ids_add(&parts->ids, key, sizeof key, &id);
	if (r > 0) {
		r = grow(&parts->items, parts->n, &parts->allocated, sizeof *parts->items);
		if (r < 0)
			return r;
		parts->items[parts->n++] = (struct part){ .name = key[0], .python = key[1] };
	}
	if (r >= 0)
		parts->items[id - 1].duration_ns += duration_ns;
	return r;
}

/* What a thread did from the start of the gap on. @ret_known: how much of it some event covers. */
static int add_parts(const struct gap *gap, int64_t until_ns, struct parts *parts, int64_t *ret_known)
{
	const struct kineto *kineto = gap->kineto;
	const struct kineto_thread *thread = &kineto->threads[gap->launch->thread];
	size_t end = thread->first_segment + thread->n_segments;
	int r = 0;

	*ret_known = 0;
	for (size_t i = kineto_segment_at(kineto, thread, gap->start_ns); i < end && r >= 0; i++) {
		const struct kineto_segment *segment = &kineto->segments[i];
		int64_t part = MIN(segment->end_ns, until_ns) - MAX(segment->start_ns, gap->start_ns);

		if (segment->start_ns >= until_ns)
			break;
		*ret_known += part;
		r = add_part(parts, &kineto->events[segment->event], part);
	}
	return r;
}

static int put_late(const struct gap *gap)
{
	const struct kineto *kineto = gap->kineto;
	int64_t known, until_ns = gap->next ? MIN(gap->launch->start_ns, gap->end_ns) : gap->end_ns;
	struct parts parts = { 0 };
	int r;

	r = add_parts(gap, until_ns, &parts, &known);
	for (size_t i = 0; i < parts.n && r >= 0; i++)
		r = put_part(gap, kineto_common_name(kineto, parts.items[i].name), parts.items[i].python, false,
			     parts.items[i].duration_ns);
	ids_done(&parts.ids);
	free(parts.items);
	if (r >= 0)
		r = put_part(gap, NULL, 0, false, until_ns - gap->start_ns - known);
	if (r >= 0)
		r = put_part(gap, kineto_text(kineto, gap->launch->name), gap->launch->python, false,
			     gap->end_ns - until_ns);
	return r;
}

static int put_gap(const struct gap *gap)
{
	if (gap->end_ns <= gap->start_ns)
		return 0;
	if (!gap->launch)
		return put_part(gap, NULL, 0, false, gap->end_ns - gap->start_ns);
	if (gap->next && gap->launch->start_ns < gap->start_ns)
		return put_part(gap, NULL, 0, true, gap->end_ns - gap->start_ns);
	return put_late(gap);
}

/* ---- A GPU ---- */

static const struct kineto_event *work_at(const struct kineto *kineto, size_t i)
{
	return &kineto->events[kineto->work[i]];
}

static int64_t device_at(const struct kineto *kineto, size_t i)
{
	return kineto->details[work_at(kineto, i)->detail].device;
}

static int put_device(struct kineto *kineto, size_t first, size_t end)
{
	char text[24];
	struct gap gap = { .kineto = kineto, .device = kineto_device(kineto, device_at(kineto, first), text) };
	int r = 0;

	for (size_t i = first; i < end && r >= 0; i++) {
		gap.next = work_at(kineto, i);
		gap.launch = gap.next->parent >= 0 ? &kineto->events[gap.next->parent] : NULL;
		gap.end_ns = gap.next->start_ns;
		r = put_gap(&gap);
		gap.start_ns = MAX(gap.start_ns, gap.next->end_ns);
	}
	gap.next = NULL;
	gap.end_ns = kineto->last_ns;
	return r < 0 ? r : put_gap(&gap);
}

static int put_devices(struct kineto *kineto)
{
	size_t first = 0, n = 0;
	int r = 0;

	for (size_t i = 0; i < kineto->n_work && r >= 0; i++) {
		if (i + 1 < kineto->n_work && device_at(kineto, i + 1) == device_at(kineto, first))
			continue;
		if (++n > MAX_DEVICES)
			return sink_explain(kineto->sink, -EBADMSG, "it has more than %d GPUs", MAX_DEVICES);
		r = put_device(kineto, first, i + 1);
		first = i + 1;
	}
	return r;
}

/* ---- Steps ---- */

/* Times in which any GPU worked, in order, and all such time before each. */
struct busy {
	struct busy_time {
		int64_t start_ns, end_ns, before_ns;
	} * items;
	size_t n;
};

static int by_start(const void *left, const void *right)
{
	const struct busy_time *one = left, *other = right;

	return one->start_ns < other->start_ns ? -1 : one->start_ns > other->start_ns;
}

static int add_up(const struct kineto *kineto, struct busy *ret)
{
	size_t n = 0;

	ret->items = calloc(kineto->n_work + 1, sizeof *ret->items);
	if (!ret->items)
		return -ENOMEM;
	for (size_t i = 0; i < kineto->n_work; i++)
		ret->items[i] = (struct busy_time){ work_at(kineto, i)->start_ns, work_at(kineto, i)->end_ns, 0 };
	qsort(ret->items, kineto->n_work, sizeof *ret->items, by_start);
	for (size_t i = 0; i < kineto->n_work; i++) {
		struct busy_time *last = n > 0 ? &ret->items[n - 1] : NULL, time = ret->items[i];

		if (last && time.start_ns <= last->end_ns) {
			last->end_ns = MAX(last->end_ns, time.end_ns);
			continue;
		}
		time.before_ns = last ? last->before_ns + last->end_ns - last->start_ns : 0;
		ret->items[n++] = time;
	}
	ret->n = n;
	return 0;
}

static int64_t busy_until(const struct busy *busy, int64_t time_ns)
{
	size_t low = 0, high = busy->n;
	const struct busy_time *last;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (busy->items[middle].start_ns < time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return 0;
	last = &busy->items[low - 1];
	return last->before_ns + MIN(time_ns, last->end_ns) - last->start_ns;
}

static int put_steps(struct kineto *kineto)
{
	struct busy busy = { 0 };
	int r;

	r = add_up(kineto, &busy);
	for (size_t i = 0; i < kineto->n_steps && r >= 0; i++) {
		const struct kineto_event *step = &kineto->events[kineto->steps[i]];
		const struct kineto_thread *thread = &kineto->threads[step->thread];

		r = gpu_put_step(kineto->writer,
				 &(struct torch_step_row){ .number = kineto_step_of(kineto_text(kineto, step->name)),
							   .start_ns = step->start_ns,
							   .duration_ns = step->end_ns - step->start_ns,
							   .gpu_busy_ns = busy_until(&busy, step->end_ns) -
									  busy_until(&busy, step->start_ns),
							   .pid = thread->sink_pid,
							   .tid = thread->sink_tid });
		if (r >= 0)
			r = sink_row(kineto->sink, false);
	}
	free(busy.items);
	return r;
}

int kineto_idle(struct kineto *kineto)
{
	int r = put_devices(kineto);

	return r < 0 ? r : put_steps(kineto);
}
