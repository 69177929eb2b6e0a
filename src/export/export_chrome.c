/*
 * export_chrome.c - Chrome's trace events as JSON: a track per thread, for Perfetto and chrome://tracing.
 *
 * Format: "Trace Event Format", events B and E, names as metadata events. A sample stands for a time: of what ran, that
 * which ends with it; of what waited, that which begins with it. Times of a thread are laid one behind the other:
 * one that would begin before the last has ended begins there, as does one that begins less than half of itself
 * later, so that what lasts is one slice, and slices are as long as samples weigh. Functions that two neighbours
 * share go on through both.
 */
#include <errno.h>

#include "base/util.h"
#include "src/export/export.h"
#include "src/export/json.h"
#include "src/export/timeline.h"

enum { MICROSECOND_DECIMALS = 3 };

struct track {
	struct json *json;
	const struct timeline *timeline;
	const struct profile_thread *thread;
	uint64_t origin_ns; /* what times are counted from */
	uint64_t cursor_ns; /* where the last sample ends, from there */
	uint32_t *open, *next; /* labels, outermost first */
	uint32_t n_open;
};

static const char *const categories[LABEL_N_KINDS] = {
	[LABEL_PYTHON] = "python", [LABEL_BUILTIN] = "builtin", [LABEL_NATIVE] = "native", [LABEL_KERNEL] = "kernel",
	[LABEL_TASK] = "task",	   [LABEL_WAIT] = "wait",	[LABEL_GROUP] = "none",
};

static void begin_event(struct json *json, const char *phase, const struct profile_thread *thread)
{
	json_object(json);
	json_put_string(json, "ph", phase);
	json_put_integer(json, "pid", thread->pid);
	json_put_integer(json, "tid", thread->tid);
}

static void put_name(struct json *json, const char *event, const struct profile_thread *thread, const char *name)
{
	begin_event(json, "M", thread);
	json_put_string(json, "name", event);
	json_key(json, "args");
	json_object(json);
	json_put_string(json, "name", name);
	json_object_end(json);
	json_object_end(json);
}

static void close_to(struct track *track, uint32_t depth)
{
	for (; track->n_open > depth; track->n_open--) {
		begin_event(track->json, "E", track->thread);
		json_put_fixed(track->json, "ts", track->cursor_ns, MICROSECOND_DECIMALS);
		json_object_end(track->json);
	}
}

static void open_slice(struct track *track, uint32_t label)
{
	const struct label *it = &track->timeline->tree->labels.items[label];

	begin_event(track->json, "B", track->thread);
	json_put_fixed(track->json, "ts", track->cursor_ns, MICROSECOND_DECIMALS);
	json_put_string(track->json, "name", it->text);
	json_put_string(track->json, "cat", categories[it->kind]);
	json_object_end(track->json);
	track->open[track->n_open++] = label;
}

/* When the time begins that a sample stands for. */
static uint64_t start_of(const struct track *track, const struct profile_sample *sample)
{
	uint64_t since = sample->time_ns > track->origin_ns ? sample->time_ns - track->origin_ns : 0;

	if (timeline_is_running(sample))
		since -= MIN(since, sample->weight_ns);
	return since;
}

static void put_sample(struct track *track, const struct profile_sample *sample)
{
	uint32_t node = timeline_node(track->timeline, sample);
	uint32_t depth = track->timeline->tree->nodes[node].depth, shared = 0;
	uint64_t start = start_of(track, sample);

	if (sample->weight_ns == 0)
		return;
	if (start > track->cursor_ns && start - track->cursor_ns >= sample->weight_ns / 2) {
		close_to(track, 0);
		track->cursor_ns = start;
	}
	timeline_path(track->timeline, node, track->next);
	while (shared < depth && shared < track->n_open && track->open[shared] == track->next[shared])
		shared++;
	close_to(track, shared);
	for (uint32_t i = shared; i < depth; i++)
		open_slice(track, track->next[i]);
	track->cursor_ns += sample->weight_ns;
}

static void put_thread(struct track *track, const struct timeline_thread *thread)
{
	track->thread = thread->thread;
	track->cursor_ns = 0;
	if (*thread->thread->process)
		put_name(track->json, "process_name", thread->thread, thread->thread->process);
	if (*thread->thread->name)
		put_name(track->json, "thread_name", thread->thread, thread->thread->name);
	for (size_t i = 0; i < thread->n; i++)
		put_sample(track, timeline_sample(track->timeline, thread, i));
	close_to(track, 0);
}

static void put_head(struct json *json, const struct profile *profile, const struct export_options *options)
{
	json_put_string(json, "displayTimeUnit", "ms");
	json_key(json, "otherData");
	json_object(json);
	json_put_string(json, "producer", "probing");
	if (options->title ?: profile->run.command)
		json_put_string(json, "title", options->title ?: profile->run.command);
	json_object_end(json);
}

static int write_events(const struct profile *profile, const struct export_options *options,
			const struct timeline *timeline, FILE *out)
{
	CLEANUP(json_done) struct json json = { 0 };
	CLEANUP(freep) uint32_t *open = calloc((size_t)timeline_depth(timeline) + 1, sizeof *open);
	CLEANUP(freep) uint32_t *next = calloc((size_t)timeline_depth(timeline) + 1, sizeof *next);
	struct track track = { .json = &json, .timeline = timeline, .origin_ns = timeline_origin(profile), .open = open, .next = next };
	int r;

	if (!open || !next)
		return -ENOMEM;
	r = json_open(out, &json);
	if (r < 0)
		return r;
	json_object(&json);
	put_head(&json, profile, options);
	json_key(&json, "traceEvents");
	json_array(&json);
	for (size_t i = 0; i < timeline->n_threads; i++)
		put_thread(&track, &timeline->threads[i]);
	json_array_end(&json);
	json_object_end(&json);
	return json_finish(&json, out);
}

static int write_chrome(const struct profile *profile, const struct export_options *options, FILE *out)
{
	CLEANUP(timeline_freep) struct timeline *timeline = NULL;
	int r;

	if (profile->unit)
		return -ENOTSUP; /* numbers of events have no length */
	if (profile->n_samples == 0)
		return -ENODATA;
	r = timeline_new(profile, options, &timeline);
	return r < 0 ? r : write_events(profile, options, timeline, out);
}

const struct exporter export_chrome = {
	.name = "chrome",
	.endings = ".trace.json",
	.summary = "trace events, for Perfetto and chrome://tracing: when what ran",
	.needs_samples = true,
	.write = write_chrome,
};
