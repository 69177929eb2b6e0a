/* SPDX-License-Identifier: MIT */
/* frames.c - the Python frames of each evaluation, and how sure they are.
 *
 * An evaluation's innermost frame comes from captured bytes: its own anchor
 * (up to 3.12), the next inner anchor, or the register or slot in which the loop
 * keeps its frame. Only if none of these is available does live memory
 * provide it. The frames behind it are read from memory now; the captured
 * bytecode pointer then shows whether the innermost is still the one that ran.
 */
#include <errno.h>
#include <time.h>

#include "base/util.h"
#include "unwind/stitch/merge.h"

static int view_of(const struct evaluation *evaluation)
{
	return merge_view(evaluation->native);
}

/* An evaluation's innermost frame, from live memory. */
static uint64_t live_top(struct merge *merge, const struct evaluation *evaluation)
{
	int n = merge_live(merge);

	for (int k = 0; k < n; k++)
		if (merge->live[k].address == evaluation->anchor.address)
			return merge->live[k].top;
	return 0;
}

/* Whether this captured frame is the caller of evaluation n. */
static bool is_caller(const struct merge *merge, size_t n, uint64_t frame)
{
	if (!py_anchor_tells_top(merge->runtime))
		return frame == merge->evaluations[n].anchor.outer_top;
	if (n + 1 < merge->n)
		return frame == merge->evaluations[n + 1].anchor.top || (frame == 0 && merge_is_outermost(merge, n));
	return frame == 0 || !native_is_whole(merge->native);
}

/*
 * Whether a frame's chain ends at evaluation n's anchor and continues with the frame that called it. A frame that was
 * popped and whose memory was reused fails here. Appends the frames if it does.
 */
static int walk_to_anchor(struct merge *merge, size_t n, uint64_t top)
{
	const struct evaluation *evaluation = &merge->evaluations[n];
	const struct native_frame *native = &merge->native->frames[evaluation->native];
	size_t before = merge->frames.n;
	uint64_t end, outer;
	bool ends_here;
	int r;

	r = py_walk(merge->runtime, top, &merge->frames, &end, &outer);
	if (r < 0)
		return r;
	/*
	 * In 3.12 the shim lies beside the anchor, in 3.13 it is the anchor. In 3.11 the last frame is a normal one, in
	 * the interpreter's memory.
	 */
	if (!py_anchor_tells_top(merge->runtime))
		ends_here = end == evaluation->anchor.address;
	else
		ends_here = (end >= native->sp && end < native->cfa) ||
			    (merge->frames.n > before && end == merge->frames.frames[merge->frames.n - 1].address);
	if (ends_here && is_caller(merge, n, outer))
		return 0;
	merge->frames.n = before;
	return -ESTALE;
}

static int walk_frame_object(struct merge *merge, struct evaluation *evaluation)
{
	uint64_t end, outer;
	int r;

	r = py_walk(merge->runtime, evaluation->anchor.top, &merge->frames, &end, &outer);
	if (r < 0)
		return r;
	evaluation->top = evaluation->anchor.top;
	evaluation->n_frames = merge->frames.n - evaluation->first_frame;
	evaluation->is_stale = true;
	return 0;
}

/* Find the innermost frame and read its callers. *ret_captured: whether captured bytes led to it. */
static int read_evaluation(struct merge *merge, size_t n, bool *ret_captured)
{
	struct evaluation *evaluation = &merge->evaluations[n];
	uint64_t top = 0;
	int r = -ENODATA;

	*ret_captured = true;
	evaluation->first_frame = merge->frames.n;
	if (py_anchor_tells_top(merge->runtime))
		top = evaluation->anchor.top;
	else if (n > 0)
		top = merge->evaluations[n - 1].anchor.outer_top;
	else if (merge_is_held(merge))
		top = live_top(merge, evaluation);
	else
		location_read(&evaluation->place->frame[view_of(evaluation)], 0, merge->native, evaluation->native,
			      &top);
	if (top != 0)
		r = walk_to_anchor(merge, n, top);
	if (r < 0 && r != -ENOMEM) {
		*ret_captured = false;
		evaluation->is_stale = top != 0;
		/* Even if its caller has changed, a frame object is the best available. */
		if (py_anchor_is_frame(merge->runtime))
			return walk_frame_object(merge, evaluation);
		top = live_top(merge, evaluation);
		r = top ? walk_to_anchor(merge, n, top) : -ENODATA;
	}
	if (r < 0)
		return r;
	evaluation->top = top;
	evaluation->n_frames = merge->frames.n - evaluation->first_frame;
	return 0;
}

