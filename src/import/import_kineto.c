/* SPDX-License-Identifier: MIT */
/*
 * import_kineto.c - traces of torch.profiler: JSON for Chrome's trace viewer, compressed or not.
 *
 *   {"schemaVersion": 1, "deviceProperties": [...], "baseTimeNanoseconds": 1700000000000000000, "traceEvents": [
 *    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7, "ts": 12.5, "dur": 3, "args": {...}},
 *    {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 20, "dur": 9, "args": {"device": 0,
 *     "stream": 7, "correlation": 42, ...}}, ...]}
 *
 * Times are microseconds since baseTimeNanoseconds; before torch 2.3 there was none, and they count from 1970. Builds
 * without Kineto, and torch.autograd.profiler, write a bare list of events without categories, whose process is the
 * text "CPU functions".
 *
 * A trace of some minutes has millions of events, and a tree of all JSON values would need gigabytes. So the text is
 * scanned, and only one event at a time is parsed.
 * Source: output_json.cpp of libkineto, and export_chrome_trace() of torch/autograd/profiler_util.py (1.13, 2.x).
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>

#include "src/import/decimal.h"
#include "src/import/json_scan.h"
#include "src/import/kineto.h"
#include "src/import/lines.h"
#include "src/import/unzip.h"

enum {
	LOOKED_AT = 1 << 16,
	MAX_EVENTS = 1 << 23,
	MAX_EVENT_BYTES = 1 << 20,
	MAX_SHAPES_BYTES = 1 << 10,
	MAX_PROPERTY_BYTES = 1 << 16,
	MAX_BUILTIN_BYTES = 512,
	GPU_FIRST_TID = 1 << 23, /* above PID_MAX_LIMIT of Linux (1 << 22), so no thread of the host has it */
	LEGACY_PID = 1,
};
#define MAX_US 4e15                                /* of a time since 1970: the year 2096 */
#define MAX_SPAN_NS ((uint64_t)900000000000000000) /* three decades; times can be farther apart than INT64_MAX ns */

static int damaged(const struct kineto *kineto, const char *what)
{
	return sink_explain(kineto->sink, -EBADMSG, "%s", what);
}

/* ---- Values of an event ---- */

static struct piece text_of(const json_t *object, const char *key)
{
	const json_t *text = json_object_get(object, key);

	return json_is_string(text) ? (struct piece){ json_string_value(text), json_string_length(text) }
				    : (struct piece){ 0 };
}

/* GPU_UNKNOWN: it is not there, or no whole number that fits. Some versions write numbers as texts. */
static int64_t integer_of(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);
	double number = NAN;
	int64_t whole;

	if (json_is_integer(value))
		return json_integer_value(value);
	if (json_is_real(value))
		number = json_real_value(value);
	else if (json_is_string(value) && !piece_decimal(text_of(object, key), &number))
		number = NAN;
	return whole_number(number, &whole) ? whole : GPU_UNKNOWN;
}

static int64_t integer_or(const json_t *object, const char *key, const char *otherwise)
{
	int64_t value = integer_of(object, key);

	return value != GPU_UNKNOWN ? value : integer_of(object, otherwise);
}

static void triple_of(const json_t *object, const char *key, int64_t ret[3])
{
	const json_t *array = json_object_get(object, key);

	for (size_t i = 0; i < 3; i++) {
		const json_t *value = json_array_get(array, i);

		ret[i] = json_is_integer(value) ? json_integer_value(value) : GPU_UNKNOWN;
	}
}

/* Times since 1970 would lose nanoseconds as a product of doubles. */
static int64_t nanoseconds_of(double us)
{
	double whole, part = modf(us, &whole);

	return (int64_t)whole * 1000 + llround(part * 1000);
}

/* false: no time, or one that is out of the world. */
static bool read_times(const json_t *json, bool has_duration, struct kineto_event *event)
{
	const json_t *start = json_object_get(json, "ts"), *duration = json_object_get(json, "dur");
	double start_us = json_number_value(start), us = json_number_value(duration);

	if (!json_is_number(start) || !(fabs(start_us) < MAX_US) || (has_duration && !json_is_number(duration)) ||
	    !(us >= 0) || !(us < MAX_US))
		return false;
	event->start_ns = nanoseconds_of(start_us);
	event->end_ns = event->start_ns + (has_duration ? nanoseconds_of(us) : 0);
	return true;
}

