/* SPDX-License-Identifier: MIT */
/*
 * export_chrome.c - Chrome's trace events as JSON: a track per thread, for Perfetto and chrome://tracing.
 *
 * Format: "Trace Event Format", an event X with its length for each slice, names as metadata events. Separate begin and
 * end events (B and E) would be two thirds more bytes: an end needs its begin's name, for readers that search it by
 * name. A sample covers a time: a running one the time that
 * ends with it; a wait the time that begins with it. Times of a thread are placed one after the other:
 * one that would begin before the end of the last begins there, as does one that begins less than half of its length
 * later, so that a lasting state is one slice, and slices are as long as the weights of samples. Functions that two
 * adjacent samples share continue through both.
 *
 * Readers add a slice's beginning and length, as binary fractions of a microsecond or truncated to nanoseconds, and
 * reject one that ends after its caller. So times are whole eighths of a microsecond: these they all add exactly.
 * A slice that ends where another begins ends an eighth earlier, since readers order equal times differently. Slices
 * with the same beginning are ordered from the longest to the shortest, callers before their callees.
 *
 * Perfetto drops slices that are nested deeper than 512 (v58.2, src/trace_processor/importers/common/slice_tracker.h),
 * which are the innermost. So the middle of a deeper stack is omitted, and one slice replaces it, with
 * the number of calls: always a multiple of a number, so that stacks of about the same depth omit the same
 * calls, and common calls remain one slice.
 *
 * A slice's end is known only after later samples. So each thread is processed twice: the first pass
 * computes the common part of each sample with the one before it, the second writes slices. There are about a dozen per
 * sample if each has a stack of its own: a label's part of an event is formatted once, and the common part of slices of
 * one time and length once for these.
 */
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "base/util.h"
#include "src/export/export.h"
#include "src/export/timeline.h"
#include "src/export/tracks.h"

enum {
	MAX_LEVELS = 512,
	OUTER_LEVELS = 128,
	LEFT_OUT = 256
}; /* the number of calls omitted from a deep stack is a multiple of LEFT_OUT */
enum { TICK_NS = 125, MICROSECOND_DECIMALS = 3, IDS_BYTES = 64, EVENT_BYTES = IDS_BYTES + 2 * TEXT_FIXED_BYTES + 32 };

/* The change before a sample. Packed, because there may be millions. */
struct __attribute__((packed, aligned(4))) step {
	uint64_t end;      /* end of the slices that end, in ticks */
	uint32_t n_shared; /* outermost slices that continue */
};

struct slice {
	uint32_t name;
	uint64_t end;
};

struct track {
	FILE *out;
	const struct timeline *timeline;
	struct label_text {
		char *text; /* remaining text of an event */
		size_t n_bytes;
	} * names; /* by label; after these, names for LEFT_OUT omitted calls, for twice as many, ... */
	size_t n_names;
	uint64_t origin_ns;   /* origin of times */
	uint64_t cursor_ns;   /* end of the last sample, relative to the origin */
	char ids[IDS_BYTES];  /* text of the current thread */
	struct step *steps;   /* of the thread: one per sample, and one for its end */
	struct slice *slices; /* by level: slices that begin with the current sample */
	bool has_events;
};

static const char *const categories[LABEL_N_KINDS] = {
	[LABEL_PYTHON] = "python", [LABEL_BUILTIN] = "builtin", [LABEL_NATIVE] = "native", [LABEL_KERNEL] = "kernel",
	[LABEL_TASK] = "task",     [LABEL_WAIT] = "wait",       [LABEL_GROUP] = "none",
};

static void track_done(struct track *track)
{
	for (size_t i = 0; i < track->n_names; i++)
		free(track->names[i].text);
	free(track->names);
	free(track->steps);
	free(track->slices);
}

/* ---- Events ---- */

/* No other thread uses the stream. */
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

