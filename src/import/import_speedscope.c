/* SPDX-License-Identifier: MIT */
/*
 * import_speedscope.c - speedscope's own file format, which many profilers write.
 *
 * Frames are listed once; a profile, which is a thread here, is a list of samples with weights, or of events that open
 * and close frames. Times have no date: the last one is assumed to be the file's modification time. Profiles in another
 * unit than the first one cannot be added to it, and are skipped.
 * Source: speedscope's file-format-spec.ts, version 0.0.1 of the schema.
 */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>

#include "src/import/decimal.h"
#include "src/import/name_place.h"
#include "src/import/sink.h"

enum { SPEEDSCOPE_PID = 1, LOOKED_AT = 1 << 16, MAX_VALUES = 1 << 24 };
#define MAX_NS 9e17 /* three decades */

struct speedscope {
	struct sink *sink;
	const struct import_input *input;
	int64_t *frames; /* file index -> frame of the sink */
	size_t n_frames;
	double unit;    /* nanoseconds per unit; 0: no time unit */
	double span_ns; /* from the first to the last time of all profiles */
	double first;
	uint64_t n_read, n_all; /* samples and events of all profiles */
};

/* The profile being read. */
struct track {
	struct speedscope *all;
	pid_t tid;
	double value; /* current value */
	double given; /* total weight so far, in nanoseconds or counts */
};

static int damaged(const struct speedscope *all, const char *what)
{
	return sink_explain(all->sink, -EBADMSG, "%s", what);
}

static struct piece text_of(const json_t *object, const char *key)
{
	const json_t *text = json_object_get(object, key);

	return json_is_string(text) ? (struct piece){ json_string_value(text), json_string_length(text) }
				    : (struct piece){ 0 };
}

