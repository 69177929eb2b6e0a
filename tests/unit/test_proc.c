/* SPDX-License-Identifier: MIT */
/* Reads /proc of this process and its children. */
#include <errno.h>
#include <linux/futex.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/proc.h"
#include "base/util.h"

enum { NO_PROCESS = 0x7ffffff0 };

static void tasks_are_listed(void **state)
{
	CLEANUP(freep) pid_t *tids = NULL;
	size_t n;

	(void)state;
	assert_int_equal(proc_tasks(getpid(), &tids, &n), 0);
	assert_true(n >= 1);
	assert_int_equal(tids[0], getpid());
	assert_int_equal(proc_tasks(NO_PROCESS, &tids, &n), -ESRCH);
}

static void texts_are_one_line(void **state)
{
	CLEANUP(freep) char *name = NULL, *command = NULL, *gone = NULL;

	(void)state;
	prctl(PR_SET_NAME, "a) S 1 (b");
	name = proc_text(getpid(), "comm", 64);
	assert_string_equal(name, "a) S 1 (b");
	command = proc_text(getpid(), "cmdline", 4096);
	assert_non_null(strstr(command, "test_proc"));
	assert_null(strchr(command, '\n'));
	gone = proc_text(NO_PROCESS, "comm", 64);
	assert_string_equal(gone, "");
}

static char state_of(pid_t pid, pid_t tid)
{
	struct proc_stat stat;

	assert_int_equal(proc_stat_read(pid, tid, &stat), 0);
	assert_int_equal(stat.parent, pid == getpid() ? getppid() : getpid());
	assert_false(stat.is_kernel_thread);
	return stat.state;
}

static void states_are_told(void **state)
{
	struct proc_stat stat;
	siginfo_t info;
	pid_t child;

	(void)state;
	prctl(PR_SET_NAME, "a) S 1 (b"); /* what looks like fields is none */
	assert_int_equal(state_of(getpid(), 0), 'R');
	assert_int_equal(state_of(getpid(), (pid_t)syscall(SYS_gettid)), 'R');
	child = fork();
	if (child == 0) {
		raise(SIGSTOP);
		_exit(0);
	}
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WSTOPPED | WNOWAIT), 0);
	assert_int_equal(state_of(child, 0), 'T');
	assert_int_equal(state_of(child, child), 'T');
	kill(child, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(state_of(child, 0), 'Z');
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(proc_stat_read(child, 0, &stat), -ESRCH);
	assert_int_equal(proc_stat_read(getpid(), 1, &stat), -ESRCH);
}

/* Sleeps on a futex that the parent knows the address of, too. */
static pid_t fork_sleeper(uint32_t *futex)
{
	pid_t child = fork();

	if (child == 0) {
		syscall(SYS_futex, futex, FUTEX_WAIT, 0, NULL, NULL, 0);
		_exit(0);
	}
	return child;
}

static void what_a_thread_sleeps_on_is_told(void **state)
{
	static uint32_t futex;
	uint64_t address = 0;
	pid_t child;
	int r;

	(void)state;
	assert_int_equal(proc_futex(getpid(), (pid_t)syscall(SYS_gettid), &address), 0);
	assert_int_equal(address, 0);
	child = fork_sleeper(&futex);
	do { /* until it has got there */
		usleep(1000);
		r = proc_futex(child, child, &address);
	} while (r == 0 && address == 0);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	if (r == -EPERM || r == -EACCES) {
		print_message("skipped: Yama lets nobody look at it\n");
		skip();
	}
	assert_int_equal(r, 0);
	assert_int_equal(address, (uint64_t)(uintptr_t)&futex);
	assert_int_equal(proc_futex(child, child, &address), -ESRCH);
}

static void system_calls_are_told(void **state)
{
	struct proc_call call;

	(void)state;
	assert_int_equal(proc_call_parse("running\n", &call), 0);
	assert_true(call.is_running);
	assert_int_equal(proc_call_parse("-1 0x7ffd10 0x4012\n", &call), 0);
	assert_false(call.is_running);
	assert_int_equal(call.number, -1);
	assert_int_equal(call.sp, 0x7ffd10);
	assert_int_equal(call.pc, 0x4012);
	assert_int_equal(proc_call_parse("202 0xa 0x80 0x0 0x1 0x2 0xffffffffffffffff 0x7f01 0x7f02\n", &call), 0);
	assert_int_equal(call.number, 202);
	assert_int_equal(call.arguments[0], 0xa);
	assert_true(call.arguments[5] == UINT64_MAX);
	assert_int_equal(call.sp, 0x7f01);
	assert_int_equal(call.pc, 0x7f02);
	call.number = 5;
	assert_int_equal(proc_call_parse("", &call), -EBADMSG);
	assert_int_equal(proc_call_parse("-1 0x1\n", &call), -EBADMSG);
	assert_int_equal(proc_call_parse("0 0x1 0x2 0x3 0x4 0x5 0x6 0x7\n", &call), -EBADMSG);
	assert_int_equal(proc_call_parse("run", &call), -EBADMSG);
	assert_int_equal(call.number, 5);
	assert_int_equal(proc_call_read(1 << 30, 1 << 30, &call), -ESRCH);
}

