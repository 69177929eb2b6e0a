/* SPDX-License-Identifier: MIT */
/* profile.c - a profile's life, and small questions to it. */
#include "src/profile/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/profile/strings.h"

int profile_new(struct profile **ret)
{
	struct profile *profile;
	struct strings *strings;
	int r;

	profile = calloc(1, sizeof *profile);
	if (!profile)
		return -ENOMEM;
	r = strings_new(&strings);
	if (r < 0) {
		free(profile);
		return r;
	}
	profile->strings = strings;
	*ret = profile;
	return 0;
}

int profile_add_string(struct profile *profile, const char *text, size_t n_bytes, const char **ret)
{
	return strings_add(profile->strings, text, n_bytes, ret);
}

void profile_free(struct profile *profile)
{
	if (!profile)
		return;
	free(profile->is_root);
	free(profile->frames);
	free(profile->stacks);
	free(profile->totals);
	free(profile->labels);
	free(profile->threads);
	free(profile->samples);
	strings_free(profile->strings);
	free(profile);
}

void profile_freep(struct profile **profile)
{
	profile_free(*profile);
}

const struct profile_thread *profile_find_thread(const struct profile *profile, int32_t pid, int32_t tid)
{
	for (size_t i = 0; i < profile->n_threads; i++)
		if (profile->threads[i].pid == pid && profile->threads[i].tid == tid)
			return &profile->threads[i];
	return NULL;
}

const char *profile_nothing(const struct profile *profile)
{
	return profile->python_only ? "[no Python]" : "[no stack]";
}

/* ---- Frames ---- */

enum frame_role frame_role_parse(const char *text)
{
	if (text && strcmp(text, "builtin") == 0)
		return ROLE_BUILTIN;
	if (text && strcmp(text, "internal") == 0)
		return ROLE_INTERNAL;
	return ROLE_NONE;
}

const char *profile_frame_module(const struct profile_frame *frame)
{
	if (frame->kind == FRAME_KERNEL)
		return "[kernel]";
	if (frame->kind == FRAME_TASK)
		return "[tasks]";
	if (frame->kind == FRAME_WAIT)
		return "[waits]";
	if (frame->kind == FRAME_UNSAMPLED)
		return "[not sampled]";
	if (frame->kind == FRAME_PYTHON)
		return frame->file ? frame->file : "[python]";
	return frame->module ? frame->module : "[anonymous]";
}

const char *profile_frame_module_label(const struct profile_frame *frame)
{
	const char *path = frame->kind == FRAME_PYTHON ? frame->file : frame->module;
	const char *label = frame->kind == FRAME_PYTHON ? frame->file_label : frame->module_label;
	const char *module = profile_frame_module(frame);

	return module == path && label ? label : module;
}

/* ---- Weights ---- */

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
		/* Compare weight / samples without division. */
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
