/* SPDX-License-Identifier: MIT */
/*
 * view_filter.c - see view.h.
 *
 * A recording's stacks are one tree, so whether a stack contains a function is computed once for
 * each of its nodes, callers first.
 */
#include "src/cli/view.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"

/* ---- Functions and modules ---- */

static bool is_function(const struct glob_list *wanted, const struct profile_frame *frame)
{
	return glob_list_match_function(wanted, frame->name);
}

/* Match the path, or the part after any slash, because modules are shown like that. */
static bool is_of_module(const struct glob_list *wanted, const struct profile_frame *frame)
{
	for (const char *end = profile_frame_module(frame); end;) {
		if (glob_list_match(wanted, end))
			return true;
		end = strchr(end, '/');
		end = end ? end + 1 : NULL;
	}
	return false;
}

typedef bool match_function(const struct glob_list *wanted, const struct profile_frame *frame);

/* For each frame: whether it matches. NULL: out of memory. */
static bool *match_frames(const struct profile *profile, const struct glob_list *wanted, match_function *matches)
{
	bool *matching = calloc(profile->n_frames + 1, sizeof *matching);

	for (size_t i = 0; matching && i < profile->n_frames; i++)
		matching[i] = matches(wanted, &profile->frames[i]);
	return matching;
}

/* Whether the function at a frame, or one into which it is inlined, matches. */
static bool is_at(const struct profile *profile, const bool *matching, int32_t place)
{
	for (int64_t frame = place; frame >= 0; frame = profile->frames[frame].inlined_into)
		if (matching[frame])
			return true;
	return false;
}

/* Drop the stacks that contain no matching frame; without @keep, those that contain one. */
static int keep_through(struct profile *profile, const bool *matching, bool keep)
{
	CLEANUP(freep) bool *through = calloc(profile->n_stacks + 1, sizeof *through);
	size_t n = 0;

	if (!through)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_stacks; i++) {
		const struct profile_stack *stack = &profile->stacks[i];

		through[i] = (stack->parent >= 0 && through[stack->parent]) || is_at(profile, matching, stack->frame);
	}
	for (size_t i = 0; i < profile->n_totals; i++)
		if ((profile->totals[i].stack >= 0 && through[profile->totals[i].stack]) == keep)
			profile->totals[n++] = profile->totals[i];
	profile->n_totals = n;
	n = 0;
	for (size_t i = 0; i < profile->n_samples; i++)
		if ((profile->samples[i].stack >= 0 && through[profile->samples[i].stack]) == keep)
			profile->samples[n++] = profile->samples[i];
	profile->n_samples = n;
	return 0;
}

/* @ret_matching: by frame; may be NULL. */
static int keep_frames(struct profile *profile, const struct glob_list *wanted, match_function *matches, bool keep,
		       bool **ret_matching)
{
	CLEANUP(freep) bool *matching = NULL;
	int r;

	if (wanted->n == 0)
		return 0;
	matching = match_frames(profile, wanted, matches);
	if (!matching)
		return -ENOMEM;
	r = keep_through(profile, matching, keep);
	if (r >= 0 && ret_matching)
		*ret_matching = TAKE(matching);
	return r;
}

/* ---- Processes and threads ---- */

/* @name NULL: unknown. */
static bool is_wanted(const struct glob_list *wanted, int32_t id, const char *name)
{
	return wanted->n == 0 || glob_list_have_number(wanted, id) || (name && glob_list_match(wanted, name));
}

static bool is_wanted_thread(const struct view *view, int32_t pid, int32_t tid, const struct profile_thread *thread)
{
	return (view->pids.n == 0 || glob_list_have_number(&view->pids, pid)) &&
	       is_wanted(&view->processes, pid, thread ? thread->process : NULL) &&
	       is_wanted(&view->threads, tid, thread ? thread->name : NULL);
}

/* Totals of a thread are adjacent, as stored. */
static void keep_totals(struct profile *profile, const struct view *view)
{
	struct profile_total last = { .pid = -1 };
	bool wanted = false;
	size_t n = 0;

	for (size_t i = 0; i < profile->n_totals; i++) {
		const struct profile_total total = profile->totals[i];

		if (last.pid != total.pid || last.tid != total.tid)
			wanted = is_wanted_thread(view, total.pid, total.tid,
						  profile_find_thread(profile, total.pid, total.tid));
		last = total;
		if (wanted)
			profile->totals[n++] = total;
	}
	profile->n_totals = n;
}

static int keep_samples(struct profile *profile, const struct view *view)
{
	CLEANUP(freep) bool *wanted = calloc(profile->n_threads + 1, sizeof *wanted);
	size_t n = 0;

	if (!wanted)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_threads; i++) {
		const struct profile_thread *thread = &profile->threads[i];

		wanted[i] = is_wanted_thread(view, thread->pid, thread->tid, thread);
	}
	for (size_t i = 0; i < profile->n_samples; i++)
		if (wanted[profile->samples[i].thread])
			profile->samples[n++] = profile->samples[i];
	profile->n_samples = n;
	return 0;
}

int view_filter(struct profile *profile, const struct view *view)
{
	int r = 0;

	if (view->pids.n > 0 || view->threads.n > 0 || view->processes.n > 0) {
		keep_totals(profile, view);
		r = keep_samples(profile, view);
	}
	if (r >= 0)
		r = keep_frames(profile, &view->focus, is_function, true, NULL);
	if (r >= 0)
		r = keep_frames(profile, &view->modules, is_of_module, true, NULL);
	if (r >= 0)
		r = keep_frames(profile, &view->ignore, is_function, false, NULL);
	if (r >= 0)
		r = keep_frames(profile, &view->functions, is_function, true, &profile->is_root);
	profile->python_only = view->no_native;
	return r;
}
