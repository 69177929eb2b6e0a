/* capture.h - what a capture consists of. */
#ifndef PROBING_RECORD_CAPTURE_H
#define PROBING_RECORD_CAPTURE_H

#include "src/record/bpf.h"
#include "src/record/events.h"
#include "src/record/merge.h"
#include "src/record/record.h"
#include "src/record/streams.h"

/* The Python frames of the sample that comes next in their ring. */
struct pending {
	bool is_full;
	uint64_t n_malformed; /* of the ring, then: what was skipped since may have been between the two */
	struct python_record *record; /* PYTHON_RECORD_BYTES */
};

struct capture {
	struct rings rings;
	struct event_set events;
	struct merge merge;
	struct streams *streams; /* NULL: no late events */
	struct bpf_source *bpf;  /* NULL: another source */
	struct pending *pending; /* one a ring; NULL: another source */
	struct capture_counts counts;
	uint64_t lost_records; /* as told by LOST records */
	bool stopped;
};

#endif
