/* SPDX-License-Identifier: MIT */
/* proc.h - processes and threads as /proc describes them. Source: proc(5). */
#ifndef PROBING_BASE_PROC_H
#define PROBING_BASE_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * proc_tasks - the threads in /proc/PID/task, the thread-group leader first.
 * @ret: owned by the caller; not sorted; may be empty only for a process at its end.
 * Errors: -ESRCH no such process; -ENOMEM.
 */
int proc_tasks(pid_t pid, pid_t **ret, size_t *ret_n);

/*
 * proc_text - a small file of /proc/PID as one line: "comm", "cmdline", "task/12/wchan".
 * The separators of a command's arguments become spaces. "" if it cannot be read.
 * Owned by the caller; NULL: no memory.
 */
char *proc_text(pid_t pid, const char *file, size_t max_bytes);

/* Fields of the "stat" file of a process or thread. */
struct proc_stat {
	char state; /* R running, S sleeping, D uninterruptible, T stopped, t traced, Z zombie, X dead, I idle */
	pid_t parent;
	bool is_kernel_thread;
	bool is_ending;     /* it exits, and may have no memory any more */
	unsigned n_threads; /* of its process */
	uint64_t image;     /* changes with an exec; 0: hidden, or gone */
};

/* @tid: one of its threads; 0: the process itself. -ESRCH, -EBADMSG, -ENOMEM. */
int proc_stat_read(pid_t pid, pid_t tid, struct proc_stat *ret);

/*
 * proc_run_time - CPU time of one thread: nanoseconds, of a running one up to the last clock tick.
 * @tid: a thread of pid. Errors: -ESRCH; -ENOSYS a kernel that does not tell (CONFIG_SCHED_INFO); -ENOMEM.
 * Source: Documentation/scheduler/sched-stats.rst, Linux 6.18.
 */
int proc_run_time(pid_t pid, pid_t tid, uint64_t *ret_ns);

/* proc_run_count - how often a thread was put on a processor. Errors: as above. */
int proc_run_count(pid_t pid, pid_t tid, uint64_t *ret);

/* Whether a process has ended, or is about to, of which this is the stat: its main thread may leave others behind. */
bool proc_has_ended(const struct proc_stat *stat);

/*
 * /proc/PID resolves memory, files and mounts through the thread-group leader. After it exits (pthread_exit(3)) while
 * other threads run, use /proc/TID of a surviving thread (live_tid.c).
 *
 * proc_live_tid - a thread for such look-ups: the thread-group leader while it lives.
 * proc_path - path of such a file: "exe", "root/tmp", "ns/mnt". Not for entries of "task" and "map_files".
 * proc_read - contents of such a file: "maps", "environ", "cmdline". Costs more than read_file() only if there is
 *             nothing to read. May be empty, as for a kernel thread.
 * @ret of proc_live_tid(): may end at any time, and another thread may then get its TID.
 * Errors: -ESRCH the process has ended; -ENOMEM; proc_read(): what read(2) reports.
 */
enum { PROC_PATH_BYTES = 128 };
int proc_live_tid(pid_t pid, pid_t *ret);
void proc_path(pid_t pid, const char *file, char to[PROC_PATH_BYTES]);
int proc_read(pid_t pid, const char *file, size_t max_bytes, char **ret, size_t *ret_bytes);

/* Whether its program is a 32-bit one. False also without permission to read it. Source: elf(5), e_ident. */
bool proc_is_32_bit(pid_t pid);

/*
 * proc_futex - the futex(2) that a thread sleeps on.
 * @ret: its address; 0: it sleeps on none.
 * Errors: -ESRCH, -EPERM, -EACCES; -EBADMSG the kernel does not report it.
 * Source: proc_pid_syscall(5).
 */
int proc_futex(pid_t pid, pid_t tid, uint64_t *ret);

/* The system call that a thread is in. */
struct proc_call {
	bool is_running; /* it is on a processor, or waits for one: nothing else is known */
	long number;     /* -1: it is in none, and waits nevertheless */
	uint64_t arguments[6];
	uint64_t sp, pc; /* of the program, as it entered the kernel */
};

/*
 * proc_call_parse - a line of a "syscall" file. -EBADMSG.
 * proc_call_read - of one of a process' threads. -ESRCH, -EPERM, -EACCES, -EBADMSG, -ENOMEM.
 * Source: proc_pid_syscall(5).
 */
int proc_call_parse(const char *text, struct proc_call *ret);
int proc_call_read(pid_t pid, pid_t tid, struct proc_call *ret);

/* Where the value of a "Key:\tvalue" line of a "status" file begins; NULL: no such line. */
const char *proc_status_value(const char *status, const char *key);

/*
 * proc_status_own_pid - the number in the process' (or thread's) own PID namespace: the last one of "NSpid:\t4242\t17\n".
 * @ret_n: in how many namespaces it has a number; NULL: not wanted.
 * A thread's name cannot imitate the line, because the kernel escapes newlines in it.
 * Errors: -ENODATA no such line; -EBADMSG. Source: proc_pid_status(5), Linux 4.1.
 */
int proc_status_own_pid(const char *status, pid_t *ret, unsigned *ret_n);

/* Real, effective and saved id of a "Uid:" or "Gid:" line. */
bool proc_status_ids(const char *status, const char *key, unsigned ids[3]);

/* The number in a file that contains only one, as in /proc/sys. */
long proc_number(const char *path, long otherwise);

/*
 * proc_cpu_model - the processor's model name; "" if /proc/cpuinfo has none.
 * On ARM its numbers: "implementer 0x41 part 0xd0c".
 * Source: proc_cpuinfo(5), which leaves the keys to the architecture.
 */
void proc_cpu_model(char *to, size_t n_bytes);

#endif
