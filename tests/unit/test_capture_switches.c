/* SPDX-License-Identifier: MIT */
/* test_capture_switches.c - context switches: each is reported once, by perf or by the BPF program.
 *
 * Held against what the kernel counts of each thread anyway: how often it left because it waited, and how often though it
 * could have gone on.
 */
#include "record_target.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>

enum {
	TURNS = 20000,
	N_BRIEF = 50,
	N_THREADS = 3,
	TOO_MANY_TURNS = 40000,
	NO_END = 1 << 30,
	MAX_TOLD = 1 << 16,
	/* Beside a thread of another program that computes, each yield takes a slice of that one's. */
	TURNS_PER_YIELD = 500,
	/*
	 * Played before the reader has read the turns before: it may not run meanwhile. In a turn two threads leave and two come,
	 * and each may be a record of the BPF program: 32,000 find room among MAX_TOLD. Of perf they have 48 bytes each, 1.5 MB in
	 * a ring of 4 MiB, beside 1000 stacks of less than 1 KB a second.
	 */
	TURNS_AT_ONCE = 8000,
};

/*
 * Two threads exchange a byte on one processor n_turns times, and one yields. The page's command says how many of the turns
 * may be played by now. They wait for it without a switch, so that all switches are counted and reported.
 */
static struct game {
	struct target_page *page;
	int n_turns; /* set by the test, before the target starts */
	int there[2], back[2];
} game;

