/* SPDX-License-Identifier: MIT */
/*
 * kineto_tree.c - finds what ran within what, and makes stacks and samples of it.
 *
 * Events of a thread nest by their times. Rounding lets some end a little after the event around them, or begin a little
 * before the end of the one before; they are cut, so that each moment of a thread belongs to one stack. A sample is a time
 * in which the innermost event stays the same.
 * Work on a GPU has the stack of the call that launched it, and a frame of its own: a flame graph of the streams shows
 * which functions of the host caused it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/import/kineto.h"
#include "src/import/lines.h"

static const char step_name[] = "ProfilerStep#";

int64_t kineto_step_of(const char *name)
{
	uint64_t number;

	if (strncmp(name, step_name, strlen(step_name)) != 0 ||
	    !piece_number(piece_of(name + strlen(step_name)), &number) || number > INT64_MAX)
		return -1;
	return (int64_t)number;
}

/* ---- Order ---- */

static int compare(int64_t one, int64_t other)
{
	return one < other ? -1 : one > other;
}

/* Of events with the same times the outer kind is first: a function calls operations, these call CUDA. */
static int by_place(const void *left, const void *right)
{
	const struct kineto_event *one = left, *other = right;

	return compare(one->thread, other->thread)	 ?: compare(one->start_ns, other->start_ns)
	       ?: compare(other->end_ns, one->end_ns) ?: compare(one->kind, other->kind)
	       ?: compare(one->parent, other->parent);
}

/* qsort() may change the order of equal events: parent holds their place in the file meanwhile. */
static void order(struct kineto *kineto)
{
	for (size_t i = 0; i < kineto->n_events; i++)
		kineto->events[i].parent = (int32_t)i;
	if (kineto->n_events > 0)
		qsort(kineto->events, kineto->n_events, sizeof *kineto->events, by_place);
	for (size_t i = 0; i < kineto->n_events; i++) {
		struct kineto_thread *thread = &kineto->threads[kineto->events[i].thread];

		kineto->events[i].parent = -1;
		if (thread->n++ == 0)
			thread->first = i;
	}
}

static int by_correlation(const void *left, const void *right, void *data)
{
	const struct kineto *kineto = data;
	uint32_t one = *(const uint32_t *)left, other = *(const uint32_t *)right;

	return compare(kineto->events[one].correlation, kineto->events[other].correlation) ?: compare(one, other);
}

static int by_start(const void *left, const void *right, void *data)
{
	const struct kineto *kineto = data;
	uint32_t one = *(const uint32_t *)left, other = *(const uint32_t *)right;

	return compare(kineto->events[one].start_ns, kineto->events[other].start_ns) ?: compare(one, other);
}

static bool is_launch(const struct kineto *kineto, const struct kineto_event *event)
{
	(void)kineto;
	return event->kind == KINETO_CALL && event->correlation != GPU_UNKNOWN;
}

static bool is_step(const struct kineto *kineto, const struct kineto_event *event)
{
	return event->kind == KINETO_ANNOTATION && kineto_step_of(kineto_text(kineto, event->name)) >= 0;
}

static bool is_work(const struct kineto *kineto, const struct kineto_event *event)
{
	(void)kineto;
	return kineto_is_on_gpu(event->kind);
}

static int by_device(const void *left, const void *right, void *data)
{
	const struct kineto *kineto = data;
	const struct kineto_event *one = &kineto->events[*(const uint32_t *)left];
	const struct kineto_event *other = &kineto->events[*(const uint32_t *)right];

	return compare(kineto->details[one->detail].device, kineto->details[other->detail].device)
		       ?: by_start(left, right, data);
}

static int list_events(struct kineto *kineto, bool (*wanted)(const struct kineto *, const struct kineto_event *),
		       int (*before)(const void *, const void *, void *), uint32_t **ret, size_t *ret_n)
{
	size_t n = 0;

	for (size_t i = 0; i < kineto->n_events; i++)
		n += wanted(kineto, &kineto->events[i]);
	*ret = calloc(n + 1, sizeof **ret);
	if (!*ret)
		return -ENOMEM;
	*ret_n = 0;
	for (size_t i = 0; i < kineto->n_events; i++)
		if (wanted(kineto, &kineto->events[i]))
			(*ret)[(*ret_n)++] = (uint32_t)i;
	qsort_r(*ret, n, sizeof **ret, before, kineto);
	return 0;
}

