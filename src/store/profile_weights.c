/* SPDX-License-Identifier: MIT */
/* profile_weights.c - whether a profile is one of weights, or of numbers of samples. */
#include "src/store/profile_private.h"

bool profile_is_sampled(const struct profile *profile, int32_t stack)
{
	return stack < 0 || profile->frames[profile->stacks[stack].frame].kind != FRAME_UNSAMPLED;
}

void profile_count_sampled(struct profile *profile)
{
	for (size_t i = 0; i < profile->n_totals; i++)
		if (!profile_is_sampled(profile, profile->totals[i].stack))
			profile->totals[i].samples = 0;
}

bool profile_is_empty(const struct profile *profile)
{
	for (size_t i = 0; i < profile->n_totals; i++)
		if (profile->totals[i].samples > 0 || profile->totals[i].weight > 0)
			return false;
	return true;
}

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
	size_t n = 0;

	for (size_t i = 0; i < profile->n_totals; i++)
		profile->totals[i].weight = 0;
	for (size_t i = 0; i < profile->n_samples; i++) {
		if (!profile_is_sampled(profile, profile->samples[i].stack))
			continue;
		profile->samples[n] = profile->samples[i];
		profile->samples[n++].weight = 0;
	}
	profile->n_samples = n;
}