/* Learn where this evaluation keeps its variables. */
static void learn_locations(struct merge *merge, struct evaluation *evaluation)
{
	/* Longest instruction with its inline caches. */
	enum { MAX_INSTRUCTION_BYTES = 24 };
	const struct py_frame *innermost = &merge->frames.frames[evaluation->first_frame];
	uint64_t bytecode = innermost->code->bytecode;
	struct place *place = evaluation->place;
	int view = view_of(evaluation);

	location_vote(&place->bytecode[view], merge->native, evaluation->native, bytecode,
		      bytecode + innermost->code->bytecode_bytes, merge->runtime);
	location_vote(&place->next[view], merge->native, evaluation->native, innermost->pointer,
		      innermost->pointer + MAX_INSTRUCTION_BYTES, merge->runtime);
	location_vote(&place->frame[view], merge->native, evaluation->native, evaluation->top, evaluation->top + 1,
		      NULL);
}

static bool knows_locations(const struct evaluation *evaluation)
{
	int view = view_of(evaluation);

	return location_is_settled(&evaluation->place->bytecode[view]) &&
	       location_is_settled(&evaluation->place->next[view]);
}

/* Drop frames called after the sample: those inside the function that ran. */
static void drop_newer(const struct merge *merge, struct evaluation *evaluation)
{
	const struct py_frame *frames = &merge->frames.frames[evaluation->first_frame];

	for (size_t i = 1; i < evaluation->n_frames; i++)
		if (frames[i].code == evaluation->captured_code) {
			evaluation->first_frame += i;
			evaluation->n_frames -= i;
			return;
		}
}

/* Whether the pointer is inside this code or at its end; while the loop runs an instruction, it points after it. */
static bool is_in(const struct py_code *code, uint64_t pointer)
{
	return pointer - code->bytecode <= code->bytecode_bytes;
}

/*
 * Whether the register has another use at this call. No function calls anything in its very first instruction, so a
 * caller's pointer cannot follow it.
 */
static bool is_reused(const struct merge *merge, const struct evaluation *evaluation, const struct py_code *code,
		      uint64_t pointer)
{
	return evaluation != &merge->evaluations[0] &&
	       pointer - code->bytecode - 1 < (uint64_t)py_instruction_bytes(merge->runtime);
}

/*
 * Find the code that ran from the bytecode pointers the evaluation held. The best location that points into known
 * bytecode decides; other locations had another use at this call. If none does, memory may never have shown this
 * function.
 */
static struct py_code *captured_code(struct merge *merge, const struct evaluation *evaluation, struct py_code *expected)
{
	const struct location_votes *votes = &evaluation->place->bytecode[view_of(evaluation)];
	uint64_t best = 0;
	int r = 0;

	for (unsigned rank = 0; r != -ENODATA; rank++) {
		struct py_code *code;
		uint64_t pointer;

		r = location_read(votes, rank, merge->native, evaluation->native, &pointer);
		if (r < 0)
			continue;
		if (is_in(expected, pointer))
			return expected;
		code = py_code_at(merge->runtime, pointer);
		if (code && is_reused(merge, evaluation, code, pointer))
			return NULL;
		if (code)
			return code;
		if (rank == 0)
			best = pointer;
	}
	return best ? py_code_find(merge->runtime, best) : NULL;
}

/*
 * At some moment during each instruction, the loop's pointer advances to the next one. Then it may already be the
 * starting instruction's. If the two are on different lines, the slightly later live memory decides.
 */
static int32_t running_instruction(const struct merge *merge, const struct evaluation *evaluation,
				   const struct py_code *code, int32_t next)
{
	int32_t before = py_instruction_before(merge->runtime, next);
	const struct py_frame *innermost = &merge->frames.frames[evaluation->first_frame];
	int line;

	if (view_of(evaluation) != VIEW_LEAF || innermost->code != code)
		return before;
	line = py_code_line(code, innermost->instruction);
	return line != py_code_line(code, before) && line == py_code_line(code, next) ? next : before;
}

