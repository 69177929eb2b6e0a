/* SPDX-License-Identifier: MIT */
/* test_capture.c - sampling real processes from attach to the end. */
#include "record_target.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>

#include "base/machine.h"

enum { N_BURNING = 3 };

static const struct capture_options usual = { .source = SOURCE_WAKEUP, .hz = 499, .stack_bytes = 8192 };

/* A ring of 4 MiB has room for four seconds of samples of less than 2 KB: a reader that does not run for a while loses none. */
static const struct capture_options small = { .source = SOURCE_WAKEUP, .hz = 499, .stack_bytes = 512 };

static __attribute__((noinline)) void burn(void)
{
	for (volatile unsigned long i = 0;; i++)
		;
}

static void *burn_thread(void *argument)
{
	struct target_page *page = argument;
	int slot = __atomic_fetch_add(&page->n_tids, 1, __ATOMIC_ACQ_REL);

	page->tids[slot] = gettid();
	__atomic_fetch_add(&page->ready, 1, __ATOMIC_ACQ_REL);
	burn();
	return NULL;
}

static void start_burning(struct target_page *page, int n)
{
	for (int i = 0; i < n; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, burn_thread, page) != 0)
			_exit(1);
	}
}

static void run_three_threads(struct target_page *page)
{
	start_burning(page, 2);
	burn_thread(page);
}

static uint64_t own_cpu_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

/* What every sample of a burning program must look like. */
struct looks {
	struct tally tally;
	uint64_t text_start, text_end;
	unsigned n_user, n_in_text;
	uint64_t last_ns;
};

static void look_at(const struct capture_event *event, void *data)
{
	struct looks *looks = data;
	const struct sample *sample = &event->sample;
	const uint64_t period_ns = (uint64_t)(1e9 / usual.hz);
	uint64_t pc;

	tally_visit(event, &looks->tally);
	if (event->type != CAPTURE_SAMPLE)
		return;
	assert_int_equal(event->time_ns, sample->time_ns);
	assert_true(sample->time_ns <= monotonic_ns());
	/* Less where the thread has not run for a whole period since its last sample; whole periods where the timer was late. */
	assert_true(sample->weight > 0 && (sample->weight < period_ns || sample->weight % period_ns == 0));
	for (size_t i = 0; i < sample->n_kernel_ips; i++)
		assert_true(sample->kernel_ips[i] >> 63);
	if (!sample->has_user)
		return;
	looks->n_user++;
	pc = sample->regs.value[MACHINE_REG_PC];
	looks->n_in_text += pc >= looks->text_start && pc < looks->text_end;
	assert_true(sample->stack_bytes <= small.stack_bytes);
}

/* The executable mapping of this program (and so of a forked child) around burn(). */
static void find_text(uint64_t *ret_start, uint64_t *ret_end)
{
	CLEANUP(freep) char *maps = NULL;
	uint64_t start, end;

	assert_int_equal(read_file("/proc/self/maps", 1 << 20, &maps, NULL), 0);
	for (char *line = strtok(maps, "\n"); line; line = strtok(NULL, "\n"))
		if (sscanf(line, "%lx-%lx", &start, &end) == 2 && start <= (uintptr_t)burn && (uintptr_t)burn < end) {
			*ret_start = start;
			*ret_end = end;
			return;
		}
	fail_msg("burn() is not mapped");
}

static void read_cpu_times(const struct target *target, uint64_t times[N_BURNING])
{
	for (int i = 0; i < N_BURNING; i++)
		times[i] = cpu_of_thread_ns(target->pid, target->page->tids[i]);
}

static bool have_run(const struct target *target, const uint64_t since[N_BURNING], unsigned ms)
{
	uint64_t now[N_BURNING];

	read_cpu_times(target, now);
	for (int i = 0; i < N_BURNING; i++)
		if (now[i] - since[i] < ms * UINT64_C(1000000))
			return false;
	return true;
}

