/* ahead.c - see ahead.h. */
#include "unwind/native/ahead.h"

#include <string.h>

/*
 * A trial: so many samples, in stretches by turns one way and the other. What else happens on a machine
 * makes single stretches slow; so pairs of them are counted, not their times summed up.
 */
enum { STRETCH_SAMPLES = 8, TRIAL_SAMPLES = 16 * STRETCH_SAMPLES, PERIOD_SAMPLES = 4096 };

static struct stack_start *start_of(struct ahead *ahead, pid_t tid)
{
	return &ahead->starts[mix64((uint64_t)tid) % AHEAD_THREADS];
}

/* The innermost frames, with none of them read. */
static void guess_first(const struct pc_table *pcs, const struct sample *sample)
{
	struct scout scout = { .slot = pc_table_find(pcs, sample->regs.value[MACHINE_REG_PC]) };

	if (scout.slot)
		scout_on(&scout, pcs, sample, AHEAD_FIRST_FRAMES);
}

void ahead_expect(struct ahead *ahead, const struct pc_table *pcs, const struct sample *sample)
{
	const struct stack_start *start = start_of(ahead, sample->tid);
	uint64_t depth = start->address - sample->regs.value[MACHINE_REG_SP];
	uint64_t n_bytes = sample->stack_bytes;

	if (ahead->way == AHEAD_BY_GUESS) {
		guess_first(pcs, sample);
		return;
	}
	if (start->tid == sample->tid && start->address != 0)
		n_bytes = MIN(depth, n_bytes);
	ahead->next = (uintptr_t)sample->stack;
	ahead->end = ahead->next + n_bytes;
}

static bool is_trial(const struct ahead *ahead)
{
	return ahead->trial.n_samples >= PERIOD_SAMPLES - TRIAL_SAMPLES;
}

void ahead_begin(struct ahead *ahead, const struct pc_table *pcs, const struct sample *sample)
{
	ahead->trial.began_ns = is_trial(ahead) ? monotonic_ns() : 0;
	if (ahead->way == AHEAD_BY_GUESS)
		guess_first(pcs, sample);
}

void ahead_done(struct ahead *ahead, const struct native_stack *stack)
{
	pid_t tid = stack->sample->tid;
	bool is_whole = stack->end == STACK_COMPLETE && stack->n_frames > 0;

	ahead_ask(ahead, ahead->end - ahead->next);
	*start_of(ahead, tid) = (struct stack_start){
		.tid = tid, .address = is_whole ? stack->frames[stack->n_frames - 1].cfa : 0,
	};
	ahead_note(ahead, ahead->trial.began_ns ? monotonic_ns() - ahead->trial.began_ns : 0, stack->n_frames);
}

/* One stretch each way is over: which one took less time a frame? */
static void judge(struct ahead_trial *trial)
{
	uint64_t guessed = trial->ns[AHEAD_BY_GUESS] * trial->n_frames[AHEAD_IN_ORDER];
	uint64_t in_order = trial->ns[AHEAD_IN_ORDER] * trial->n_frames[AHEAD_BY_GUESS];

	trial->score += (guessed < in_order) - (guessed > in_order);
	memset(trial->ns, 0, sizeof trial->ns);
	memset(trial->n_frames, 0, sizeof trial->n_frames);
}

void ahead_note(struct ahead *ahead, uint64_t ns, size_t n_frames)
{
	struct ahead_trial *trial = &ahead->trial;
	unsigned n;

	if (is_trial(ahead)) {
		trial->ns[ahead->way] += ns;
		trial->n_frames[ahead->way] += n_frames;
	}
	trial->n_samples++;
	if (!is_trial(ahead))
		return;
	n = trial->n_samples - (PERIOD_SAMPLES - TRIAL_SAMPLES);
	if (n % (AHEAD_N_WAYS * STRETCH_SAMPLES) == 0 && n > 0)
		judge(trial);
	ahead->way = n / STRETCH_SAMPLES % AHEAD_N_WAYS;
	if (n == TRIAL_SAMPLES) {
		ahead->way = trial->score > 0 ? AHEAD_BY_GUESS : AHEAD_IN_ORDER;
		*trial = (struct ahead_trial){ 0 };
	}
}