/* The instruction that ran, if the captured bytes show it. */
static int32_t captured_instruction(struct merge *merge, const struct evaluation *evaluation,
				    const struct py_code *code)
{
	const struct location_votes *votes = &evaluation->place->next[view_of(evaluation)];
	int r = 0;

	for (unsigned rank = 0; r != -ENODATA; rank++) {
		uint64_t pointer;

		r = location_read(votes, rank, merge->native, evaluation->native, &pointer);
		if (r == 0 && pointer > code->bytecode && is_in(code, pointer))
			return running_instruction(merge, evaluation, code, (int32_t)(pointer - code->bytecode));
	}
	return PY_INSTRUCTION_UNKNOWN;
}

/*
 * The captured pointer proves the innermost frame, not its callers within the same evaluation. For these, the frame
 * must still exist: a popped frame's memory keeps its words, but they may lead to frames of later calls. Everything
 * read while the thread ran must be unchanged now. And the frame's caller must be certain: the frame may have been
 * popped and pushed again (callers.c).
 * One look after the frames of all evaluations shows whether they still exist.
 */
static bool callers_stay(struct merge *merge, const struct evaluation *evaluation)
{
	enum { CALLERS_COMPARED = 32 }; /* outer callers rarely change */
	uint64_t top;

	if (!merge->has_looked_again) {
		if (py_look_again(merge->runtime, merge->native->sample->tid) < 0)
			return false;
		merge->live_is_read = false;
		merge->has_looked_again = true;
	}
	top = live_top(merge, evaluation);
	return top != 0 && py_calls_into(merge->runtime, evaluation->top, top) &&
	       py_callers_stay(merge->runtime, &merge->frames.frames[evaluation->first_frame],
			       MIN(evaluation->n_frames, (size_t)CALLERS_COMPARED));
}

static bool callers_hold(struct merge *merge, const struct evaluation *evaluation)
{
	const struct py_frame *frames = &merge->frames.frames[evaluation->first_frame];
	bool are_believed, ask;

	if (evaluation->n_frames == 1)
		return !evaluation->is_stale;
	if (evaluation->is_stale || !callers_stay(merge, evaluation))
		return false;
	are_believed = callers_look(merge->callers, frames, evaluation->n_frames, merge->native->sample, monotonic_ns(),
				    &ask);
	if (ask && !merge->asked)
		merge->asked = evaluation;
	return are_believed;
}