static void test_samples_match_cpu_time(void **state)
{
	struct target target = target_start(run_three_threads);
	uint64_t outside[N_BURNING], inside[N_BURNING], after[N_BURNING], stopped[N_BURNING], stolen;
	struct capture_counts counts;
	struct capture *capture;
	struct looks looks = { 0 };

	(void)state;
	wait_for(&target.page->ready, 3);
	find_text(&looks.text_start, &looks.text_end);
	stolen = stolen_ns();
	read_cpu_times(&target, outside);
	capture = attach_or_skip(&small, target.pid);
	read_cpu_times(&target, inside);
	/* Read while it works, however little a busy machine lets it: each thread has 100 ms at least. */
	for (int i = 0; i < 600 && !have_run(&target, inside, 100); i++)
		read_for(capture, 50, look_at, &looks);
	read_cpu_times(&target, after);
	capture_stop(capture);
	read_cpu_times(&target, stopped);
	stolen = stolen_ns() - stolen;
	drain(capture, look_at, &looks);

	/* The recording began after one reading and before the next, and so it ended. */
	for (int i = 0; i < N_BURNING; i++) {
		uint64_t n = *tally_of(&looks.tally, target.page->tids[i]);

		assert_at_least(n, after[i] - inside[i], usual.hz);
		assert_at_most(n, stopped[i] - outside[i] + stolen, usual.hz);
	}
	assert_int_equal(looks.tally.n, 3);
	assert_true(looks.n_user > looks.tally.n_samples * 9 / 10);
	assert_true(looks.n_in_text > looks.tally.n_samples * 9 / 10);
	capture_read_counts(capture, &counts);
	assert_int_equal(counts.samples, looks.tally.n_samples);
	assert_int_equal(counts.lost, 0);
	assert_int_equal(counts.malformed, 0);
	assert_int_equal(counts.n_threads, 3);
	assert_true(counts.n_events > 0 && counts.n_events % 3 == 0);
	capture_free(capture);
	target_end(&target);
}

enum { PATTERN_BYTES = 4096 };

static __attribute__((noinline)) void burn_below_pattern(struct target_page *page)
{
	volatile uint8_t pattern[PATTERN_BYTES];

	for (unsigned i = 0; i < PATTERN_BYTES; i++)
		pattern[i] = (uint8_t)(i * 7 + 3);
	page->address = (uintptr_t)pattern;
	store(&page->ready, 1);
	burn();
	pattern[0] = 0; /* so that the frame stays while burn() runs */
}

struct stack_check {
	struct target *target;
	unsigned n_checked;
};

/* From the pattern outwards nothing changes, so the copy must equal the memory. */
static void check_stack(const struct capture_event *event, void *data)
{
	struct stack_check *check = data;
	const struct sample *sample = &event->sample;
	uint64_t sp = sample->regs.value[MACHINE_REG_SP];
	uint64_t pattern = check->target->page->address;
	uint8_t memory[16384];
	size_t n_skipped, n;

	if (event->type != CAPTURE_SAMPLE || !sample->has_user)
		return;
	assert_true(sp <= pattern && pattern + PATTERN_BYTES <= sp + sample->stack_bytes);
	n_skipped = pattern - sp;
	n = sample->stack_bytes - n_skipped;
	for (unsigned i = 0; i < PATTERN_BYTES; i++)
		assert_int_equal(sample->stack[n_skipped + i], (uint8_t)(i * 7 + 3));

	struct iovec here = { memory, n }, there = { (void *)(uintptr_t)pattern, n };

	assert_int_equal(process_vm_readv(check->target->pid, &here, 1, &there, 1, 0), n);
	assert_memory_equal(sample->stack + n_skipped, memory, n);
	check->n_checked++;
}

