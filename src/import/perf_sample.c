/* SPDX-License-Identifier: MIT */
/* perf_sample.c - a sample of perf's, field by field, in the order of the kernel's perf_output_sample(). */
#include <errno.h>

#include "src/import/perf_file.h"

/* Fields before the stack that this file supports; fields after the stack are ignored. */
enum {
	KNOWN_BEFORE = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR |
		       PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
		       PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW | PERF_SAMPLE_BRANCH_STACK |
		       PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
};

static const uint8_t *skip(struct cursor *in, uint64_t n)
{
	const uint8_t *at = in->at;

	if (in->failed || cursor_left(in) < n) {
		in->failed = true;
		return NULL;
	}
	in->at += n;
	return at;
}

static uint64_t word_if(struct cursor *in, uint64_t type, uint64_t bit)
{
	return type & bit ? cursor_fixed(in, 8) : 0;
}

/* Skip counter values, one or a group's. */
static void skip_values(struct cursor *in, uint64_t format)
{
	uint64_t n = 1, times = bits_of(format & (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING));
	uint64_t words = 1 + bits_of(format & (PERF_FORMAT_ID | PERF_FORMAT_LOST));

	if (format & PERF_FORMAT_GROUP)
		n = cursor_fixed(in, 8);
	if (n > cursor_left(in) / 8)
		in->failed = true;
	else
		skip(in, 8 * (n * words + times));
}

static void read_regs(struct cursor *in, const struct perf_event_attr *attr, struct perf_sample *ret)
{
	ret->abi = cursor_fixed(in, 8);
	if (ret->abi != PERF_SAMPLE_REGS_ABI_NONE)
		ret->regs = skip(in, 8 * bits_of(attr->sample_regs_user));
}

/* The size comes first; after the bytes comes the size that was really copied. */
static void read_stack(struct cursor *in, struct perf_sample *ret)
{
	uint64_t n = cursor_fixed(in, 8), used;

	if (n == 0)
		return;
	ret->stack = skip(in, n);
	used = cursor_fixed(in, 8);
	ret->stack_bytes = MIN(used, n);
}

static void skip_branches(struct cursor *in, const struct perf_event_attr *attr)
{
	uint64_t n = cursor_fixed(in, 8);

	if (attr->branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX)
		skip(in, 8);
	if (n > cursor_left(in) / 24)
		in->failed = true;
	else
		skip(in, 24 * n);
}

int perf_sample_read(const struct perf_file *file, const struct perf_record *record, const struct perf_event *event,
		     struct perf_sample *ret)
{
	const struct perf_event_attr *attr = &event->attr;
	struct cursor in = perf_record_body(file, record);
	struct perf_sample sample = { 0 };
	uint64_t type = attr->sample_type, ids;

	/* fields after the stack, or after the last requested field, do not matter */
	if (type & ~(uint64_t)KNOWN_BEFORE & (PERF_SAMPLE_STACK_USER - 1))
		return -EPROTONOSUPPORT;
	word_if(&in, type, PERF_SAMPLE_IDENTIFIER);
	sample.ip = word_if(&in, type, PERF_SAMPLE_IP);
	ids = word_if(&in, type, PERF_SAMPLE_TID);
	sample.pid = (pid_t)(uint32_t)ids;
	sample.tid = (pid_t)(ids >> 32);
	sample.time_ns = word_if(&in, type, PERF_SAMPLE_TIME);
	word_if(&in, type, PERF_SAMPLE_ADDR);
	word_if(&in, type, PERF_SAMPLE_ID);
	word_if(&in, type, PERF_SAMPLE_STREAM_ID);
	sample.cpu = (uint32_t)word_if(&in, type, PERF_SAMPLE_CPU);
	sample.period = type & PERF_SAMPLE_PERIOD ? cursor_fixed(&in, 8) : attr->freq ? 1 : attr->sample_period;
	if (type & PERF_SAMPLE_READ)
		skip_values(&in, attr->read_format);
	if (type & PERF_SAMPLE_CALLCHAIN) {
		sample.n_chain = cursor_fixed(&in, 8);
		sample.chain = sample.n_chain > cursor_left(&in) / 8 ? NULL : skip(&in, 8 * sample.n_chain);
		in.failed |= !sample.chain;
	}
	if (type & PERF_SAMPLE_RAW)
		skip(&in, cursor_fixed(&in, 4));
	if (type & PERF_SAMPLE_BRANCH_STACK)
		skip_branches(&in, attr);
	if (type & PERF_SAMPLE_REGS_USER)
		read_regs(&in, attr, &sample);
	if (type & PERF_SAMPLE_STACK_USER)
		read_stack(&in, &sample);
	if (in.failed)
		return -EBADMSG;
	*ret = sample;
	return 0;
}