static double number_of(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

static int read_frame(struct speedscope *all, const json_t *json, int64_t *ret)
{
	struct sink_frame frame = { .name = text_of(json, "name"), .file = text_of(json, "file") };
	double line = number_of(json, "line");

	if (frame.name.n == 0)
		frame.name = piece_of("?");
	frame.name = name_without_place(frame.name, frame.file);
	frame.kind = kind_of_file(frame.file);
	frame.line = line > 0 && line < INT32_MAX ? (int)line : 0;
	return sink_frame(all->sink, &frame, ret);
}

static int read_frames(struct speedscope *all, const json_t *frames)
{
	int r = 0;

	all->n_frames = json_array_size(frames);
	all->frames = calloc(all->n_frames + 1, sizeof *all->frames);
	if (!all->frames)
		return -ENOMEM;
	for (size_t i = 0; i < all->n_frames && r >= 0; i++)
		r = read_frame(all, json_array_get(frames, i), &all->frames[i]);
	return r;
}

/* false: the index is invalid. */
static bool frame_at(const struct speedscope *all, const json_t *index, int64_t *ret)
{
	json_int_t i = json_is_integer(index) ? json_integer_value(index) : -1;

	if (i < 0 || (uint64_t)i >= all->n_frames)
		return false;
	*ret = all->frames[i];
	return true;
}

/* ---- Weights ---- */

/* Put a weight in whole nanoseconds; rounding errors carry over, so that the sum is right. */
static int put_weight(struct track *track, int64_t stack, double weight)
{
	struct speedscope *all = track->all;
	double before = round(track->given);
	struct sample_row row = { .pid = SPEEDSCOPE_PID,
				  .tid = track->tid,
				  .stack = stack,
				  .verdict = VERDICT_APPROXIMATE,
				  .end = stack > 0 ? STACK_COMPLETE : STACK_NO_UNWIND_INFO };
	double ago_ns;

	track->value += weight;
	track->given += weight * (all->unit > 0 ? all->unit : 1);
	if (!(weight >= 0) || !(track->given < MAX_NS))
		return damaged(all, "a weight is negative, or too large");
	row.weight = (uint64_t)(round(track->given) - before);
	if (all->unit == 0)
		return sink_total(all->sink, SPEEDSCOPE_PID, track->tid, stack, 1, row.weight);
	ago_ns = all->span_ns - (track->value - all->first) * all->unit;
	row.time_ns = all->input->modified_ns > ago_ns && ago_ns > 0 ? all->input->modified_ns - (uint64_t)ago_ns
								     : MAX(all->input->modified_ns, 1);
	return sink_sample(all->sink, &row);
}

static int read_sample(struct track *track, const json_t *places, double weight)
{
	int64_t stack = 0, frame;
	int r = 0;

	for (size_t i = 0; i < json_array_size(places) && r >= 0; i++) {
		if (!frame_at(track->all, json_array_get(places, i), &frame))
			return damaged(track->all, "a sample refers to a missing frame");
		r = sink_stack(track->all->sink, stack, frame, &stack);
	}
	return r < 0 ? r : put_weight(track, stack, weight);
}

static int read_samples(struct track *track, const json_t *profile)
{
	const json_t *samples = json_object_get(profile, "samples"), *weights = json_object_get(profile, "weights");
	int r = 0;

	if (json_array_size(samples) != json_array_size(weights))
		return damaged(track->all, "there are not as many weights as samples");
	for (size_t i = 0; i < json_array_size(samples) && r >= 0; i++)
		r = read_sample(track, json_array_get(samples, i), json_number_value(json_array_get(weights, i)))
			    ?: sink_read(track->all->sink, ++track->all->n_read, track->all->n_all);
	return r;
}

/* ---- Events ---- */

/* Open stacks and their frames. */
struct open_stacks {
	struct open_stack {
		int64_t stack, frame;
	} * items;
	size_t n, allocated;
};

static int turn(struct track *track, struct open_stacks *open, const json_t *event)
{
	struct piece type = text_of(event, "type");
	int64_t frame, stack = open->n > 0 ? open->items[open->n - 1].stack : 0;
	int r;

	if (type.n != 1 || !frame_at(track->all, json_object_get(event, "frame"), &frame))
		return damaged(track->all, "an event is not an event, or refers to a missing frame");
	if (type.at[0] == 'C') {
		if (open->n == 0 || open->items[open->n - 1].frame != frame)
			return damaged(track->all, "a frame is closed that is not the innermost");
		open->n--;
		return 0;
	}
	r = sink_stack(track->all->sink, stack, frame, &stack);
	if (r >= 0)
		r = grow(&open->items, open->n, &open->allocated, sizeof *open->items);
	if (r >= 0)
		open->items[open->n++] = (struct open_stack){ stack, frame };
	return r;
}

static int read_events(struct track *track, const json_t *profile)
{
	const json_t *events = json_object_get(profile, "events");
	struct open_stacks open = { 0 };
	int r = 0;

	for (size_t i = 0; i < json_array_size(events) && r >= 0; i++) {
		const json_t *event = json_array_get(events, i);
		double weight = number_of(event, "at") - track->value;

		if (open.n > 0 && weight != 0)
			r = put_weight(track, open.items[open.n - 1].stack, weight);
		track->value = number_of(event, "at");
		if (r >= 0)
			r = turn(track, &open, event);
		if (r >= 0)
			r = sink_read(track->all->sink, ++track->all->n_read, track->all->n_all);
	}
	free(open.items);
	return r;
}

/* ---- Document ---- */

/* "none" and "bytes" are no time units. false: unknown unit. */
static bool read_unit(struct piece text, double *ret)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = { { "nanoseconds", 1 }, { "microseconds", 1e3 }, { "milliseconds", 1e6 },
		      { "seconds", 1e9 },   { "none", 0 },           { "bytes", 0 } };

	for (size_t i = 0; i < N_ELEMENTS(units); i++) {
		if (text.n == strlen(units[i].name) && memcmp(text.at, units[i].name, text.n) == 0) {
			*ret = units[i].ns;
			return true;
		}
	}
	return false;
}

static bool is_of_unit(const json_t *profile, struct piece unit)
{
	struct piece own = text_of(profile, "unit");

	return own.n == unit.n && (own.n == 0 || memcmp(own.at, unit.at, own.n) == 0);
}

