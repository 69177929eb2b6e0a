/* SPDX-License-Identifier: MIT */
/* profile_weights.c - whether a profile is one of weights, or of numbers of samples. */
#include "src/store/store.h"

bool profile_has_weights(const struct profile *profile)
{
	for (size_t i = 0; i < profile->n_totals; i++)
		if (profile->totals[i].weight > 0)
			return true;
	return false;
}

bool profile_weights_differ(const struct profile *profile)
{
	const struct profile_total *first = NULL;

	for (size_t i = 0; i < profile->n_totals; i++) {
		const struct profile_total *total = &profile->totals[i];

		if (total->samples == 0 && total->weight == 0)
			continue;
		if (!first)
			first = total;
		/* weight / samples of both */
		if ((unsigned __int128)total->weight * first->samples !=
		    (unsigned __int128)first->weight * total->samples)
			return true;
	}
	return false;
}

void profile_drop_weights(struct profile *profile)
{
	for (size_t i = 0; i < profile->n_totals; i++)
		profile->totals[i].weight = 0;
	for (size_t i = 0; i < profile->n_samples; i++)
		profile->samples[i].weight = 0;
}