/* Write the slices from one level on, callers first. The first event has no preceding comma. */
static void put_slices(struct track *track, uint32_t first, uint32_t n, uint64_t begin)
{
	char event[EVENT_BYTES], time[TEXT_FIXED_BYTES];
	size_t begin_bytes, n_bytes = 0;
	uint64_t end = 0;

	text_fixed(begin * TICK_NS, MICROSECOND_DECIMALS, time);
	begin_bytes = (size_t)snprintf(event, sizeof event, ",\n{\"ph\":\"X%s,\"ts\":%s,\"dur\":", track->ids, time);
	for (uint32_t i = first; i < n; i++) {
		const struct slice *slice = &track->slices[i];
		const struct label_text *name = &track->names[slice->name];
		size_t skipped = track->has_events ? 0 : 1;

		if (slice->end != end)
			n_bytes = begin_bytes +
				  text_fixed((slice->end - begin) * TICK_NS, MICROSECOND_DECIMALS, event + begin_bytes);
		end = slice->end;
		fwrite_unlocked(event + skipped, 1, n_bytes - skipped, track->out);
		fwrite_unlocked(name->text, 1, name->n_bytes, track->out);
		track->has_events = true;
	}
}

static int add_name(struct track *track, const char *text, const char *category)
{
	CLEANUP(freep) char *quoted = to_json_quote(text);
	struct label_text *name = &track->names[track->n_names];
	int n = quoted ? asprintf(&name->text, ",\"name\":%s,\"cat\":\"%s\"}", quoted, category) : -1;

	if (n < 0)
		return -ENOMEM;
	name->n_bytes = (size_t)n;
	track->n_names++;
	return 0;
}

static int add_names(struct track *track)
{
	const struct labels *labels = &track->timeline->tree->labels;
	size_t n_sums = timeline_depth(track->timeline) / LEFT_OUT;
	char text[64];
	int r = 0;

	track->names = calloc(labels->n_items + n_sums, sizeof *track->names);
	if (!track->names)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < labels->n_items; i++)
		r = add_name(track, labels->items[i].text, categories[labels->items[i].kind]);
	for (size_t i = 1; r == 0 && i <= n_sums; i++) {
		snprintf(text, sizeof text, "[%zu calls left out]", i * LEFT_OUT);
		r = add_name(track, text, categories[LABEL_GROUP]);
	}
	return r;
}

/* ---- Deep stacks ---- */

/* Number of omitted calls in a stack of this depth, after the outermost ones. */
static uint32_t n_left_out(uint32_t depth)
{
	/* Another slice shows the number. */
	return depth <= MAX_LEVELS ? 0 : (depth - MAX_LEVELS + LEFT_OUT) / LEFT_OUT * LEFT_OUT;
}

/* Number of slices of the outermost calls down to a depth; omitted calls have none. */
static uint32_t level_of(uint32_t depth, uint32_t left_out)
{
	if (left_out == 0 || depth <= OUTER_LEVELS)
		return depth;
	return depth < OUTER_LEVELS + left_out ? OUTER_LEVELS : depth - left_out + 1;
}

/* Label of the slice that replaces omitted calls. */
static uint32_t left_out_name(const struct call_tree *tree, uint32_t left_out)
{
	return (uint32_t)tree->labels.n_items + left_out / LEFT_OUT - 1;
}

static uint32_t outwards(const struct node *nodes, uint32_t node, uint32_t n_calls)
{
	while (n_calls-- > 0)
		node = nodes[node].parent;
	return node;
}

/* ---- Samples ---- */

/* Start of the time that a sample covers. */
static uint64_t start_of(const struct track *track, const struct profile_sample *sample)
{
	uint64_t since = sample->time_ns > track->origin_ns ? sample->time_ns - track->origin_ns : 0;

	if (timeline_is_running(sample))
		since -= MIN(since, sample->weight);
	return since;
}

static uint64_t ticks(uint64_t ns)
{
	return (ns + TICK_NS / 2) / TICK_NS;
}

/* Move the cursor to the start of a sample. Returns whether that leaves a gap. */
static bool begin_sample(struct track *track, const struct profile_sample *sample)
{
	uint64_t start = start_of(track, sample);

	if (sample->weight == 0 || start <= track->cursor_ns || start - track->cursor_ns < sample->weight / 2)
		return false;
	track->cursor_ns = start;
	return true;
}

/* Whether a sample at the cursor is long enough for a slice. */
static bool is_drawn(const struct track *track, const struct profile_sample *sample)
{
	return ticks(track->cursor_ns + sample->weight) > ticks(track->cursor_ns) + 1;
}

