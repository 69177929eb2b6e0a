/* SPDX-License-Identifier: MIT */
/*
 * load.c - samples of a recording as intervals by thread.
 *
 * A running sample covers the time that ends with it, a wait the time that begins with it. One that would begin before the end of the
 * last begins there; a gap of less than half of its length is closed, as a period varies a little. Weights that are counts have no
 * length: such a sample covers the time since the last one, but at most twice the mean.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/lanes/lanes_private.h"
#include "src/store/store.h"

#define MAX_TIME_NS (UINT64_C(1) << 61)
#define MAX_LENGTH_NS ((UINT64_C(1) << 55) - 1)

struct loading {
	struct lanes *lanes;
	const struct profile *profile;
	uint32_t *name_of;              /* by frame: plus 1; 0: not yet */
	uint32_t *call_of;              /* by stack + 1: plus 1 */
	struct lane_thread **thread_of; /* by thread of the profile */
};

static enum name_kind kind_of(const struct profile_frame *frame)
{
	switch (frame->kind) {
	case FRAME_KERNEL:
		return NAME_KERNEL;
	case FRAME_TASK:
		return NAME_TASK;
	case FRAME_WAIT:
		return NAME_WAIT;
	case FRAME_UNSAMPLED:
		return NAME_GROUP;
	default:
		break;
	}
	if (frame->role == ROLE_BUILTIN)
		return NAME_BUILTIN;
	return frame->kind == FRAME_PYTHON ? NAME_PYTHON : NAME_NATIVE;
}

static int name_of(struct loading *loading, int32_t index, uint32_t *ret)
{
	const struct profile_frame *frame = &loading->profile->frames[index];
	const char *file = frame->file ? frame->file_label : frame->module ? frame->module_label : NULL;
	int r;

	if (loading->name_of[index] > 0) {
		*ret = loading->name_of[index] - 1;
		return 0;
	}
	r = lane_calls_name(&loading->lanes->calls, kind_of(frame), frame->name[0] ? frame->name : "[unnamed]",
			    file ?: "", ret);
	if (r >= 0)
		loading->name_of[index] = *ret + 1;
	return r;
}

static int call_of(struct loading *loading, int32_t stack, uint32_t *ret)
{
	uint32_t *known = &loading->call_of[stack + 1], call = 0, name;
	int32_t path[LANES_MAX_DEPTH];
	size_t n;
	int r = 0;

	if (*known != 0) {
		*ret = *known - 1;
		return 0;
	}
	n = stack < 0 ? 0 : profile_path(loading->profile, stack, false, path, LANES_MAX_DEPTH);
	for (size_t i = 0; i < n && r >= 0; i++) {
		r = name_of(loading, path[i], &name);
		if (r >= 0)
			r = lane_calls_enter(&loading->lanes->calls, call, name, &call);
	}
	if (n == 0)
		r = lane_calls_name(&loading->lanes->calls, NAME_GROUP, profile_nothing(loading->profile), "", &name);
	if (n == 0 && r >= 0)
		r = lane_calls_enter(&loading->lanes->calls, 0, name, &call);
	if (r < 0)
		return r;
	*known = call + 1;
	*ret = call;
	return 0;
}

/* ---- Threads ---- */

static int compare_ids(int32_t pid, int32_t tid, const struct lane_thread *thread)
{
	if (pid != thread->pid)
		return pid < thread->pid ? -1 : 1;
	return tid < thread->tid ? -1 : tid > thread->tid;
}

static int set_text(char **to, const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		return -ENOMEM;
	free(*to);
	*to = copy;
	return 0;
}

static int add_thread(struct lanes *lanes, const struct profile_thread *known, size_t at, struct lane_thread **ret)
{
	struct lane_thread *thread;
	int r = grow(&lanes->threads, lanes->n_threads, &lanes->threads_allocated, sizeof *lanes->threads);

	if (r < 0)
		return r;
	thread = calloc(1, sizeof *thread);
	if (!thread)
		return -ENOMEM;
	memmove(&lanes->threads[at + 1], &lanes->threads[at], (lanes->n_threads - at) * sizeof *lanes->threads);
	lanes->threads[at] = thread;
	lanes->n_threads++;
	thread->pid = known->pid;
	thread->tid = known->tid;
	*ret = thread;
	return 0;
}

/* Names may come later than the first samples. */
static int find_thread(struct lanes *lanes, const struct profile_thread *known, struct lane_thread **ret)
{
	size_t low = 0, high = lanes->n_threads;
	int r = 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_ids(known->pid, known->tid, lanes->threads[middle]) > 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < lanes->n_threads && compare_ids(known->pid, known->tid, lanes->threads[low]) == 0)
		*ret = lanes->threads[low];
	else
		r = add_thread(lanes, known, low, ret);
	if (r >= 0)
		r = set_text(&(*ret)->name, known->name);
	if (r >= 0)
		r = set_text(&(*ret)->process, known->process);
	return r;
}

/* ---- Samples ---- */

