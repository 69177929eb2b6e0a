/* SPDX-License-Identifier: MIT */
/* test_capture_instant.c - the memory of a descheduled thread is unchanged since its sample.
 *
 * The target counts in a variable on its stack, and then in memory that we share. The sample has the first as
 * it was; the second is read as it is, as an interpreter would be.
 */
#include "record_target.h"

#include <sched.h>
#include <time.h>

#include "base/machine.h"

static const struct capture_options usual = { .source = SOURCE_WAKEUP, .hz = 999, .stack_bytes = 4096 };

struct counts {
	struct capture *capture;
	const struct target_page *page;
	uint64_t on_stack; /* address of the variable there */
	unsigned n_samples, n_still, n_moved_on, n_others;
};

/* page->address has the variable's address, then its value. */
static void count_up(struct target_page *page)
{
	volatile uint64_t count = 0;

	page->address = (uintptr_t)&count;
	store(&page->ready, 1);
	wait_for(&page->command, 1);
	for (;;) {
		count = count + 1;
		__atomic_store_n(&page->address, count, __ATOMIC_RELEASE);
	}
}

static uint64_t captured_count(const struct counts *counts, const struct sample *sample)
{
	uint64_t offset = counts->on_stack - sample->regs.value[MACHINE_REG_SP], count;

	assert_true(sample->has_user && offset + sizeof count <= sample->stack_bytes);
	memcpy(&count, sample->stack + offset, sizeof count);
	return count;
}

static void look_at(const struct capture_event *event, void *data)
{
	struct counts *counts = data;
	uint64_t now, then;

	counts->n_others += event->type == CAPTURE_SWITCH; /* not requested */
	if (event->type != CAPTURE_SAMPLE)
		return;
	now = __atomic_load_n(&counts->page->address, __ATOMIC_ACQUIRE);
	if (now == counts->on_stack) /* it has not begun to count */
		return;
	then = captured_count(counts, &event->sample);
	counts->n_samples++;
	if (!capture_is_descheduled(counts->capture, &event->sample))
		return;
	counts->n_still++;
	counts->n_moved_on += now != then && now + 1 != then;
}

static void test_memory_is_as_of_the_sample(void **state)
{
	struct target target = target_start(count_up);
	struct counts counts = { .page = target.page, .on_stack = target.page->address };

	(void)state;
	counts.capture = attach_or_skip(&usual, target.pid);
	store(&target.page->command, 1);
	/* 2 s, and until there are enough. */
	for (int i = 0; i < PATIENCE_MS / 100 && (i < 20 || counts.n_samples <= 40); i++)
		read_for(counts.capture, 100, look_at, &counts);
	print_message("%u samples, %u stood still, of which %u went on\n", counts.n_samples, counts.n_still,
		      counts.n_moved_on);
	assert_int_equal(counts.n_others, 0);
	assert_true(counts.n_samples > 40);
	assert_true(counts.n_still >= counts.n_samples / 2);
	assert_true(counts.n_moved_on * 200 <= counts.n_still);
	capture_free(counts.capture);
	target_end(&target);
}

/* Make room until it has gone on, however busy the machine is. */
static void await_progress(const struct counts *counts, uint64_t then)
{
	for (int i = 0; i < 20000; i++) {
		uint64_t now = __atomic_load_n(&counts->page->address, __ATOMIC_ACQUIRE);

		if (now != then && now + 1 != then && now != counts->on_stack)
			return;
		usleep(500);
	}
	fail_msg("the target does not run");
}

static void let_go_on(const struct capture_event *event, void *data)
{
	enum { ENOUGH = 50 };
	struct counts *counts = data;

	if (event->type != CAPTURE_SAMPLE || counts->n_samples == ENOUGH)
		return;
	counts->n_samples++;
	await_progress(counts, captured_count(counts, &event->sample));
	counts->n_still += capture_is_descheduled(counts->capture, &event->sample);
}

static void test_who_goes_on_is_not_said_to_stand(void **state)
{
	struct target target = target_start(count_up);
	struct counts counts = { .page = target.page, .on_stack = target.page->address };

	(void)state;
	counts.capture = attach_or_skip(&usual, target.pid);
	store(&target.page->command, 1);
	let_run(target.pid, target.pid, 20);
	for (int i = 0; i < PATIENCE_MS / 100 && (i < 5 || counts.n_samples <= 5); i++)
		read_for(counts.capture, 100, let_go_on, &counts);
	assert_true(counts.n_samples > 5);
	assert_int_equal(counts.n_still, 0);
	capture_free(counts.capture);
	target_end(&target);
}

static void test_the_reader_is_free_again(void **state)
{
	struct target target = target_start(count_up);
	struct counts counts = { .page = target.page, .on_stack = target.page->address };
	cpu_set_t before, after;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
	counts.capture = attach_or_skip(&usual, target.pid);
	store(&target.page->command, 1);
	read_for(counts.capture, 200, look_at, &counts);
	capture_stop(counts.capture);
	assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
	assert_true(CPU_EQUAL(&before, &after));
	capture_free(counts.capture);
	target_end(&target);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_is_as_of_the_sample),
		cmocka_unit_test(test_who_goes_on_is_not_said_to_stand),
		cmocka_unit_test(test_the_reader_is_free_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