/* Number of outermost calls that two nodes share. */
static uint32_t shared_depth(const struct node *nodes, uint32_t one, uint32_t other)
{
	while (one != other) {
		if (nodes[one].depth > nodes[other].depth)
			one = nodes[one].parent;
		else
			other = nodes[other].parent;
	}
	return nodes[one].depth;
}

/* Number of outermost slices that the stacks of two nodes share. */
static uint32_t shared_levels(const struct node *nodes, uint32_t one, uint32_t other)
{
	uint32_t depth = shared_depth(nodes, one, other);
	uint32_t left_out = n_left_out(nodes[one].depth);

	return left_out == n_left_out(nodes[other].depth) ? level_of(depth, left_out)
							  : MIN(depth, (uint32_t)OUTER_LEVELS);
}

/* Plan which slices end at each sample. */
static void plan_thread(struct track *track, const struct timeline_thread *thread)
{
	const struct node *nodes = track->timeline->tree->nodes;
	uint32_t last = 0;

	track->cursor_ns = 0;
	for (size_t i = 0; i <= thread->n; i++) {
		struct step *step = &track->steps[i];
		uint64_t end = ticks(track->cursor_ns);

		*step = (struct step){ .end = end - MIN(end, 1) };
		if (i == thread->n)
			break;
		const struct profile_sample *sample = timeline_sample(track->timeline, thread, i);
		uint32_t before = begin_sample(track, sample) ? 0 : last;

		last = is_drawn(track, sample) ? timeline_node(track->timeline, sample) : before;
		step->n_shared = shared_levels(nodes, before, last);
		track->cursor_ns += sample->weight;
	}
}

/* Write the slices that begin with a sample. A slice ends at the first step that shares fewer levels. */
static void put_sample(struct track *track, uint32_t node, const struct step *step)
{
	const struct call_tree *tree = track->timeline->tree;
	uint32_t left_out = n_left_out(tree->nodes[node].depth);
	uint32_t n = level_of(tree->nodes[node].depth, left_out), first = step->n_shared;
	uint64_t begin = ticks(track->cursor_ns);
	const struct step *later = step + 1;

	for (uint32_t level = n; level > first; level--) {
		bool is_left_out = left_out > 0 && level == OUTER_LEVELS + 1;
		uint32_t name = is_left_out ? left_out_name(tree, left_out) : tree->nodes[node].label;

		while (later->n_shared >= level)
			later++;
		track->slices[level - 1] = (struct slice){ name, later->end };
		node = outwards(tree->nodes, node, is_left_out ? left_out : 1);
	}
	if (first < n)
		put_slices(track, first, n, begin);
}

static void put_samples(struct track *track, const struct timeline_thread *thread)
{
	plan_thread(track, thread);
	track->cursor_ns = 0;
	for (size_t i = 0; i < thread->n; i++) {
		const struct profile_sample *sample = timeline_sample(track->timeline, thread, i);

		begin_sample(track, sample);
		if (is_drawn(track, sample))
			put_sample(track, timeline_node(track->timeline, sample), &track->steps[i]);
		track->cursor_ns += sample->weight;
	}
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
	put_samples(track, thread);
	return 0;
}

/* ---- Tracks beside the stacks ---- */

/*
 * They have numbers of threads that no thread has. Slices of one kind may overlap, as backward passes do, and tasks: each
 * goes to the first lane, a track of its own, in which it lies between others or within one.
 */
enum { FIRST_LANE = 1 << 30, MAX_DEPTH = 256, MAX_LANES = 64, MACHINE_PID = FIRST_LANE };
#define MAX_VALUE 1e15

struct lane {
	int32_t tid;
	uint32_t n_open;
	uint64_t ends[MAX_DEPTH]; /* of its slices that go on, the innermost last; in ticks */
};

struct lanes {
	struct lane *lanes;
	size_t n;
	int32_t next_tid;
};

static bool has_process(const struct track *track, int64_t pid)
{
	for (size_t i = 0; i < track->timeline->n_threads; i++)
		if (track->timeline->threads[i].thread->pid == pid)
			return true;
	return false;
}