/* ---- Frames ---- */

/* "train.py(12): step" has three parts; false: another form. */
static bool split_python(struct piece text, struct sink_frame *ret)
{
	const char *close = memmem(text.at, text.n, "): ", 3), *open;
	uint64_t line;

	if (!close)
		return false;
	open = memrchr(text.at, '(', (size_t)(close - text.at));
	if (!open || open == text.at || !piece_number((struct piece){ open + 1, (size_t)(close - open) - 1 }, &line) ||
	    line > INT32_MAX)
		return false;
	ret->file = (struct piece){ text.at, (size_t)(open - text.at) };
	ret->line = (int)line;
	ret->name = (struct piece){ close + 3, text.n - (size_t)(close + 3 - text.at) };
	return ret->name.n > 0;
}

static int make_frame(struct kineto *kineto, const struct kineto_event *event, int64_t *ret)
{
	struct sink_frame frame = { .kind = FRAME_NATIVE };
	struct piece text = piece_of(kineto_text(kineto, event->name));

	frame.name = text;
	if (event->kind == KINETO_PYTHON)
		frame.kind = split_python(text, &frame) || text.at[0] != '<' ? FRAME_PYTHON : FRAME_NATIVE;
	else if (event->kind == KINETO_ANNOTATION)
		frame.kind = FRAME_PYTHON;
	if (is_step(kineto, event)) /* one name for all steps, so that a flame graph adds them up */
		frame.name = piece_of(kineto_common_name(kineto, event->name));
	return sink_frame(kineto->sink, &frame, ret);
}

/* ---- Samples ---- */

static int put_sample(struct kineto *kineto, const struct kineto_thread *thread, int64_t stack, int64_t start_ns,
		      int64_t end_ns)
{
	struct sample_row row = { .pid = thread->sink_pid,
				  .tid = thread->sink_tid,
				  .time_ns = kineto->started_ns + (uint64_t)end_ns,
				  .stack = stack,
				  .weight = (uint64_t)(end_ns - start_ns),
				  .verdict = VERDICT_APPROXIMATE,
				  .end = STACK_COMPLETE };

	return sink_sample(kineto->sink, &row);
}

/* A thread while its events are walked through. */
struct walk {
	struct kineto *kineto;
	struct kineto_thread *thread;
	int32_t *open; /* events that have begun, the innermost last */
	size_t n, allocated;
	int64_t now_ns;
};

/* The time until @until_ns is the innermost event's. */
static int pass(struct walk *walk, int64_t until_ns)
{
	struct kineto *kineto = walk->kineto;
	struct kineto_segment segment = { .start_ns = walk->now_ns, .end_ns = until_ns };
	struct kineto_event *event;
	int r;

	if (until_ns <= walk->now_ns)
		return 0;
	walk->now_ns = until_ns;
	if (walk->n == 0)
		return 0;
	segment.event = walk->open[walk->n - 1];
	event = &kineto->events[segment.event];
	event->self_ns += segment.end_ns - segment.start_ns;
	r = grow(&kineto->segments, kineto->n_segments, &kineto->segments_allocated, sizeof *kineto->segments);
	if (r < 0)
		return r;
	kineto->segments[kineto->n_segments++] = segment;
	walk->thread->n_segments++;
	return put_sample(kineto, walk->thread, event->stack, segment.start_ns, segment.end_ns);
}

static int pass_ends(struct walk *walk, int64_t until_ns)
{
	int r = 0;

	while (r >= 0 && walk->n > 0 && walk->kineto->events[walk->open[walk->n - 1]].end_ns <= until_ns) {
		r = pass(walk, walk->kineto->events[walk->open[walk->n - 1]].end_ns);
		walk->n--;
	}
	return r < 0 ? r : pass(walk, until_ns);
}

/* An event that lies mostly behind the end of the one around it is not within it, but after it. */
static void leave_overlapping(struct walk *walk, const struct kineto_event *event)
{
	while (walk->n > 0) {
		int64_t end_ns = walk->kineto->events[walk->open[walk->n - 1]].end_ns;

		if (event->end_ns <= end_ns || end_ns - event->start_ns >= event->end_ns - end_ns)
			return;
		walk->n--;
	}
}

static bool is_operation(const struct kineto_event *event)
{
	return event->kind == KINETO_OP || event->kind == KINETO_ANNOTATION;
}

