/* SPDX-License-Identifier: MIT */
/* facts.h - gathered facts, before they are judged. Private. */
#ifndef PROBING_DOCTOR_FACTS_H
#define PROBING_DOCTOR_FACTS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/doctor/doctor.h"

/* One of the capabilities that matter here, as bits of CapEff in proc_pid_status(5). */
#define HAS_CAPABILITY(facts, number) (((facts)->capabilities >> (number)&1) != 0)
enum {
	CAPABILITY_DAC_READ_SEARCH = 2,
	CAPABILITY_IPC_LOCK = 14,
	CAPABILITY_SYS_PTRACE = 19,
	CAPABILITY_SYS_ADMIN = 21,
	CAPABILITY_SYSLOG = 34,
	CAPABILITY_PERFMON = 38,
	CAPABILITY_BPF = 39
};

/* System calls, each made in a way that shows whether it reaches the kernel. */
enum tried_call { CALL_PERF_EVENT_OPEN, CALL_PROCESS_VM_READV, CALL_PTRACE, CALL_BPF, N_CALLS };

/* A sampling that was really begun, and ended at once. */
struct tried_sampling {
	int error; /* 0; negative errno */
	size_t ring_bytes;
	bool rings_are_small, has_kernel;
};

/* Our identity and rights. */
struct facts_rights {
	uid_t uid;
	gid_t gid;
	uint64_t capabilities; /* effective */
	bool has_filter;       /* seccomp */
	bool gains_nothing;    /* no_new_privs: a file's capabilities do not count */
	bool is_filtered[N_CALLS];
	bool in_user_namespace, in_pid_namespace, in_container;
	long ptrace_scope; /* 0 also where there is no Yama */
	uint64_t memlock_bytes, descriptors_soft, descriptors_hard;
	char program[PATH_MAX]; /* "": not known */
};

/* The machine, as visible to this user. */
struct facts_machine {
	unsigned n_cpus;
	long paranoid, mlock_kib, kptr_restrict;
	struct tried_sampling sampling; /* of ourselves */
	int bpf_error;                  /* -EPROTONOSUPPORT: see bpf_reason */
	char bpf_reason[256];
	int switches_error; /* with bpf: of the BPF program for context switches */
	int direct_error;   /* with bpf: why frames are not read by page tables */
	int counters_error; /* of a hardware counter */
	bool has_tracefs, reads_tracefs;
	bool has_kernel_names;
	bool has_libc, has_libc_debug;
	char libc[PATH_MAX], distribution[64];
	bool is_x86_64;
	bool has_servers; /* DEBUGINFOD_URLS */
	char pythons[128];
	bool folder_is_writable;
	uint64_t disk_free_bytes;
};

/* A file of the process'. */
struct facts_file {
	char path[PATH_MAX]; /* "": there is none */
	bool is_deleted;
	int error; /* of opening it: 0; negative errno */
	bool has_debug;
};

enum libc { LIBC_GLIBC, LIBC_MUSL, LIBC_NONE /* static, or another one */ };

/* The examined process. */
struct facts_process {
	pid_t pid; /* 0: none */
	enum doctor_process is;
	pid_t parent;
	unsigned uids[3], gids[3];
	char state;
	char name[64];
	bool is_32_bit, is_dumpable;
	bool has_other_pids, has_other_files, has_other_users, has_other_network; /* namespaces other than ours */
	bool has_proc;                                                            /* /proc in its mounts */
	bool has_filter;                                                          /* seccomp */
	bool has_shadow_stack; /* Source: arch/x86/shstk.rst of Linux 6.12 */
	bool has_agent;        /* it listens */
	bool runs_scripts;     /* of others, by its interpreter: PEP 768 */
	enum libc libc;
	pid_t own_pid, tracer;
	size_t n_threads;
	int memory_error;
	struct tried_sampling sampling;
	char python[64];                           /* version; "": none */
	int python_error;                          /* -ENOENT: none */
	bool tells_offsets;                        /* it carries its own debug offsets */
	struct facts_file executable, interpreter; /* the second: the file that CPython is in */
	size_t n_generated;                        /* mappings of code that is in no file */
	bool has_perf_map, has_jitdump;
	bool has_asyncio;
	size_t n_loops, n_tasks;
};

struct facts {
	struct facts_rights rights;
	struct facts_machine machine;
	struct facts_process process;
};

void facts_rights_gather(struct facts_rights *ret);
/* Errors of all: -ENOMEM. Unknown facts stay zero. */
int facts_machine_gather(struct facts_machine *ret);
int facts_process_gather(pid_t pid, struct facts_process *ret);

/* Whether lines of /proc/kallsyms (the last one may be cut off) have addresses: hidden ones are all zeros. Source:
 * proc(5). */
bool facts_shows_addresses(const char *symbols);

/* The part about Python; the rest is known. */
int facts_python_gather(struct facts_process *ret);

/* facts_try_sampling - of any process; keeps no data. */
int facts_try_sampling(pid_t pid, struct tried_sampling *ret);

/* How a recording would get its stacks. */
enum doctor_recording facts_recording(const struct facts *facts);

/* Whether debug information of an open ELF file is in it, or in /usr/lib/debug; closes @fd. */
bool facts_has_debug_file(int fd);

#endif