/* ---- Tables of equal things ---- */

static int text_number(struct kineto *kineto, struct piece text, uint32_t *ret)
{
	int64_t id;
	int r;

	*ret = 0;
	if (text.n == 0)
		return 0;
	r = ids_add(&kineto->text_ids, text.at, text.n, &id);
	if (r > 0) {
		r = grow(&kineto->texts, kineto->n_texts, &kineto->texts_allocated, sizeof *kineto->texts);
		if (r < 0)
			return r;
		kineto->texts[kineto->n_texts] = piece_text(text);
		if (!kineto->texts[kineto->n_texts])
			return -ENOMEM;
		kineto->n_texts++;
	}
	if (r >= 0)
		*ret = (uint32_t)id;
	return r;
}

static int thread_number(struct kineto *kineto, int64_t pid, int64_t tid, bool is_gpu, uint32_t *ret)
{
	const int64_t key[] = { pid, tid, is_gpu };
	int64_t id;
	int r;

	r = ids_add(&kineto->thread_ids, key, sizeof key, &id);
	if (r > 0) {
		r = grow(&kineto->threads, kineto->n_threads, &kineto->threads_allocated, sizeof *kineto->threads);
		if (r < 0)
			return r;
		kineto->threads[kineto->n_threads++] = (struct kineto_thread){
			.pid = pid,
			.tid = tid,
			.is_gpu = is_gpu,
			.sink_pid = is_gpu ? 0 : (pid_t)pid,
			.sink_tid = is_gpu ? (pid_t)(GPU_FIRST_TID + kineto->n_threads) : (pid_t)tid,
		};
	}
	if (r >= 0)
		*ret = (uint32_t)(id - 1);
	return r;
}

/* ---- Events ---- */

static bool ends_with(struct piece piece, const char *ending)
{
	size_t n = strlen(ending);

	return piece.n >= n && memcmp(piece.at + piece.n - n, ending, n) == 0;
}

/* false: an event that says nothing about time spent: marks, overhead of the profiler, copies of annotations. */
static bool kind_of(const json_t *json, enum kineto_kind *ret)
{
	struct piece phase = text_of(json, "ph"), category = text_of(json, "cat");

	if (piece_is(phase, "i"))
		*ret = KINETO_MEMORY;
	else if (!piece_is(phase, "X"))
		return false;
	else if (piece_is(category, "kernel") || piece_is(category, "Kernel"))
		*ret = KINETO_KERNEL;
	else if (piece_is(category, "gpu_memcpy") || piece_is(category, "Memcpy"))
		*ret = KINETO_COPY;
	else if (piece_is(category, "gpu_memset") || piece_is(category, "Memset"))
		*ret = KINETO_FILL;
	else if (ends_with(category, "_runtime") || ends_with(category, "_driver") || piece_is(category, "Runtime"))
		*ret = KINETO_CALL;
	else if (piece_is(category, "python_function"))
		*ret = KINETO_PYTHON;
	else if (piece_is(category, "user_annotation"))
		*ret = KINETO_ANNOTATION;
	else if (category.n == 0 || piece_is(category, "cpu_op") || piece_is(category, "Operator"))
		*ret = KINETO_OP;
	else
		return false;
	return *ret != KINETO_MEMORY || piece_is(text_of(json, "name"), "[memory]");
}

static int add_detail(struct kineto *kineto, const json_t *json, const json_t *arguments, struct kineto_event *event)
{
	struct kineto_detail *detail;
	int r;

	r = grow(&kineto->details, kineto->n_details, &kineto->details_allocated, sizeof *kineto->details);
	if (r < 0)
		return r;
	event->detail = (uint32_t)kineto->n_details;
	detail = &kineto->details[kineto->n_details++];
	*detail = (struct kineto_detail){
		.device = integer_or(arguments, "device", "Device Id"),
		.context = integer_of(arguments, "context"),
		.stream = integer_of(arguments, "stream"),
		.bytes = integer_or(arguments, "bytes", "Bytes"),
		.registers = integer_of(arguments, "registers per thread"),
		.shared_bytes = integer_of(arguments, "shared memory"),
		.allocated = integer_of(arguments, "Total Allocated"),
		.reserved = integer_of(arguments, "Total Reserved"),
		.address = integer_of(arguments, "Addr"),
		.device_type = integer_of(arguments, "Device Type"),
	};
	if (detail->device == GPU_UNKNOWN && kineto_is_on_gpu(event->kind))
		detail->device = integer_of(json, "pid");
	if (detail->stream == GPU_UNKNOWN && kineto_is_on_gpu(event->kind))
		detail->stream = integer_of(json, "tid");
	triple_of(arguments, "grid", detail->grid);
	triple_of(arguments, "block", detail->block);
	return 0;
}