static int enter(struct walk *walk, int32_t index)
{
	struct kineto_event *event = &walk->kineto->events[index];
	struct sink_frame parts;
	int64_t frame, below = 0;
	int r;

	if (walk->n > 0) {
		const struct kineto_event *around = &walk->kineto->events[walk->open[walk->n - 1]];

		event->parent = walk->open[walk->n - 1];
		event->end_ns = MIN(event->end_ns, around->end_ns);
		event->python = around->python;
		event->operation = is_operation(around) ? event->parent : around->operation;
		below = around->stack;
	}
	if (event->kind == KINETO_PYTHON && split_python(piece_of(kineto_text(walk->kineto, event->name)), &parts))
		event->python = event->name;
	r = make_frame(walk->kineto, event, &frame);
	if (r >= 0)
		r = sink_stack(walk->kineto->sink, below, frame, &event->stack);
	if (r >= 0)
		r = grow(&walk->open, walk->n, &walk->allocated, sizeof *walk->open);
	if (r >= 0)
		walk->open[walk->n++] = index;
	return r;
}

static int walk_thread(struct kineto *kineto, struct kineto_thread *thread)
{
	struct walk walk = { .kineto = kineto, .thread = thread };
	int r = 0;

	thread->first_segment = kineto->n_segments;
	for (size_t i = thread->first; i < thread->first + thread->n && r >= 0; i++) {
		if (kineto->events[i].kind > KINETO_LAST_OF_HOST)
			continue;
		r = pass_ends(&walk, kineto->events[i].start_ns);
		leave_overlapping(&walk, &kineto->events[i]);
		if (r >= 0)
			r = enter(&walk, (int32_t)i);
	}
	if (r >= 0)
		r = pass_ends(&walk, INT64_MAX);
	free(walk.open);
	return r;
}

size_t kineto_segment_at(const struct kineto *kineto, const struct kineto_thread *thread, int64_t time_ns)
{
	size_t low = thread->first_segment, high = low + thread->n_segments;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (kineto->segments[middle].end_ns <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* ---- Work on GPUs ---- */

static struct kineto_event *launch_of(const struct kineto *kineto, int64_t correlation)
{
	size_t low = 0, high = kineto->n_launches;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (kineto->events[kineto->launches[middle]].correlation < correlation)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == kineto->n_launches || kineto->events[kineto->launches[low]].correlation != correlation)
		return NULL;
	return &kineto->events[kineto->launches[low]];
}

static int put_work(struct kineto *kineto, struct kineto_thread *thread, size_t index)
{
	struct kineto_event *event = &kineto->events[index];
	const struct kineto_event *launch = launch_of(kineto, event->correlation);
	int64_t frame;
	int r;

	event->self_ns = event->end_ns - event->start_ns;
	if (launch) {
		event->parent = (int32_t)(launch - kineto->events);
		event->operation = launch->operation;
		event->python = launch->python;
	}
	r = make_frame(kineto, event, &frame);
	if (r >= 0)
		r = sink_stack(kineto->sink, launch ? launch->stack : 0, frame, &event->stack);
	if (r >= 0 && event->self_ns > 0)
		r = put_sample(kineto, thread, event->stack, event->start_ns, event->end_ns);
	if (r >= 0 && event->operation >= 0) /* the sink has refused a sum that does not fit */
		kineto->events[event->operation].gpu_ns += event->self_ns;
	return r;
}

int kineto_tree(struct kineto *kineto)
{
	int r;

	order(kineto);
	r = list_events(kineto, is_launch, by_correlation, &kineto->launches, &kineto->n_launches);
	if (r >= 0)
		r = list_events(kineto, is_step, by_start, &kineto->steps, &kineto->n_steps);
	if (r >= 0)
		r = list_events(kineto, is_work, by_device, &kineto->work, &kineto->n_work);
	for (size_t i = 0; i < kineto->n_threads && r >= 0; i++)
		if (!kineto->threads[i].is_gpu)
			r = walk_thread(kineto, &kineto->threads[i]);
	for (size_t i = 0; i < kineto->n_threads && r >= 0; i++) {
		struct kineto_thread *thread = &kineto->threads[i];

		for (size_t j = thread->first; thread->is_gpu && j < thread->first + thread->n && r >= 0; j++)
			r = put_work(kineto, thread, j);
	}
	return r;
}