static void values_of_a_status(void **state)
{
	static const char status[] = "Name:\tGid:\nUid:\t1\t2\t3\t4\nGid:\t5\nGidMap:\t7 8 9\n";
	unsigned ids[3];

	(void)state;
	assert_true(proc_status_ids(status, "Uid", ids));
	assert_int_equal(ids[0], 1);
	assert_int_equal(ids[1], 2);
	assert_int_equal(ids[2], 3);
	assert_false(proc_status_ids(status, "Gid", ids));
	assert_null(proc_status_value(status, "Map"));
	assert_string_equal(proc_status_value(status, "GidMap"), "\t7 8 9\n");
}

static void number_in_its_own_namespace(void **state)
{
	static const struct {
		const char *status;
		int error;
		pid_t own;
		unsigned n;
	} cases[] = {
		{ "Name:\ta\nNSpid:\t4242\nUid:\t1\n", 0, 4242, 1 },
		{ "Name:\tNSpid:\t9\nNSpid:\t4242\t17\t1\n", 0, 1, 3 },
		{ "Name:\ta\nPid:\t1\n", -ENODATA, 0, 0 },
		{ "NSpid:\n", -EBADMSG, 0, 0 },
		{ "NSpid:\t4242\t\n", -EBADMSG, 0, 0 },
		{ "NSpid:\t4242", -EBADMSG, 0, 0 },
		{ "NSpid:\t0\n", -EBADMSG, 0, 0 },
		{ "NSpid:\t4294967297\n", -EBADMSG, 0, 0 },
		{ "NSpid:\t42 17\n", -EBADMSG, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		pid_t own = 0;
		unsigned n = 0;

		assert_int_equal(proc_status_own_pid(cases[i].status, &own, &n), cases[i].error);
		assert_int_equal(own, cases[i].own);
		assert_int_equal(n, cases[i].n);
	}
}

static void numbers_of_the_kernel(void **state)
{
	(void)state;
	assert_true(proc_number("/proc/sys/kernel/pid_max", -1) > 0);
	assert_int_equal(proc_number("/proc/sys/kernel/none", -7), -7);
	assert_int_equal(proc_number("/proc/sys/kernel/ostype", -7), -7);
}

/* A fork runs what its parent does; an exec does not, and neither does who is gone. */
static void an_exec_shows(void **state)
{
	struct proc_stat ours, its;
	int go[2], status;
	pid_t child;
	char byte;

	(void)state;
	assert_int_equal(pipe(go), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(go[1]);
		if (read(go[0], &byte, 1) == 1)
			execl("/bin/sleep", "sleep", "60", NULL);
		_exit(1);
	}
	assert_int_equal(proc_stat_read(getpid(), 0, &ours), 0);
	assert_int_equal(proc_stat_read(child, 0, &its), 0);
	assert_int_equal(its.n_threads, 1);
	assert_true(ours.image != 0);
	assert_true(ours.image == its.image);
	assert_int_equal(write(go[1], "x", 1), 1);
	for (int i = 0; i < 10000 && (its.image == ours.image || its.image == 0); i++) {
		usleep(1000);
		assert_int_equal(proc_stat_read(child, 0, &its), 0);
	}
	assert_true(its.image != 0 && its.image != ours.image);
	kill(child, SIGKILL);
	while (its.state != 'Z') /* until it is waited for */
		assert_int_equal(proc_stat_read(child, 0, &its), 0);
	assert_true(its.image == 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(proc_stat_read(child, 0, &its), -ESRCH);
	close(go[0]);
	close(go[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tasks_are_listed),
		cmocka_unit_test(texts_are_one_line),
		cmocka_unit_test(states_are_told),
		cmocka_unit_test(what_a_thread_sleeps_on_is_told),
		cmocka_unit_test(system_calls_are_told),
		cmocka_unit_test(values_of_a_status),
		cmocka_unit_test(number_in_its_own_namespace),
		cmocka_unit_test(numbers_of_the_kernel),
		cmocka_unit_test(an_exec_shows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
