/* SPDX-License-Identifier: MIT */
/* test_capture_races.c - threads that come and go while we attach, and losses. */
#include "record_target.h"

#include <pthread.h>

#include "src/capture/capture_private.h"

static const struct capture_options fast = {
	.hz = 1999,
	.stack_bytes = 8, /* so that the rings have room while the reader does not run */
	.ring_bytes = 512 << 10,
	.no_wakeup = true,
};

static void *burn(void *argument)
{
	struct target_page *page = argument;
	int slot = __atomic_fetch_add(&page->n_tids, 1, __ATOMIC_ACQ_REL);

	if (slot < TARGET_MAX_THREADS)
		page->tids[slot] = gettid();
	__atomic_fetch_add(&page->ready, 1, __ATOMIC_ACQ_REL);
	for (volatile unsigned long i = 0;; i++)
		;
	return NULL;
}

static void create(void *(*run)(void *), void *argument)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 128 << 10);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attr, run, argument) != 0)
		_exit(1);
	pthread_attr_destroy(&attr);
}

static void run_one(struct target_page *page)
{
	burn(page);
}

/* Creates a thread that waits for a command, then creates one that burns. */
static void *wait_then_create(void *argument)
{
	struct target_page *page = argument;

	page->tids[0] = gettid();
	store(&page->n_tids, 1);
	store(&page->ready, 2);
	while (load(&page->command) < 2)
		sleep_ms(1);
	create(burn, page);
	pause();
	return NULL;
}

static void run_grandparent(struct target_page *page)
{
	store(&page->ready, 1);
	while (load(&page->command) < 1)
		sleep_ms(1);
	create(wait_then_create, page);
	pause();
}

/*
 * The deliberate worst case: a thread has inherited all events and gets its own as well. All actions of a thread that
 * it creates are recorded twice, while it sleeps itself.
 */
static void test_what_is_recorded_twice_counts_once(void **state)
{
	struct target target = target_start(run_grandparent);
	struct tally tally = { 0 };
	struct capture *capture;
	struct cpu_span span = { .stolen = stolen_ns() };
	pid_t burner;
	size_t n_late, n_retired = 0;

	(void)state;
	capture = attach_or_skip(&fast, target.pid);
	assert_null(capture->dup_events);
	store(&target.page->command, 1);
	wait_for(&target.page->ready, 2);
	assert_int_equal(events_cover(&capture->events, target.page->tids[0], true), 0);
	assert_int_equal(dup_events_new(&capture->dup_events), 0);
	n_late = capture->events.n_late;
	assert_int_equal(n_late, capture->rings.n);

	store(&target.page->command, 2);
	wait_for(&target.page->ready, 3);
	burner = target.page->tids[1];
	for (int i = 0; i < 20; i++) {
		let_run(target.pid, burner, 25);
		drain(capture, tally_visit, &tally);
	}
	span.after = cpu_of_thread_ns(target.pid, burner);
	capture_stop(capture);
	span.stopped = cpu_of_thread_ns(target.pid, burner);
	span.stolen = stolen_ns() - span.stolen;
	drain(capture, tally_visit, &tally);

	assert_plausible(*tally_of(&tally, burner), &span, fast.hz);
	for (size_t i = 0; i < n_late; i++)
		n_retired += capture->events.late[i].fd < 0;
	assert_true(n_retired > 0);
	/* A retired descriptor is a late one, never the only one. */
	assert_int_equal(capture->events.n_fds, capture->rings.n);
	capture_free(capture);
	target_end(&target);
}

/* Threads by several creators, spread over the milliseconds that attaching takes. */
static void *creator(void *argument)
{
	struct target_page *page = argument;

	while (load(&page->command) < 1)
		;
	for (int i = 0; i < 6; i++) {
		create(burn, page);
		usleep(500);
	}
	pause();
	return NULL;
}

static void run_burst(struct target_page *page)
{
	for (int i = 0; i < 3; i++)
		create(creator, page);
	store(&page->ready, 1);
	pause();
}

struct burst {
	unsigned n_late, n_retired;
	uint64_t n_samples, cpu_ns, stolen;
};

