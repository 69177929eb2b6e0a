/* SPDX-License-Identifier: MIT */
/* Threads stopped and let go: registers, and that no signal is lost or made. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/backtrace/print.h"
#include "src/backtrace/stop.h"

enum { N_SIGNALS = 2000, MIN_STOPS = 50 };

/* Shared with the child. */
struct page {
	volatile uint64_t progress, marker;
	volatile unsigned n_signals, n_values; /* taken, and the sum of what they carried */
	volatile bool ready;
};

static struct page *page;

static void count_signal(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)context;
	page->n_signals++;
	page->n_values += (unsigned)info->si_value.sival_int;
}

/* It is ready once it is in here: AddressSanitizer calls its library before a function that does not return. */
static __attribute__((noinline)) void go_on(void)
{
	page->ready = true;
	for (;;)
		page->progress++;
}

static void be_child(void)
{
	struct sigaction action = { .sa_sigaction = count_signal, .sa_flags = SA_SIGINFO };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigaction(SIGRTMIN, &action, NULL);
	go_on();
}

static int start(void **state)
{
	static pid_t child;

	page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return -1;
	stop_prepare();
	child = fork();
	if (child == 0)
		be_child();
	while (child > 0 && !page->ready)
		usleep(1000);
	*state = &child;
	return child > 0 ? 0 : -1;
}

static int end(void **state)
{
	pid_t child = *(pid_t *)*state;

	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return munmap(page, sizeof *page);
}

static char state_of(pid_t pid)
{
	struct proc_stat stat;

	assert_int_equal(proc_stat_read(pid, 0, &stat), 0);
	return stat.state;
}

/* Fails after ten seconds. */
static void await_state(pid_t pid, char state)
{
	for (int i = 0; i < 10000 && state_of(pid) != state; i++)
		usleep(1000);
	assert_int_equal(state_of(pid), state);
}

static void await_progress(void)
{
	uint64_t before = page->progress;

	for (int i = 0; i < 10000 && page->progress == before; i++)
		usleep(1000);
	assert_true(page->progress != before);
}

static void registers_are_those_of_the_instant(void **state)
{
	pid_t child = *(pid_t *)*state;
	struct stop stop;
	struct regs regs;
	uint64_t before;

	assert_int_equal(stop_thread(child, child, &stop), 0);
	assert_int_equal(stop.signal, 0);
	assert_int_equal(state_of(child), 't');
	before = page->progress;
	assert_int_equal(stop_registers(&stop, &regs), 0);
	/* The child is a copy of this process. */
	assert_in_range(regs.value[MACHINE_REG_PC], (uintptr_t)go_on, (uintptr_t)go_on + 256);
	assert_true(regs.value[MACHINE_REG_SP] < (uintptr_t)__builtin_frame_address(0));
	assert_true(regs.value[MACHINE_REG_SP] + (1 << 20) > (uintptr_t)__builtin_frame_address(0));
	usleep(20000);
	assert_int_equal(page->progress, before);
	assert_in_range(stop_end(&stop), 20000000, 10000000000);
	await_progress();
}

#if defined(__x86_64__)
/* Against the kernel's own structure, by name. */
static void every_register_has_its_place(void **state)
{
	pid_t child = *(pid_t *)*state;
	struct user_regs_struct user;
	struct stop stop;
	struct regs regs;

	assert_int_equal(stop_thread(child, child, &stop), 0);
	assert_int_equal(stop_registers(&stop, &regs), 0);
	assert_int_equal(ptrace(PTRACE_GETREGS, child, NULL, &user), 0);
	stop_end(&stop);
	const uint64_t expected[MACHINE_N_REGS] = {
		user.rax, user.rdx, user.rcx, user.rbx, user.rsi, user.rdi, user.rbp, user.rsp, user.r8,
		user.r9,  user.r10, user.r11, user.r12, user.r13, user.r14, user.r15, user.rip,
	};
	assert_memory_equal(regs.value, expected, sizeof expected);
}
#endif

/* Sends as fast as the child takes them; returns when all are sent. */
static pid_t start_sender(pid_t child)
{
	pid_t sender = fork();

	if (sender != 0)
		return sender;
	for (int i = 1; i <= N_SIGNALS; i++) {
		while (sigqueue(child, SIGRTMIN, (union sigval){ .sival_int = i }) < 0)
			usleep(100);
		usleep(100);
	}
	_exit(0);
}

