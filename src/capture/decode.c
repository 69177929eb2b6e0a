/* SPDX-License-Identifier: MIT */
/* decode.c - raw perf records; see decode.h.
 *
 * A sample begins with its identifying words. Every other record, because of
 * sample_id_all, ends with them, in the last 32 bytes:
 *
 *   sample: header | id | pid tid | time | cpu - | [period] | [chain] | [raw] | regs | stack
 *   others: header | body ...                    | pid tid | time | cpu - | id
 *   python: header | length mark | pid tid | time | cpu - | other fields of struct python_record
 *
 * Records of losses exist for the third kind's event, too. Then no words follow.
 *
 * Invariants:
 * 1. No byte outside [record, record + header.size) is read. All reading goes
 *    through take(), which knows the remaining size.
 * 2. ret is written only if the whole record is valid.
 * 3. Strings are returned only with their NUL inside the record.
 */
#include "src/capture/decode.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include "base/util.h"

struct trailer {
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, reserved;
	uint64_t id;
};

struct sample_head {
	uint64_t id;
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, reserved;
	uint64_t period;
};

struct mmap_head {
	uint32_t pid, tid;
	uint64_t address, length, file_offset;
};

struct mmap2_tail {
	uint32_t major, minor;
	uint64_t inode, inode_generation;
	uint32_t protection, flags;
};

struct task_body {
	uint32_t pid, parent_pid, tid, parent_tid;
	uint64_t time;
};

_Static_assert(sizeof(struct trailer) == 32 && sizeof(struct sample_head) == 40, "padding");
_Static_assert(sizeof(struct mmap_head) == 32 && sizeof(struct mmap2_tail) == 32, "padding");
_Static_assert(sizeof(struct task_body) == 24, "padding");
_Static_assert(offsetof(struct python_record, tid) == offsetof(struct sample_head, tid) &&
		       offsetof(struct python_record, time_ns) == offsetof(struct sample_head, time) &&
		       offsetof(struct python_record, cpu) == offsetof(struct sample_head, cpu),
	       "it begins as a sample does");

/* The unread rest of a record. */
struct cursor {
	const uint8_t *at;
	size_t n_left;
};

/* Consume n_bytes; NULL: fewer are left. */
static const void *take(struct cursor *cursor, uint64_t n_bytes)
{
	const uint8_t *at = cursor->at;

	if (n_bytes > cursor->n_left)
		return NULL;
	cursor->at += n_bytes;
	cursor->n_left -= n_bytes;
	return at;
}

static int take_into(struct cursor *cursor, void *to, size_t n_bytes)
{
	const void *from = take(cursor, n_bytes);

	if (!from)
		return -EBADMSG;
	memcpy(to, from, n_bytes);
	return 0;
}

/* Consume a string that is terminated within the record. */
static int take_string(struct cursor *cursor, const char **ret)
{
	const char *text = (const char *)cursor->at;

	if (!memchr(text, '\0', cursor->n_left))
		return -EBADMSG;
	take(cursor, strlen(text) + 1);
	*ret = text;
	return 0;
}

int record_time_offset(uint32_t type, size_t n_bytes)
{
	if (type == PERF_RECORD_SAMPLE)
		return n_bytes < sizeof(struct perf_event_header) + sizeof(struct sample_head)
			       ? -EBADMSG
			       : (int)(sizeof(struct perf_event_header) + offsetof(struct sample_head, time));
	if (n_bytes < sizeof(struct perf_event_header) + sizeof(struct trailer))
		return -EBADMSG;
	return (int)(n_bytes - sizeof(struct trailer) + offsetof(struct trailer, time));
}

static int read_trailer(const struct perf_event_header *record, struct trailer *ret)
{
	if (record->size < sizeof *record + sizeof *ret)
		return -EBADMSG;
	memcpy(ret, (const uint8_t *)record + record->size - sizeof *ret, sizeof *ret);
	return 0;
}

int record_origin(const struct perf_event_header *record, struct record_origin *ret)
{
	struct sample_head head;
	struct trailer trailer;
	int r;

	if (record->type == PERF_RECORD_SAMPLE) {
		if (record->size < sizeof *record + sizeof head)
			return -EBADMSG;
		memcpy(&head, record + 1, sizeof head);
		*ret = (struct record_origin){ head.id, (pid_t)head.tid, head.cpu, head.period };
		return 0;
	}
	r = read_trailer(record, &trailer);
	if (r < 0)
		return r;
	*ret = (struct record_origin){ trailer.id, (pid_t)trailer.tid, trailer.cpu, 0 };
	return 0;
}

/*
 * A call chain is a list of addresses; marker words say to which context the following addresses belong. Keep the
 * kernel's addresses only.
 */
