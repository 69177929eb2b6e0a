/* SPDX-License-Identifier: MIT */
/*
 * export_speedscope.c - for https://www.speedscope.app: a profile per thread, samples in the order of time.
 *
 * Format: file-format-spec.ts of speedscope, a "sampled" profile: each sample a list of indices into shared.frames,
 * outermost first, and its weight. Unsampled time of a thread has no width: the view "Time Order" shows the
 * order, its axis the sum of weights. The same function on the same file and line is one frame there, whichever
 * module it comes from.
 */
#include <errno.h>

#include "base/json.h"
#include "base/util.h"
#include "src/export/export.h"
#include "src/export/timeline.h"

static void put_frames(struct json *json, const struct labels *labels, bool lines)
{
	to_json_key(json, "shared");
	to_json_object(json);
	to_json_key(json, "frames");
	to_json_array(json);
	for (size_t i = 0; i < labels->n_items; i++) {
		const struct label *label = &labels->items[i];
		const char *file = label->file ?: label->module;

		to_json_object(json);
		to_json_put_string(json, "name", label->text);
		if (file)
			to_json_put_string(json, "file", file);
		if (lines && label->first_line > 0)
			to_json_put_integer(json, "line", label->first_line);
		to_json_object_end(json);
	}
	to_json_array_end(json);
	to_json_object_end(json);
}

static void put_thread_name(struct json *json, const struct profile_thread *thread, bool with_process)
{
	CLEANUP(freep) char *name = NULL;
	int n;

	if (with_process)
		n = asprintf(&name, "%s (%d) / %s (%d)", *thread->process ? thread->process : "process", thread->pid,
			     *thread->name ? thread->name : "thread", thread->tid);
	else
		n = asprintf(&name, "%s (%d)", *thread->name ? thread->name : "thread", thread->tid);
	if (n < 0 && json->error == 0)
		json->error = -ENOMEM;
	to_json_put_string(json, "name", n < 0 ? "" : name);
}

static void put_stacks(struct json *json, const struct timeline *timeline, const struct timeline_thread *thread,
		       uint32_t *path)
{
	to_json_key(json, "samples");
	to_json_array(json);
	for (size_t i = 0; i < thread->n; i++) {
		uint32_t node = timeline_node(timeline, timeline_sample(timeline, thread, i));
		uint32_t depth = timeline->tree->nodes[node].depth;

		timeline_path(timeline, node, path);
		to_json_array(json);
		for (uint32_t d = 0; d < depth; d++)
			to_json_integer(json, path[d]);
		to_json_array_end(json);
	}
	to_json_array_end(json);
}

/* Returns the sum of the weights. */
static uint64_t put_weights(struct json *json, const struct timeline *timeline, const struct timeline_thread *thread)
{
	uint64_t sum = 0;

	to_json_key(json, "weights");
	to_json_array(json);
	for (size_t i = 0; i < thread->n; i++) {
		uint64_t weight = timeline_weight(timeline, timeline_sample(timeline, thread, i));

		to_json_integer(json, (int64_t)weight);
		sum += weight;
	}
	to_json_array_end(json);
	return sum;
}

static void put_thread(struct json *json, const struct timeline *timeline, const struct timeline_thread *thread,
		       const char *unit, uint32_t *path)
{
	const struct timeline_thread *first = &timeline->threads[0],
				     *last = &timeline->threads[timeline->n_threads - 1];

	to_json_object(json);
	to_json_put_string(json, "type", "sampled");
	put_thread_name(json, thread->thread, first->thread->pid != last->thread->pid);
	to_json_put_string(json, "unit", unit || !timeline->has_weights ? "none" : "nanoseconds");
	to_json_put_integer(json, "startValue", 0);
	put_stacks(json, timeline, thread, path);
	to_json_put_integer(json, "endValue", (int64_t)put_weights(json, timeline, thread));
	to_json_object_end(json);
}

static void put_head(struct json *json, const struct profile *profile, const struct export_options *options)
{
	CLEANUP(freep) char *name = NULL;
	const char *title = options->title ?: profile->run.command ?: "probing";

	/* speedscope has no unit for counts of events, so put the unit into the name. */
	if (profile->unit && asprintf(&name, "%s (%s)", title, profile->unit) < 0)
		name = NULL;
	to_json_put_string(json, "$schema", "https://www.speedscope.app/file-format-schema.json");
	to_json_put_string(json, "exporter", "probing");
	to_json_put_string(json, "name", name ?: title);
	to_json_put_integer(json, "activeProfileIndex", 0);
}

static int write_profile(const struct profile *profile, const struct export_options *options,
			 const struct timeline *timeline, FILE *out)
{
	CLEANUP(to_json_done) struct json json = { 0 };
	CLEANUP(freep) uint32_t *path = calloc((size_t)timeline_depth(timeline) + 1, sizeof *path);
	int r;

	if (!path)
		return -ENOMEM;
	r = to_json_open(out, &json);
	if (r < 0)
		return r;
	to_json_object(&json);
	put_head(&json, profile, options);
	put_frames(&json, &timeline->tree->labels, options->lines);
	to_json_key(&json, "profiles");
	to_json_array(&json);
	for (size_t i = 0; i < timeline->n_threads; i++)
		put_thread(&json, timeline, &timeline->threads[i], profile->unit, path);
	to_json_array_end(&json);
	to_json_object_end(&json);
	return to_json_finish(&json, out);
}

static int write_speedscope(const struct profile *profile, const struct export_options *options, FILE *out)
{
	CLEANUP(timeline_freep) struct timeline *timeline = NULL;
	int r;

	r = timeline_new(profile, options, &timeline);
	return r < 0 ? r : write_profile(profile, options, timeline, out);
}

const struct exporter export_speedscope = {
	.name = "speedscope",
	.endings = ".speedscope.json .speedscope .json",
	.summary = "for speedscope.app: each thread in the order of time",
	.needs_samples = true,
	.write = write_speedscope,
};
