/* SPDX-License-Identifier: MIT */
/* nameless.c - time in functions that are named by an offset in their module. */
#include "src/report/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/util.h"
#include "src/report/sums.h"

/* Whether the name is an offset in a module: "libx.so+0x12a0". */
static bool is_nameless(const struct profile_frame *frame)
{
	const char *base;
	size_t n;

	if (!frame || frame->kind != FRAME_NATIVE || !frame->module)
		return false;
	base = path_base_name(frame->module);
	n = strlen(base);
	return strncmp(frame->name, base, n) == 0 && strncmp(frame->name + n, "+0x", 3) == 0 && frame->name[n + 3] &&
	       frame->name[n + 3 + strspn(frame->name + n + 3, "0123456789abcdef")] == '\0';
}

static bool is_of(const struct report_nameless_module *module, const struct profile_frame *frame)
{
	if (module->build_id && frame->build_id)
		return strcmp(module->build_id, frame->build_id) == 0;
	return strcmp(module->path, frame->module) == 0;
}

static struct report_nameless_module *module_of(struct report_nameless *nameless, const struct profile_frame *frame)
{
	for (size_t i = 0; i < nameless->n; i++)
		if (is_of(&nameless->modules[i], frame))
			return &nameless->modules[i];
	nameless->modules[nameless->n] = (struct report_nameless_module){ .path = frame->module,
									  .build_id = frame->build_id };
	return &nameless->modules[nameless->n++];
}

/* A module has lines if its debug information was read; it has no names for the rest. */
static void find_lines(const struct profile *profile, struct report_nameless *nameless)
{
	for (size_t i = 0; i < profile->n_frames; i++) {
		const struct profile_frame *frame = &profile->frames[i];

		if (frame->kind != FRAME_NATIVE || !frame->module || frame->line == 0)
			continue;
		for (size_t k = 0; k < nameless->n; k++)
			nameless->modules[k].has_lines |= is_of(&nameless->modules[k], frame);
	}
}

static int compare_modules(const void *a, const void *b)
{
	const struct report_nameless_module *left = a, *right = b;

	if (left->share != right->share)
		return left->share > right->share ? -1 : 1;
	return strcmp(left->path, right->path);
}

int report_nameless(const struct profile *profile, bool show_interpreter, struct report_nameless *ret)
{
	CLEANUP(report_sums_done) struct report_sums sums = {};
	struct report_nameless nameless = {};
	int r;

	r = report_sums_of_frames(profile, show_interpreter, order_by_function, &sums);
	if (r < 0)
		return r;
	nameless.modules = calloc(sums.n_items + 1, sizeof *nameless.modules);
	if (!nameless.modules)
		return -ENOMEM;
	for (size_t i = 0; i < sums.n_items; i++) {
		const struct report_sum *sum = &sums.items[i];
		const double share = whole_share(&sums.whole, sum->self);

		if (sum->self == 0 || !is_nameless(sum->frame))
			continue;
		module_of(&nameless, sum->frame)->share += share;
		nameless.share += share;
	}
	find_lines(profile, &nameless);
	qsort(nameless.modules, nameless.n, sizeof *nameless.modules, compare_modules);
	*ret = nameless;
	return 0;
}

void report_nameless_done(struct report_nameless *nameless)
{
	free(nameless->modules);
}