static void check_each_thread(struct target *target, struct tally *tally, struct burst *burst)
{
	int n = MIN(load(&target->page->n_tids), (int)TARGET_MAX_THREADS);

	assert_int_equal(n, 18);
	for (int i = 0; i < n; i++) {
		uint64_t cpu_ns = cpu_of_thread_ns(target->pid, target->page->tids[i]);
		unsigned n_samples = *tally_of(tally, target->page->tids[i]);

		/* Some had run for a while before they were attached to; none is sampled twice. */
		assert_in_share(n_samples, cpu_ns, fast.hz, 0.2, INFINITY);
		assert_at_most(n_samples, cpu_ns + burst->stolen, fast.hz);
		burst->n_samples += n_samples;
		burst->cpu_ns += cpu_ns;
	}
}

static void attach_during_burst(unsigned delay_us, struct burst *burst)
{
	struct target target = target_start(run_burst);
	struct tally tally = { 0 };
	struct capture *capture;

	burst->stolen = stolen_ns();
	store(&target.page->command, 1);
	usleep(delay_us);
	capture = attach_or_skip(&fast, target.pid);
	wait_for(&target.page->ready, 19);
	for (int i = 0; i < 40; i++) {
		sleep_ms(20);
		drain(capture, tally_visit, &tally);
	}
	kill(target.pid, SIGSTOP); /* its CPU time must not grow beyond what was sampled */
	capture_stop(capture);
	drain(capture, tally_visit, &tally);
	burst->stolen = stolen_ns() - burst->stolen;
	check_each_thread(&target, &tally, burst);
	for (size_t i = 0; i < capture->events.n_late; i++)
		burst->n_retired += capture->events.late[i].fd < 0;
	burst->n_late += (unsigned)capture->events.n_late;
	capture_free(capture);
	target_end(&target);
}

static void test_burst_of_threads_during_attach(void **state)
{
	struct burst burst = { 0 };

	(void)state;
	for (unsigned i = 0; i < 8; i++)
		attach_during_burst(i * 400, &burst);
	print_message("%llu samples of %.0f expected; %u late events, %u of them retired\n",
		      (unsigned long long)burst.n_samples, (double)burst.cpu_ns * 1e-9 * fast.hz, burst.n_late,
		      burst.n_retired);
}

static void *burn_shortly(void *argument)
{
	for (uint64_t end = monotonic_ns() + 3000000; monotonic_ns() < end;)
		;
	return argument;
}

static void *churn(void *argument)
{
	for (;;) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, burn_shortly, argument) != 0)
			_exit(1);
		pthread_join(thread, NULL);
	}
	return NULL;
}

static void run_churn(struct target_page *page)
{
	create(churn, page);
	store(&page->ready, 1);
	churn(page);
}

static uint64_t process_cpu_ns(pid_t pid)
{
	struct timespec ts;
	clockid_t clock;

	assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
	assert_int_equal(clock_gettime(clock, &ts), 0);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void test_threads_created_all_the_time(void **state)
{
	struct target target = target_start(run_churn);

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct tally *tally = calloc(1, sizeof *tally);
		struct capture *capture;
		struct cpu_span span = { .stolen = stolen_ns(), .outside = process_cpu_ns(target.pid) };

		assert_non_null(tally);
		capture = attach_or_skip(&fast, target.pid);
		span.inside = process_cpu_ns(target.pid);
		for (int k = 0; k < 20 || (k < 500 && tally->n <= 20); k++) {
			sleep_ms(20);
			drain(capture, tally_visit, tally);
		}
		span.after = process_cpu_ns(target.pid);
		capture_stop(capture);
		span.stopped = process_cpu_ns(target.pid);
		span.stolen = stolen_ns() - span.stolen;
		drain(capture, tally_visit, tally);
		assert_plausible(tally->n_samples, &span, fast.hz);
		assert_true(tally->n > 20);
		capture_free(capture);
		free(tally);
	}
	target_end(&target);
}

