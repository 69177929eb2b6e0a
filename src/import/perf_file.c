/* SPDX-License-Identifier: MIT */
/*
 * perf_file.c - the header of a perf.data file, its events, and the range of its records.
 *
 * Invariants: nothing is read outside of the file; a record has at least its header; times are those of the records'
 * own trailers, whose offset depends on their event. Records of several processors are merged into one order.
 */
#include "src/import/perf_file.h"

#include <errno.h>

enum {
	HEADER_BYTES = 104,
	ATTR_MIN_BYTES = 64,
	PERF_RECORD_AUXTRACE_TYPE = 71,
	PERF_RECORD_COMPRESSED_TYPE = 81,
	FIRST_OF_PERF = 64, /* types from here on are perf's own and have no trailer */
};

struct section {
	uint64_t offset, size;
};

static int damaged(const struct perf_file *file)
{
	return sink_explain(file->sink, -EBADMSG, "it is damaged or truncated");
}

/* Contents of a section; empty and failed if it is outside the file. */
static struct cursor open_section(const struct perf_file *file, struct section section)
{
	if (section.offset > file->n_bytes || section.size > file->n_bytes - section.offset)
		return (struct cursor){ .failed = true };
	return (struct cursor){ .at = file->bytes + section.offset,
				.end = file->bytes + section.offset + section.size };
}

static struct section read_section(struct cursor *in)
{
	uint64_t offset = cursor_fixed(in, 8);

	return (struct section){ offset, cursor_fixed(in, 8) };
}

static void take(struct cursor *in, void *to, size_t n)
{
	if (in->failed || cursor_left(in) < n) {
		in->failed = true;
		return;
	}
	memcpy(to, in->at, n);
	in->at += n;
}

static void skip(struct cursor *in, uint64_t n)
{
	if (in->failed || cursor_left(in) < n)
		in->failed = true;
	else
		in->at += n;
}

/* ---- Events ---- */

static int read_ids(const struct perf_file *file, struct section section, struct perf_event *event)
{
	struct cursor in = open_section(file, section);
	size_t n = cursor_left(&in) / 8;

	event->ids = calloc(n + 1, sizeof *event->ids);
	if (!event->ids)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		event->ids[i] = cursor_fixed(&in, 8);
	event->n_ids = n;
	return in.failed ? damaged(file) : 0;
}

/* An attribute has the size that the writing perf knew; the position of its ids follows. */
static int read_events(struct perf_file *file, struct section attrs, uint64_t attr_bytes)
{
	struct cursor in = open_section(file, attrs);
	int r = 0;

	if (in.failed || attr_bytes < ATTR_MIN_BYTES + 16 || attr_bytes > 4096 || cursor_left(&in) < attr_bytes)
		return damaged(file);
	while (r >= 0 && cursor_left(&in) >= attr_bytes && file->n_events < PERF_MAX_EVENTS) {
		struct perf_event *event = &file->events[file->n_events++];
		struct cursor one = { .at = in.at, .end = in.at + attr_bytes };
		struct section ids;

		take(&one, &event->attr, MIN(sizeof event->attr, attr_bytes - 16));
		one.at = one.end - 16;
		ids = read_section(&one);
		in.at += attr_bytes;
		r = read_ids(file, ids, event);
	}
	return r;
}

/* ---- Features: perf and the machine ---- */

static struct piece read_string(struct cursor *in)
{
	uint64_t n = cursor_fixed(in, 4);
	struct piece text = { (const char *)in->at, n };

	skip(in, n);
	if (in->failed)
		return (struct piece){ 0 };
	text.n = strnlen(text.at, text.n);
	return text;
}

static void keep_text(struct piece text, char *to, size_t n_bytes)
{
	size_t n = MIN(text.n, n_bytes - 1);

	if (n > 0)
		memcpy(to, text.at, n);
	to[n] = '\0';
}

static void read_command(struct cursor *in, struct sink_run *run)
{
	uint64_t n = cursor_fixed(in, 4);
	size_t at = 0;

	for (uint64_t i = 0; i < n && !in->failed && at + 2 < sizeof run->command; i++) {
		struct piece word = read_string(in);

		if (at > 0)
			run->command[at++] = ' ';
		keep_text(word, run->command + at, sizeof run->command - at);
		at += strlen(run->command + at);
	}
}

