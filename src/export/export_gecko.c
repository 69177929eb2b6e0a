/* SPDX-License-Identifier: MIT */
/*
 * export_gecko.c - the format of profiler.firefox.com: samples with times, weights and categories, by thread.
 *
 * Its "processed" format (gecko.h), which has weights; threads hold samples, everything else they share.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/util.h"
#include "src/export/export.h"
#include "src/export/gecko.h"

enum { VERSION = 60, GECKO_VERSION = 24, MILLISECOND_DECIMALS = 6 };

static const struct {
	const char *name, *colour;
} categories[LABEL_N_KINDS] = {
	[LABEL_PYTHON] = { "Python", "yellow" }, [LABEL_BUILTIN] = { "Builtin", "lightblue" },
	[LABEL_NATIVE] = { "Native", "blue" },   [LABEL_KERNEL] = { "Kernel", "orange" },
	[LABEL_TASK] = { "Task", "green" },      [LABEL_WAIT] = { "Waiting", "red" },
	[LABEL_GROUP] = { "Other", "grey" },
};

/* ---- Threads ---- */

/* Data for the graph of a thread's activity. */
static void put_cpu_times(struct json *json, const struct timeline *timeline, const struct timeline_thread *thread)
{
	to_json_key(json, "threadCPUDelta");
	to_json_array(json);
	for (size_t i = 0; i < thread->n; i++) {
		const struct profile_sample *sample = timeline_sample(timeline, thread, i);

		to_json_integer(json, timeline_is_running(sample) ? (int64_t)sample->weight : 0);
	}
	to_json_array_end(json);
}

static void put_samples(struct gecko *gecko, const struct timeline_thread *thread)
{
	const struct timeline *timeline = gecko->timeline;
	bool is_time = timeline->has_weights && !gecko->profile->unit;
	struct json *json = &gecko->json;

	to_json_key(json, "samples");
	to_json_object(json);
	to_json_put_integer(json, "length", (int64_t)thread->n);
	to_json_key(json, "stack");
	to_json_array(json);
	for (size_t i = 0; i < thread->n; i++) {
		uint32_t node = timeline_node(timeline, timeline_sample(timeline, thread, i));

		if (node == 0)
			to_json_null(json);
		else
			to_json_integer(json, gecko_stack(gecko, node));
	}
	to_json_array_end(json);
	to_json_key(json, "time");
	to_json_array(json);
	for (size_t i = 0; i < thread->n; i++)
		to_json_fixed(json, timeline_sample(timeline, thread, i)->time_ns - timeline_origin(gecko->profile),
			      MILLISECOND_DECIMALS);
	to_json_array_end(json);
	to_json_key(json, "weight");
	to_json_array(json);
	for (size_t i = 0; i < thread->n; i++)
		to_json_fixed(json, timeline_weight(timeline, timeline_sample(timeline, thread, i)),
			      is_time ? MILLISECOND_DECIMALS : 0);
	to_json_array_end(json);
	to_json_put_string(json, "weightType", is_time ? "tracing-ms" : "samples");
	if (is_time)
		put_cpu_times(json, timeline, thread);
	to_json_object_end(json);
}

static void put_no_markers(struct json *json)
{
	static const char *const columns[] = { "data", "name", "startTime", "endTime", "phase", "category" };

	to_json_key(json, "markers");
	to_json_object(json);
	to_json_put_integer(json, "length", 0);
	for (size_t i = 0; i < N_ELEMENTS(columns); i++)
		gecko_put_empty(json, columns[i]);
	to_json_object_end(json);
}

static void put_thread(struct gecko *gecko, const struct timeline_thread *thread)
{
	const struct profile_thread *it = thread->thread;
	struct json *json = &gecko->json;
	char pid[16];

	snprintf(pid, sizeof pid, "%d", it->pid);
	to_json_object(json);
	to_json_put_string(json, "name", *it->name ? it->name : "thread");
	to_json_put_bool(json, "isMainThread", it->pid == it->tid);
	to_json_put_string(json, "processType", "default");
	to_json_put_string(json, "processName", *it->process ? it->process : "process");
	to_json_put_string(json, "pid", pid);
	to_json_put_integer(json, "tid", it->tid);
	to_json_put_integer(json, "processStartupTime", 0);
	to_json_key(json, "processShutdownTime");
	to_json_null(json);
	to_json_put_integer(json, "registerTime", 0);
	to_json_key(json, "unregisterTime");
	to_json_null(json);
	gecko_put_empty(json, "pausedRanges");
	put_samples(gecko, thread);
	put_no_markers(json);
	to_json_object_end(json);
}