static void run_without_main_thread(struct target_page *page)
{
	create(burn, page);
	while (load(&page->ready) < 1)
		sleep_ms(1);
	/* Only the thread ends, as by pthread_exit(), not the process. */
	while (load(&page->command) < 1)
		sleep_ms(1);
	pthread_exit(NULL);
}

/* Read until a thread has n samples; returns the number of wake-ups. */
static unsigned read_until(struct capture *capture, struct tally *tally, pid_t tid, unsigned n)
{
	unsigned n_woken = 0;

	for (int i = 0; i < 100 && *tally_of(tally, tid) < n; i++)
		n_woken += read_for(capture, 100, tally_visit, tally);
	assert_true(*tally_of(tally, tid) >= n);
	return n_woken;
}

/* The thread with the first events ends; then the process. */
static void test_end_of_the_first_thread(void **state)
{
	struct target target = target_start(run_without_main_thread);
	struct tally tally = { 0 };
	struct capture_event event;
	struct epoll_event woken;
	struct capture *capture;
	struct capture_options options = fast;
	unsigned n_woken;

	(void)state;
	options.no_wakeup = false;
	options.hz = 199;
	capture = attach_or_skip(&options, target.pid);
	store(&target.page->command, 1);
	wait_for_state(target.pid, target.pid, 'Z');
	read_for(capture, 100, NULL, NULL);
	/* Woken by samples, not by a descriptor that has hung up. */
	n_woken = read_until(capture, &tally, target.page->tids[0], 20);
	assert_true(n_woken <= tally.n_samples + 20);
	assert_int_equal(tally.n, 1);

	kill(target.pid, SIGKILL);
	assert_int_equal(waitpid(target.pid, NULL, 0), target.pid);
	target.pid = -1;
	read_for(capture, 50, NULL, NULL);
	assert_int_equal(epoll_wait(capture_fd(capture), &woken, 1, 50), 0);
	assert_int_equal(capture_next(capture, &event), 0);
	capture_free(capture);
	target_end(&target);
}

static void test_attach_where_the_first_thread_is_gone(void **state)
{
	struct target target = target_start(run_without_main_thread);
	struct capture_counts counts;
	struct tally tally = { 0 };
	struct capture *capture;

	(void)state;
	store(&target.page->command, 1);
	wait_for_state(target.pid, target.pid, 'Z');
	capture = attach_or_skip(&fast, target.pid);
	read_until(capture, &tally, target.page->tids[0], 20);
	capture_read_counts(capture, &counts);
	assert_int_equal(counts.n_threads, 1);
	capture_free(capture);
	target_end(&target);
}

static void test_process_that_is_gone(void **state)
{
	struct target target = target_start(run_one);
	struct capture *capture = NULL;

	(void)state;
	capture_free(attach_or_skip(&fast, target.pid));
	kill(target.pid, SIGKILL);
	/* A zombie first, then nothing at all. */
	assert_int_equal(waitid(P_PID, (id_t)target.pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT), 0);
	assert_int_equal(capture_attach(&fast, target.pid, &capture), -ESRCH);
	assert_int_equal(waitpid(target.pid, NULL, 0), target.pid);
	assert_int_equal(capture_attach(&fast, target.pid, &capture), -ESRCH);
	assert_null(capture);
	target.pid = -1;
	target_end(&target);
}

struct losses {
	unsigned n_samples;
	uint64_t n_told;
};

static void sum_losses(const struct capture_event *event, void *data)
{
	struct losses *losses = data;

	losses->n_samples += event->type == CAPTURE_SAMPLE;
	if (event->type == CAPTURE_LOST)
		losses->n_told += event->lost.n;
}

/* Rings for three samples are read so rarely that most samples are lost. */
static struct capture *lose(struct target *target, bool with_counter, struct losses *losses, struct cpu_span *ret)
{
	const struct capture_options options = {
		.hz = 4999,
		.stack_bytes = 16384,
		.ring_bytes = 64 << 10,
		.no_wakeup = true,
	};
	struct capture *capture;