/* Returns 1 where the thread has no numbers that can be its. */
static int find_thread(struct kineto *kineto, const json_t *json, struct kineto_event *event)
{
	int64_t pid = integer_of(json, "pid"), tid = integer_of(json, "tid");

	if (kineto_is_on_gpu(event->kind)) {
		const struct kineto_detail *detail = &kineto->details[event->detail];

		return thread_number(kineto, detail->device, detail->stream, true, &event->thread);
	}
	if (json_is_string(json_object_get(json, "pid")) && pid == GPU_UNKNOWN)
		pid = LEGACY_PID;
	if (pid < 0 || pid > INT32_MAX || tid < 0 || tid > INT32_MAX)
		return 1;
	return MIN(thread_number(kineto, pid, tid, false, &event->thread), 0);
}

/* The shapes of inputs as a JSON text. */
static int read_shapes(struct kineto *kineto, const json_t *arguments, struct kineto_event *event)
{
	const json_t *shapes = json_object_get(arguments, "Input Dims") ?: json_object_get(arguments, "Input dims");
	CLEANUP(freep) char *text = NULL;

	if (!shapes || event->kind != KINETO_OP)
		return 0;
	text = json_dumps(shapes, JSON_COMPACT | JSON_ENCODE_ANY);
	if (!text || strlen(text) > MAX_SHAPES_BYTES)
		return 0;
	return text_number(kineto, piece_of(text), &event->text);
}

static int keep_name(struct kineto *kineto, int64_t pid, int64_t tid, struct piece name)
{
	struct kineto_name *one;
	int r;

	r = grow(&kineto->names, kineto->n_names, &kineto->names_allocated, sizeof *kineto->names);
	if (r < 0)
		return r;
	one = &kineto->names[kineto->n_names];
	*one = (struct kineto_name){ .pid = pid, .tid = tid };
	r = text_number(kineto, name, &one->text);
	kineto->n_names += r >= 0;
	return MIN(r, 0);
}

static int keep_event(struct kineto *kineto, struct kineto_event *event)
{
	int r;

	if (kineto->n_events >= MAX_EVENTS)
		return sink_explain(kineto->sink, -EBADMSG,
				    "it has more than %d events: trace fewer steps, with "
				    "torch.profiler.schedule()",
				    MAX_EVENTS);
	r = grow(&kineto->events, kineto->n_events, &kineto->events_allocated, sizeof *kineto->events);
	if (r < 0)
		return r;
	kineto->first_ns = kineto->n_events > 0 ? MIN(kineto->first_ns, event->start_ns) : event->start_ns;
	kineto->last_ns = kineto->n_events > 0 ? MAX(kineto->last_ns, event->end_ns) : event->end_ns;
	kineto->events[kineto->n_events++] = *event;
	return 0;
}

/* The name of a thread or process, which comes without a category. Those without events are left out. */
static int read_name(struct kineto *kineto, const json_t *json)
{
	struct piece name = text_of(json_object_get(json, "args"), "name"), what = text_of(json, "name");
	int64_t pid = integer_of(json, "pid"), tid = integer_of(json, "tid");

	if (!piece_is(what, "thread_name") || name.n == 0 || pid < 0 || pid > INT32_MAX || tid < 0 || tid > INT32_MAX)
		return 0;
	return keep_name(kineto, pid, tid, name);
}

/* "<built-in method sum of Tensor object at 0x7f>" has an address, which no other run has. */
static struct piece without_address(struct piece text, char to[MAX_BUILTIN_BYTES])
{
	static const char at[] = " at 0x";
	const char *found = memmem(text.at, text.n, at, strlen(at));

	if (!found || found - text.at >= MAX_BUILTIN_BYTES - 2)
		return text;
	return (struct piece){ to, (size_t)snprintf(to, MAX_BUILTIN_BYTES, "%.*s>", (int)(found - text.at), text.at) };
}

