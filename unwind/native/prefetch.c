/* SPDX-License-Identifier: MIT */
/* prefetch.c - see prefetch.h. */
#include "unwind/native/prefetch.h"

#include <string.h>

/*
 * A trial alternates between both ways, a few samples each. Other load slows down single intervals, so count which way
 * wins each pair instead of adding times.
 */
enum { INTERVAL_SAMPLES = 8, TRIAL_SAMPLES = 16 * INTERVAL_SAMPLES, PERIOD_SAMPLES = 4096 };

static struct stack_start *start_of(struct prefetch *prefetch, pid_t tid)
{
	return &prefetch->starts[mix64((uint64_t)tid) % PREFETCH_THREADS];
}

/* Prefetch the innermost frames by guesses. */
static void guess_first(const struct pc_table *pcs, const struct sample *sample)
{
	struct prefetch_guess prefetch_guess = { .slot = pc_table_find(pcs, sample->regs.value[MACHINE_REG_PC]) };

	if (prefetch_guess.slot)
		prefetch_guess_on(&prefetch_guess, pcs, sample, PREFETCH_FIRST_FRAMES);
}

void prefetch_expect(struct prefetch *prefetch, const struct pc_table *pcs, const struct sample *sample)
{
	const struct stack_start *start = start_of(prefetch, sample->tid);
	uint64_t depth = start->address - sample->regs.value[MACHINE_REG_SP];
	uint64_t n_bytes = sample->stack_bytes;

	if (prefetch->way == PREFETCH_BY_GUESS) {
		guess_first(pcs, sample);
		return;
	}
	if (start->tid == sample->tid && start->address != 0)
		n_bytes = MIN(depth, n_bytes);
	prefetch->next = (uintptr_t)sample->stack;
	prefetch->end = prefetch->next + n_bytes;
}

static bool is_trial(const struct prefetch *prefetch)
{
	return prefetch->trial.n_samples >= PERIOD_SAMPLES - TRIAL_SAMPLES;
}

void prefetch_begin(struct prefetch *prefetch, const struct pc_table *pcs, const struct sample *sample)
{
	prefetch->trial.began_ns = is_trial(prefetch) ? monotonic_ns() : 0;
	if (prefetch->way == PREFETCH_BY_GUESS)
		guess_first(pcs, sample);
}

void prefetch_done(struct prefetch *prefetch, const struct native_stack *stack)
{
	pid_t tid = stack->sample->tid;
	bool is_whole = stack->end == STACK_COMPLETE && stack->n_frames > 0;

	prefetch_ask(prefetch, prefetch->end - prefetch->next);
	*start_of(prefetch, tid) = (struct stack_start){
		.tid = tid,
		.address = is_whole ? stack->frames[stack->n_frames - 1].cfa : 0,
	};
	prefetch_note(prefetch, prefetch->trial.began_ns ? monotonic_ns() - prefetch->trial.began_ns : 0,
		      stack->n_frames);
}

/* After one interval of each way: compare the time per frame. */
static void judge(struct prefetch_trial *trial)
{
	uint64_t guessed = trial->ns[PREFETCH_BY_GUESS] * trial->n_frames[PREFETCH_IN_ORDER];
	uint64_t in_order = trial->ns[PREFETCH_IN_ORDER] * trial->n_frames[PREFETCH_BY_GUESS];

	trial->score += (guessed < in_order) - (guessed > in_order);
	memset(trial->ns, 0, sizeof trial->ns);
	memset(trial->n_frames, 0, sizeof trial->n_frames);
}

void prefetch_note(struct prefetch *prefetch, uint64_t ns, size_t n_frames)
{
	struct prefetch_trial *trial = &prefetch->trial;
	unsigned n;

	if (is_trial(prefetch)) {
		trial->ns[prefetch->way] += ns;
		trial->n_frames[prefetch->way] += n_frames;
	}
	trial->n_samples++;
	if (!is_trial(prefetch))
		return;
	n = trial->n_samples - (PERIOD_SAMPLES - TRIAL_SAMPLES);
	if (n % (PREFETCH_N_WAYS * INTERVAL_SAMPLES) == 0 && n > 0)
		judge(trial);
	prefetch->way = n / INTERVAL_SAMPLES % PREFETCH_N_WAYS;
	if (n == TRIAL_SAMPLES) {
		prefetch->way = trial->score > 0 ? PREFETCH_BY_GUESS : PREFETCH_IN_ORDER;
		*trial = (struct prefetch_trial){ 0 };
	}
}