/* Each entry is a record: header, process, 20 bytes, their number, the file. */
static int read_build_ids(struct perf_file *file, struct cursor *in)
{
	int r = 0;

	while (r >= 0 && cursor_left(in) >= sizeof(struct perf_event_header) + 28) {
		struct cursor one = { .at = in->at };
		struct perf_event_header header;
		struct perf_build_id entry = { .id.n_bytes = 20 };

		memcpy(&header, in->at, sizeof header);
		if (header.size < sizeof header + 28 || header.size > cursor_left(in))
			return 0;
		one.end = in->at + header.size;
		in->at += header.size;
		skip(&one, sizeof header + 4);
		take(&one, entry.id.bytes, 20);
		if (header.misc & 1 << 15) /* PERF_RECORD_MISC_BUILD_ID_SIZE */
			entry.id.n_bytes = MIN((unsigned)one.at[0], 20U);
		skip(&one, 4);
		entry.path = strndup((const char *)one.at, cursor_left(&one));
		if (!entry.path)
			return -ENOMEM;
		r = grow(&file->build_ids, file->n_build_ids, &file->build_ids_allocated, sizeof *file->build_ids);
		if (r < 0)
			free(entry.path);
		else
			file->build_ids[file->n_build_ids++] = entry;
	}
	return r;
}

static void read_clock(struct perf_file *file, struct cursor *in)
{
	uint64_t version = cursor_fixed(in, 4), wall_ns, clock_ns;

	skip(in, 4);
	wall_ns = cursor_fixed(in, 8);
	clock_ns = cursor_fixed(in, 8);
	if (in->failed || version != 1)
		return;
	file->to_realtime_ns = (int64_t)(wall_ns - clock_ns);
	file->has_clock = true;
}

static void read_names(struct perf_file *file, struct cursor *in)
{
	uint64_t n = cursor_fixed(in, 4), attr_bytes = cursor_fixed(in, 4);

	for (uint64_t i = 0; i < n && i < file->n_events && !in->failed; i++) {
		uint64_t n_ids;

		skip(in, attr_bytes);
		n_ids = cursor_fixed(in, 4);
		keep_text(read_string(in), file->events[i].name, sizeof file->events[i].name);
		skip(in, n_ids * 8);
	}
}

static int read_feature(struct perf_file *file, unsigned feature, struct cursor in)
{
	enum { BUILD_ID = 2, HOSTNAME, RELEASE, CPUS = 7, COMMAND = 11, EVENTS = 12, CLOCK = 29 };
	struct sink_run *run = sink_run(file->sink);

	switch (feature) {
	case BUILD_ID:
		return read_build_ids(file, &in);
	case HOSTNAME:
		keep_text(read_string(&in), run->host, sizeof run->host);
		break;
	case RELEASE:
		keep_text(read_string(&in), run->kernel, sizeof run->kernel);
		break;
	case CPUS:
		skip(&in, 4);
		run->cpus = (unsigned)cursor_fixed(&in, 4);
		break;
	case COMMAND:
		read_command(&in, run);
		break;
	case EVENTS:
		read_names(file, &in);
		break;
	case CLOCK:
		read_clock(file, &in);
		break;
	}
	return 0;
}

/* After the records: a section for each feature bit in the header. A damaged one is not needed. */
static int read_features(struct perf_file *file, uint64_t at, const uint64_t bits[4])
{
	struct cursor in = { .failed = true };
	int r = 0;

	if (at <= file->n_bytes)
		in = (struct cursor){ .at = file->bytes + at, .end = file->bytes + file->n_bytes };
	for (unsigned i = 0; i < 256 && r >= 0; i++) {
		struct cursor section;

		if (!(bits[i / 64] >> i % 64 & 1))
			continue;
		section = open_section(file, read_section(&in));
		if (in.failed)
			return 0;
		if (!section.failed)
			r = read_feature(file, i, section);
	}
	return r;
}

/* ---- Records ---- */

struct perf_event_header perf_record_header(const struct perf_file *file, const struct perf_record *record)
{
	struct perf_event_header header;

	memcpy(&header, file->bytes + record->at, sizeof header);
	return header;
}

struct cursor perf_record_body(const struct perf_file *file, const struct perf_record *record)
{
	struct perf_event_header header = perf_record_header(file, record);

	return (struct cursor){ .at = file->bytes + record->at + sizeof header,
				.end = file->bytes + record->at + header.size };
}

static const struct perf_event *event_by_id(const struct perf_file *file, uint64_t id)
{
	for (size_t i = 0; i < file->n_events; i++)
		for (size_t j = 0; j < file->events[i].n_ids; j++)
			if (file->events[i].ids[j] == id)
				return &file->events[i];
	return NULL;
}

const struct perf_event *perf_event_of(const struct perf_file *file, const struct perf_record *record)
{
	struct cursor body = perf_record_body(file, record);

	if (file->n_events == 1 || !(file->events[0].attr.sample_type & PERF_SAMPLE_IDENTIFIER))
		return &file->events[0];
	return event_by_id(file, cursor_fixed(&body, 8));
}