static void test_stack_copy_equals_memory(void **state)
{
	struct target target = target_start(burn_below_pattern);
	struct stack_check check = { .target = &target };
	struct capture *capture;

	(void)state;
	capture = attach_or_skip(&usual, target.pid);
	for (int i = 0; i < 100 && check.n_checked < 20; i++)
		read_for(capture, 100, check_stack, &check);
	assert_true(check.n_checked >= 20);
	capture_free(capture);
	target_end(&target);
}

/* On command: a thread, a forked child, an exec in it, a library. */
static void run_on_command(struct target_page *page)
{
	pthread_t thread;
	pid_t child;

	store(&page->ready, 1);
	while (load(&page->command) < 1)
		sleep_ms(1);
	pthread_create(&thread, NULL, burn_thread, page);
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* Until it has been sampled; mostly outside the kernel, where all may sample. */
		while (load(&page->command) < 2)
			for (volatile int i = 0; i < 100000; i++)
				;
		execl("/bin/sh", "sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done", NULL);
		_exit(1);
	}
	if (child < 0 || !dlopen("libresolv.so.2", RTLD_NOW))
		_exit(1);
	pause();
}

struct story {
	pid_t pid, child, thread; /* the last two from their fork records */
	bool thread_forked, child_forked, child_executed, child_mapped_sh, child_exited;
	bool library_mapped;
	unsigned n_thread, n_child_before_exec, n_child_after_exec;
};

static void follow_mmap(const struct capture_event *event, struct story *story)
{
	struct stat st;

	if (event->pid == story->child && story->child_executed &&
	    (strstr(event->mmap.path, "/dash") || strstr(event->mmap.path, "/bash") ||
	     strstr(event->mmap.path, "/busybox")))
		story->child_mapped_sh = true;
	if (event->pid != story->pid || !strstr(event->mmap.path, "libresolv"))
		return;
	assert_true(event->mmap.executable);
	assert_false(event->mmap.writable);
	assert_true(event->mmap.start < event->mmap.end);
	assert_int_equal(stat(event->mmap.path, &st), 0);
	assert_int_equal(event->mmap.device, st.st_dev);
	assert_int_equal(event->mmap.inode, st.st_ino);
	story->library_mapped = true;
}

static void follow(const struct capture_event *event, void *data)
{
	struct story *story = data;

	switch (event->type) {
	case CAPTURE_SAMPLE:
		story->n_thread += event->tid == story->thread;
		if (event->pid == story->child)
			++*(story->child_executed ? &story->n_child_after_exec : &story->n_child_before_exec);
		break;
	case CAPTURE_FORK:
		if (event->pid == story->pid) {
			assert_int_equal(event->fork.parent_pid, story->pid);
			story->thread = event->tid;
			story->thread_forked = true;
		} else {
			assert_int_equal(event->fork.parent_pid, story->pid);
			assert_int_equal(event->fork.parent_tid, story->pid);
			assert_int_equal(event->pid, event->tid);
			story->child = event->pid;
			story->child_forked = true;
		}
		break;
	case CAPTURE_COMM:
		if (event->pid == story->child && event->comm.is_exec) {
			assert_string_equal(event->comm.name, "sh");
			story->child_executed = true;
		}
		break;
	case CAPTURE_MMAP:
		follow_mmap(event, story);
		break;
	case CAPTURE_EXIT:
		story->child_exited |= event->pid == story->child;
		break;
	default:
		break;
	}
}

static void test_follows_what_the_target_creates(void **state)
{
	struct target target = target_start(run_on_command);
	struct story story = { .pid = target.pid };
	struct capture *capture;

	(void)state;
	capture = attach_or_skip(&small, target.pid);
	store(&target.page->command, 1);
	/* Read while it works, however long that takes, and however few ticks a busy machine leaves it. */
	for (int i = 0; i < 1000 && !(story.child_exited && story.library_mapped && story.n_thread > 10); i++) {
		read_for(capture, 20, follow, &story);
		if (story.n_child_before_exec > 5)
			store(&target.page->command, 2);
	}

	assert_true(story.thread_forked);
	assert_true(story.child_forked);
	assert_true(story.child_executed);
	assert_true(story.child_mapped_sh);
	assert_true(story.child_exited);
	assert_true(story.library_mapped);
	assert_true(story.n_thread > 10);
	assert_true(story.n_child_before_exec > 5);
	assert_true(story.n_child_after_exec > 5);
	capture_free(capture);
	target_end(&target);
}

