/* SPDX-License-Identifier: MIT */
/* test_capture_decode.c - raw records, made here word by word. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include <cmocka.h>

#include "base/machine.h"
#include "base/util.h"
#include "src/capture/decode.h"

enum { PID = 100, TID = 101, CPU = 3, ID = 77, TIME = 123456789 };

/* A record in the making. */
struct draft {
	_Alignas(8) uint8_t bytes[8192];
	size_t n;
};

static void put(struct draft *draft, const void *bytes, size_t n)
{
	assert_true(draft->n + n <= sizeof draft->bytes);
	memcpy(draft->bytes + draft->n, bytes, n);
	draft->n += n;
}

static void put_u64(struct draft *draft, uint64_t value)
{
	put(draft, &value, sizeof value);
}

static void put_two(struct draft *draft, uint32_t first, uint32_t second)
{
	put(draft, &first, sizeof first);
	put(draft, &second, sizeof second);
}

static void put_text(struct draft *draft, const char *text)
{
	put(draft, text, strlen(text) + 1);
	while (draft->n % 8 != 0)
		put(draft, "", 1);
}

static void begin(struct draft *draft, uint32_t type, uint16_t misc)
{
	const struct perf_event_header header = { .type = type, .misc = misc };

	draft->n = 0;
	put(draft, &header, sizeof header);
}

static struct perf_event_header *seal(struct draft *draft)
{
	struct perf_event_header *header = (struct perf_event_header *)draft->bytes;

	header->size = (uint16_t)draft->n;
	return header;
}

static struct perf_event_header *end(struct draft *draft)
{
	put_two(draft, PID, TID);
	put_u64(draft, TIME);
	put_two(draft, CPU, 0);
	put_u64(draft, ID);
	return seal(draft);
}

static unsigned n_perf_regs(void)
{
	return (unsigned)__builtin_popcountll(machine_perf_regs_mask);
}

