/* still.h - whether a sampled thread has stood still since its sample. Private. */
#ifndef PROBING_RECORD_STILL_H
#define PROBING_RECORD_STILL_H

#include <sys/types.h>

#include "src/record/ring.h"

struct still_question {
	pid_t tid;
	uint64_t time_ns; /* of its sample */
	const struct ring *lent; /* the ring whose record that is, at its position */
};

/*
 * still_holds - did the thread leave its processor right after the sample, and is it away still?
 * By the switches that the rings tell of up to now, read or not. False also where that is not known.
 * @rings: n_rings, of all processors, with events that tell of switches (PERF_RECORD_SWITCH).
 */
bool still_holds(const struct ring *rings, size_t n_rings, const struct still_question *question);

#endif
