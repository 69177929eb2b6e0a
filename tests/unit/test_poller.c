/* SPDX-License-Identifier: MIT */
/* test_poller.c - looking at threads on a timer, on real processes.
 *
 * It needs no privilege. How often a thread is seen depends on the machine; the sum of the
 * weights does not.
 */
#include "record_target.h"

#include <pthread.h>

#include "base/proc.h"

static const struct capture_options usual = { .source = SOURCE_POLL, .hz = 499, .stack_bytes = 4096 };

static void burn_for_ever(void)
{
	for (volatile unsigned i = 0;; i++)
		;
}

static void *burning_thread(void *data)
{
	struct target_page *page = data;

	page->tids[__atomic_fetch_add(&page->n_tids, 1, __ATOMIC_ACQ_REL)] = gettid();
	__atomic_fetch_add(&page->ready, 1, __ATOMIC_ACQ_REL);
	burn_for_ever();
	return NULL;
}

/* The main thread sleeps, another burns. */
static void run_one_of_two(struct target_page *page)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, burning_thread, page) != 0)
		_exit(1);
	for (;;)
		pause();
}

/* Results of a recording. */
struct seen {
	pid_t pid; /* samples of this thread are counted on their own */
	uint64_t weight, of_others_ns;
	unsigned n, n_of_others;
	pid_t forked, ended;
	unsigned n_forks, n_execs, n_ended;
	bool sample_before_fork, sample_before_exec, is_wrong;
	char name[64]; /* of what was executed */
};

static void see_sample(const struct capture_event *event, struct seen *seen)
{
	const struct sample *sample = &event->sample;

	seen->is_wrong |= !sample->is_polled || sample->has_user || sample->weight == 0 || sample->pid != event->pid ||
			  sample->tid != event->tid || sample->time_ns != event->time_ns;
	seen->sample_before_exec |= seen->n_execs == 0;
	if (event->tid == seen->pid) {
		seen->n++;
		seen->weight += sample->weight;
		return;
	}
	seen->sample_before_fork |= seen->n_forks == 0;
	seen->n_of_others++;
	seen->of_others_ns += sample->weight;
}

static void see(const struct capture_event *event, void *data)
{
	struct seen *seen = data;

	if (event->type == CAPTURE_SAMPLE)
		see_sample(event, seen);
	if (event->type == CAPTURE_FORK) {
		seen->n_forks++;
		seen->forked = event->pid;
	}
	if (event->type == CAPTURE_EXIT) {
		seen->n_ended++;
		seen->ended = event->tid;
	}
	if (event->type == CAPTURE_COMM && event->comm.is_exec) {
		seen->n_execs++;
		snprintf(seen->name, sizeof seen->name, "%s", event->comm.name);
	}
}

static struct capture *attach(pid_t pid)
{
	struct capture *capture;

	assert_int_equal(capture_attach(&usual, pid, &capture), 0);
	assert_int_equal(capture_source(capture), SOURCE_POLL);
	assert_int_equal(capture_refusal(capture), 0);
	assert_false(capture_has_kernel(capture));
	return capture;
}

static void finish(struct capture *capture, struct seen *seen)
{
	capture_stop(capture);
	drain(capture, see, seen);
	assert_false(seen->is_wrong);
}

static void weights_add_up_to_the_cpu_time(void **state)
{
	struct target target = target_start(run_one_of_two);
	uint64_t outside, inside, after;
	struct seen seen = { 0 };
	struct capture_counts counts;
	struct capture *capture;

	(void)state;
	seen.pid = target.page->tids[0];
	let_run(target.pid, seen.pid, 50); /* that is not ours */
	outside = cpu_of_thread_ns(target.pid, seen.pid);
	capture = attach(target.pid);
	inside = cpu_of_thread_ns(target.pid, seen.pid);
	for (int i = 0; i < 1000 && cpu_of_thread_ns(target.pid, seen.pid) - inside < 300000000; i++)
		assert_true(read_for(capture, 50, see, &seen) > 0);
	after = cpu_of_thread_ns(target.pid, seen.pid);
	finish(capture, &seen);
	assert_true(seen.n > 10);
	assert_in_range(seen.weight, (after - inside) / 2, cpu_of_thread_ns(target.pid, seen.pid) - outside);
	assert_int_equal(seen.n_of_others, 0); /* the one that sleeps */
	capture_read_counts(capture, &counts);
	assert_int_equal(counts.samples, seen.n);
	assert_int_equal(counts.n_threads, 2);
	assert_int_equal(counts.lost, 0);
	assert_true(counts.poll_ticks > 10);
	capture_free(capture);
	target_end(&target);
}

