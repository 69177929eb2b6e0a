/* SPDX-License-Identifier: MIT */
/* callers.c - whether callers that were read late are valid for the sample.
 *
 * From 3.11 on functions that call each other share a native frame. The captured bytes prove
 * the innermost; its callers are read from memory after the thread has run on. That it still
 * exists then proves nothing: it may have returned, and another caller may have called it again
 * at the same address. No outside observation distinguishes the two.
 *
 * But the set of its callers can be learnt. Every look shows the caller at some moment, and a caller
 * with a share of the calls has the same share of the looks, however late they are. So
 * callers of a frame (a function, at an address) count if the callers, with their
 * instructions, have been the same in so many looks in a row. A frame whose callers
 * change starts again, and needs four times as many looks the next time, unless the earlier ones
 * had lasted for long: a program that enters its next phase does not alternate.
 *
 * A look counts if it has new information: a sample taken before the last look
 * is one of many that waited, and all of these show the same moment. For that reason a
 * sample that waited for long has no valid callers, either.
 *
 * A function with many callers can be valid if its calls last. This is tested: if a
 * look shows other callers than the one before, memory is read once more after the sample,
 * after a while in which the process ran. A rare caller is soon gone again, unless calls last:
 * the number of ended calls then yields their duration. Between two looks less than half of
 * such a time apart no other call fits, and a sample taken between them belongs to the
 * call that both show. That time is the thread's own: while it does not run it makes no calls.
 */
#include "unwind/stitch/callers.h"

#include <errno.h>
#include <stdlib.h>

#include "base/util.h"

enum {
	N_SLOTS = 8192,    /* if two frames share a slot, keep the later one */
	FIRST_NEEDED = 32, /* observations */
	MORE_NEEDED = 4,   /* factor */
	MAX_NEEDED = 8192,
	LONG_RUN = 512,
	MAX_LATE_NS = 10000000, /* later observations do not apply to the sample */
	N_CODES = 2048,
	N_THREADS = 1024,
	ENOUGH_WAITS = 16,
	MAX_WAITS = 128, /* at this number, halve both counts */
	TRY_OFTEN = 64,
	TRY_EVERY = 16, /* after that, every 16th time */
};

struct callers_seen {
	uint64_t frame;    /* hash of the frame this slot is about; 0: free */
	uint64_t callers;  /* hash of its callers */
	uint64_t look_ns;  /* the last observation */
	uint64_t ran_ns;   /* lower bound of the thread's run time until then */
	uint64_t since_ns; /* start of the current call: no other call fits between the observations since */
	uint32_t run;      /* counted observations since the callers changed */
	uint32_t needed;
	pid_t tid;
};

struct callers_thread {
	uint64_t ran_ns; /* from the first to the last sample of the thread */
};

struct callers_lasting {
	uint64_t code; /* code number */
	uint32_t n_waits, n_ended;
	uint32_t n_asked;
};

int callers_init(struct callers *callers)
{
	callers->slots = calloc(N_SLOTS, sizeof *callers->slots);
	callers->codes = calloc(N_CODES, sizeof *callers->codes);
	callers->threads = calloc(N_THREADS, sizeof *callers->threads);
	return callers->slots && callers->codes && callers->threads ? 0 : -ENOMEM;
}

void callers_done(struct callers *callers)
{
	free(callers->slots);
	free(callers->codes);
	free(callers->threads);
	*callers = (struct callers){ 0 };
}

static struct callers_thread *thread_of(struct callers *callers, pid_t tid)
{
	return &callers->threads[(unsigned)tid % N_THREADS];
}

void callers_ran(struct callers *callers, const struct sample *sample)
{
	struct callers_thread *thread = thread_of(callers, sample->tid);

	/* Threads that share a slot add their times. Longer times only make the check stricter. */
	thread->ran_ns += sample->weight;
}

static struct callers_lasting *lasting_of(struct callers *callers, const struct py_code *code)
{
	struct callers_lasting *lasting = &callers->codes[code->number % N_CODES];

	if (lasting->code != code->number)
		*lasting = (struct callers_lasting){ .code = code->number };
	return lasting;
}

/* A lower bound of half the duration of its calls; 0: unknown. */
static uint64_t lasts_ns(const struct callers_lasting *lasting)
{
	if (lasting->n_waits < ENOUGH_WAITS)
		return 0;
	return (uint64_t)lasting->n_waits * CALLERS_WAIT_NS / (lasting->n_ended + 1) / 2;
}

static bool may_ask(struct callers_lasting *lasting)
{
	return lasting->n_waits < TRY_OFTEN || lasting->n_asked++ % TRY_EVERY == 0;
}

void callers_waited(struct callers *callers, const struct py_code *code, bool are_there)
{
	struct callers_lasting *lasting = lasting_of(callers, code);

	if (lasting->n_waits == MAX_WAITS) {
		lasting->n_waits /= 2;
		lasting->n_ended /= 2;
	}
	lasting->n_waits++;
	lasting->n_ended += !are_there;
}

static uint64_t number_of_frame(const struct py_frame *frame)
{
	return mix64(frame->code->number ^ frame->address) | 1;
}

static uint64_t number_of_callers(const struct py_frame *frames, size_t n)
{
	uint64_t number = 0;

	for (size_t i = 1; i < n; i++) {
		number = mix64(number ^ frames[i].code->number);
		number = mix64(number ^ (uint32_t)frames[i].instruction);
	}
	return number;
}

static void begin_anew(struct callers_seen *seen)
{
	if (seen->run < LONG_RUN)
		seen->needed = MIN(seen->needed * MORE_NEEDED, (uint32_t)MAX_NEEDED);
	seen->run = 0;
}

/* Whether another call fits between the last observation and this one. */
static bool may_have_ended(const struct callers_seen *seen, const struct sample *sample, uint64_t ran_ns,
			   uint64_t now_ns, uint64_t lasts)
{
	return seen->tid != sample->tid || ran_ns - seen->ran_ns + (now_ns - sample->time_ns) >= lasts;
}

bool callers_look(struct callers *callers, const struct py_frame *frames, size_t n, const struct sample *sample,
		  uint64_t now_ns, bool *ret_ask)
{
	uint64_t frame = number_of_frame(&frames[0]), number = number_of_callers(frames, n);
	struct callers_lasting *lasting = lasting_of(callers, frames[0].code);
	struct callers_seen *seen = &callers->slots[frame % N_SLOTS];
	uint64_t ran_ns = thread_of(callers, sample->tid)->ran_ns;
	bool are_others, are_known;

	are_others = seen->frame != frame || seen->callers != number;
	if (seen->frame != frame)
		*seen = (struct callers_seen){ .frame = frame, .needed = FIRST_NEEDED };
	else if (are_others)
		begin_anew(seen);
	are_known = seen->run >= seen->needed && now_ns - sample->time_ns <= MAX_LATE_NS;
	if (are_others || may_have_ended(seen, sample, ran_ns, now_ns, lasts_ns(lasting)))
		seen->since_ns = now_ns;
	if (sample->time_ns > seen->look_ns)
		seen->run += seen->run < UINT32_MAX;
	seen->callers = number;
	seen->tid = sample->tid;
	seen->look_ns = now_ns;
	seen->ran_ns = ran_ns;
	*ret_ask = are_others && may_ask(lasting);
	return are_known || sample->time_ns > seen->since_ns;
}