static int read_event(struct kineto *kineto, const json_t *json)
{
	const json_t *arguments = json_object_get(json, "args");
	struct kineto_event event = { .parent = -1, .operation = -1 };
	struct piece name = text_of(json, "name");
	char builtin[MAX_BUILTIN_BYTES];
	int r;

	if (piece_is(text_of(json, "ph"), "M"))
		return read_name(kineto, json);
	if (!kind_of(json, &event.kind))
		return 0;
	if (name.n == 0 || !read_times(json, event.kind != KINETO_MEMORY, &event)) {
		sink_skip(kineto->sink);
		return 0;
	}
	event.correlation = integer_of(arguments, "correlation");
	event.sequence = integer_or(arguments, "Sequence number", "sequence number");
	if (event.kind == KINETO_PYTHON && name.at[0] == '<')
		name = without_address(name, builtin);
	r = text_number(kineto, name, &event.name);
	if (r >= 0 && event.kind > KINETO_LAST_OF_HOST)
		r = add_detail(kineto, json, arguments, &event);
	if (r >= 0)
		r = read_shapes(kineto, arguments, &event);
	if (r >= 0)
		r = find_thread(kineto, json, &event);
	if (r == 1 && !kineto_is_on_gpu(event.kind)) {
		sink_skip(kineto->sink);
		return 0;
	}
	if (event.kind == KINETO_OP && kineto_step_of(kineto_text(kineto, event.name)) >= 0)
		event.kind = KINETO_ANNOTATION;
	return r < 0 ? r : keep_event(kineto, &event);
}

/* The events' list, from behind its opening bracket. */
static int read_events(struct kineto *kineto, struct json_scan *scan)
{
	struct piece text;
	json_error_t error;
	int r = 0;

	if (json_scan_sign(scan, ']'))
		return 0;
	do {
		CLEANUP(json_decrefp) json_t *json = NULL;

		if (!json_scan_value(scan, &text))
			return damaged(kineto, "it ends within an event: the profiler did not finish writing it");
		if (text.n <= MAX_EVENT_BYTES)
			json = json_loadb(text.at, text.n, JSON_ALLOW_NUL | JSON_DECODE_ANY, &error);
		if (text.n > MAX_EVENT_BYTES)
			sink_skip(kineto->sink);
		else if (!json)
			return sink_explain(kineto->sink, -EBADMSG, "an event is not JSON: %.100s", error.text);
		else
			r = read_event(kineto, json);
		if (r >= 0)
			r = sink_read(kineto->sink, kineto->n_bytes - (uint64_t)(scan->end - scan->at),
				      kineto->n_bytes);
	} while (r >= 0 && json_scan_sign(scan, ','));
	if (r >= 0 && !json_scan_sign(scan, ']'))
		return damaged(kineto, "it ends within the list of events: the profiler did not finish writing it");
	return r;
}

/* ---- Document ---- */

static int read_base(struct kineto *kineto, const json_t *json)
{
	int64_t base = json_is_integer(json) ? json_integer_value(json) : -1;

	if (base < 0 || base > INT64_MAX / 2)
		return damaged(kineto, "its baseTimeNanoseconds is not a time");
	kineto->base_ns = base;
	return 0;
}

static int read_devices(struct kineto *kineto, const json_t *json)
{
	for (size_t i = 0; i < json_array_size(json); i++) {
		const json_t *properties = json_array_get(json, i);
		struct kineto_device device = { .id = integer_of(properties, "id") };
		struct piece name = text_of(properties, "name");
		int r;

		if (device.id == GPU_UNKNOWN || name.n == 0)
			continue;
		r = grow(&kineto->devices, kineto->n_devices, &kineto->devices_allocated, sizeof *kineto->devices);
		if (r < 0)
			return r;
		snprintf(device.name, sizeof device.name, "%.*s (%" PRId64 ")", (int)MIN(name.n, (size_t)128), name.at,
			 device.id);
		kineto->devices[kineto->n_devices++] = device;
	}
	return 0;
}

const char *kineto_device(const struct kineto *kineto, int64_t id, char to[24])
{
	for (size_t i = 0; i < kineto->n_devices; i++)
		if (kineto->devices[i].id == id)
			return kineto->devices[i].name;
	snprintf(to, 24, "%" PRId64, MAX(id, 0));
	return to;
}