static char state_of(pid_t pid, pid_t tid)
{
	struct proc_stat stat;

	return proc_stat_read(pid, tid, &stat) < 0 ? '?' : stat.state;
}

static void stop(pid_t pid, pid_t tid)
{
	assert_int_equal(kill(pid, SIGSTOP), 0);
	for (int i = 0; i < 10000 && state_of(pid, tid) != 'T'; i++)
		sleep_ms(1);
	assert_int_equal(state_of(pid, tid), 'T');
}

/* A thread did not use its CPU time at the place where it sleeps. */
static void a_thread_is_met_only_while_it_runs(void **state)
{
	struct target target = target_start(run_one_of_two);
	struct seen seen = { .pid = target.page->tids[0] };
	uint64_t outside = cpu_of_thread_ns(target.pid, seen.pid), inside, after;
	struct capture *capture = attach(target.pid);
	unsigned n;

	(void)state;
	inside = cpu_of_thread_ns(target.pid, seen.pid);
	for (int i = 0; i < 5; i++) {
		/* It runs unseen, and is seen when it does not run. */
		let_run(target.pid, seen.pid, 20);
		stop(target.pid, seen.pid);
		n = seen.n;
		read_for(capture, 20, see, &seen);
		assert_int_equal(seen.n, n);
		kill(target.pid, SIGCONT);
	}
	for (int i = 0; i < 200 && seen.n == 0; i++)
		read_for(capture, 20, see, &seen);
	after = cpu_of_thread_ns(target.pid, seen.pid);
	finish(capture, &seen);
	assert_true(after - inside >= 100000000);
	assert_in_range(seen.weight, (after - inside) / 2, cpu_of_thread_ns(target.pid, seen.pid) - outside);
	capture_free(capture);
	target_end(&target);
}

/* One child exists before, one starts on command. */
static void run_forking(struct target_page *page)
{
	pid_t older = fork(), younger;

	if (older == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		burn_for_ever();
	}
	page->tids[0] = older;
	store(&page->ready, 1);
	while (load(&page->command) < 1)
		sleep_ms(1);
	younger = fork();
	if (younger == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		burn_for_ever();
	}
	page->child = younger;
	store(&page->ready, 2);
	while (load(&page->command) < 2)
		sleep_ms(1);
	kill(younger, SIGKILL);
	waitpid(younger, NULL, 0);
	store(&page->ready, 3);
	for (;;)
		pause();
}

static void children_are_followed_to_their_end(void **state)
{
	struct target target = target_start(run_forking);
	struct seen seen = { .pid = target.pid };
	struct capture *capture = attach(target.pid);

	(void)state;
	read_for(capture, 60, see, &seen);
	assert_int_equal(seen.n_forks, 0); /* who was there before is not ours */
	assert_int_equal(seen.n_of_others, 0);
	store(&target.page->command, 1);
	wait_for(&target.page->ready, 2);
	for (int i = 0; i < 200 && seen.n_of_others < 5; i++)
		read_for(capture, 50, see, &seen);
	assert_int_equal(seen.n_forks, 1);
	assert_int_equal(seen.forked, target.page->child);
	assert_true(seen.n_of_others >= 5);
	assert_false(seen.sample_before_fork);
	store(&target.page->command, 2);
	wait_for(&target.page->ready, 3);
	finish(capture, &seen);
	assert_int_equal(seen.n_ended, 1);
	assert_int_equal(seen.ended, target.page->child);
	assert_int_equal(seen.n_execs, 0);
	capture_free(capture);
	kill(target.page->tids[0], SIGKILL);
	target_end(&target);
}