/* Times are rounded: what ends at the same moment may end a tick later. */
static bool fits(struct lane *lane, uint64_t begin, uint64_t *end)
{
	while (lane->n_open > 0 && lane->ends[lane->n_open - 1] < begin)
		lane->n_open--;
	if (lane->n_open > 0 && *end == lane->ends[lane->n_open - 1] + 1 && *end > begin + 1)
		--*end;
	return lane->n_open == 0 || (*end <= lane->ends[lane->n_open - 1] && lane->n_open < MAX_DEPTH);
}

static void set_ids(struct track *track, int64_t pid, int32_t tid)
{
	snprintf(track->ids, sizeof track->ids, "\",\"pid\":%d,\"tid\":%d", (int)pid, tid);
}

static int begin_lane(struct track *track, struct lanes *lanes, const struct track_slice *slice)
{
	char name[96];
	size_t n = 0;

	lanes->lanes[lanes->n++] = (struct lane){ .tid = lanes->next_tid };
	set_ids(track, slice->pid, lanes->next_tid++);
	n = (size_t)snprintf(name, sizeof name, "%s", track_kind_name(slice->kind));
	if (slice->thread != 0)
		n += (size_t)snprintf(name + n, sizeof name - n, " of thread %lld", (long long)slice->thread);
	if (lanes->n > 1)
		snprintf(name + n, sizeof name - n, " (%zu)", lanes->n);
	return put_thread_name(track, "thread_name", name);
}

/* Its lane, which may be new; NULL: there are too many at once, and it is left out. */
static int find_lane(struct track *track, struct lanes *lanes, const struct track_slice *slice, uint64_t begin,
		     uint64_t *end, struct lane **ret)
{
	int r;

	for (size_t i = 0; i < lanes->n; i++)
		if (fits(&lanes->lanes[i], begin, end)) {
			*ret = &lanes->lanes[i];
			return 0;
		}
	*ret = NULL;
	if (lanes->n == MAX_LANES)
		return 0;
	r = begin_lane(track, lanes, slice);
	*ret = &lanes->lanes[lanes->n - 1];
	return r;
}

static char *quoted_name(const struct tracks *tracks, uint32_t number)
{
	uint32_t n;
	const char *bytes = interner_get(&tracks->names, number, &n);
	CLEANUP(freep) char *text = strndup(bytes ?: "", n);

	return text ? to_json_quote(text) : NULL;
}

static uint64_t ticks_since(const struct track *track, uint64_t time_ns)
{
	return ticks(time_ns - MIN(time_ns, track->origin_ns));
}

static int put_slice(struct track *track, const struct tracks *tracks, struct lanes *lanes,
		     const struct track_slice *slice)
{
	uint64_t begin = ticks_since(track, slice->begin_ns), end = ticks_since(track, slice->end_ns);
	CLEANUP(freep) char *name = quoted_name(tracks, slice->name);
	char begin_text[TEXT_FIXED_BYTES], length[TEXT_FIXED_BYTES];
	struct lane *lane;
	int r;

	if (!name)
		return -ENOMEM;
	end = MAX(begin + 1, end - MIN(end, 1));
	r = find_lane(track, lanes, slice, begin, &end, &lane);
	if (r < 0 || !lane)
		return r;
	lane->ends[lane->n_open++] = end;
	set_ids(track, slice->pid, lane->tid);
	begin_event(track, "X");
	text_fixed(begin * TICK_NS, MICROSECOND_DECIMALS, begin_text);
	text_fixed((end - begin) * TICK_NS, MICROSECOND_DECIMALS, length);
	fprintf(track->out, ",\"ts\":%s,\"dur\":%s,\"name\":%s,\"cat\":\"%s\"}", begin_text, length, name,
		track_kind_name(slice->kind));
	return 0;
}

static bool are_together(const struct track_slice *one, const struct track_slice *other)
{
	return one->pid == other->pid && one->kind == other->kind && one->thread == other->thread;
}