static void run_exec_on_command(struct target_page *page)
{
	store(&page->ready, 1);
	while (load(&page->command) < 1)
		;
	execl("/bin/sh", "sh", "-c", "i=0; while [ $i -lt 500000 ]; do i=$((i+1)); done", NULL);
	_exit(1);
}

struct launched {
	bool executed, exited;
	unsigned n_samples, n_mmaps;
};

static void follow_launch(const struct capture_event *event, void *data)
{
	struct launched *launched = data;

	switch (event->type) {
	case CAPTURE_COMM:
		launched->executed |= event->comm.is_exec;
		break;
	case CAPTURE_SAMPLE:
		assert_true(launched->executed);
		launched->n_samples++;
		break;
	case CAPTURE_MMAP:
		assert_true(launched->executed);
		launched->n_mmaps++;
		break;
	case CAPTURE_EXIT:
		launched->exited = true;
		break;
	default:
		break;
	}
}

static void test_launch_samples_from_exec_on(void **state)
{
	struct target target = target_start(run_exec_on_command);
	struct launched launched = { 0 };
	struct capture_counts counts;
	struct capture *capture;
	int r;

	(void)state;
	r = capture_launch(&small, target.pid, &capture);
	if (r < 0) {
		capture_free(attach_or_skip(&small, target.pid));
		fail_msg("capture_launch: %s", strerror(-r));
	}
	/* It burns, but before its exec. */
	read_for(capture, 100, follow_launch, &launched);
	assert_false(launched.executed);
	store(&target.page->command, 1);
	for (int i = 0; i < 600 && !launched.exited; i++)
		read_for(capture, 100, follow_launch, &launched);
	assert_int_equal(waitpid(target.pid, NULL, 0), target.pid);
	target.pid = -1;

	assert_true(launched.executed && launched.exited);
	assert_true(launched.n_mmaps >= 3);
	assert_true(launched.n_samples > 20);
	capture_read_counts(capture, &counts);
	assert_int_equal(counts.samples, launched.n_samples);
	assert_int_equal(counts.lost, 0);
	capture_free(capture);
	target_end(&target);
}

static void test_time_order_over_the_rings(void **state)
{
	const struct capture_options options = { .hz = 4999, .stack_bytes = 4096 };
	struct target target = target_start(run_three_threads);
	struct capture_event event;
	struct capture *capture;
	uint64_t last_ns = 0;
	unsigned n = 0;

	(void)state;
	capture = attach_or_skip(&options, target.pid);
	let_run(target.pid, target.page->tids[0], 100);
	/* No further records are written, so the order is exact. */
	capture_stop(capture);
	while (capture_next(capture, &event) > 0) {
		assert_true(event.time_ns >= last_ns);
		last_ns = event.time_ns;
		n += event.type == CAPTURE_SAMPLE;
	}
	assert_true(n > 100);
	assert_int_equal(capture_next(capture, &event), 0);
	capture_free(capture);
	target_end(&target);
}

/* Uses 10 ms of CPU time for each command. */
static void run_portions(struct target_page *page)
{
	uint64_t until_ns;

	store(&page->ready, 1);
	for (int n = 1;; n++) {
		while (load(&page->command) < n)
			sleep_ms(1);
		until_ns = own_cpu_ns() + 10000000;
		while (own_cpu_ns() < until_ns)
			;
		store(&page->ready, n + 1);
	}
}

