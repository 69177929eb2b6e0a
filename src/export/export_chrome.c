/*
 * export_chrome.c - Chrome's trace events as JSON: a track per thread, for Perfetto and chrome://tracing.
 *
 * Format: "Trace Event Format", events B and E, names as metadata events. An E has its B's name, for readers
 * that look for what it ends by name. A sample stands for a time: of what ran, that
 * which ends with it; of what waited, that which begins with it. Times of a thread are laid one behind the other:
 * one that would begin before the last has ended begins there, as does one that begins less than half of itself
 * later, so that what lasts is one slice, and slices are as long as samples weigh. Functions that two neighbours
 * share go on through both. What ends where another begins ends a nanosecond before it: readers sort by time, and not all of
 * them keep the order of what has the same.
 *
 * Where each sample has a stack of its own there are dozens of events per sample, of few different parts: each
 * part is made once, a label's name when the file begins, and what the events of one time have in common when that comes.
 */
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "base/util.h"
#include "src/export/export.h"
#include "src/export/timeline.h"

enum { MICROSECOND_DECIMALS = 3, IDS_BYTES = 64, EVENT_BYTES = IDS_BYTES + TEXT_FIXED_BYTES + 32 };

struct track {
	FILE *out;
	const struct timeline *timeline;
	struct label_text {
		char *text; /* the rest of an event that begins it; up to name_bytes that of one that ends it */
		size_t n_bytes, name_bytes;
	} *names; /* by label */
	uint64_t origin_ns; /* what times are counted from */
	uint64_t cursor_ns; /* where the last sample ends, from there */
	char ids[IDS_BYTES]; /* the thread's text */
	char begin[EVENT_BYTES], end[EVENT_BYTES]; /* events at the cursor: how a B and an E begin */
	size_t begin_bytes, end_bytes;
	uint32_t *open, *next; /* labels, outermost first */
	uint32_t n_open;
	bool has_events;
};

static const char *const categories[LABEL_N_KINDS] = {
	[LABEL_PYTHON] = "python", [LABEL_BUILTIN] = "builtin", [LABEL_NATIVE] = "native", [LABEL_KERNEL] = "kernel",
	[LABEL_TASK] = "task",	   [LABEL_WAIT] = "wait",	[LABEL_GROUP] = "none",
};

static void track_done(struct track *track)
{
	for (size_t i = 0; track->names && i < track->timeline->tree->labels.n_items; i++)
		free(track->names[i].text);
	free(track->names);
	free(track->open);
	free(track->next);
}

/* ---- Events ---- */

/* The stream is nobody else's. */
static void put(struct track *track, const char *text)
{
	fputs_unlocked(text, track->out);
}

static void begin_event(struct track *track, const char *phase)
{
	put(track, track->has_events ? ",\n{\"ph\":\"" : "\n{\"ph\":\"");
	put(track, phase);
	put(track, track->ids);
	track->has_events = true;
}

static int put_thread_name(struct track *track, const char *event, const char *name)
{
	CLEANUP(freep) char *quoted = to_json_quote(name);

	if (!quoted)
		return -ENOMEM;
	begin_event(track, "M");
	fprintf(track->out, ",\"name\":\"%s\",\"args\":{\"name\":%s}}", event, quoted);
	return 0;
}

static void set_cursor(struct track *track, uint64_t cursor_ns)
{
	char time[TEXT_FIXED_BYTES];

	track->cursor_ns = cursor_ns;
	text_fixed(cursor_ns, MICROSECOND_DECIMALS, time);
	track->begin_bytes = (size_t)snprintf(track->begin, sizeof track->begin, ",\n{\"ph\":\"B%s%s", track->ids, time);
	text_fixed(cursor_ns - MIN(cursor_ns, 1), MICROSECOND_DECIMALS, time);
	track->end_bytes = (size_t)snprintf(track->end, sizeof track->end, ",\n{\"ph\":\"E%s%s", track->ids, time);
}