void merge_look_again(struct merge *merge)
{
	const struct timespec wait = { .tv_nsec = CALLERS_WAIT_NS };
	const struct evaluation *evaluation = merge->asked;
	struct timespec before, after;
	clockid_t clock;
	int64_t ran;

	if (!evaluation || clock_getcpuclockid(merge->native->sample->pid, &clock) != 0 ||
	    clock_gettime(clock, &before) < 0)
		return;
	if (clock_nanosleep(CLOCK_MONOTONIC, 0, &wait, NULL) != 0 || clock_gettime(clock, &after) < 0)
		return;
	ran = (after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec;
	if (ran < CALLERS_WAIT_NS)
		return;
	merge->has_looked_again = false;
	callers_waited(merge->callers, merge->frames.frames[evaluation->first_frame].code,
		       callers_stay(merge, evaluation));
}

/* If the evaluation that this one called is still verified, memory shows the call better than a register. */
static bool still_calls(const struct merge *merge, const struct evaluation *evaluation)
{
	return evaluation != &merge->evaluations[0] && evaluation[-1].state == EVALUATION_VERIFIED;
}

static enum evaluation_state compare_captured(struct merge *merge, struct evaluation *evaluation)
{
	struct py_code *innermost = merge->frames.frames[evaluation->first_frame].code;
	struct py_code *code = captured_code(merge, evaluation, innermost);

	if (!code)
		return EVALUATION_UNCERTAIN;
	evaluation->captured_code = code;
	if (code != innermost || !still_calls(merge, evaluation))
		evaluation->captured_instruction = captured_instruction(merge, evaluation, code);
	if (code == innermost)
		return !py_code_may_be_newer(merge->runtime, code) && callers_hold(merge, evaluation)
			       ? EVALUATION_VERIFIED
			       : EVALUATION_UNCERTAIN;
	drop_newer(merge, evaluation);
	return EVALUATION_MOVED_ON;
}

static bool learns_while_held(const struct merge *merge, const struct evaluation *evaluation)
{
	return (merge->is_recorded && merge->explore) ||
	       (merge->native->sample->is_still && (merge->explore || !knows_locations(evaluation)));
}

/* Whether the leaf is the interpreter itself: it may be between two functions, with variables of either. */
static bool may_change_frames(const struct merge *merge, const struct evaluation *evaluation)
{
	return evaluation == &merge->evaluations[0] && merge_is_interpreter(merge, &merge->native->frames[0]);
}

/* Whether captured bytes contradict memory, although the thread seems to be descheduled. */
static bool is_contradicted(struct merge *merge, const struct evaluation *evaluation)
{
	struct py_code *innermost = merge->frames.frames[evaluation->first_frame].code;
	struct py_code *code;

	if (!merge->native->sample->is_still || may_change_frames(merge, evaluation))
		return false;
	code = captured_code(merge, evaluation, innermost);
	return code && code != innermost;
}

static enum evaluation_state judge_held_frames(struct merge *merge, struct evaluation *evaluation, bool captured)
{
	if (evaluation->n_frames > 0 && evaluation->place != &merge->generated) {
		if (is_contradicted(merge, evaluation))
			return EVALUATION_UNCERTAIN;
		if (learns_while_held(merge, evaluation)) /* later samples may need the locations */
			learn_locations(merge, evaluation);
	}
	return captured ? EVALUATION_VERIFIED : EVALUATION_UNCERTAIN;
}

/* Read the next frame objects in one call: each has its own memory. */
static void prefetch(struct merge *merge, size_t first)
{
	size_t n = MIN(merge->n - first, (size_t)PY_PREFETCH);
	uint64_t tops[PY_PREFETCH];

	for (size_t i = 0; i < n; i++)
		tops[i] = merge->evaluations[first + i].anchor.top;
	py_prefetch(merge->runtime, tops, n);
}

static bool seam_is_gone(const struct merge *merge, size_t n)
{
	enum { EVERY = 32 }; /* reading this many takes less time than a call and a return */

	return (n % EVERY == 0 || n == merge->n) && !native_seam_holds(merge->native);
}

/* Innermost first: what is known of a called evaluation decides about its caller. */
static void compare_all(struct merge *merge)
{
	merge->has_looked_again = false;
	for (size_t n = 0; n < merge->n; n++) {
		struct evaluation *evaluation = &merge->evaluations[n];

		if (evaluation->state != EVALUATION_READ)
			continue;
		evaluation->state = compare_captured(merge, evaluation);
		/* Memory shows another frame than the captured one that called the inner evaluation. */
		if (n > 0 && !evaluation->is_captured && evaluation->state == EVALUATION_VERIFIED)
			evaluation->state = EVALUATION_UNCERTAIN;
	}
}

int merge_read_frames(struct merge *merge)
{
	merge->frames.n = 0;
	merge->frames.is_cut = false;
	for (size_t n = 0; n < merge->n; n++) {
		struct evaluation *evaluation = &merge->evaluations[n];
		bool captured;
		int r;

		merge->seam_is_gone |= n > 0 && seam_is_gone(merge, n);
		if (n % PY_PREFETCH == 0 && py_anchor_is_frame(merge->runtime))
			prefetch(merge, n);
		r = read_evaluation(merge, n, &captured);
		if (r == -ENOMEM)
			return r;
		if (r < 0) {
			evaluation->state = EVALUATION_UNKNOWN;
			evaluation->n_frames = 0;
			continue;
		}
		if (merge_is_held(merge)) {
			evaluation->state = judge_held_frames(merge, evaluation, captured);
			continue;
		}
		if (evaluation->n_frames == 0) {
			evaluation->state = captured ? EVALUATION_VERIFIED : EVALUATION_UNCERTAIN;
			continue;
		}
		if (evaluation->place == &merge->generated) {
			evaluation->state = EVALUATION_UNCERTAIN;
			continue;
		}
		if (merge->explore || !knows_locations(evaluation))
			learn_locations(merge, evaluation);
		evaluation->state = EVALUATION_READ;
		evaluation->is_captured = captured;
	}
	merge->seam_is_gone |= seam_is_gone(merge, merge->n);
	compare_all(merge);
	return 0;
}