static int decode_chain(struct cursor *cursor, struct sample *sample)
{
	const uint64_t *words;
	uint64_t n, first = 0, end;

	if (take_into(cursor, &n, sizeof n) < 0 || n > cursor->n_left / sizeof *words)
		return -EBADMSG;
	words = take(cursor, n * sizeof *words);
	while (first < n && words[first] != (uint64_t)PERF_CONTEXT_KERNEL)
		first++;
	if (first == n)
		return 0;
	first++;
	for (end = first; end < n && words[end] < (uint64_t)PERF_CONTEXT_MAX; end++)
		;
	sample->kernel_ips = words + first;
	sample->n_kernel_ips = end - first;
	return 0;
}

static int decode_regs(struct cursor *cursor, struct sample *sample)
{
	const void *dump;
	uint64_t abi;

	if (take_into(cursor, &abi, sizeof abi) < 0)
		return -EBADMSG;
	if (abi == PERF_SAMPLE_REGS_ABI_NONE)
		return 0;
	dump = take(cursor, (uint64_t)__builtin_popcountll(machine_perf_regs_mask) * sizeof(uint64_t));
	if (!dump)
		return -EBADMSG;
	if (abi != PERF_SAMPLE_REGS_ABI_64) {
		sample->is_32_bit = true;
		return 0;
	}
	machine_regs_from_perf(dump, &sample->regs);
	sample->has_user = true;
	return 0;
}

static int decode_stack(struct cursor *cursor, struct sample *sample)
{
	uint64_t n_reserved, n_valid;
	const uint8_t *bytes;

	if (take_into(cursor, &n_reserved, sizeof n_reserved) < 0)
		return -EBADMSG;
	if (n_reserved == 0)
		return 0;
	bytes = take(cursor, n_reserved);
	if (!bytes || take_into(cursor, &n_valid, sizeof n_valid) < 0 || n_valid > n_reserved)
		return -EBADMSG;
	if (sample->has_user && n_valid > 0) {
		sample->stack = bytes;
		sample->stack_bytes = n_valid;
	}
	return 0;
}

static int decode_raw(struct cursor *cursor, struct sample *sample)
{
	uint32_t n_bytes;

	if (take_into(cursor, &n_bytes, sizeof n_bytes) < 0)
		return -EBADMSG;
	sample->raw = take(cursor, n_bytes);
	sample->raw_bytes = n_bytes;
	return sample->raw ? 0 : -EBADMSG;
}

static int decode_sample(struct cursor *cursor, unsigned format, struct capture_event *event)
{
	struct sample *sample = &event->sample;
	struct sample_head head = { .period = 1 };
	int r;

	r = take_into(cursor, &head,
		      format & RECORD_WITHOUT_PERIOD ? offsetof(struct sample_head, period) : sizeof head);
	if (r < 0)
		return r;
	event->type = CAPTURE_SAMPLE;
	event->time_ns = sample->time_ns = head.time;
	event->pid = sample->pid = (pid_t)head.pid;
	event->tid = sample->tid = (pid_t)head.tid;
	sample->cpu = head.cpu;
	sample->is_switch = (format & RECORD_TELLS_SWITCHES) && head.period <= RECORD_MAX_SWITCHES;
	sample->weight = sample->is_switch ? 0 : head.period;

	if (format & RECORD_HAS_CHAIN) {
		r = decode_chain(cursor, sample);
		if (r < 0)
			return r;
	}
	if (format & RECORD_HAS_RAW) {
		r = decode_raw(cursor, sample);
		if (r < 0)
			return r;
	}
	r = decode_regs(cursor, sample);
	if (r < 0)
		return r;
	r = decode_stack(cursor, sample);
	return r < 0 ? r : 1;
}

static int decode_mmap(struct cursor *cursor, const struct perf_event_header *record, struct capture_event *event)
{
	struct mmap2_tail tail;
	struct mmap_head head;
	int r;

	r = take_into(cursor, &head, sizeof head);
	if (r < 0)
		return r;
	event->type = CAPTURE_MMAP;
	event->pid = (pid_t)head.pid;
	event->tid = (pid_t)head.tid;
	event->mmap.start = head.address;
	event->mmap.file_offset = head.file_offset;
	if (__builtin_add_overflow(head.address, head.length, &event->mmap.end))
		return -EBADMSG;
	event->mmap.executable = !(record->misc & PERF_RECORD_MISC_MMAP_DATA);

	if (record->type == PERF_RECORD_MMAP2) {
		r = take_into(cursor, &tail, sizeof tail);
		if (r < 0)
			return r;
		event->mmap.executable = tail.protection & PROT_EXEC;
		event->mmap.writable = tail.protection & PROT_WRITE;
		/* With this bit, a build-id replaces these words. */
		if (!(record->misc & PERF_RECORD_MISC_MMAP_BUILD_ID)) {
			event->mmap.device = makedev(tail.major, tail.minor);
			event->mmap.inode = tail.inode;
		}
	}
	r = take_string(cursor, &event->mmap.path);
	return r < 0 ? r : 1;
}