static int wakes_first[2], wakes_second[2];

/* Ends by itself. A signal at its parent's end would come at the end of the thread that forked. */
static pid_t fork_sleeping(void)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	alarm(60);
	for (;;)
		pause();
}

static void await_byte(int fd)
{
	char byte;

	if (read(fd, &byte, 1) != 1)
		_exit(1);
}

/* Has a child from before, sleeps, and ends. */
static void *first_parent(void *data)
{
	struct target_page *page = data;

	page->tids[0] = fork_sleeping();
	store(&page->n_tids, 1);
	await_byte(wakes_first[0]);
	return NULL;
}

/* Sleeps, forks, sleeps, forks and ends. */
static void *second_parent(void *data)
{
	struct target_page *page = data;

	await_byte(wakes_second[0]);
	page->child = fork_sleeping();
	store(&page->ready, 2);
	await_byte(wakes_second[0]);
	page->tids[1] = fork_sleeping();
	return NULL;
}

static void *sleeping_thread(void *data)
{
	(void)data;
	for (;;)
		pause();
	return NULL;
}

static void run_with_sleeping_threads(struct target_page *page)
{
	pthread_t first, second, other;
	bool failed = pipe(wakes_first) < 0 || pipe(wakes_second) < 0 ||
		      pthread_create(&first, NULL, first_parent, page) != 0;

	for (int i = 0; i < 20; i++)
		failed |= pthread_create(&other, NULL, sleeping_thread, NULL) != 0;
	if (failed || pthread_create(&second, NULL, second_parent, page) != 0)
		_exit(1);
	while (load(&page->n_tids) < 1)
		sleep_ms(1);
	store(&page->ready, 1);
	while (load(&page->command) < 1)
		sleep_ms(1);
	if (write(wakes_second[1], "x", 1) != 1)
		_exit(1);
	while (load(&page->command) < 2)
		sleep_ms(1);
	if (write(wakes_second[1], "x", 1) != 1 || write(wakes_first[1], "x", 1) != 1)
		_exit(1);
	pthread_join(second, NULL);
	pthread_join(first, NULL);
	store(&page->ready, 3);
	for (;;)
		pause();
}

/* Most listings read only what threads that have run can have changed. */
static void children_of_threads_that_slept_are_followed(void **state)
{
	struct target target = target_start(run_with_sleeping_threads);
	struct seen seen = { .pid = target.pid };
	struct capture *capture = attach(target.pid);
	pid_t older = target.page->tids[0];

	(void)state;
	read_for(capture, 300, see, &seen); /* three listings at least */
	assert_int_equal(seen.n_forks, 0);
	store(&target.page->command, 1);
	wait_for(&target.page->ready, 2);
	for (int i = 0; i < 200 && seen.n_forks == 0; i++)
		read_for(capture, 50, see, &seen);
	assert_int_equal(seen.forked, target.page->child);
	store(&target.page->command, 2);
	wait_for(&target.page->ready, 3);
	for (int i = 0; i < 200 && (seen.n_forks < 2 || seen.n_ended < 2); i++)
		read_for(capture, 50, see, &seen);
	assert_int_equal(seen.forked, target.page->tids[1]);
	read_for(capture, 300, see, &seen);
	assert_int_equal(seen.n_forks, 2); /* the older one has another thread as its parent now */
	finish(capture, &seen);
	assert_int_equal(seen.n_ended, 2);
	capture_free(capture);
	kill(older, SIGKILL);
	kill(target.page->child, SIGKILL);
	kill(target.page->tids[1], SIGKILL);
	target_end(&target);
}