/* Find the time span of all profiles, to place each one, and how much they have. */
static void measure(struct speedscope *all, const json_t *profiles, struct piece unit)
{
	double first = INFINITY, last = -INFINITY;

	for (size_t i = 0; i < json_array_size(profiles); i++) {
		const json_t *profile = json_array_get(profiles, i);

		if (!is_of_unit(profile, unit))
			continue;
		first = MIN(first, number_of(profile, "startValue"));
		last = MAX(last, number_of(profile, "endValue"));
		all->n_all += json_array_size(json_object_get(profile, "samples")) +
			      json_array_size(json_object_get(profile, "events"));
	}
	all->first = isfinite(first) ? first : 0;
	all->span_ns = last > first && (last - first) * all->unit < MAX_NS ? (last - first) * all->unit : 0;
}

static int read_profile(struct speedscope *all, const json_t *profile, size_t index)
{
	struct track track = { .all = all, .tid = (pid_t)index + 1, .value = number_of(profile, "startValue") };
	struct piece type = text_of(profile, "type");
	int r;

	r = sink_thread(all->sink, SPEEDSCOPE_PID, track.tid, text_of(profile, "name"));
	if (r < 0)
		return r;
	return type.n == strlen("evented") && memcmp(type.at, "evented", type.n) == 0 ? read_events(&track, profile)
										      : read_samples(&track, profile);
}

static int read_root(struct speedscope *all, const json_t *root)
{
	const json_t *profiles = json_object_get(root, "profiles");
	size_t n = json_array_size(profiles), first = (size_t)MAX(number_of(root, "activeProfileIndex"), 0);
	struct sink_run *run = sink_run(all->sink);
	struct piece unit;
	int r;

	if (n == 0 || n > INT32_MAX - 1)
		return damaged(all, "it has no profiles");
	unit = text_of(json_array_get(profiles, first < n ? first : 0), "unit");
	if (!read_unit(unit, &all->unit))
		return damaged(all, "its numbers have an unknown unit");
	snprintf(run->command, sizeof run->command, "%s", json_string_value(json_object_get(root, "name")) ?: "");
	run->counts = all->unit == 0;
	snprintf(run->event, sizeof run->event, "%s",
		 all->unit > 0       ? "speedscope"
		 : unit.at[0] == 'b' ? "bytes"
				     : "samples");
	measure(all, profiles, unit);
	r = read_frames(all, json_object_get(json_object_get(root, "shared"), "frames"));
	for (size_t i = 0; i < n && r >= 0; i++) {
		if (is_of_unit(json_array_get(profiles, i), unit))
			r = read_profile(all, json_array_get(profiles, i), i);
		else
			sink_skip(all->sink);
	}
	return r;
}

/*
 * Two bytes may form a value, which needs forty bytes of memory. Count commas and brackets, because one precedes each
 * value; some may be inside texts.
 */
static bool has_too_many_values(const uint8_t *bytes, size_t n_bytes)
{
	size_t n = 0;

	for (size_t i = 0; i < n_bytes; i++)
		n += bytes[i] == ',' || bytes[i] == '[' || bytes[i] == '{' || bytes[i] == ':';
	return n > MAX_VALUES;
}

static int read_speedscope(const struct import_input *input, struct sink *sink)
{
	struct speedscope all = { .sink = sink, .input = input };
	CLEANUP(json_decrefp) json_t *root = NULL;
	json_error_t error;
	int r;

	if (has_too_many_values(input->bytes, input->n_bytes))
		return sink_explain(sink, -EBADMSG,
				    "it has more than %d values: export a shorter time, or fewer threads", MAX_VALUES);
	root = json_loadb((const char *)input->bytes, input->n_bytes, JSON_ALLOW_NUL, &error);
	if (!root)
		return sink_explain(sink, -EBADMSG, "line %d is not JSON: %.100s", error.line, error.text);
	r = read_root(&all, root);
	free(all.frames);
	return r;
}

static bool is_speedscope(const uint8_t *bytes, size_t n_bytes)
{
	static const char schema[] = "speedscope.app/file-format-schema.json";
	size_t n = MIN(n_bytes, (size_t)LOOKED_AT);

	/* the schema's name may also come last */
	return n_bytes > 0 && bytes[0] == '{' &&
	       (memmem(bytes, n, schema, strlen(schema)) || memmem(bytes + n_bytes - n, n, schema, strlen(schema)));
}

const struct importer import_speedscope = {
	.name = "speedscope",
	.summary = "speedscope's own JSON",
	.recognise = is_speedscope,
	.read = read_speedscope,
};