static int decode_comm(struct cursor *cursor, const struct perf_event_header *record, struct capture_event *event)
{
	uint32_t ids[2];
	int r;

	r = take_into(cursor, ids, sizeof ids);
	if (r < 0)
		return r;
	event->type = CAPTURE_COMM;
	event->pid = (pid_t)ids[0];
	event->tid = (pid_t)ids[1];
	event->comm.is_exec = record->misc & PERF_RECORD_MISC_COMM_EXEC;
	r = take_string(cursor, &event->comm.name);
	return r < 0 ? r : 1;
}

static int decode_task(struct cursor *cursor, const struct perf_event_header *record, struct capture_event *event)
{
	struct task_body body;
	int r;

	r = take_into(cursor, &body, sizeof body);
	if (r < 0)
		return r;
	event->pid = (pid_t)body.pid;
	event->tid = (pid_t)body.tid;
	if (record->type == PERF_RECORD_EXIT) {
		event->type = CAPTURE_EXIT;
		return 1;
	}
	event->type = CAPTURE_FORK;
	event->fork.parent_pid = (pid_t)body.parent_pid;
	event->fork.parent_tid = (pid_t)body.parent_tid;
	return 1;
}

struct lost_body {
	uint64_t id, n;
};

static bool has_trailer(const struct perf_event_header *record)
{
	return record->type != PERF_RECORD_LOST || record->size != sizeof *record + sizeof(struct lost_body);
}

static int decode_lost(struct cursor *cursor, const struct perf_event_header *record, struct capture_event *event)
{
	uint64_t id;
	int r;

	if (record->type == PERF_RECORD_LOST) {
		r = take_into(cursor, &id, sizeof id);
		if (r < 0)
			return r;
	}
	r = take_into(cursor, &event->lost.n, sizeof event->lost.n);
	if (r < 0)
		return r;
	event->type = CAPTURE_LOST;
	return 1;
}

/*
 * The switch record of an event for all processes also names the other thread. Ignore it: that thread has its own
 * record.
 */
static int decode_switch(const struct perf_event_header *record, struct capture_event *event)
{
	event->type = CAPTURE_SWITCH;
	event->change.is_out = record->misc & PERF_RECORD_MISC_SWITCH_OUT;
	event->change.is_preempted = event->change.is_out && record->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
	return 1;
}

static int decode_body(const struct perf_event_header *record, struct cursor *cursor, struct capture_event *event)
{
	switch (record->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		return decode_mmap(cursor, record, event);
	case PERF_RECORD_COMM:
		return decode_comm(cursor, record, event);
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return decode_task(cursor, record, event);
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		return decode_lost(cursor, record, event);
	case PERF_RECORD_THROTTLE:
		/* Ignore UNTHROTTLE, the end of the pause: the next sample implies it. */
		event->type = CAPTURE_THROTTLE;
		return 1;
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		return decode_switch(record, event);
	default:
		return 0;
	}
}

int record_decode(const struct perf_event_header *record, unsigned format, struct capture_event *ret)
{
	struct cursor cursor = { .at = (const uint8_t *)(record + 1) };
	struct capture_event event = { 0 };
	struct trailer trailer;
	int r;

	if (record->size < sizeof *record)
		return -EBADMSG;
	cursor.n_left = record->size - sizeof *record;
	if (record->type == PERF_RECORD_SAMPLE) {
		r = decode_sample(&cursor, format, &event);
	} else if (!has_trailer(record)) {
		r = decode_lost(&cursor, record, &event);
	} else {
		r = read_trailer(record, &trailer);
		if (r < 0)
			return r;
		cursor.n_left -= sizeof trailer;
		event.time_ns = trailer.time;
		event.pid = (pid_t)trailer.pid;
		event.tid = (pid_t)trailer.tid;
		r = decode_body(record, &cursor, &event);
		if (event.type == CAPTURE_SWITCH)
			event.change.cpu = trailer.cpu;
	}
	if (r > 0)
		*ret = event;
	return r;
}

bool record_is_python(const struct perf_event_header *record)
{
	uint32_t mark;

	if (record->type != PERF_RECORD_SAMPLE || record->size < sizeof *record + sizeof(struct python_record))
		return false;
	memcpy(&mark, (const uint8_t *)(record + 1) + offsetof(struct python_record, mark), sizeof mark);
	return mark == PYTHON_MARK;
}

int record_decode_python(const struct perf_event_header *record, struct python_record *ret)
{
	struct cursor cursor = { .at = (const uint8_t *)(record + 1), .n_left = 0 };
	struct python_record head;
	size_t n_bytes;

	if (!record_is_python(record))
		return -EBADMSG;
	cursor.n_left = record->size - sizeof *record;
	if (take_into(&cursor, &head, sizeof head) < 0 || head.n_entries > PYTHON_MAX_ENTRIES ||
	    head.n_states > PYTHON_MAX_STATES)
		return -EBADMSG;
	n_bytes = sizeof head + head.n_entries * sizeof(struct python_entry);
	if (head.n_bytes != n_bytes - sizeof head.n_bytes || cursor.n_left != n_bytes - sizeof head)
		return -EBADMSG;
	*ret = head;
	memcpy(ret + 1, cursor.at, cursor.n_left);
	return 0;
}