/* It is found in the tick that begins after the fork. Here that is the last one: ticks come while events are read. */
static void a_child_of_a_thread_that_slept_is_found_at_once(void **state)
{
	struct target target = target_start(run_with_sleeping_threads);
	struct seen seen = { .pid = target.pid };
	struct capture *capture = attach(target.pid);

	(void)state;
	read_for(capture, 300, see, &seen);
	store(&target.page->command, 1);
	wait_for(&target.page->ready, 2);
	finish(capture, &seen);
	assert_int_equal(seen.n_forks, 1);
	assert_int_equal(seen.forked, target.page->child);
	capture_free(capture);
	kill(target.page->tids[0], SIGKILL);
	kill(target.page->child, SIGKILL);
	target_end(&target);
}

/* Burns, and becomes a shell that burns on request. */
static void run_executing(struct target_page *page)
{
	store(&page->ready, 1);
	while (load(&page->command) < 1)
		sleep_ms(1);
	execl("/bin/sh", "a-shell", "-c", "while :; do :; done", NULL);
	_exit(1);
}

static unsigned read_until_exec(struct capture *capture, struct seen *seen)
{
	for (int i = 0; i < 200 && (seen->n_execs == 0 || seen->n < 5); i++)
		read_for(capture, 50, see, seen);
	return seen->n_execs;
}

static void another_program_is_told_before_its_samples(void **state)
{
	struct target target = target_start(run_executing);
	struct seen seen = { .pid = target.pid };
	struct capture *capture = attach(target.pid);
	unsigned n_before;

	(void)state;
	read_for(capture, 60, see, &seen);
	assert_int_equal(seen.n_execs, 0);
	n_before = seen.n;
	store(&target.page->command, 1);
	assert_int_equal(read_until_exec(capture, &seen), 1);
	assert_true(seen.n > n_before);
	finish(capture, &seen);
	assert_true(strlen(seen.name) > 0);
	capture_free(capture);
	target_end(&target);
}

static void a_child_is_not_looked_at_before_its_exec(void **state)
{
	struct target target = target_start(run_executing);
	struct seen seen = { .pid = target.pid };
	struct capture *capture;

	(void)state;
	assert_int_equal(capture_launch(&usual, target.pid, &capture), 0);
	read_for(capture, 60, see, &seen);
	assert_int_equal(seen.n, 0);
	store(&target.page->command, 1);
	assert_int_equal(read_until_exec(capture, &seen), 1);
	assert_false(seen.sample_before_exec);
	finish(capture, &seen);
	capture_free(capture);
	target_end(&target);
}

static void the_end_of_a_process_is_told(void **state)
{
	struct target target = target_start(run_one_of_two);
	struct seen seen = { .pid = target.page->tids[0] };
	struct capture *capture = attach(target.pid);

	(void)state;
	read_for(capture, 60, see, &seen);
	kill(target.pid, SIGKILL);
	waitpid(target.pid, NULL, 0);
	target.pid = 0;
	for (int i = 0; i < 200 && seen.n_ended < 2; i++)
		read_for(capture, 50, see, &seen);
	assert_int_equal(seen.n_ended, 2);
	finish(capture, &seen);
	capture_free(capture);
	target_end(&target);
}

static void what_cannot_be_is_refused(void **state)
{
	struct capture_options options = usual;
	struct capture *capture;
	pid_t gone = fork();

	(void)state;
	if (gone == 0)
		_exit(0);
	waitpid(gone, NULL, 0);
	assert_int_equal(capture_attach(&usual, gone, &capture), -ESRCH);
	assert_int_equal(capture_check_memory(gone), -ESRCH);
	assert_int_equal(capture_check_memory(getpid()), 0);
	options.hz = 0;
	assert_int_equal(capture_attach(&options, getpid(), &capture), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(weights_add_up_to_the_cpu_time),
		cmocka_unit_test(a_thread_is_met_only_while_it_runs),
		cmocka_unit_test(children_are_followed_to_their_end),
		cmocka_unit_test(children_of_threads_that_slept_are_followed),
		cmocka_unit_test(a_child_of_a_thread_that_slept_is_found_at_once),
		cmocka_unit_test(another_program_is_told_before_its_samples),
		cmocka_unit_test(a_child_is_not_looked_at_before_its_exec),
		cmocka_unit_test(the_end_of_a_process_is_told),
		cmocka_unit_test(what_cannot_be_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