static void begin_sample(struct draft *draft)
{
	begin(draft, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	put_u64(draft, ID);
	put_two(draft, PID, TID);
	put_u64(draft, TIME);
	put_two(draft, CPU, 0);
	put_u64(draft, 1001001);
}

static void put_regs(struct draft *draft, uint64_t abi)
{
	put_u64(draft, abi);
	for (unsigned i = 0; abi != PERF_SAMPLE_REGS_ABI_NONE && i < n_perf_regs(); i++)
		put_u64(draft, 1000 + i);
}

static void put_stack(struct draft *draft, size_t n_reserved, size_t n_valid)
{
	put_u64(draft, n_reserved);
	for (size_t i = 0; i < n_reserved; i += 8)
		put_u64(draft, i);
	if (n_reserved > 0)
		put_u64(draft, n_valid);
}

static struct perf_event_header *whole_sample(struct draft *draft)
{
	begin_sample(draft);
	put_u64(draft, 6);
	put_u64(draft, (uint64_t)PERF_CONTEXT_KERNEL);
	put_u64(draft, 0xffffffff81000001);
	put_u64(draft, 0xffffffff81000002);
	put_u64(draft, (uint64_t)PERF_CONTEXT_USER);
	put_u64(draft, 0x401000);
	put_u64(draft, 0x402000);
	put_regs(draft, PERF_SAMPLE_REGS_ABI_64);
	put_stack(draft, 64, 40);
	return seal(draft);
}

static void test_sample(void **state)
{
	struct regs expected;
	uint64_t dump[64];
	struct draft draft;
	struct capture_event event;

	(void)state;
	assert_int_equal(record_decode(whole_sample(&draft), true, &event), 1);
	assert_int_equal(event.type, CAPTURE_SAMPLE);
	assert_int_equal(event.time_ns, TIME);
	assert_int_equal(event.pid, PID);
	assert_int_equal(event.tid, TID);
	assert_int_equal(event.sample.time_ns, TIME);
	assert_int_equal(event.sample.pid, PID);
	assert_int_equal(event.sample.tid, TID);
	assert_int_equal(event.sample.cpu, CPU);
	assert_int_equal(event.sample.weight, 1001001);
	/* Only the addresses between the kernel's marker and the next marker. */
	assert_int_equal(event.sample.n_kernel_ips, 2);
	assert_int_equal(event.sample.kernel_ips[0], 0xffffffff81000001);
	assert_int_equal(event.sample.kernel_ips[1], 0xffffffff81000002);
	assert_true(event.sample.has_user);
	for (unsigned i = 0; i < n_perf_regs(); i++)
		dump[i] = 1000 + i;
	machine_regs_from_perf(dump, &expected);
	assert_memory_equal(&event.sample.regs, &expected, sizeof expected);
	assert_int_equal(event.sample.stack_bytes, 40);
	assert_int_equal(event.sample.stack[8], 8);
}

static void test_sample_without_chain(void **state)
{
	struct draft draft;
	struct capture_event event;

	(void)state;
	begin_sample(&draft);
	put_regs(&draft, PERF_SAMPLE_REGS_ABI_64);
	put_stack(&draft, 16, 16);
	assert_int_equal(record_decode(seal(&draft), false, &event), 1);
	assert_int_equal(event.sample.n_kernel_ips, 0);
	assert_int_equal(event.sample.stack_bytes, 16);
}

/* A sample of a tracepoint, which represents several events. */
static void test_sample_with_record(void **state)
{
	const unsigned format = RECORD_HAS_CHAIN | RECORD_HAS_RAW | RECORD_WITHOUT_PERIOD;
	struct draft draft;
	struct capture_event event;

	(void)state;
	begin_sample(&draft);
	draft.n -= sizeof(uint64_t);
	put_u64(&draft, 0);
	put_two(&draft, 12, 0x11111111);
	put_two(&draft, 0x22222222, 0x33333333);
	put_regs(&draft, PERF_SAMPLE_REGS_ABI_64);
	put_stack(&draft, 16, 16);
	assert_int_equal(record_decode(seal(&draft), format, &event), 1);
	assert_int_equal(event.sample.weight, 1);
	assert_int_equal(event.sample.raw_bytes, 12);
	assert_int_equal(((const uint32_t *)event.sample.raw)[2], 0x33333333);
	assert_int_equal(event.sample.stack_bytes, 16);
	/* Its length leads beyond the end. */
	((uint32_t *)draft.bytes)[(sizeof(struct perf_event_header) + 4 * sizeof(uint64_t) + sizeof(uint64_t)) / 4] =
		4000;
	assert_int_equal(record_decode(seal(&draft), format, &event), -EBADMSG);
}

static void test_sample_without_user_side(void **state)
{
	struct draft draft;
	struct capture_event event;

	(void)state;
	/* A kernel thread. */
	begin_sample(&draft);
	put_u64(&draft, 0);
	put_regs(&draft, PERF_SAMPLE_REGS_ABI_NONE);
	put_stack(&draft, 0, 0);
	assert_int_equal(record_decode(seal(&draft), true, &event), 1);
	assert_false(event.sample.has_user);
	assert_null(event.sample.stack);

	/* A 32-bit process: its registers are in the record, but not usable. */
	begin_sample(&draft);
	put_u64(&draft, 0);
	put_regs(&draft, PERF_SAMPLE_REGS_ABI_32);
	put_stack(&draft, 16, 8);
	assert_int_equal(record_decode(seal(&draft), true, &event), 1);
	assert_false(event.sample.has_user);
	assert_null(event.sample.stack);
	assert_int_equal(event.sample.stack_bytes, 0);
}

static void test_sample_lies_about_sizes(void **state)
{
	struct draft draft;
	struct capture_event event = { .pid = 1234 };

	(void)state;
	begin_sample(&draft);
	put_u64(&draft, UINT64_MAX / 8 + 2); /* times 8 is a small number again */
	put_u64(&draft, 0);
	assert_int_equal(record_decode(seal(&draft), true, &event), -EBADMSG);

	begin_sample(&draft);
	put_regs(&draft, PERF_SAMPLE_REGS_ABI_NONE);
	put_u64(&draft, UINT64_MAX);
	assert_int_equal(record_decode(seal(&draft), false, &event), -EBADMSG);

	begin_sample(&draft);
	put_regs(&draft, PERF_SAMPLE_REGS_ABI_64);
	put_stack(&draft, 16, 17);
	assert_int_equal(record_decode(seal(&draft), false, &event), -EBADMSG);
	assert_int_equal(event.pid, 1234);
}

static struct perf_event_header *mmap2(struct draft *draft, uint16_t misc, const char *path)
{
	begin(draft, PERF_RECORD_MMAP2, misc);
	put_two(draft, PID, TID);
	put_u64(draft, 0x7f0000001000);
	put_u64(draft, 0x2000);
	put_u64(draft, 0x3000);
	put_two(draft, 8, 17);
	put_u64(draft, 4242);
	put_u64(draft, 1);
	put_two(draft, PROT_READ | PROT_EXEC, MAP_PRIVATE);
	put_text(draft, path);
	return end(draft);
}

static void test_mmap(void **state)
{
	struct draft draft;
	struct capture_event event;

	(void)state;
	assert_int_equal(record_decode(mmap2(&draft, 0, "/usr/lib/libx.so"), true, &event), 1);
	assert_int_equal(event.type, CAPTURE_MMAP);
	assert_int_equal(event.time_ns, TIME);
	assert_int_equal(event.mmap.start, 0x7f0000001000);
	assert_int_equal(event.mmap.end, 0x7f0000003000);
	assert_int_equal(event.mmap.file_offset, 0x3000);
	assert_int_equal(event.mmap.device, makedev(8, 17));
	assert_int_equal(event.mmap.inode, 4242);
	assert_true(event.mmap.executable);
	assert_false(event.mmap.writable);
	assert_string_equal(event.mmap.path, "/usr/lib/libx.so");

	mmap2(&draft, PERF_RECORD_MISC_MMAP_BUILD_ID, "/x");
	assert_int_equal(record_decode((void *)draft.bytes, true, &event), 1);
	assert_int_equal(event.mmap.inode, 0);

	begin(&draft, PERF_RECORD_MMAP, PERF_RECORD_MISC_MMAP_DATA);
	put_two(&draft, PID, TID);
	put_u64(&draft, 0x1000);
	put_u64(&draft, 0x1000);
	put_u64(&draft, 0);
	put_text(&draft, "[heap]");
	assert_int_equal(record_decode(end(&draft), true, &event), 1);
	assert_false(event.mmap.executable);
	assert_string_equal(event.mmap.path, "[heap]");
}

static void test_mmap_that_makes_no_sense(void **state)
{
	struct draft draft;
	struct capture_event event;

	(void)state;
	/* A path whose end would be beyond the record. */
	mmap2(&draft, 0, "1234567");
	draft.bytes[draft.n - 32 - 1] = 'x';
	assert_int_equal(record_decode((void *)draft.bytes, true, &event), -EBADMSG);

	begin(&draft, PERF_RECORD_MMAP, 0);
	put_two(&draft, PID, TID);
	put_u64(&draft, UINT64_MAX - 10);
	put_u64(&draft, 0x1000);
	put_u64(&draft, 0);
	put_text(&draft, "/x");
	assert_int_equal(record_decode(end(&draft), true, &event), -EBADMSG);
}

static void test_comm(void **state)
{
	struct draft draft;
	struct capture_event event;

	(void)state;
	for (int is_exec = 0; is_exec < 2; is_exec++) {
		begin(&draft, PERF_RECORD_COMM, is_exec ? PERF_RECORD_MISC_COMM_EXEC : 0);
		put_two(&draft, 5, 6);
		put_text(&draft, "python3");
		assert_int_equal(record_decode(end(&draft), true, &event), 1);
		assert_int_equal(event.type, CAPTURE_COMM);
		assert_int_equal(event.pid, 5);
		assert_int_equal(event.tid, 6);
		assert_int_equal(event.comm.is_exec, is_exec);
		assert_string_equal(event.comm.name, "python3");
	}
}

static void test_fork_and_exit(void **state)
{
	struct draft draft;
	struct capture_event event;

	(void)state;
	begin(&draft, PERF_RECORD_FORK, 0);
	put_two(&draft, 10, 20);
	put_two(&draft, 11, 21);
	put_u64(&draft, TIME);
	assert_int_equal(record_decode(end(&draft), true, &event), 1);
	assert_int_equal(event.type, CAPTURE_FORK);
	assert_int_equal(event.pid, 10);
	assert_int_equal(event.fork.parent_pid, 20);
	assert_int_equal(event.tid, 11);
	assert_int_equal(event.fork.parent_tid, 21);

	begin(&draft, PERF_RECORD_EXIT, 0);
	put_two(&draft, 10, 20);
	put_two(&draft, 11, 21);
	put_u64(&draft, TIME);
	assert_int_equal(record_decode(end(&draft), true, &event), 1);
	assert_int_equal(event.type, CAPTURE_EXIT);
	assert_int_equal(event.pid, 10);
	assert_int_equal(event.tid, 11);
}

static void test_lost_and_throttled(void **state)
{
	struct draft draft;
	struct capture_event event;

	(void)state;
	begin(&draft, PERF_RECORD_LOST, 0);
	put_u64(&draft, ID);
	put_u64(&draft, 9);
	assert_int_equal(record_decode(end(&draft), true, &event), 1);
	assert_int_equal(event.type, CAPTURE_LOST);
	assert_int_equal(event.lost.n, 9);

	/* Reported for an event that has no information itself. */
	begin(&draft, PERF_RECORD_LOST, 0);
	put_u64(&draft, ID);
	put_u64(&draft, 7);
	assert_int_equal(record_decode(seal(&draft), true, &event), 1);
	assert_int_equal(event.type, CAPTURE_LOST);
	assert_int_equal(event.lost.n, 7);
	assert_int_equal(event.time_ns, 0);

	begin(&draft, PERF_RECORD_LOST_SAMPLES, 0);
	put_u64(&draft, 8);
	assert_int_equal(record_decode(end(&draft), true, &event), 1);
	assert_int_equal(event.lost.n, 8);

	for (int begins = 0; begins < 2; begins++) {
		begin(&draft, begins ? PERF_RECORD_THROTTLE : PERF_RECORD_UNTHROTTLE, 0);
		put_u64(&draft, TIME);
		put_u64(&draft, ID);
		put_u64(&draft, ID);
		assert_int_equal(record_decode(end(&draft), true, &event), begins);
	}
	assert_int_equal(event.type, CAPTURE_THROTTLE);
}

static struct perf_event_header *switched(struct draft *draft, uint32_t type, uint16_t misc)
{
	begin(draft, type, misc);
	if (type == PERF_RECORD_SWITCH_CPU_WIDE)
		put_two(draft, 7, 8); /* the other thread */
	return end(draft);
}

static void test_switches(void **state)
{
	static const uint32_t types[] = { PERF_RECORD_SWITCH, PERF_RECORD_SWITCH_CPU_WIDE };
	struct draft draft;
	struct capture_event event;

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(types); i++) {
		assert_int_equal(record_decode(switched(&draft, types[i], 0), true, &event), 1);
		assert_int_equal(event.type, CAPTURE_SWITCH);
		assert_int_equal(event.pid, PID);
		assert_int_equal(event.tid, TID);
		assert_int_equal(event.time_ns, TIME);
		assert_int_equal(event.change.cpu, CPU);
		assert_false(event.change.is_out || event.change.is_preempted);

		switched(&draft, types[i], PERF_RECORD_MISC_SWITCH_OUT);
		assert_int_equal(record_decode((void *)draft.bytes, true, &event), 1);
		assert_true(event.change.is_out && !event.change.is_preempted);

		switched(&draft, types[i], PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
		assert_int_equal(record_decode((void *)draft.bytes, true, &event), 1);
		assert_true(event.change.is_out && event.change.is_preempted);

		/* Said of a return it means nothing. */
		switched(&draft, types[i], PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
		assert_int_equal(record_decode((void *)draft.bytes, true, &event), 1);
		assert_false(event.change.is_preempted);

		((struct perf_event_header *)draft.bytes)->size = 32;
		assert_int_equal(record_decode((void *)draft.bytes, true, &event), -EBADMSG);
	}
}

/* If switches are recorded, the period of a sample shows whether it counted time or switches. */
static void test_samples_at_switches(void **state)
{
	struct draft draft;
	struct capture_event event;

	(void)state;
	for (uint64_t period = 1; period < 100000; period *= 9) {
		whole_sample(&draft);
		memcpy(draft.bytes + sizeof(struct perf_event_header) + 32, &period, sizeof period);
		assert_int_equal(record_decode((void *)draft.bytes, RECORD_HAS_CHAIN | RECORD_TELLS_SWITCHES, &event),
				 1);
		assert_int_equal(event.sample.is_switch, period < 10000);
		assert_int_equal(event.sample.weight, period < 10000 ? 0 : period);
		assert_int_equal(record_decode((void *)draft.bytes, RECORD_HAS_CHAIN, &event), 1);
		assert_false(event.sample.is_switch);
		assert_int_equal(event.sample.weight, period);
	}
}

static void test_unknown_records_are_passed_over(void **state)
{
	struct draft draft;
	struct capture_event event;

	(void)state;
	begin(&draft, 200, 0);
	put_u64(&draft, 1);
	assert_int_equal(record_decode(end(&draft), true, &event), 0);
}

static void test_origin_and_time(void **state)
{
	struct record_origin origin;
	struct draft draft;
	uint64_t time;
	int offset;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct perf_event_header *record = i ? whole_sample(&draft) : mmap2(&draft, 0, "/x");

		assert_int_equal(record_origin(record, &origin), 0);
		assert_int_equal(origin.id, ID);
		assert_int_equal(origin.tid, TID);
		assert_int_equal(origin.cpu, CPU);
		offset = record_time_offset(record->type, record->size);
		assert_true(offset > 0);
		memcpy(&time, draft.bytes + offset, sizeof time);
		assert_int_equal(time, TIME);
	}
	assert_int_equal(record_time_offset(PERF_RECORD_SAMPLE, 40), -EBADMSG);
	assert_int_equal(record_time_offset(PERF_RECORD_COMM, 32), -EBADMSG);
}

/* Every shorter version lies in a block of exactly its size, so that the
 * sanitizers see a byte read beyond it. */
static void shorten(const struct draft *draft, bool fails_always)
{
	for (size_t n = sizeof(struct perf_event_header); n < draft->n; n += 8) {
		struct perf_event_header *record = malloc(n);
		struct capture_event event;
		struct record_origin origin;
		int r;

		assert_non_null(record);
		memcpy(record, draft->bytes, n);
		record->size = (uint16_t)n;
		record_origin(record, &origin);
		r = record_decode(record, true, &event);
		if (fails_always)
			assert_int_equal(r, -EBADMSG);
		free(record);
	}
}

static void test_shortened_records(void **state)
{
	struct draft draft;

	(void)state;
	whole_sample(&draft);
	shorten(&draft, true);
	mmap2(&draft, 0, "/usr/lib/some/library.so");
	shorten(&draft, false);
	begin(&draft, PERF_RECORD_FORK, 0);
	put_two(&draft, 10, 20);
	put_two(&draft, 11, 21);
	put_u64(&draft, TIME);
	end(&draft);
	shorten(&draft, true);
	begin(&draft, PERF_RECORD_LOST, 0);
	put_u64(&draft, ID);
	put_u64(&draft, 9);
	end(&draft);
	shorten(&draft, false);
	begin(&draft, PERF_RECORD_LOST_SAMPLES, 0);
	put_u64(&draft, 9);
	end(&draft);
	shorten(&draft, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sample),
		cmocka_unit_test(test_sample_without_chain),
		cmocka_unit_test(test_sample_with_record),
		cmocka_unit_test(test_sample_without_user_side),
		cmocka_unit_test(test_sample_lies_about_sizes),
		cmocka_unit_test(test_mmap),
		cmocka_unit_test(test_mmap_that_makes_no_sense),
		cmocka_unit_test(test_comm),
		cmocka_unit_test(test_fork_and_exit),
		cmocka_unit_test(test_lost_and_throttled),
		cmocka_unit_test(test_switches),
		cmocka_unit_test(test_samples_at_switches),
		cmocka_unit_test(test_unknown_records_are_passed_over),
		cmocka_unit_test(test_origin_and_time),
		cmocka_unit_test(test_shortened_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