	ret->stolen = stolen_ns();
	ret->outside = cpu_of_thread_ns(target->pid, target->pid);
	capture = attach_or_skip(&options, target->pid);
	if (!with_counter) {
		/* As on Linux before 6.0. */
		events_done(&capture->events);
		assert_int_equal(events_init(&capture->events, &options, &capture->rings), 0);
		capture->events.attr.read_format &= ~(uint64_t)PERF_FORMAT_LOST;
		assert_int_equal(events_attach_all(&capture->events, &target->pid, 1), 0);
	}
	ret->inside = cpu_of_thread_ns(target->pid, target->pid);
	for (int i = 0; i < 10; i++) {
		let_run(target->pid, target->pid, 30);
		drain(capture, sum_losses, losses);
	}
	let_run(target->pid, target->pid, 100);
	ret->after = cpu_of_thread_ns(target->pid, target->pid);
	capture_stop(capture);
	ret->stopped = cpu_of_thread_ns(target->pid, target->pid);
	ret->stolen = stolen_ns() - ret->stolen;
	drain(capture, sum_losses, losses);
	return capture;
}

static void test_losses_are_counted(void **state)
{
	struct target target = target_start(run_one);
	struct losses losses = { 0 };
	struct capture_counts counts, again;
	struct capture *capture;
	struct cpu_span span = { 0 };

	(void)state;
	capture = lose(&target, true, &losses, &span);
	capture_read_counts(capture, &counts);
	assert_int_equal(counts.samples, losses.n_samples);
	assert_true(losses.n_samples > 20);
	assert_true(losses.n_told > 100);
	/* No record reports losses after the last read, but the counter does. */
	assert_true(counts.lost > losses.n_told);
	assert_plausible(counts.samples + counts.lost, &span, 4999);
	capture_read_counts(capture, &again);
	assert_memory_equal(&again, &counts, sizeof counts);
	capture_free(capture);
	target_end(&target);
}

static void test_losses_by_records_alone(void **state)
{
	struct target target = target_start(run_one);
	struct losses losses = { 0 };
	struct capture_counts counts;
	struct capture *capture;
	struct cpu_span span = { 0 };

	(void)state;
	capture = lose(&target, false, &losses, &span);
	capture_read_counts(capture, &counts);
	assert_int_equal(counts.lost, losses.n_told);
	assert_true(counts.lost > 100);
	capture_free(capture);
	target_end(&target);
}

/* Losses of threads born later are accounted to the events they inherited. */
static void test_losses_of_new_threads(void **state)
{
	const struct capture_options options = {
		.hz = 4999,
		.stack_bytes = 16384,
		.ring_bytes = 16 << 10,
		.no_wakeup = true,
	};
	struct target target = target_start(run_grandparent);
	struct capture_counts counts;
	struct capture *capture;
	struct cpu_span span = { 0 };

	(void)state;
	/* No ring can hold a single sample: every one is lost. */
	span.stolen = stolen_ns();
	capture = attach_or_skip(&options, target.pid);
	store(&target.page->command, 2);
	wait_for(&target.page->ready, 3);
	let_run(target.pid, target.page->tids[1], 300);
	span.after = cpu_of_thread_ns(target.pid, target.page->tids[1]);
	capture_stop(capture);
	span.stopped = cpu_of_thread_ns(target.pid, target.page->tids[1]);
	span.stolen = stolen_ns() - span.stolen;
	capture_read_counts(capture, &counts);
	assert_int_equal(counts.samples, 0);
	assert_true(counts.lost > 200);
	assert_plausible(counts.lost, &span, options.hz);
	capture_free(capture);
	target_end(&target);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_recorded_twice_counts_once),
		cmocka_unit_test(test_burst_of_threads_during_attach),
		cmocka_unit_test(test_threads_created_all_the_time),
		cmocka_unit_test(test_end_of_the_first_thread),
		cmocka_unit_test(test_attach_where_the_first_thread_is_gone),
		cmocka_unit_test(test_process_that_is_gone),
		cmocka_unit_test(test_losses_are_counted),
		cmocka_unit_test(test_losses_by_records_alone),
		cmocka_unit_test(test_losses_of_new_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