/* Samples of a batch may be a little older than the last ones of the batch before. */
static int append(struct lane_thread *thread, const struct profile_sample *sample, uint32_t call, bool is_time)
{
	uint64_t last = thread->n > 0 ? interval_end(&thread->items[thread->n - 1]) : 0;
	uint64_t length = is_time ? MIN(sample->weight, MAX_LENGTH_NS) : 0, start = sample->time_ns, end = start;
	int r;

	if (start == 0 || start > MAX_TIME_NS)
		return 0;
	if (is_time && sample->state != STATE_NONE && sample->state != STATE_RUNNING)
		end = start + length;
	else
		start -= MIN(length, start);
	if (start < last || (last > 0 && start - last < length / 2))
		start = last;
	if (end <= start)
		end = start + 1;
	r = grow(&thread->items, thread->n, &thread->allocated, sizeof *thread->items);
	if (r < 0)
		return r;
	thread->items[thread->n++] = (struct interval){ .start_ns = start,
							.length_ns = MIN(end - start, MAX_LENGTH_NS),
							.state = sample->state,
							.gil = sample->gil,
							.gc = sample->gc,
							.call = call };
	return 0;
}

static int take_sample(struct loading *loading, const struct profile_sample *sample)
{
	struct lane_thread **thread = &loading->thread_of[sample->thread];
	uint32_t call;
	int r = 0;

	/* A task's wait is no time of its thread; time without samples has no place. */
	if (sample->state == STATE_AWAIT ||
	    (sample->stack >= 0 && !profile_is_sampled(loading->profile, sample->stack)))
		return 0;
	if (!*thread)
		r = find_thread(loading->lanes, &loading->profile->threads[sample->thread], thread);
	if (r >= 0)
		r = call_of(loading, sample->stack, &call);
	if (r >= 0)
		r = append(*thread, sample, call, !loading->profile->unit);
	if (r >= 0)
		loading->lanes->n_samples++;
	return r;
}

/* Samples of counts are moments: they reach back to the last one. */
static void stretch(struct lane_thread *thread)
{
	uint64_t mean;

	if (thread->n < 2)
		return;
	mean = (thread->items[thread->n - 1].start_ns - thread->items[0].start_ns) / (thread->n - 1);
	for (size_t i = thread->n - 1; i > 0; i--) {
		struct interval *item = &thread->items[i];
		uint64_t end = interval_end(item), since = end - interval_end(&thread->items[i - 1]);

		item->length_ns = MAX(MIN(MIN(since, 2 * mean), MAX_LENGTH_NS), UINT64_C(1));
		item->start_ns = end - item->length_ns;
	}
}

static int finish_threads(struct loading *loading)
{
	struct lanes *lanes = loading->lanes;
	int r = 0;

	for (size_t i = 0; i < loading->profile->n_threads && r >= 0; i++) {
		struct lane_thread *thread = loading->thread_of[i];

		if (!thread || thread->n == 0)
			continue;
		if (loading->profile->unit)
			stretch(thread);
		lanes_reach(lanes, thread->items[0].start_ns, interval_end(&thread->items[thread->n - 1]));
		r = columns_make(thread, &lanes->calls);
	}
	return r;
}

static int take_run(struct lanes *lanes, const struct profile *profile)
{
	int r = 0;

	lanes->started_ns = MIN(profile->run.started_ns, MAX_TIME_NS);
	lanes->is_live = profile->run.ended_ns == 0;
	if (profile->run.command)
		r = set_text(&lanes->command, profile->run.command);
	if (r >= 0 && profile->unit)
		r = set_text(&lanes->unit, profile->unit);
	return r;
}

static void loading_done(struct loading *loading)
{
	free(loading->name_of);
	free(loading->call_of);
	free(loading->thread_of);
}

/* Whether the samples of each thread are in the order of time. @last: by thread, zeroed. */
static bool is_ordered(const struct profile *profile, uint64_t *last)
{
	for (size_t i = 0; i < profile->n_samples; i++) {
		const struct profile_sample *sample = &profile->samples[i];

		if (sample->time_ns < last[sample->thread])
			return false;
		last[sample->thread] = sample->time_ns;
	}
	return true;
}

static int load(struct lanes *lanes, struct profile *profile)
{
	CLEANUP(loading_done) struct loading loading = { .lanes = lanes, .profile = profile };
	CLEANUP(freep) uint64_t *last = calloc(profile->n_threads + 1, sizeof *last);
	int r = take_run(lanes, profile);

	loading.name_of = calloc(profile->n_frames + 1, sizeof *loading.name_of);
	loading.call_of = calloc(profile->n_stacks + 1, sizeof *loading.call_of);
	loading.thread_of = calloc(profile->n_threads + 1, sizeof(struct lane_thread *));
	if (!last || !loading.name_of || !loading.call_of || !loading.thread_of)
		return -ENOMEM;
	if (!is_ordered(profile, last))
		profile_order_samples(profile);
	for (size_t i = 0; i < profile->n_samples && r >= 0; i++)
		r = take_sample(&loading, &profile->samples[i]);
	return r < 0 ? r : finish_threads(&loading);
}

int lanes_load_samples(struct lanes *lanes, int64_t after)
{
	CLEANUP(profile_freep) struct profile *profile = NULL;
	const struct profile_filter filter = { .with_samples = true, .by_block = true, .after = after };
	int r;

	r = profile_load_view(lanes->db, &filter, &profile);
	return r < 0 ? r : load(lanes, profile);
}
