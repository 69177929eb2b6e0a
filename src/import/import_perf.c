/* SPDX-License-Identifier: MIT */
/*
 * import_perf.c - perf.data: samples of perf record, with or without stacks.
 *
 * Records are processed in order of time, so that each sample finds the address space of its time. Weights are
 * nanoseconds if the event is a clock, else numbers of the event; of several events the first with samples is used,
 * since numbers of different events do not add up. Symbols are resolved afterwards, as for a recording of ours.
 */
#include <errno.h>
#include <stdio.h>

#include "src/import/perf_stack.h"

struct perf {
	struct sink *sink;
	const struct import_input *input;
	struct perf_file file;
	struct perf_stacks stacks;
	const struct perf_event *event; /* NULL: no sample yet */
};

static void perf_done(struct perf *perf)
{
	perf_stacks_done(&perf->stacks);
	perf_file_done(&perf->file);
}

static struct piece text_left(const struct cursor *in)
{
	return (struct piece){ (const char *)in->at, strnlen((const char *)in->at, cursor_left(in)) };
}

static pid_t pid_in(struct cursor *in)
{
	return (pid_t)(int32_t)cursor_fixed(in, 4);
}

/* ---- Process records ---- */

static int read_map(struct perf *perf, const struct perf_record *record, bool is_2)
{
	struct perf_event_header header = perf_record_header(&perf->file, record);
	struct cursor in = perf_record_body(&perf->file, record);
	pid_t pid = pid_in(&in);
	struct mapping_source source = { .executable = !(header.misc & PERF_RECORD_MISC_MMAP_DATA) };
	CLEANUP(freep) char *path = NULL;
	uint64_t length;

	pid_in(&in);
	source.start = cursor_fixed(&in, 8);
	length = cursor_fixed(&in, 8);
	source.file_offset = cursor_fixed(&in, 8);
	if (is_2) {
		bool has_inode = !(header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID);
		uint64_t device = cursor_fixed(&in, 8), inode = cursor_fixed(&in, 8);

		source.device = has_inode ? device : 0;
		source.inode = has_inode ? inode : 0;
		cursor_fixed(&in, 8);
		source.executable = cursor_fixed(&in, 4) & 4; /* PROT_EXEC */
		cursor_fixed(&in, 4);
	}
	if (in.failed || length > UINT64_MAX - source.start)
		return 0;
	source.end = source.start + length;
	if ((header.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL) {
		perf_stacks_kernel_map(&perf->stacks, &source, text_left(&in));
		return 0;
	}
	path = piece_text(text_left(&in));
	if (!path)
		return -ENOMEM;
	source.path = path;
	return perf_stacks_map(&perf->stacks, pid, &source);
}

static int read_comm(struct perf *perf, const struct perf_record *record)
{
	struct perf_event_header header = perf_record_header(&perf->file, record);
	struct cursor in = perf_record_body(&perf->file, record);
	pid_t pid = pid_in(&in), tid = pid_in(&in);
	int r;

	if (in.failed || pid < 0 || tid < 0)
		return 0;
	r = header.misc & PERF_RECORD_MISC_COMM_EXEC ? perf_stacks_exec(&perf->stacks, pid) : 0;
	if (r >= 0 && pid == tid)
		r = sink_process(perf->sink, pid, 0, text_left(&in), text_left(&in));
	return r < 0 ? r : sink_thread(perf->sink, pid, tid, text_left(&in));
}

static int read_fork(struct perf *perf, const struct perf_record *record)
{
	struct cursor in = perf_record_body(&perf->file, record);
	pid_t pid = pid_in(&in), parent = pid_in(&in);

	return in.failed ? 0 : perf_stacks_fork(&perf->stacks, parent, pid);
}

/* ---- Samples ---- */

static bool is_clock(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_SOFTWARE &&
	       (attr->config == PERF_COUNT_SW_CPU_CLOCK || attr->config == PERF_COUNT_SW_TASK_CLOCK);
}

static void choose_event(struct perf *perf, const struct perf_event *event)
{
	struct sink_run *run = sink_run(perf->sink);

	perf->event = event;
	run->counts = !is_clock(&event->attr);
	run->kernel_frames = !event->attr.exclude_kernel;
	if (event->attr.freq)
		run->hz = (double)event->attr.sample_freq;
	else
		run->period = event->attr.sample_period;
	snprintf(run->event, sizeof run->event, "%s",
		 event->name[0] ? event->name
		 : run->counts  ? "events"
				: "cpu-clock");
}

/* Without a date in the file, the last sample was taken when the file was written. */
static uint64_t real_time(const struct perf *perf, uint64_t time_ns)
{
	const struct perf_file *file = &perf->file;
	uint64_t last = file->records[file->n_records - 1].time_ns;

	if (file->has_clock)
		return MAX(time_ns + (uint64_t)file->to_realtime_ns, 1);
	return MAX(perf->input->modified_ns - MIN(last - MIN(time_ns, last), perf->input->modified_ns), 1);
}

static int put_sample(struct perf *perf, const struct perf_event *event, const struct perf_sample *sample,
		      uint16_t misc)
{
	struct sample_row row = { .pid = sample->pid,
				  .tid = sample->tid,
				  .cpu = sample->cpu & 0xffff,
				  .verdict = VERDICT_NO_PYTHON,
				  .weight = sample->period };
	int r;

	if (sample->pid < 0 || sample->tid < 0) {
		sink_skip(perf->sink);
		return 0;
	}
	row.time_ns = real_time(perf, sample->time_ns);
	r = perf_stacks_put(&perf->stacks, event, sample, misc, &row.stack, &row.end);
	if (r < 0)
		return r;
	if (sample->time_ns == 0)
		return sink_total(perf->sink, row.pid, row.tid, row.stack, 1, row.weight);
	return sink_sample(perf->sink, &row);
}

static int read_sample(struct perf *perf, const struct perf_record *record)
{
	const struct perf_event *event = perf_event_of(&perf->file, record);
	struct perf_sample sample;
	int r;

	if (!event || (perf->event && event != perf->event)) {
		sink_skip(perf->sink);
		return 0;
	}
	r = perf_sample_read(&perf->file, record, event, &sample);
	if (r == -EPROTONOSUPPORT)
		return sink_explain(perf->sink, r, "its samples have unknown fields");
	if (r < 0) {
		sink_skip(perf->sink);
		return r == -EBADMSG ? 0 : r;
	}
	if (!perf->event)
		choose_event(perf, event);
	return put_sample(perf, event, &sample, perf_record_header(&perf->file, record).misc);
}

static int read_record(struct perf *perf, const struct perf_record *record)
{
	switch (perf_record_header(&perf->file, record).type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		return read_map(perf, record, perf_record_header(&perf->file, record).type == PERF_RECORD_MMAP2);
	case PERF_RECORD_COMM:
		return read_comm(perf, record);
	case PERF_RECORD_FORK:
		return read_fork(perf, record);
	case PERF_RECORD_SAMPLE:
		return read_sample(perf, record);
	default:
		return 0;
	}
}

static int read_perf(const struct import_input *input, struct sink *sink)
{
	CLEANUP(perf_done)
	struct perf perf = { .sink = sink,
			     .input = input,
			     .file = { .sink = sink, .bytes = input->bytes, .n_bytes = input->n_bytes } };
	int r;

	r = perf_file_read(&perf.file);
	if (r >= 0)
		r = perf_stacks_init(&perf.file, &perf.stacks);
	for (size_t i = 0; i < perf.file.n_records && r >= 0; i++) {
		r = read_record(&perf, &perf.file.records[i]);
		if (r >= 0)
			r = sink_read(sink, i + 1, perf.file.n_records);
	}
	return r;
}

static bool is_perf(const uint8_t *bytes, size_t n_bytes)
{
	return n_bytes >= 16 && (memcmp(bytes, "PERFILE2", 8) == 0 || memcmp(bytes, "2ELIFREP", 8) == 0);
}

const struct importer import_perf = {
	.name = "perf",
	.summary = "perf.data of perf record, with --call-graph dwarf, fp or none",
	.recognise = is_perf,
	.read = read_perf,
};
