/* SPDX-License-Identifier: MIT */
/*
 * block_flags.c - verdict, end, GIL, garbage collection and state of a sample as one number.
 *
 * The numbers are part of the file format: an enumeration may only grow at its end, within its bits.
 */
#include <errno.h>

#include "src/store/block.h"
#include "src/store/times.h"

enum {
	END_SHIFT = 3,
	GIL_SHIFT = 6,
	GC_SHIFT = 8,
	STATE_SHIFT = 10,
	FLAG_BITS = 14,
};

_Static_assert(VERDICT_EXACT == 0 && VERDICT_PYTHON == 4 && VERDICT_N <= 8, "in files");
_Static_assert(STACK_COMPLETE == 0 && STACK_FRAME_LIMIT == 5 && STACK_N_ENDS <= 8, "in files");
_Static_assert(ANSWER_UNKNOWN == 0 && ANSWER_NO == 1 && ANSWER_YES == 2, "in files");
_Static_assert(STATE_NONE == 0 && STATE_RUNNING == 1 && STATE_SLEEP == 3 && STATE_BLOCKED == 8 && STATE_N <= 16,
	       "in files");

int block_flags(const struct sample_row *row, unsigned *ret)
{
	if ((unsigned)row->verdict >= VERDICT_N || (unsigned)row->end >= STACK_N_ENDS ||
	    (unsigned)row->gil > ANSWER_YES || (unsigned)row->gc > ANSWER_YES || (unsigned)row->state >= STATE_N)
		return -EINVAL;
	*ret = (unsigned)row->verdict | (unsigned)row->end << END_SHIFT | (unsigned)row->gil << GIL_SHIFT |
	       (unsigned)row->gc << GC_SHIFT | (unsigned)row->state << STATE_SHIFT;
	return 0;
}

int block_unflags(uint64_t flags, struct sample_row *ret)
{
	struct sample_row row = *ret;
	unsigned again;

	if (flags >> FLAG_BITS != 0)
		return -EBADMSG;
	row.verdict = (enum verdict)(flags & 7);
	row.end = (enum stack_end)(flags >> END_SHIFT & 7);
	row.gil = (enum answer)(flags >> GIL_SHIFT & 3);
	row.gc = (enum answer)(flags >> GC_SHIFT & 3);
	row.state = (enum thread_state)(flags >> STATE_SHIFT & 15);
	if (block_flags(&row, &again) < 0)
		return -EBADMSG;
	*ret = row;
	return 0;
}

int block_check_row(const struct sample_row *row)
{
	unsigned ignored;

	if (row->time_ns == 0 || row->time_ns > TIMES_MAX_NS || row->weight > INT64_MAX || row->stack < 0 ||
	    row->stack == INT64_MAX || row->pid < 0 || row->tid < 0)
		return -EINVAL;
	return block_flags(row, &ignored);
}