/* A property of the whole trace; most are of no use here. */
static int read_property(struct kineto *kineto, struct piece key, struct piece text)
{
	bool is_base = piece_is(key, "\"baseTimeNanoseconds\""), is_devices = piece_is(key, "\"deviceProperties\"");
	CLEANUP(json_decrefp) json_t *json = NULL;
	json_error_t error;

	if (!(is_base || is_devices) || text.n > MAX_PROPERTY_BYTES)
		return 0;
	json = json_loadb(text.at, text.n, JSON_DECODE_ANY, &error);
	if (!json)
		return sink_explain(kineto->sink, -EBADMSG, "its properties are not JSON: %.100s", error.text);
	return is_base ? read_base(kineto, json) : read_devices(kineto, json);
}

static int read_object(struct kineto *kineto, struct json_scan *scan)
{
	struct piece key, value;
	bool has_events = false;
	int r = 0;

	do {
		if (!json_scan_value(scan, &key) || key.at[0] != '"' || !json_scan_sign(scan, ':'))
			return damaged(kineto, "it is not JSON, or ends too early");
		if (piece_is(key, "\"traceEvents\"") && json_scan_sign(scan, '[')) {
			has_events = true;
			r = read_events(kineto, scan);
		} else if (!json_scan_value(scan, &value)) {
			return damaged(kineto, "it is not JSON, or ends too early");
		} else {
			r = read_property(kineto, key, value);
		}
	} while (r >= 0 && json_scan_sign(scan, ','));
	if (r >= 0 && !json_scan_sign(scan, '}'))
		return damaged(kineto, "it ends too early: the profiler did not finish writing it");
	return r < 0 || has_events ? r : damaged(kineto, "it has no list traceEvents");
}

/* The time of day at which the trace began: of the file's base, of its times, or of the file. */
static void find_start(struct kineto *kineto)
{
	int64_t first = kineto->base_ns + kineto->first_ns, span = kineto->last_ns - kineto->first_ns;
	const int64_t year_2001 = 1000000000000000000, year_2096 = 4000000000000000000;

	if (first > year_2001 && first < year_2096)
		kineto->started_ns = (uint64_t)first;
	else if (kineto->input->modified_ns > (uint64_t)span)
		kineto->started_ns = kineto->input->modified_ns - (uint64_t)span;
	kineto->started_ns = MAX(kineto->started_ns, 1);
}

static void move_to_start(struct kineto *kineto)
{
	for (size_t i = 0; i < kineto->n_events; i++) {
		kineto->events[i].start_ns -= kineto->first_ns;
		kineto->events[i].end_ns -= kineto->first_ns;
	}
	kineto->last_ns -= kineto->first_ns;
	kineto->first_ns = 0;
}

/* "thread 4242 (pt_autograd_0)": the number is in the table anyway. */
static struct piece name_in(struct piece text)
{
	const char *open = piece_begins(text, "thread ") ? memchr(text.at, '(', text.n) : NULL;

	if (!open || text.at[text.n - 1] != ')')
		return text;
	return (struct piece){ open + 1, (size_t)(text.at + text.n - 1 - (open + 1)) };
}

static int name_threads(struct kineto *kineto)
{
	int r = 0;

	for (size_t i = 0; i < kineto->n_names && r >= 0; i++) {
		const struct kineto_name *name = &kineto->names[i];
		const int64_t key[] = { name->pid, name->tid, false };
		int64_t id;

		if (ids_find(&kineto->thread_ids, key, sizeof key, &id))
			r = sink_thread(kineto->sink, (pid_t)name->pid, (pid_t)name->tid,
					name_in(piece_of(kineto_text(kineto, name->text))));
	}
	return r;
}

/* Work on GPUs belongs to the first process that has threads of its own. */
static int add_threads(struct kineto *kineto)
{
	char name[64];
	pid_t pid = 0;
	int r = 0;

	for (size_t i = kineto->n_threads; i > 0; i--)
		pid = kineto->threads[i - 1].is_gpu ? pid : kineto->threads[i - 1].sink_pid;
	for (size_t i = 0; i < kineto->n_threads && r >= 0; i++) {
		struct kineto_thread *thread = &kineto->threads[i];

		name[0] = '\0';
		if (thread->is_gpu) {
			thread->sink_pid = pid;
			snprintf(name, sizeof name, "GPU %" PRId64 " stream %" PRId64, MAX(thread->pid, 0),
				 MAX(thread->tid, 0));
		}
		r = sink_thread(kineto->sink, thread->sink_pid, thread->sink_tid, piece_of(name));
	}
	return r < 0 ? r : name_threads(kineto);
}