static void signals_arrive_once_each_as_they_were_sent(void **state)
{
	pid_t child = *(pid_t *)*state, sender = start_sender(child);
	unsigned n_stops = 0;
	int status = 0;

	assert_true(sender > 0);
	while (waitpid(sender, &status, WNOHANG) == 0) {
		struct stop stop;

		assert_int_equal(stop_thread(child, child, &stop), 0);
		n_stops++;
		if (stop.signal)
			assert_int_equal(stop.signal, SIGRTMIN);
		stop_end(&stop);
	}
	assert_int_equal(status, 0);
	for (int i = 0; i < 10000 && page->n_signals < N_SIGNALS; i++)
		usleep(1000);
	assert_int_equal(page->n_signals, N_SIGNALS);
	assert_int_equal(page->n_values, N_SIGNALS * (N_SIGNALS + 1) / 2);
	assert_true(n_stops >= MIN_STOPS);
}

/* A signal that is being delivered when its thread is to be stopped goes with letting go. */
static void signal_on_its_way_is_delivered(void **state)
{
	enum { N_ROUNDS = 100 };
	pid_t child = *(pid_t *)*state;

	for (unsigned round = 1; round <= N_ROUNDS; round++) {
		struct stop stop;

		assert_int_equal(stop_seize(child, &stop), 0);
		assert_int_equal(sigqueue(child, SIGRTMIN, (union sigval){ .sival_int = 7 }), 0);
		await_state(child, 't');
		assert_int_equal(stop_interrupt(child, &stop), 0);
		assert_int_equal(stop.signal, SIGRTMIN);
		assert_int_equal(page->n_signals, round - 1);
		stop_end(&stop);
		for (int i = 0; i < 10000 && page->n_signals < round; i++)
			usleep(1000);
		assert_int_equal(page->n_signals, round);
		assert_int_equal(page->n_values, 7 * round);
	}
	await_progress();
}

static void what_was_stopped_stays_so(void **state)
{
	pid_t child = *(pid_t *)*state;
	uint64_t before;

	kill(child, SIGSTOP);
	await_state(child, 'T');
	before = page->progress;
	for (int i = 0; i < 20; i++) {
		struct stop stop;
		struct regs regs;

		assert_int_equal(stop_thread(child, child, &stop), 0);
		assert_int_equal(stop_registers(&stop, &regs), 0);
		assert_in_range(regs.value[MACHINE_REG_PC], (uintptr_t)go_on, (uintptr_t)go_on + 256);
		stop_end(&stop);
		await_state(child, 'T');
	}
	assert_int_equal(page->progress, before);
	kill(child, SIGCONT);
	await_progress();
}

static void what_is_stopped_meanwhile_is_stopped(void **state)
{
	pid_t child = *(pid_t *)*state;
	struct stop stop;

	assert_int_equal(stop_thread(child, child, &stop), 0);
	kill(child, SIGSTOP);
	usleep(1000);
	assert_int_equal(state_of(child), 't');
	stop_end(&stop);
	await_state(child, 'T');
	assert_int_equal(stop_thread(child, child, &stop), 0);
	kill(child, SIGCONT);
	stop_end(&stop);
	await_progress();
}

static void what_is_killed_meanwhile_is_gone(void **state)
{
	struct stop stop;
	struct regs regs;
	pid_t child = fork();

	(void)state;
	if (child == 0)
		for (;;)
			pause();
	assert_true(child > 0);
	assert_int_equal(stop_thread(child, child, &stop), 0);
	kill(child, SIGKILL);
	for (int i = 0; i < 10000 && stop_registers(&stop, &regs) == 0; i++)
		usleep(1000);
	assert_int_equal(stop_registers(&stop, &regs), -ESRCH);
	stop_end(&stop);
	assert_int_equal(waitpid(child, NULL, __WALL), child);
	assert_int_equal(stop_thread(child, child, &stop), -ESRCH);
}

/* Of a longer name the kernel keeps 15 bytes. */
static void a_name_is_the_same_as_far_as_it_is_kept(void **state)
{
	(void)state;
	assert_true(print_is_same_name("loader", "loader"));
	assert_true(print_is_same_name("holder of many ", "holder of many things"));
	assert_false(print_is_same_name("load", "loader"));
	assert_false(print_is_same_name("loader", "load"));
	assert_false(print_is_same_name("python3", "MainThread"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(registers_are_those_of_the_instant, start, end),
#if defined(__x86_64__)
		cmocka_unit_test_setup_teardown(every_register_has_its_place, start, end),
#endif
		cmocka_unit_test_setup_teardown(signals_arrive_once_each_as_they_were_sent, start, end),
		cmocka_unit_test_setup_teardown(signal_on_its_way_is_delivered, start, end),
		cmocka_unit_test_setup_teardown(what_was_stopped_stays_so, start, end),
		cmocka_unit_test_setup_teardown(what_is_stopped_meanwhile_is_stopped, start, end),
		cmocka_unit_test(what_is_killed_meanwhile_is_gone),
		cmocka_unit_test(a_name_is_the_same_as_far_as_it_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