static void test_without_wakeups(void **state)
{
	struct capture_options options = usual;
	struct target target = target_start(run_portions);
	struct tally tally = { 0 };
	struct epoll_event woken;
	struct capture *capture;
	int n = 0;

	(void)state;
	options.no_wakeup = true;
	options.ring_bytes = 1 << 20;
	capture = attach_or_skip(&options, target.pid);
	/* The five samples of a portion, of 8 KB, do not fill a quarter of a MiB, however late they are read. */
	while (n < 1000 && tally.n_samples < 10) {
		store(&target.page->command, ++n);
		wait_for(&target.page->ready, n + 1);
		assert_int_equal(epoll_wait(capture_fd(capture), &woken, 1, 0), 0);
		drain(capture, tally_visit, &tally);
	}
	assert_true(tally.n_samples >= 10);
	/* But unread records wake it. */
	store(&target.page->command, n + 1000);
	assert_int_equal(epoll_wait(capture_fd(capture), &woken, 1, PATIENCE_MS), 1);
	capture_free(capture);
	target_end(&target);
}

enum { TICKS_NS = 50000000 }; /* the account comes in clock ticks */

struct sums {
	uint64_t sampled_ns, unsampled_ns, first_ns;
};

static void add_up(const struct capture_event *event, void *data)
{
	struct sums *sums = data;

	if (event->type == CAPTURE_UNSAMPLED)
		sums->unsampled_ns += event->unsampled.weight;
	if (event->type != CAPTURE_SAMPLE)
		return;
	if (sums->first_ns == 0)
		sums->first_ns = event->time_ns;
	sums->sampled_ns += event->sample.weight;
}

static uint64_t read_cpu_time(const struct target *target)
{
	uint64_t times[N_BURNING], sum_ns = 0;

	read_cpu_times(target, times);
	for (int i = 0; i < N_BURNING; i++)
		sum_ns += times[i];
	return sum_ns;
}

/* Samples and the account begin together: CPU time from before capture_begin() is in neither. */
static void test_begins_when_the_caller_is_ready(void **state)
{
	struct target target = target_start(run_three_threads);
	uint64_t outside, inside, after, stopped, ready_ns, stolen, since[N_BURNING];
	struct capture_counts counts;
	struct sums sums = { 0 };
	struct capture *capture;

	(void)state;
	wait_for(&target.page->ready, 3);
	capture = attach_or_skip(&small, target.pid);
	for (int i = 0; i < N_BURNING; i++)
		let_run(target.pid, target.page->tids[i], 150);
	stolen = stolen_ns();
	outside = read_cpu_time(&target);
	ready_ns = monotonic_ns();
	assert_int_equal(capture_begin(capture), 0);
	inside = read_cpu_time(&target);
	read_cpu_times(&target, since);
	/* Read while it works: records of switches that the rings have no room for are missing in the weights. */
	for (int i = 0; i < 600 && !have_run(&target, since, 100); i++)
		read_for(capture, 50, add_up, &sums);
	after = read_cpu_time(&target);
	capture_stop(capture);
	stopped = read_cpu_time(&target);
	stolen = stolen_ns() - stolen;
	drain(capture, add_up, &sums);
	capture_read_counts(capture, &counts);

	assert_true(sums.first_ns >= ready_ns);
	assert_int_equal(counts.sampled_ns, sums.sampled_ns);
	assert_in_range(counts.used_ns, after - inside - TICKS_NS, stopped - outside + stolen + TICKS_NS);
	assert_in_range(sums.sampled_ns + sums.unsampled_ns, counts.used_ns - counts.used_ns / 50 - TICKS_NS,
			stopped - outside + stolen + TICKS_NS);
	capture_free(capture);
	target_end(&target);
}