static int read_trace(struct kineto *kineto, struct piece bytes)
{
	struct json_scan scan = { bytes.at, bytes.at + bytes.n };
	struct gpu_trace_row trace = { .format = "kineto", .pid = GPU_UNKNOWN };
	const char *slash = strrchr(kineto->input->name, '/');
	int r;

	kineto->n_bytes = bytes.n;
	r = json_scan_sign(&scan, '{')   ? read_object(kineto, &scan)
	    : json_scan_sign(&scan, '[') ? read_events(kineto, &scan)
					 : damaged(kineto, "it is not JSON");
	json_scan_blanks(&scan);
	if (r >= 0 && scan.at < scan.end)
		r = damaged(kineto, "there is text behind its end");
	if (r < 0)
		return r;
	if ((uint64_t)kineto->last_ns - (uint64_t)kineto->first_ns > MAX_SPAN_NS)
		return damaged(kineto, "its events are decades apart");
	find_start(kineto);
	move_to_start(kineto);
	strcpy(sink_run(kineto->sink)->event, "torch");
	sink_run(kineto->sink)->started_ns = kineto->started_ns;
	sink_run(kineto->sink)->ended_ns = kineto->started_ns + (uint64_t)kineto->last_ns;
	trace.file = slash ? slash + 1 : kineto->input->name;
	trace.started_ns = kineto->started_ns;
	r = add_threads(kineto);
	if (r >= 0 && kineto->n_threads > 0)
		trace.pid = kineto->threads[0].sink_pid;
	if (r >= 0)
		r = sink_gpu_rows(kineto->sink, &trace, &kineto->writer);
	if (r >= 0)
		r = kineto_tree(kineto);
	return r < 0 ? r : kineto_rows(kineto);
}

static void kineto_done(struct kineto *kineto)
{
	for (size_t i = 0; i < kineto->n_texts; i++)
		free(kineto->texts[i]);
	free(kineto->texts);
	ids_done(&kineto->text_ids);
	ids_done(&kineto->thread_ids);
	free(kineto->events);
	free(kineto->threads);
	free(kineto->details);
	free(kineto->segments);
	free(kineto->launches);
	free(kineto->steps);
	free(kineto->work);
	free(kineto->devices);
	free(kineto->names);
}

static int read_kineto(const struct import_input *input, struct sink *sink)
{
	CLEANUP(kineto_done) struct kineto kineto = { .sink = sink, .input = input };
	CLEANUP(freep) uint8_t *unpacked = NULL;
	struct piece bytes;
	int r;

	r = unzip_input(input, sink, &unpacked, &bytes);
	return r < 0 ? r : read_trace(&kineto, bytes);
}

static bool has(const uint8_t *bytes, size_t n_bytes, const char *text)
{
	return memmem(bytes, n_bytes, text, strlen(text)) != NULL;
}

static bool is_trace(const uint8_t *bytes, size_t n_bytes)
{
	struct json_scan scan = { (const char *)bytes, (const char *)bytes + n_bytes };

	if (json_scan_sign(&scan, '{'))
		return has(bytes, n_bytes, "\"traceEvents\"");
	return json_scan_sign(&scan, '[') && json_scan_sign(&scan, '{') && has(bytes, n_bytes, "\"ph\"") &&
	       has(bytes, n_bytes, "\"ts\"");
}

static bool is_kineto(const uint8_t *bytes, size_t n_bytes)
{
	CLEANUP(freep) uint8_t *head = NULL;
	size_t n = MIN(n_bytes, (size_t)LOOKED_AT);

	if (!is_gzip(bytes, n_bytes))
		return is_trace(bytes, n);
	return unzip_head(bytes, n_bytes, LOOKED_AT, &head, &n) >= 0 && is_trace(head, n);
}

const struct importer import_kineto = {
	.name = "kineto",
	.summary = "trace of torch.profiler, compressed or not",
	.recognise = is_kineto,
	.read = read_kineto,
};