/* ---- Document ---- */

static void put_categories(struct json *json)
{
	to_json_key(json, "categories");
	to_json_array(json);
	for (size_t i = 0; i < N_ELEMENTS(categories); i++) {
		to_json_object(json);
		to_json_put_string(json, "name", categories[i].name);
		to_json_put_string(json, "color", categories[i].colour);
		to_json_key(json, "subcategories");
		to_json_array(json);
		to_json_string(json, "Other");
		to_json_array_end(json);
		to_json_object_end(json);
	}
	to_json_array_end(json);
}

static void put_meta(struct gecko *gecko)
{
	const struct profile_run *run = &gecko->profile->run;
	struct json *json = &gecko->json;

	to_json_key(json, "meta");
	to_json_object(json);
	to_json_put_integer(json, "preprocessedProfileVersion", VERSION);
	to_json_put_integer(json, "version", GECKO_VERSION);
	to_json_put_string(json, "product", gecko->options->title ?: run->command ?: "probing");
	to_json_put_string(json, "importedFrom", "probing");
	to_json_put_fixed(json, "startTime", timeline_origin(gecko->profile), MILLISECOND_DECIMALS);
	to_json_put_fixed(json, "interval", run->hz > 0 ? (uint64_t)(1e9 / run->hz) : 1000000, MILLISECOND_DECIMALS);
	to_json_put_integer(json, "processType", 0);
	to_json_put_integer(json, "stackwalk", 1);
	to_json_put_bool(json, "debug", false);
	to_json_put_bool(json, "symbolicated", true);
	to_json_put_bool(json, "usesOnlyOneStackType", true);
	to_json_put_bool(json, "sourceCodeIsNotOnSearchfox", true);
	to_json_key(json, "sampleUnits");
	to_json_object(json);
	to_json_put_string(json, "time", "ms");
	to_json_put_string(json, "eventDelay", "ms");
	to_json_put_string(json, "threadCPUDelta", "ns");
	to_json_object_end(json);
	gecko_put_empty(json, "markerSchema");
	put_categories(json);
	to_json_object_end(json);
}

static int put_all(struct gecko *gecko)
{
	struct json *json = &gecko->json;
	int r;

	to_json_object(json);
	put_meta(gecko);
	gecko_put_libraries(gecko);
	gecko_put_empty(json, "pages");
	r = gecko_put_shared(gecko);
	to_json_key(json, "threads");
	to_json_array(json);
	for (size_t i = 0; i < gecko->timeline->n_threads; i++)
		put_thread(gecko, &gecko->timeline->threads[i]);
	to_json_array_end(json);
	to_json_object_end(json);
	return r;
}

static int write_gecko(const struct profile *profile, const struct export_options *options, FILE *out)
{
	CLEANUP(timeline_freep) struct timeline *timeline = NULL;
	CLEANUP(gecko_done) struct gecko gecko = { .profile = profile, .options = options };
	int r;

	if (profile->n_samples == 0)
		return -ENODATA;
	r = timeline_new(profile, options, &timeline);
	if (r < 0)
		return r;
	gecko.timeline = timeline;
	r = gecko_number(&gecko);
	if (r == 0)
		r = to_json_open(out, &gecko.json);
	if (r == 0)
		r = put_all(&gecko);
	return r < 0 ? r : to_json_finish(&gecko.json, out);
}

const struct exporter export_gecko = {
	.name = "gecko",
	.endings = ".gecko.json",
	.summary = "for profiler.firefox.com: samples with times, weights and categories",
	.needs_samples = true,
	.write = write_gecko,
};
