/* SPDX-License-Identifier: MIT */
/* tracks.h - what a recording knows beside stacks, over time; see export.h. Private. */
#ifndef PROBING_EXPORT_TRACKS_H
#define PROBING_EXPORT_TRACKS_H

#include <stddef.h>
#include <stdint.h>

#include "base/interner.h"
#include "src/export/export.h"

enum track_kind { TRACK_STEP, TRACK_TORCH_STEP, TRACK_TORCH, TRACK_SPAN, TRACK_COMMUNICATION, TRACK_N_KINDS };

/* A time with a name. Those of one pid, kind and thread belong together; they nest or overlap. CLOCK_REALTIME. */
struct track_slice {
	int64_t pid, thread; /* thread: 0: of the whole process */
	uint64_t begin_ns, end_ns;
	uint32_t name; /* in tracks->names */
	enum track_kind kind;
};

/* A number that holds from a moment on, until the next one of that name. */
struct track_value {
	int64_t pid; /* TRACK_MACHINE: of the machine */
	uint64_t time_ns;
	double value;
	uint32_t name;
};

#define TRACK_MACHINE 0

struct tracks {
	struct track_slice *slices; /* by pid, kind, thread, begin; of those that begin at once, the longest first */
	size_t n_slices, slices_allocated;
	struct track_value *values; /* by pid, name, time */
	size_t n_values, values_allocated;
	struct interner names;
};

/* "torch", as the category of a slice. */
const char *track_kind_name(enum track_kind kind);

#endif
