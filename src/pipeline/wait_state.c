/* SPDX-License-Identifier: MIT */
/* wait_state.c - see wait_state.h.
 *
 * A table of system calls that wait. A system call that is not in it, and a switch
 * outside of any (a page fault), count as blocked. A call that may wait for descriptors and
 * has none is a sleep, as time.sleep() was up to 3.10.
 */
#include "src/pipeline/wait_state.h"

#include <sys/syscall.h>

#include "base/util.h"

static const struct {
	long number;
	enum thread_state state;
	int n_descriptors; /* the argument that counts descriptors, from 1; 0: none */
} calls[] = {
	{ SYS_nanosleep, STATE_SLEEP, 0 },  { SYS_clock_nanosleep, STATE_SLEEP, 0 },
	{ SYS_futex, STATE_LOCK, 0 },       { SYS_flock, STATE_LOCK, 0 },
	{ SYS_semop, STATE_LOCK, 0 },       { SYS_semtimedop, STATE_LOCK, 0 },
#ifdef SYS_futex_waitv
	{ SYS_futex_waitv, STATE_LOCK, 0 },
#endif
#ifdef SYS_select
	{ SYS_select, STATE_IO, 1 },        { SYS_poll, STATE_IO, 2 },
	{ SYS_epoll_wait, STATE_IO, 0 },
#endif
	{ SYS_pselect6, STATE_IO, 1 },      { SYS_ppoll, STATE_IO, 2 },
	{ SYS_epoll_pwait, STATE_IO, 0 },
#ifdef SYS_epoll_pwait2
	{ SYS_epoll_pwait2, STATE_IO, 0 },
#endif
	{ SYS_read, STATE_IO, 0 },          { SYS_readv, STATE_IO, 0 },
	{ SYS_pread64, STATE_IO, 0 },       { SYS_preadv, STATE_IO, 0 },
	{ SYS_preadv2, STATE_IO, 0 },       { SYS_write, STATE_IO, 0 },
	{ SYS_writev, STATE_IO, 0 },        { SYS_pwrite64, STATE_IO, 0 },
	{ SYS_pwritev, STATE_IO, 0 },       { SYS_pwritev2, STATE_IO, 0 },
	{ SYS_recvfrom, STATE_IO, 0 },      { SYS_recvmsg, STATE_IO, 0 },
	{ SYS_recvmmsg, STATE_IO, 0 },      { SYS_sendto, STATE_IO, 0 },
	{ SYS_sendmsg, STATE_IO, 0 },       { SYS_sendmmsg, STATE_IO, 0 },
	{ SYS_accept, STATE_IO, 0 },        { SYS_accept4, STATE_IO, 0 },
	{ SYS_connect, STATE_IO, 0 },       { SYS_openat, STATE_IO, 0 },
	{ SYS_getdents64, STATE_IO, 0 },    { SYS_fsync, STATE_IO, 0 },
	{ SYS_fdatasync, STATE_IO, 0 },     { SYS_sync, STATE_IO, 0 },
	{ SYS_syncfs, STATE_IO, 0 },        { SYS_sync_file_range, STATE_IO, 0 },
	{ SYS_msync, STATE_IO, 0 },         { SYS_sendfile, STATE_IO, 0 },
	{ SYS_splice, STATE_IO, 0 },        { SYS_copy_file_range, STATE_IO, 0 },
	{ SYS_io_getevents, STATE_IO, 0 },  { SYS_io_uring_enter, STATE_IO, 0 },
	{ SYS_ioctl, STATE_IO, 0 },         { SYS_msgrcv, STATE_IO, 0 },
	{ SYS_msgsnd, STATE_IO, 0 },        { SYS_mq_timedreceive, STATE_IO, 0 },
	{ SYS_mq_timedsend, STATE_IO, 0 },  { SYS_wait4, STATE_CHILD, 0 },
	{ SYS_waitid, STATE_CHILD, 0 },
#ifdef SYS_vfork
	{ SYS_vfork, STATE_CHILD, 0 },
#endif
	{ SYS_clone, STATE_CHILD, 0 }, /* blocks like vfork(2) */
};

/* fcntl(2) also locks files. Source: include/uapi/asm-generic/fcntl.h. */
static bool locks_file(const struct proc_call *call)
{
	enum { SETLKW = 7, OFD_SETLKW = 38 };

	return call->number == SYS_fcntl && (call->arguments[1] == SETLKW || call->arguments[1] == OFD_SETLKW);
}

static enum thread_state lock_state(const struct proc_call *call, struct py_runtime *runtime, pid_t tid)
{
	if (runtime && call->number == SYS_futex && py_waits_for_gil(runtime, tid, call->arguments[0]) == PY_YES)
		return STATE_GIL;
	return STATE_LOCK;
}

/* After a signal, the kernel resumes a sleep through restart_syscall(2), with the same arguments. */
static enum thread_state restarted_state(const struct proc_call *call, struct py_runtime *runtime, pid_t tid)
{
	struct proc_call futex = *call;

	futex.number = SYS_futex;
	return call->arguments[0] != 0 && lock_state(&futex, runtime, tid) == STATE_GIL ? STATE_GIL : STATE_SLEEP;
}

enum thread_state wait_state(const struct proc_call *call, struct py_runtime *runtime, pid_t tid)
{
	if (call->is_running)
		return STATE_RUNNABLE;
	if (locks_file(call))
		return STATE_LOCK;
	if (call->number == SYS_restart_syscall)
		return restarted_state(call, runtime, tid);
	for (size_t i = 0; i < N_ELEMENTS(calls); i++) {
		if (calls[i].number != call->number)
			continue;
		if (calls[i].state == STATE_LOCK)
			return lock_state(call, runtime, tid);
		if (calls[i].n_descriptors > 0 && call->arguments[calls[i].n_descriptors - 1] == 0)
			return STATE_SLEEP;
		return calls[i].state;
	}
	return STATE_BLOCKED;
}

enum thread_state wait_state_of_sample(const struct sample *sample, struct remote *remote, struct py_runtime *runtime,
				       struct proc_call *ret_call)
{
	uint8_t before[MACHINE_CALL_NUMBER_BYTES];
	struct proc_call call = { .number = -1 };

	*ret_call = call;
	if (!sample->has_user || !remote ||
	    remote_read(remote, RADDR(sample->regs.value[MACHINE_REG_PC] - sizeof before), before, sizeof before) < 0)
		return STATE_BLOCKED;
	call.number = machine_system_call(&sample->regs, before, call.arguments);
	if (call.number < 0 && proc_call_read(sample->pid, sample->tid, &call) < 0)
		return STATE_BLOCKED;
	call.sp = sample->regs.value[MACHINE_REG_SP];
	call.pc = sample->regs.value[MACHINE_REG_PC];
	*ret_call = call;
	return wait_state(&call, runtime, sample->tid);
}