/* Trailer words in this order: TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER; returns the time's distance from the end. */
static size_t time_from_end(uint64_t type)
{
	return 8 * (1 + bits_of(type &
				(PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)));
}

static size_t sample_time_at(uint64_t type)
{
	return 8 * bits_of(type & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID));
}

static uint64_t time_of(const struct perf_file *file, const struct perf_record *record)
{
	struct perf_event_header header = perf_record_header(file, record);
	const struct perf_event_attr *attr = &file->events[0].attr;
	struct cursor body = perf_record_body(file, record);

	if (header.type >= FIRST_OF_PERF)
		return 0;
	if (header.type == PERF_RECORD_SAMPLE) {
		const struct perf_event *event = perf_event_of(file, record);

		if (!event || !(event->attr.sample_type & PERF_SAMPLE_TIME))
			return 0;
		skip(&body, sample_time_at(event->attr.sample_type));
		return cursor_fixed(&body, 8);
	}
	if (!attr->sample_id_all || !(attr->sample_type & PERF_SAMPLE_TIME) ||
	    cursor_left(&body) < time_from_end(attr->sample_type))
		return 0;
	body.at = body.end - time_from_end(attr->sample_type);
	return cursor_fixed(&body, 8);
}

static int by_time(const void *left, const void *right)
{
	const struct perf_record *one = left, *other = right;

	if (one->time_ns != other->time_ns)
		return one->time_ns < other->time_ns ? -1 : 1;
	return one->at < other->at ? -1 : one->at > other->at;
}

static int add_record(struct perf_file *file, uint64_t at)
{
	struct perf_record record = { .at = at };
	int r = grow(&file->records, file->n_records, &file->records_allocated, sizeof *file->records);

	if (r < 0)
		return r;
	record.time_ns = time_of(file, &record);
	file->records[file->n_records++] = record;
	return 0;
}

static int find_records(struct perf_file *file, struct section data)
{
	struct cursor in = open_section(file, data);
	int r = 0;

	if (in.failed && data.offset <= file->n_bytes) /* truncated: read what exists */
		in = (struct cursor){ .at = file->bytes + data.offset, .end = file->bytes + file->n_bytes };
	while (r >= 0 && cursor_left(&in) >= sizeof(struct perf_event_header)) {
		struct perf_event_header header;
		uint64_t more = 0;

		memcpy(&header, in.at, sizeof header);
		if (header.type == PERF_RECORD_COMPRESSED_TYPE)
			return sink_explain(file->sink, -EPROTONOSUPPORT, "its records are packed: record without -z");
		if (header.size < sizeof header || header.size > cursor_left(&in))
			break;
		if (header.type == PERF_RECORD_AUXTRACE_TYPE && header.size >= sizeof header + 8)
			memcpy(&more, in.at + sizeof header, sizeof more);
		if (header.type < FIRST_OF_PERF)
			r = add_record(file, (uint64_t)(in.at - file->bytes));
		in.at += header.size;
		skip(&in, more);
	}
	if (r >= 0 && file->n_records > 0)
		qsort(file->records, file->n_records, sizeof *file->records, by_time);
	return r;
}

int perf_file_read(struct perf_file *file)
{
	struct cursor in = { .at = file->bytes, .end = file->bytes + file->n_bytes };
	struct section attrs, data;
	uint64_t magic, head_bytes, attr_bytes, features[4];
	int r;

	magic = cursor_fixed(&in, 8);
	head_bytes = cursor_fixed(&in, 8);
	if (magic == __builtin_bswap64(UINT64_C(0x32454c4946524550)))
		return sink_explain(file->sink, -EPROTONOSUPPORT,
				    "it was recorded on a machine of the other byte order");
	if (head_bytes == 16)
		return sink_explain(file->sink, -EPROTONOSUPPORT,
				    "it was written to a pipe: let perf record write to a file");
	attr_bytes = cursor_fixed(&in, 8);
	attrs = read_section(&in);
	data = read_section(&in);
	read_section(&in);
	for (size_t i = 0; i < N_ELEMENTS(features); i++)
		features[i] = cursor_fixed(&in, 8);
	if (in.failed || head_bytes < HEADER_BYTES)
		return damaged(file);
	r = read_events(file, attrs, attr_bytes);
	if (r >= 0 && data.offset <= UINT64_MAX - data.size)
		r = read_features(file, data.offset + data.size, features);
	return r < 0 ? r : find_records(file, data);
}

void perf_file_done(struct perf_file *file)
{
	for (size_t i = 0; i < file->n_events; i++)
		free(file->events[i].ids);
	for (size_t i = 0; i < file->n_build_ids; i++)
		free(file->build_ids[i].path);
	free(file->build_ids);
	free(file->records);
}