static int put_slices_of(struct track *track, const struct tracks *tracks)
{
	struct lanes lanes = { .lanes = calloc(MAX_LANES, sizeof *lanes.lanes), .next_tid = FIRST_LANE };
	int r = lanes.lanes ? 0 : -ENOMEM;

	for (size_t i = 0; i < tracks->n_slices && r == 0; i++) {
		const struct track_slice *slice = &tracks->slices[i];

		if (i == 0 || !are_together(slice, slice - 1))
			lanes.n = 0;
		if (has_process(track, slice->pid))
			r = put_slice(track, tracks, &lanes, slice);
	}
	free(lanes.lanes);
	return r;
}

/* A counter, an event C for each of its values. */
static int put_value(struct track *track, const struct tracks *tracks, const struct track_value *value)
{
	bool is_machine = value->pid == TRACK_MACHINE;
	CLEANUP(freep) char *name = quoted_name(tracks, value->name);
	char time[TEXT_FIXED_BYTES], number[TEXT_FIXED_BYTES];

	if (!name)
		return -ENOMEM;
	if ((!is_machine && !has_process(track, value->pid)) || !(value->value >= 0 && value->value < MAX_VALUE))
		return 0;
	set_ids(track, is_machine ? MACHINE_PID : value->pid, 0);
	begin_event(track, "C");
	text_fixed(ticks_since(track, value->time_ns) * TICK_NS, MICROSECOND_DECIMALS, time);
	text_fixed((uint64_t)(value->value * 1e3 + 0.5), 3, number);
	fprintf(track->out, ",\"ts\":%s,\"name\":%s,\"args\":{\"value\":%s}}", time, name, number);
	return 0;
}

static int put_tracks(struct track *track, const struct tracks *tracks)
{
	int r = put_slices_of(track, tracks);

	if (r == 0 && tracks->n_values > 0 && tracks->values[0].pid == TRACK_MACHINE) {
		set_ids(track, MACHINE_PID, 0);
		r = put_thread_name(track, "process_name", "machine");
	}
	for (size_t i = 0; i < tracks->n_values && r == 0; i++)
		r = put_value(track, tracks, &tracks->values[i]);
	return r;
}

static int put_head(struct track *track, const char *title)
{
	CLEANUP(freep) char *quoted = to_json_quote(title);

	if (!quoted)
		return -ENOMEM;
	fprintf(track->out,
		"{\"displayTimeUnit\":\"ms\",\"otherData\":{\"producer\":\"probing\",\"title\":%s},\"traceEvents\":[",
		quoted);
	return 0;
}

static int make_room(struct track *track)
{
	const struct timeline *timeline = track->timeline;
	size_t most = 0;

	for (size_t i = 0; i < timeline->n_threads; i++)
		most = MAX(most, timeline->threads[i].n);
	track->steps = calloc(most + 1, sizeof *track->steps);
	track->slices = calloc(MAX_LEVELS, sizeof *track->slices);
	return track->steps && track->slices ? add_names(track) : -ENOMEM;
}

static int write_events(const struct profile *profile, const struct export_options *options,
			const struct timeline *timeline, FILE *out)
{
	CLEANUP(track_done)
	struct track track = { .out = out, .timeline = timeline, .origin_ns = timeline_origin(profile) };
	int r;

	r = make_room(&track);
	if (r == 0)
		r = put_head(&track, options->title ?: profile->run.command ?: "");
	for (size_t i = 0; r == 0 && i < timeline->n_threads; i++)
		r = put_thread(&track, &timeline->threads[i]);
	if (r == 0 && options->tracks)
		r = put_tracks(&track, options->tracks);
	put(&track, "\n]}\n");
	return r < 0 ? r : text_finish(out);
}

static int write_chrome(const struct profile *profile, const struct export_options *options, FILE *out)
{
	CLEANUP(timeline_freep) struct timeline *timeline = NULL;
	int r;

	if (profile->unit || (profile->n_totals > 0 && !profile_has_weights(profile)))
		return -ENOTSUP; /* counts have no duration */
	if (profile->n_samples == 0)
		return -ENODATA;
	r = timeline_new(profile, options, &timeline);
	return r < 0 ? r : write_events(profile, options, timeline, out);
}

const struct exporter export_chrome = {
	.name = "chrome",
	.endings = ".trace.json",
	.summary = "trace events, for Perfetto and chrome://tracing: a timeline",
	.needs_samples = true,
	.has_tracks = true,
	.write = write_chrome,
};
