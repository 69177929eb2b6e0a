/* SPDX-License-Identifier: MIT */
/* test_wait_state.c - what a thread waits for, by the system call that it is in. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "src/pipeline/wait_state.h"

static enum thread_state state_of(long number, uint64_t first, uint64_t second)
{
	const struct proc_call call = { .number = number, .arguments = { first, second } };

	return wait_state(&call, NULL, 1);
}

static void calls_tell_what_is_waited_for(void **state)
{
	const struct proc_call running = { .is_running = true };

	(void)state;
	assert_int_equal(state_of(SYS_clock_nanosleep, 0, 0), STATE_SLEEP);
	assert_int_equal(state_of(SYS_futex, 4096, 0), STATE_LOCK);
	assert_int_equal(state_of(SYS_read, 3, 0), STATE_IO);
	assert_int_equal(state_of(SYS_epoll_pwait, 3, 0), STATE_IO);
	assert_int_equal(state_of(SYS_wait4, 0, 0), STATE_CHILD);
	assert_int_equal(state_of(SYS_mmap, 0, 0), STATE_BLOCKED);
	assert_int_equal(state_of(-1, 0, 0), STATE_BLOCKED);
	assert_int_equal(wait_state(&running, NULL, 1), STATE_RUNNABLE);
}

/* Waiting for none of no descriptors is sleeping. */
static void a_select_of_nothing_sleeps(void **state)
{
	(void)state;
	assert_int_equal(state_of(SYS_pselect6, 0, 0), STATE_SLEEP);
	assert_int_equal(state_of(SYS_pselect6, 4, 0), STATE_IO);
	assert_int_equal(state_of(SYS_ppoll, 0x1000, 0), STATE_SLEEP);
	assert_int_equal(state_of(SYS_ppoll, 0x1000, 1), STATE_IO);
}

static void locks_of_files_are_told_from_other_uses(void **state)
{
	(void)state;
	assert_int_equal(state_of(SYS_fcntl, 3, F_SETLKW), STATE_LOCK);
	assert_int_equal(state_of(SYS_fcntl, 3, F_SETFL), STATE_BLOCKED);
	assert_int_equal(state_of(SYS_flock, 3, 0), STATE_LOCK);
}

#if defined(PROBING_MACHINE_X86_64)
static void registers_tell_the_call(void **state)
{
	static const uint8_t futex[] = { 0xb8, 0xca, 0, 0, 0, 0x0f, 0x05 },
			     wait[] = { 0x90, 0x90, 0x90, 0x31, 0xc0, 0x0f, 0x05 };
	static const uint8_t other[] = { 0x48, 0x89, 0xf8, 0x90, 0x90, 0x0f, 0x05 },
			     none[] = { 0xb8, 0xca, 0, 0, 0, 0x90, 0x90 };
	struct regs regs = { .value = { [5] = 11, [4] = 12, [1] = 13, [10] = 14, [8] = 15, [9] = 16 } };
	uint64_t arguments[6] = { 0 };

	(void)state;
	assert_int_equal(machine_system_call(&regs, futex, arguments), SYS_futex);
	for (uint64_t i = 0; i < 6; i++)
		assert_int_equal(arguments[i], 11 + i);
	assert_int_equal(machine_system_call(&regs, wait, arguments), SYS_read);
	assert_int_equal(machine_system_call(&regs, other, arguments), -1);
	assert_int_equal(machine_system_call(&regs, none, arguments), -1);
}
#else
static void registers_tell_the_call(void **state)
{
	static const uint8_t call[] = { 0x01, 0, 0, 0xd4 }, none[] = { 0x1f, 0x20, 0x03, 0xd5 };
	struct regs regs = { .value = { 11, 12, 13, 14, 15, 16, [8] = SYS_futex } };
	uint64_t arguments[6] = { 0 };

	(void)state;
	assert_int_equal(machine_system_call(&regs, call, arguments), SYS_futex);
	for (uint64_t i = 0; i < 6; i++)
		assert_int_equal(arguments[i], 11 + i);
	assert_int_equal(machine_system_call(&regs, none, arguments), -1);
}
#endif

static void nothing_is_read_where_nothing_is(void **state)
{
	struct sample sample = { .pid = getpid(), .tid = getpid() };
	CLEANUP(remote_freep) struct remote *remote = NULL;
	struct proc_call call = { 0 };

	(void)state;
	assert_int_equal(remote_open_process(getpid(), &remote), 0);
	assert_int_equal(wait_state_of_sample(&sample, remote, NULL, &call), STATE_BLOCKED);
	sample.has_user = true;
	assert_int_equal(wait_state_of_sample(&sample, remote, NULL, &call), STATE_BLOCKED);
	assert_int_equal(wait_state_of_sample(&sample, NULL, NULL, &call), STATE_BLOCKED);
	assert_int_equal(call.number, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_tell_what_is_waited_for),           cmocka_unit_test(a_select_of_nothing_sleeps),
		cmocka_unit_test(locks_of_files_are_told_from_other_uses), cmocka_unit_test(registers_tell_the_call),
		cmocka_unit_test(nothing_is_read_where_nothing_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