/* Until capture_begin() nobody reads the rings, and their samples are dropped anyway: such losses do not count. */
static void test_losses_before_the_beginning(void **state)
{
	struct capture_options options = usual;
	struct target target = target_start(run_three_threads);
	struct capture_counts before, counts;
	struct capture *capture;

	(void)state;
	options.ring_bytes = 64 << 10;
	wait_for(&target.page->ready, 3);
	capture = attach_or_skip(&options, target.pid);
	let_run(target.pid, target.page->tids[0], 100); /* about 50 samples of 8 KB */
	assert_int_equal(kill(target.pid, SIGSTOP), 0);
	assert_int_equal(waitpid(target.pid, NULL, WUNTRACED), target.pid);
	capture_read_counts(capture, &before);
	assert_int_equal(capture_begin(capture), 0);
	capture_stop(capture);
	capture_read_counts(capture, &counts);

	if (before.lost == 0)
		fail_msg("50 samples of 8 KB found room in rings of 64 KB");
	assert_int_equal(counts.lost, 0);
	capture_free(capture);
	target_end(&target);
}

/* A process that works until command 2, then tells its CPU time. */
static void work_as_child(struct target_page *page)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (load(&page->command) < 2)
		;
	page->address = own_cpu_ns();
	_exit(0);
}

static void start_and_wait_for_child(struct target_page *page)
{
	pid_t child = fork();

	if (child == 0)
		work_as_child(page);
	store(&page->child, child);
	store(&page->ready, 1);
	waitpid(child, NULL, 0);
	store(&page->ready, 2);
	for (;;)
		pause();
}

/* The same at command 1. */
static void start_child_later(struct target_page *page)
{
	store(&page->ready, 1);
	while (load(&page->command) < 1)
		sleep_ms(1);
	start_and_wait_for_child(page);
}

/* End the child, then the recording. Returns the child's CPU time. */
static uint64_t end_child(const struct target *target, struct capture *capture, struct sums *sums,
			  struct capture_counts *counts)
{
	store(&target->page->command, 2);
	wait_for(&target->page->ready, 2);
	capture_stop(capture);
	drain(capture, add_up, sums);
	capture_read_counts(capture, counts);
	assert_int_equal(counts->sampled_ns, sums->sampled_ns);
	return target->page->address;
}

static uint64_t child_used_ns(const struct target *target)
{
	return cpu_of_thread_ns(target->page->child, target->page->child);
}

static void let_child_run(const struct target *target, unsigned ms)
{
	let_run(target->page->child, target->page->child, ms);
}

/* A child from before the events has no samples. The kernel adds its life to its parent's account: not to the recording's. */
static void test_leaves_older_children_out(void **state)
{
	struct target target = target_start(start_and_wait_for_child);
	struct capture_counts counts;
	struct sums sums = { 0 };
	struct capture *capture;

	(void)state;
	let_child_run(&target, 300);
	capture = attach_or_skip(&small, target.pid);
	assert_int_equal(capture_begin(capture), 0);
	assert_true(end_child(&target, capture, &sums, &counts) >= 300000000);
	assert_true(counts.used_ns <= TICKS_NS);
	assert_true(sums.sampled_ns + sums.unsampled_ns <= TICKS_NS);
	capture_free(capture);
	target_end(&target);
}

/* A child that inherited the events counts from capture_begin() on. */
static void test_counts_children_from_the_beginning(void **state)
{
	struct target target = target_start(start_child_later);
	uint64_t outside, inside, used, stolen = stolen_ns();
	struct capture_counts counts;
	struct sums sums = { 0 };
	struct capture *capture;

	(void)state;
	capture = attach_or_skip(&small, target.pid);
	store(&target.page->command, 1);
	wait_for(&target.page->child, 1);
	let_child_run(&target, 300);
	outside = child_used_ns(&target);
	assert_int_equal(capture_begin(capture), 0);
	inside = child_used_ns(&target);
	let_child_run(&target, 100);
	used = end_child(&target, capture, &sums, &counts);
	stolen = stolen_ns() - stolen;
	assert_in_range(counts.used_ns, used - inside - TICKS_NS, used - outside + stolen + TICKS_NS);
	assert_in_range(sums.sampled_ns + sums.unsampled_ns, counts.used_ns - counts.used_ns / 50 - stolen - TICKS_NS,
			used - outside + stolen + TICKS_NS);
	capture_free(capture);
	target_end(&target);
}

