/* SPDX-License-Identifier: MIT */
/* call_tables.c - tables of system calls that more than one filter takes; see call_filter.h. */
#include <sys/syscall.h>

#include "base/call_filter.h"
#include "base/util.h"

/*
 * During a recording, none of our processes starts a program, changes its identity, writes into another process, or
 * changes the machine. The kernel kills one that tries.
 */
/* clang-format off */
static const struct call_rule fatal[] = {
	KILL(execve), KILL(execveat), KILL(ptrace), KILL(process_vm_writev),
	KILL(setuid), KILL(setgid), KILL(setreuid), KILL(setregid), KILL(setresuid), KILL(setresgid), KILL(setfsuid),
	KILL(setfsgid), KILL(setgroups), KILL(unshare), KILL(setns), KILL(chroot), KILL(pivot_root), KILL(mount),
	KILL(umount2), KILL(init_module), KILL(finit_module), KILL(delete_module), KILL(kexec_load),
#ifdef __NR_kexec_file_load
	KILL(kexec_file_load),
#endif
#ifdef __NR_iopl
	KILL(iopl), KILL(ioperm), KILL(modify_ldt),
#endif
	KILL(reboot), KILL(swapon), KILL(swapoff), KILL(acct), KILL(settimeofday), KILL(clock_settime), KILL(sethostname),
	KILL(setdomainname), KILL(syslog), KILL(add_key), KILL(request_key), KILL(keyctl), KILL(userfaultfd),
	KILL(open_by_handle_at), KILL(quotactl), KILL(personality),
};
/* clang-format on */

/* What any C program needs: memory without code, time, locks, its own signals, exit. */
/* clang-format off */
static const struct call_rule basic[] = {
	ALLOW(futex), ALLOW(read), ALLOW(write), ALLOW(pread64), ALLOW(pwrite64), ALLOW(close), ALLOW(munmap),
	ALLOW(madvise), ALLOW(brk), ALLOW(mremap), ALLOW_IF(mmap, CALL_WITHOUT_BITS, 2, 4 /* PROT_EXEC */),
	ALLOW_IF(mprotect, CALL_WITHOUT_BITS, 2, 4), ALLOW(lseek), ALLOW(fstat), ALLOW(fstatfs), ALLOW(ftruncate),
	ALLOW(fcntl), ALLOW(ppoll), ALLOW(recvmsg), ALLOW(sendmsg), ALLOW(sendto), ALLOW(recvfrom),
	ALLOW(clock_gettime), ALLOW(clock_getres), ALLOW(clock_nanosleep), ALLOW(gettimeofday), ALLOW(getrandom),
	ALLOW(getpid), ALLOW(gettid), ALLOW(sched_yield), ALLOW(rt_sigaction), ALLOW(rt_sigprocmask),
	ALLOW(rt_sigreturn), ALLOW(sigaltstack), ALLOW(restart_syscall), ALLOW(exit), ALLOW(exit_group), ALLOW(tgkill),
	ALLOW(set_robust_list),
#ifdef __NR_rseq
	ALLOW(rseq),
#endif
#ifdef __NR_poll
	ALLOW(poll),
#endif
#ifdef __NR_newfstatat /* used by fstat(3) of newer C libraries. AT_EMPTY_PATH is 0x1000 */
	ALLOW_IF(newfstatat, CALL_WITH_BITS, 3, 0x1000),
#endif
};
/* clang-format on */

const struct call_table calls_fatal = { fatal, N_ELEMENTS(fatal) };
const struct call_table calls_basic = { basic, N_ELEMENTS(basic) };
