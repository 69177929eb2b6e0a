/* SPDX-License-Identifier: MIT */
/* entries.h - samples that differ in nothing but time and weight, as one entry: for formats whose samples are sums. */
#ifndef PROBING_EXPORT_ENTRIES_H
#define PROBING_EXPORT_ENTRIES_H

#include "src/profile/profile.h"

/* What samples of an entry have in common, and their sums. */
struct entry {
	int32_t pid, tid, stack;
	uint8_t verdict, state, gil, gc;
	bool has_words; /* verdict, state, gil and gc are known */
	uint64_t samples, weight;
	const struct profile_thread *thread; /* NULL: unknown */
	size_t first, n;                     /* the samples or totals, in order */
};

/* Ended with entries_done(). */
struct entries {
	struct entry *items; /* by pid, tid, stack, then words */
	size_t n, allocated;
	uint32_t *order; /* indices into the profile's samples, or totals if it has no samples; in the order of time */
};

/* entries_init - the entries of a profile, which must outlive @ret. Errors: -ENOMEM; -EOVERFLOW 2^32 samples. */
int entries_init(const struct profile *profile, struct entries *ret);
void entries_done(struct entries *entries);

#endif