/* Nor does what a child uses in a pause. */
static void test_leaves_pauses_of_children_out(void **state)
{
	struct target target = target_start(start_child_later);
	uint64_t before, paused, resumed, after, used, stolen = stolen_ns();
	struct capture_counts counts;
	struct sums sums = { 0 };
	struct capture *capture;

	(void)state;
	capture = attach_or_skip(&small, target.pid);
	assert_int_equal(capture_begin(capture), 0);
	store(&target.page->command, 1);
	wait_for(&target.page->child, 1);
	let_child_run(&target, 100);
	before = child_used_ns(&target);
	capture_pause(capture);
	paused = child_used_ns(&target);
	let_child_run(&target, 300);
	resumed = child_used_ns(&target);
	capture_resume(capture);
	after = child_used_ns(&target);
	used = end_child(&target, capture, &sums, &counts);
	stolen = stolen_ns() - stolen;
	assert_in_range(counts.used_ns, used - (after - before) - TICKS_NS,
			used - (resumed - paused) + stolen + TICKS_NS);
	capture_free(capture);
	target_end(&target);
}

/* The rings notify the caller's epoll, with its own data, and no longer capture_fd(). */
static void test_tells_another_epoll(void **state)
{
	enum { NUMBER = 7, MAX_WOKEN = 4 };
	struct target target = target_start(run_three_threads);
	struct epoll_event woken[MAX_WOKEN];
	struct tally tally = { 0 };
	struct capture *capture;
	int epoll, n;

	(void)state;
	capture = attach_or_skip(&usual, target.pid);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	assert_true(epoll >= 0);
	assert_int_equal(capture_watch(capture, epoll, NUMBER), 0);
	assert_int_equal(capture_watch(capture, epoll, NUMBER), -EEXIST);
	while (tally.n_samples < 20) {
		n = epoll_wait(epoll, woken, MAX_WOKEN, 10000);
		assert_true(n > 0);
		for (int i = 0; i < n; i++)
			assert_int_equal(woken[i].data.u32, NUMBER);
		drain(capture, tally_visit, &tally);
	}
	let_run(target.pid, target.page->tids[0], 20);
	assert_int_equal(epoll_wait(capture_fd(capture), woken, MAX_WOKEN, 0), 0);
	/* No event is reported twice. */
	capture_stop(capture);
	assert_true(epoll_wait(epoll, woken, MAX_WOKEN, 0) > 0);
	assert_int_equal(epoll_wait(epoll, woken, MAX_WOKEN, 0), 0);
	drain(capture, tally_visit, &tally);
	assert_int_equal(epoll_wait(epoll, woken, MAX_WOKEN, 50), 0);
	close(epoll);
	capture_free(capture);
	target_end(&target);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_samples_match_cpu_time),
		cmocka_unit_test(test_stack_copy_equals_memory),
		cmocka_unit_test(test_follows_what_the_target_creates),
		cmocka_unit_test(test_launch_samples_from_exec_on),
		cmocka_unit_test(test_time_order_over_the_rings),
		cmocka_unit_test(test_without_wakeups),
		cmocka_unit_test(test_begins_when_the_caller_is_ready),
		cmocka_unit_test(test_losses_before_the_beginning),
		cmocka_unit_test(test_leaves_older_children_out),
		cmocka_unit_test(test_counts_children_from_the_beginning),
		cmocka_unit_test(test_leaves_pauses_of_children_out),
		cmocka_unit_test(test_tells_another_epoll),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
