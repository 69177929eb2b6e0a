/* callers.c - whether callers that were read late can be believed.
 *
 * From 3.11 on functions that call each other share a native frame. The captured bytes prove
 * the innermost; its callers are read from memory when the thread has gone on. That it is still
 * there then proves nothing: it may have been left, and called again at the same address by
 * somebody else. Nothing that can be seen from outside tells the two apart.
 *
 * What can be known is who calls it at all. Every look shows that at some moment, and a caller
 * that has a share of the calls has the same share of the looks, however late they are. So
 * callers are believed of a frame (a function, at an address) whose callers, with the
 * instructions that they stand at, have been the same in so many looks in a row. One that shows
 * others begins anew, and has to show four times as many the next time, unless the ones before
 * had stayed for long: a program that goes on to its next part is no flutter.
 *
 * Looks count if they tell something new: a sample that was taken before the last look was made
 * is one of many that waited, and all of these show the same moment. For that reason nothing is
 * said of a sample that waited for long, either.
 */
#include "unwind/stitch/callers.h"

#include <errno.h>
#include <stdlib.h>

#include "base/util.h"

enum {
	N_SLOTS = 8192, /* of two frames at the same one, the later is kept */
	FIRST_NEEDED = 32,
	MORE_NEEDED = 4, /* times */
	MOST_NEEDED = 8192,
	LONG_RUN = 512,
	MAX_LATE_NS = 1000000,
};

struct callers_seen {
	uint64_t frame;   /* which frame this is about, as a number; 0: a free slot */
	uint64_t callers; /* who called it, as a number */
	uint64_t look_ns; /* the last look that counted */
	uint32_t run;     /* looks that counted since somebody else did */
	uint32_t needed;
};

int callers_init(struct callers *callers)
{
	callers->slots = calloc(N_SLOTS, sizeof *callers->slots);
	return callers->slots ? 0 : -ENOMEM;
}

void callers_done(struct callers *callers)
{
	free(callers->slots);
	callers->slots = NULL;
}

static uint64_t number_of_frame(const struct py_frame *frame)
{
	return mix64(mix64((uintptr_t)frame->code) ^ frame->address) | 1;
}

static uint64_t number_of_callers(const struct py_frame *frames, size_t n)
{
	uint64_t number = 0;

	for (size_t i = 1; i < n; i++) {
		number = mix64(number ^ (uintptr_t)frames[i].code);
		number = mix64(number ^ (uint32_t)frames[i].instruction);
	}
	return number;
}

static void begin_anew(struct callers_seen *seen)
{
	if (seen->run < LONG_RUN)
		seen->needed = MIN(seen->needed * MORE_NEEDED, (uint32_t)MOST_NEEDED);
	seen->run = 0;
}

bool callers_look(struct callers *callers, const struct py_frame *frames, size_t n, uint64_t sample_ns,
		  uint64_t now_ns)
{
	uint64_t frame = number_of_frame(&frames[0]), number = number_of_callers(frames, n);
	struct callers_seen *seen = &callers->slots[frame % N_SLOTS];
	bool is_believed;

	if (seen->frame != frame)
		*seen = (struct callers_seen){ .frame = frame, .callers = number, .needed = FIRST_NEEDED };
	if (seen->callers != number) {
		begin_anew(seen);
		seen->callers = number;
	}
	is_believed = seen->run >= seen->needed && now_ns - sample_ns <= MAX_LATE_NS;
	if (sample_ns > seen->look_ns) {
		seen->look_ns = now_ns;
		seen->run += seen->run < UINT32_MAX;
	}
	return is_believed;
}
