/* SPDX-License-Identifier: MIT */
/* test_capture_system_wide.c - more threads than events: all processors are sampled, and others' samples dropped. */
#include "record_target.h"

#include <pthread.h>
#include <sys/resource.h>

#include "src/capture/switch_rate.h"

enum { N_WAITING = 60, ENOUGH = 5 };

static const struct capture_options inside = { .source = SOURCE_BPF, .hz = 499, .stack_bytes = 1024 };

static void *wait_for_ever(void *argument)
{
	struct target_page *page = argument;

	__atomic_fetch_add(&page->ready, 1, __ATOMIC_ACQ_REL);
	pause();
	return NULL;
}

static void run_burning(struct target_page *page)
{
	store(&page->ready, 1);
	for (;;)
		;
}

/* Many threads that wait; on command a child that burns. */
static void run_crowd(struct target_page *page)
{
	pid_t child;

	for (int i = 0; i < N_WAITING; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, wait_for_ever, page) != 0)
			_exit(1);
	}
	while (load(&page->command) == 0)
		sleep_ms(1);
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			;
	}
	page->child = child; /* the page is the child's, too */
	store(&page->ready, N_WAITING + 1);
	for (;;)
		;
}

/* Two threads that do little but hand a byte to and fro. */
static void *hand_back(void *argument)
{
	const int *pipes = argument;
	char byte;

	while (read(pipes[0], &byte, 1) == 1 && write(pipes[3], &byte, 1) == 1)
		;
	return NULL;
}

static void run_restless(struct target_page *page)
{
	int pipes[4];
	pthread_t thread;
	char byte = 0;

	if (pipe(pipes) < 0 || pipe(pipes + 2) < 0 || pthread_create(&thread, NULL, hand_back, pipes) != 0)
		_exit(1);
	for (unsigned i = 0; write(pipes[1], &byte, 1) == 1 && read(pipes[2], &byte, 1) == 1; i++)
		if (i == 20000)
			store(&page->ready, 1);
}

struct seen {
	pid_t pid, child;
	unsigned n_pid, n_child, n_others, n_forks;
};

static void look_at(const struct capture_event *event, void *data)
{
	struct seen *seen = data;

	if (event->type == CAPTURE_LOST || event->type == CAPTURE_THROTTLE)
		return;
	if (event->type == CAPTURE_FORK && event->pid != event->fork.parent_pid) {
		seen->n_forks++;
		assert_int_equal(event->fork.parent_pid, seen->pid);
		seen->child = event->pid;
	}
	if (event->type != CAPTURE_SAMPLE) {
		assert_true(event->pid == seen->pid || event->pid == seen->child);
		return;
	}
	seen->n_pid += event->pid == seen->pid;
	seen->n_child += event->pid == seen->child;
	seen->n_others += event->pid != seen->pid && event->pid != seen->child;
}

/* As root, and where the kernel allows it. */
static struct capture *attach_inside_or_skip(pid_t pid)
{
	struct capture *capture;
	char text[256];
	int r;

	r = capture_attach(&inside, pid, &capture);
	capture_explain_source(text, sizeof text);
	skip_if_bpf_is_refused(r, text);
	skip_if_perf_is_refused(r, pid, "perf events are refused");
	assert_int_equal(r, 0);
	assert_int_equal(capture_source(capture), SOURCE_BPF);
	return capture;
}

static void test_only_the_target_and_its_children(void **state)
{
	struct target foreign = target_start(run_burning), target = target_start(run_crowd);
	rlim_t n_cpus = (rlim_t)sysconf(_SC_NPROCESSORS_ONLN), most = 42 + 4 * n_cpus;
	const struct rlimit limit = { most, most };
	struct seen seen = { .pid = target.pid, .child = -1 };
	struct capture_counts counts;
	struct capture *capture;

	(void)state;
	wait_for(&target.page->ready, N_WAITING);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	capture = attach_inside_or_skip(target.pid);
	capture_read_counts(capture, &counts);
	assert_int_equal(counts.n_events, n_cpus);
	assert_int_equal(counts.n_threads, N_WAITING + 1);
	store(&target.page->command, 1);
	for (int i = 0; i < 200 && (seen.n_pid < ENOUGH || seen.n_child < ENOUGH); i++)
		read_for(capture, 50, look_at, &seen);
	let_run(foreign.pid, foreign.pid, 20);
	read_for(capture, 50, look_at, &seen);
	print_message("%u of it, %u of its child, %u of others\n", seen.n_pid, seen.n_child, seen.n_others);
	assert_true(seen.n_pid >= ENOUGH && seen.n_child >= ENOUGH);
	assert_int_equal(seen.n_forks, 1);
	assert_int_equal(seen.child, target.page->child);
	assert_int_equal(seen.n_others, 0);
	kill(target.page->child, SIGKILL);
	capture_free(capture);
	target_end(&target);
	target_end(&foreign);
}

/* A fork event is the only source of a process' parent, also during a pause. */
static void test_forks_in_a_pause_are_followed(void **state)
{
	struct target target = target_start(run_crowd);
	struct seen seen = { .pid = target.pid, .child = -1 };
	struct capture *capture;

	(void)state;
	wait_for(&target.page->ready, N_WAITING);
	capture = attach_inside_or_skip(target.pid); /* with the limit that the test before has left */
	capture_pause(capture);
	read_for(capture, 20, look_at, &seen);
	store(&target.page->command, 1);
	wait_for(&target.page->ready, N_WAITING + 1);
	let_run(target.pid, target.pid, 20);
	seen.n_pid = 0;
	read_for(capture, 50, look_at, &seen);
	assert_int_equal(seen.n_pid + seen.n_child + seen.n_others, 0);
	assert_int_equal(seen.n_forks, 1);
	assert_int_equal(capture_resume(capture), 0);
	for (int i = 0; i < 200 && (seen.n_pid < ENOUGH || seen.n_child < ENOUGH); i++)
		read_for(capture, 50, look_at, &seen);
	assert_true(seen.n_pid >= ENOUGH && seen.n_child >= ENOUGH);
	assert_int_equal(seen.n_others, 0);
	kill(target.page->child, SIGKILL);
	capture_free(capture);
	target_end(&target);
}

/* Per-thread events would be switched with the threads, which costs more than per-CPU events. */
static void test_who_switches_often(void **state)
{
	struct target restless = target_start(run_restless), burning = target_start(run_burning);
	unsigned n_cpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	struct seen seen = { .pid = restless.pid, .child = -1 };
	struct capture_counts counts;
	struct capture *capture;

	(void)state;
	wait_for(&restless.page->ready, 1);
	capture = attach_inside_or_skip(restless.pid);
	capture_read_counts(capture, &counts);
	assert_int_equal(counts.n_events, n_cpus);
	assert_int_equal(counts.n_threads, 2);
	for (int i = 0; i < 200 && seen.n_pid < ENOUGH; i++)
		read_for(capture, 50, look_at, &seen);
	assert_true(seen.n_pid >= ENOUGH);
	assert_int_equal(seen.n_others, 0);
	capture_free(capture);
	target_end(&restless);

	let_run(burning.pid, burning.pid, 40);
	assert_false(switch_rate_is_high(&burning.pid, 1));
	target_end(&burning);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_switches_often),
		cmocka_unit_test(test_only_the_target_and_its_children),
		cmocka_unit_test(test_forks_in_a_pause_are_followed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