/* The first event of the file has no comma before it. */
static void put_event(struct track *track, const char *text, size_t n_bytes)
{
	size_t skipped = track->has_events ? 0 : 1;

	fwrite_unlocked(text + skipped, 1, n_bytes - skipped, track->out);
	track->has_events = true;
}

static void close_to(struct track *track, uint32_t depth)
{
	for (; track->n_open > depth; track->n_open--) {
		const struct label_text *name = &track->names[track->open[track->n_open - 1]];

		put_event(track, track->end, track->end_bytes);
		fwrite_unlocked(name->text, 1, name->name_bytes, track->out);
		putc_unlocked('}', track->out);
	}
}

static void open_slice(struct track *track, uint32_t label)
{
	put_event(track, track->begin, track->begin_bytes);
	fwrite_unlocked(track->names[label].text, 1, track->names[label].n_bytes, track->out);
	track->open[track->n_open++] = label;
}

static int name_labels(struct track *track)
{
	const struct labels *labels = &track->timeline->tree->labels;

	track->names = calloc(labels->n_items + 1, sizeof *track->names);
	if (!track->names)
		return -ENOMEM;
	for (size_t i = 0; i < labels->n_items; i++) {
		struct label_text *name = &track->names[i];
		CLEANUP(freep) char *quoted = to_json_quote(labels->items[i].text);
		int n = quoted ? asprintf(&name->text, ",\"name\":%s,\"cat\":\"%s\"}", quoted, categories[labels->items[i].kind]) : -1;

		if (n < 0) {
			name->text = NULL;
			return -ENOMEM;
		}
		name->n_bytes = (size_t)n;
		name->name_bytes = strlen(",\"name\":") + strlen(quoted);
	}
	return 0;
}

/* ---- Samples ---- */

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
		set_cursor(track, start);
	}
	timeline_path(track->timeline, node, track->next);
	while (shared < depth && shared < track->n_open && track->open[shared] == track->next[shared])
		shared++;
	close_to(track, shared);
	for (uint32_t i = shared; i < depth; i++)
		open_slice(track, track->next[i]);
	set_cursor(track, track->cursor_ns + sample->weight_ns);
}

static int put_thread(struct track *track, const struct timeline_thread *thread)
{
	const struct profile_thread *it = thread->thread;
	int r = 0;

	snprintf(track->ids, sizeof track->ids, "\",\"pid\":%d,\"tid\":%d", it->pid, it->tid);
	if (*it->process)
		r = put_thread_name(track, "process_name", it->process);
	if (r == 0 && *it->name)
		r = put_thread_name(track, "thread_name", it->name);
	if (r < 0)
		return r;
	strcat(track->ids, ",\"ts\":");
	set_cursor(track, 0);
	for (size_t i = 0; i < thread->n; i++)
		put_sample(track, timeline_sample(track->timeline, thread, i));
	close_to(track, 0);
	return 0;
}

static int put_head(struct track *track, const char *title)
{
	CLEANUP(freep) char *quoted = to_json_quote(title);

	if (!quoted)
		return -ENOMEM;
	fprintf(track->out, "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"producer\":\"probing\",\"title\":%s},\"traceEvents\":[",
		quoted);
	return 0;
}

static int write_events(const struct profile *profile, const struct export_options *options,
			const struct timeline *timeline, FILE *out)
{
	CLEANUP(track_done) struct track track = { .out = out, .timeline = timeline, .origin_ns = timeline_origin(profile) };
	int r;

	track.open = calloc((size_t)timeline_depth(timeline) + 1, sizeof *track.open);
	track.next = calloc((size_t)timeline_depth(timeline) + 1, sizeof *track.next);
	if (!track.open || !track.next)
		return -ENOMEM;
	r = name_labels(&track);
	if (r == 0)
		r = put_head(&track, options->title ?: profile->run.command ?: "");
	for (size_t i = 0; r == 0 && i < timeline->n_threads; i++)
		r = put_thread(&track, &timeline->threads[i]);
	put(&track, "\n]}\n");
	return r < 0 ? r : text_finish(out);
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