/* Threads of the target wait for it. */
static void command(struct target_page *page, int value)
{
	store(&page->command, value);
	(void)syscall(SYS_futex, &page->command, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void await_turn(struct target_page *page, int turn)
{
	int value;

	while ((value = load(&page->command)) <= turn)
		(void)syscall(SYS_futex, &page->command, FUTEX_WAIT, value, NULL, NULL, 0);
}

static pid_t own_tid(void)
{
	return (pid_t)syscall(SYS_gettid);
}

static void *echo(void *data)
{
	char byte;

	(void)data;
	game.page->tids[1] = own_tid();
	__atomic_fetch_add(&game.page->ready, 1, __ATOMIC_ACQ_REL);
	while (read(game.there[0], &byte, 1) == 1)
		if (write(game.back[1], &byte, 1) != 1)
			_exit(1);
	return NULL;
}

static void *yield(void *data)
{
	(void)data;
	game.page->tids[2] = own_tid();
	__atomic_fetch_add(&game.page->ready, 1, __ATOMIC_ACQ_REL);
	for (int i = 0; i < game.n_turns; i += TURNS_PER_YIELD) {
		await_turn(game.page, i);
		sched_yield();
		store(&game.page->progress[1], i + TURNS_PER_YIELD);
	}
	__atomic_fetch_add(&game.page->ready, 1, __ATOMIC_ACQ_REL);
	pause();
	return NULL;
}

static void *be_brief(void *data)
{
	sleep_ms(1);
	return data;
}

static void start(pthread_t *thread, void *(*run)(void *data))
{
	if (pthread_create(thread, NULL, run, NULL) != 0)
		_exit(1);
}

static void run_game(struct target_page *page)
{
	pthread_t thread;
	cpu_set_t one;
	char byte = 0;

	game.page = page;
	page->tids[0] = own_tid();
	CPU_ZERO(&one);
	CPU_SET((unsigned)sched_getcpu(), &one);
	if (pipe(game.there) < 0 || pipe(game.back) < 0 || sched_setaffinity(0, sizeof one, &one) < 0)
		_exit(1);
	start(&thread, echo);
	start(&thread, yield);
	__atomic_fetch_add(&page->ready, 1, __ATOMIC_ACQ_REL);
	for (int i = 0; i < game.n_turns; i++) {
		await_turn(page, i);
		if (write(game.there[1], &byte, 1) != 1 || read(game.back[0], &byte, 1) != 1)
			_exit(1);
		store(&page->progress[0], i + 1);
	}
	for (int i = 0; i < N_BRIEF; i++) {
		start(&thread, be_brief);
		pthread_join(thread, NULL);
	}
	__atomic_fetch_add(&page->ready, 1, __ATOMIC_ACQ_REL);
	pause();
}

/* The kernel's counts: nvcsw, nivcsw. Source: proc(5), /proc/pid/status. */
struct kernels_counts {
	uint64_t waited, preempted;
};

static uint64_t number_after(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	assert_non_null(at);
	return strtoull(at + strlen(key), NULL, 10);
}

static struct kernels_counts counts_of(pid_t pid, pid_t tid)
{
	CLEANUP(freep) char *text = NULL;
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/task/%d/status", (int)pid, (int)tid);
	assert_true(read_file(path, 1 << 16, &text, NULL) >= 0);
	return (struct kernels_counts){
		.waited = number_after(text, "\nvoluntary_ctxt_switches:"),
		.preempted = number_after(text, "\nnonvoluntary_ctxt_switches:"),
	};
}

/* Of one thread, as the events have it. */
struct history {
	pid_t tid;
	bool is_known, runs;
	uint64_t n_waited, n_preempted, since_ns, on_ns, off_ns, first_ns, last_ns;
	unsigned n_stacks;
};

struct seen {
	pid_t pid;
	struct history threads[N_THREADS];
	uint64_t last_ns;
	unsigned n_made, n_ended, n_lost;
	bool has_ended, may_lose;
};

static struct history *history_of(struct seen *seen, pid_t tid)
{
	for (size_t i = 0; i < N_THREADS; i++)
		if (seen->threads[i].tid == tid)
			return &seen->threads[i];
	return NULL;
}

/* Switches in and out alternate, and each interval starts at the end of the previous one. */
static void note_switch(struct history *history, const struct capture_event *event, bool may_lose)
{
	bool is_out = event->change.is_out;

	if (!history->is_known)
		*history = (struct history){ .tid = history->tid,
					     .is_known = true,
					     .runs = is_out,
					     .since_ns = event->time_ns,
					     .first_ns = event->time_ns };
	assert_true(may_lose || history->runs == is_out);
	assert_true(event->time_ns >= history->since_ns);
	*(is_out ? &history->on_ns : &history->off_ns) += event->time_ns - history->since_ns;
	history->n_waited += is_out && !event->change.is_preempted;
	history->n_preempted += is_out && event->change.is_preempted;
	history->since_ns = history->last_ns = event->time_ns;
	history->runs = !is_out;
}

static void look_at(const struct capture_event *event, void *data)
{
	struct seen *seen = data;
	struct history *history = history_of(seen, event->tid);

	seen->n_lost += event->type == CAPTURE_LOST;
	seen->has_ended |= event->type == CAPTURE_END;
	if (event->type == CAPTURE_LOST || event->type == CAPTURE_THROTTLE || event->type == CAPTURE_END)
		return;
	assert_int_equal(event->pid, seen->pid);
	assert_false(seen->has_ended);
	seen->n_made += event->type == CAPTURE_FORK;
	seen->n_ended += event->type == CAPTURE_EXIT;
	if (event->type == CAPTURE_SWITCH) {
		/* What caused what: one thread's switches on several processors, too. */
		assert_true(event->time_ns >= seen->last_ns || !history);
		if (history)
			note_switch(history, event, seen->may_lose);
		seen->last_ns = MAX(seen->last_ns, event->time_ns);
	}
	if (event->type == CAPTURE_SAMPLE && event->sample.is_switch && history)
		history->n_stacks++;
}

static struct capture *attach(enum capture_source source, pid_t pid)
{
	const struct capture_options options = { .source = source, .mode = MODE_WALL, .hz = 99, .stack_bytes = 512 };
	struct capture *capture;
	char text[512];
	int r;

	r = capture_attach(&options, pid, &capture);
	if (r == -EPROTONOSUPPORT)
		capture_explain_source(text, sizeof text);
	else if (r < 0)
		capture_explain(r, pid, text, sizeof text);
	skip_if_bpf_is_refused(r, text);
	skip_if_perf_is_refused(r, pid, text);
	assert_int_equal(r, 0);
	return capture;
}

static struct target start_game(int n_turns)
{
	game.n_turns = n_turns;
	return target_start(run_game);
}

/* All threads are there, and none of them has a switch before it. */
static void await_sleep(const struct target *target, int ready)
{
	wait_for(&target->page->ready, ready);
	for (size_t i = 0; i < N_THREADS; i++)
		wait_for_state(target->pid, target->page->tids[i], 'S');
}

static int turns_played(const struct target *target)
{
	return MIN(load(&target->page->progress[0]), load(&target->page->progress[1]));
}

/* Read what there is of the game, then let it play as much as finds room. */
static void play_on(const struct target *target, struct capture *capture, struct seen *seen)
{
	int n = turns_played(target);

	drain(capture, look_at, seen);
	command(target->page, n + TURNS_AT_ONCE);
}

/* Record the game. The kernel's counts are read while all threads sleep, before the game and after it. */
static void play(enum capture_source source, bool by_program)
{
	struct target target = start_game(TURNS);
	struct kernels_counts before[N_THREADS], after[N_THREADS];
	struct seen seen = { .pid = target.pid };
	struct capture_counts counts;
	struct capture *capture;

	await_sleep(&target, N_THREADS);
	capture = attach(source, target.pid);
	assert_int_equal(capture_switch_refusal(capture) == 0, by_program);
	for (size_t i = 0; i < N_THREADS; i++) {
		before[i] = counts_of(target.pid, target.page->tids[i]);
		seen.threads[i].tid = target.page->tids[i];
	}
	for (int i = 0; i < PATIENCE_MS / 10 && load(&target.page->ready) < N_THREADS + 2; i++) {
		play_on(&target, capture, &seen);
		read_for(capture, 10, look_at, &seen);
	}
	await_sleep(&target, N_THREADS + 2);
	for (size_t i = 0; i < N_THREADS; i++)
		after[i] = counts_of(target.pid, target.page->tids[i]);
	capture_stop(capture);
	drain(capture, look_at, &seen);
	capture_read_counts(capture, &counts);
	assert_int_equal(counts.lost, 0);
	assert_int_equal(seen.n_lost, 0);
	assert_true(seen.has_ended);
	assert_int_equal(seen.n_made, N_BRIEF);
	assert_int_equal(seen.n_ended, N_BRIEF);
	for (size_t i = 0; i < N_THREADS; i++) {
		const struct history *history = &seen.threads[i];
		uint64_t waited = after[i].waited - before[i].waited,
			 preempted = after[i].preempted - before[i].preempted;

		print_message("waited %llu times, counted %llu; preempted %llu, counted %llu; %u stacks\n",
			      (unsigned long long)history->n_waited, (unsigned long long)waited,
			      (unsigned long long)history->n_preempted, (unsigned long long)preempted,
			      history->n_stacks);
		assert_int_equal(history->n_waited, waited);
		assert_int_equal(history->n_preempted, preempted);
		assert_int_equal(history->on_ns + history->off_ns, history->last_ns - history->first_ns);
	}
	assert_true(seen.threads[1].n_waited + seen.threads[1].n_preempted >= TURNS);
	assert_true(seen.threads[1].n_waited > 0 && seen.threads[2].n_preempted > 0);
	assert_true(!capture_has_switch_stacks(capture) || seen.threads[0].n_stacks > 0);
	capture_free(capture);
	target_end(&target);
}

static void told_by_a_program(void **state)
{
	(void)state;
	play(SOURCE_BPF, true);
}

/* Do not read until the buffer is full. One record reports or counts each switch of these threads. */
static void what_finds_no_room_is_counted(void **state)
{
	struct target target = start_game(TOO_MANY_TURNS);
	struct seen seen = { .pid = target.pid, .may_lose = true };
	struct capture_counts counts;
	struct capture *capture;
	uint64_t n_left = 0, n_told = 0;

	(void)state;
	await_sleep(&target, N_THREADS);
	capture = attach(SOURCE_BPF, target.pid);
	if (capture_switch_refusal(capture) < 0) {
		print_message("skipped: no program tells of switches here: %s\n",
			      strerror(-capture_switch_refusal(capture)));
		capture_free(capture);
		target_end(&target);
		skip();
	}
	for (size_t i = 0; i < N_THREADS; i++)
		seen.threads[i].tid = target.page->tids[i];
	for (size_t i = 0; i < N_THREADS; i++)
		n_left -= counts_of(target.pid, target.page->tids[i]).waited +
			  counts_of(target.pid, target.page->tids[i]).preempted;
	command(target.page, TOO_MANY_TURNS);
	await_sleep(&target, N_THREADS + 2);
	for (size_t i = 0; i < N_THREADS; i++)
		n_left += counts_of(target.pid, target.page->tids[i]).waited +
			  counts_of(target.pid, target.page->tids[i]).preempted;
	capture_stop(capture);
	drain(capture, look_at, &seen);
	capture_read_counts(capture, &counts);
	for (size_t i = 0; i < N_THREADS; i++)
		n_told += seen.threads[i].n_waited + seen.threads[i].n_preempted;
	print_message("%llu left, %llu told, %llu lost\n", (unsigned long long)n_left, (unsigned long long)n_told,
		      (unsigned long long)counts.lost);
	assert_true(n_left > MAX_TOLD);
	assert_in_range(n_told, MAX_TOLD / 2, n_left);
	/* A thread that follows an unrecorded thread has a record of that. Short-lived threads add further records. */
	assert_in_range(counts.lost, n_left - n_told, 2 * (n_left - n_told) + 20 * N_BRIEF);
	capture_free(capture);
	target_end(&target);
}

/* Stop while the threads switch: the recording ends at one instant, so that no switch before is missing. */
static void stop_in_the_game(enum capture_source source)
{
	struct target target = start_game(NO_END);
	struct seen seen = { .pid = target.pid };
	const struct history *echoing = &seen.threads[1];
	struct capture_counts counts;
	struct capture *capture;

	await_sleep(&target, N_THREADS);
	capture = attach(source, target.pid);
	for (size_t i = 0; i < N_THREADS; i++)
		seen.threads[i].tid = target.page->tids[i];
	for (int i = 0; i < PATIENCE_MS / 10 && (i < 6 || echoing->n_waited + echoing->n_preempted <= 100); i++) {
		play_on(&target, capture, &seen);
		read_for(capture, 10, look_at, &seen);
	}
	play_on(&target, capture, &seen);
	capture_stop(capture);
	drain(capture, look_at, &seen);
	capture_read_counts(capture, &counts);
	assert_int_equal(counts.lost, 0);
	assert_true(seen.has_ended);
	assert_true(echoing->n_waited + echoing->n_preempted > 100);
	capture_free(capture);
	target_end(&target);
}

static void nothing_is_missing_at_the_end(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 12; i++)
		stop_in_the_game(i % 4 == 0 ? SOURCE_WAKEUP : SOURCE_BPF);
}

static void told_by_events_of_threads(void **state)
{
	(void)state;
	play(SOURCE_WAKEUP, false);
}

/* Test a kernel without type information. This test is last, since it cannot be undone. */
static void told_by_events_of_processors(void **state)
{
	(void)state;
	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", "/sys/kernel/btf", "tmpfs", 0, NULL) < 0) {
		print_message("skipped: the kernel's types cannot be hidden: %s\n", strerror(errno));
		skip();
	}
	play(SOURCE_BPF, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(told_by_a_program),
		cmocka_unit_test(what_finds_no_room_is_counted),
		cmocka_unit_test(nothing_is_missing_at_the_end),
		cmocka_unit_test(told_by_events_of_threads),
		cmocka_unit_test(told_by_events_of_processors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
