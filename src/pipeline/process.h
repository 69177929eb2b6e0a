/* SPDX-License-Identifier: MIT */
/* process.h - the processes being recorded, as the capturing thread knows them. Private. */
#ifndef PROBING_PIPELINE_PROCESS_H
#define PROBING_PIPELINE_PROCESS_H

#include "base/id_map.h"
#include "base/rank.h"
#include "base/remote.h"
#include "unwind/cpython/cpython.h"
#include "unwind/native/native.h"

/* The program of a process between two execs: generated code belongs to it. Lives as long
 * as pointers to it, and never changes after it was passed to the writing thread. */
struct program {
	uint32_t id; /* dense, from 1 */
	pid_t pid;
	struct program *parent; /* whose memory it began with a copy of; NULL: none */
	uint64_t forked_ns;     /* CLOCK_MONOTONIC, when that was */
	uint64_t started_ns;    /* CLOCK_REALTIME, of the fork or exec; 0: unknown */
	size_t index, n_users;  /* processes and programs that point to it */
	bool is_announced;      /* the writing thread knows it */
};

struct process {
	pid_t pid, parent_pid;
	struct program *program;
	struct address_space *space;
	struct remote *remote;
	struct native_process *native;
	struct py_runtime *runtime; /* NULL: none found (yet) */
	uint64_t layout_id;         /* of the layout passed to the capture; 0: none */
	uint64_t mapped_ns;         /* CLOCK_MONOTONIC: when code was mapped last, or found to be; 0: never */
	uint64_t loaded_ns;     /* CLOCK_MONOTONIC: when its maps were read from /proc; they include earlier events */
	uint64_t filled_ns;     /* CLOCK_MONOTONIC: when they were read again because records were lost */
	uint64_t next_watch_ns; /* when to try that again */
	int python_error;       /* why not: -ENOENT none, -EAGAIN starting, -EOPNOTSUPP... */
	char python[64];        /* version, or the refused one */
	char *name, *command;   /* from the last event or /proc; NULL before */
	char *forked_name;      /* title of the thread that forked it, thus of its main thread; NULL: unknown */
	bool forked_in_python;  /* that is a name in Python */
	struct rank_identity *rank; /* of its distributed job; NULL: none known */
	unsigned generation_tried;  /* of the address space, at the last search */
	uint64_t next_try_ns;
	uint64_t next_load_ns, load_period_ns; /* CLOCK_MONOTONIC, if no event reports mappings */
	uint64_t started_ns, ended_ns;         /* CLOCK_REALTIME */
	uint64_t left_ns; /* CLOCK_REALTIME: when its main thread ended, or the last one after it that did; 0: it has not */
	uint64_t last_batch; /* of those that may point to its codes; 0: not known yet */
	uint64_t image;      /* when recording was paused; 0: not known */
	bool is_new;         /* its row has to be written (again) */
	bool is_followed;    /* its rings are, or were, read (rows.c) */
	uint64_t start;      /* clock ticks since boot, of one that was there when it was added; 0: unknown */
};

struct cfi_client;

struct processes {
	struct module_table *modules;
	struct native_unwinder *unwinder;
	struct process **processes;
	size_t n, allocated;
	struct id_map by_pid; /* pid -> index */
	struct program **programs;
	size_t n_programs, programs_allocated;
	uint32_t last_program; /* numbers given out */
	/* Interpreters of programs that were left by exec, or codes alone: they are still pointed to. */
	struct retired {
		struct py_runtime *runtime;
		struct py_codes *codes;
		uint64_t last_batch; /* as that of a process */
	} * retired;
	size_t n_retired, retired_allocated;
};

/* @cfi: reads the files of modules; borrowed, outlives them. */
int processes_init(struct processes *processes, struct cfi_client *cfi);
void processes_done(struct processes *processes);

/* NULL: not known. */
struct process *processes_find(const struct processes *processes, pid_t pid);

/* An empty one; an older one of that pid is replaced. -ENOMEM. */
int processes_add(struct processes *processes, pid_t pid, pid_t parent_pid, struct process **ret);

/* A forked child: maps copied from the parent. @time_ns: CLOCK_MONOTONIC. */
int processes_fork(struct processes *processes, struct process *parent, pid_t pid, uint64_t time_ns,
		   struct process **ret);

/* The process runs another program now. */
int process_exec(struct processes *processes, struct process *process);

/* It is called so from now on. -ENOMEM. */
int process_rename(struct process *process, const char *name);

/* Its main thread has this title until Python's name is read; NULL: it has not. -ENOMEM. */
int process_set_forked_name(struct process *process, const char *name, bool in_python);

/* The process has ended: processes_forget() may evict it. @time_ns: CLOCK_REALTIME, of its end. */
void process_end(struct process *process, uint64_t time_ns);

/*
 * process_leave - a thread of the process has ended. With the main one, or the last one after it, the process has.
 * @time_ns: CLOCK_REALTIME, when.
 */
void process_leave(struct process *process, bool is_main, uint64_t time_ns);

/* Find processes that have ended without an event. */
void processes_seek_ended(struct processes *processes);

/*
 * processes_forget - evict ended processes, and interpreters that an exec has replaced, after the last
 * batch that points to them. To be called each time a batch has been handed over.
 * @batch: that one's number, from 1; @written: the last one that is written.
 * Errors: -ENOMEM, then nothing is lost.
 */
int processes_forget(struct processes *processes, uint64_t batch, uint64_t written);

/* Evict interpreters' code objects if there are many. Only batches may point to them. -ENOMEM. */
int processes_forget_codes(struct processes *processes);

/* Note the program of each process at the start of a pause. */
void processes_note_images(struct processes *processes);

/*
 * process_follow_pause - update a process after a pause without events: it may have ended
 * or have executed another program. Its mappings are still the old ones, or none. -ENOMEM.
 */
int process_follow_pause(struct processes *processes, struct process *process);

/*
 * process_search_python - search for an interpreter if mappings have changed.
 * Cheap if nothing has changed. -ENOMEM.
 */
int process_search_python(struct process *process, uint64_t now_ns);

/*
 * process_search_unaided - the same if no event reports mappings: reads /proc again, at growing
 * intervals, until it finds an interpreter. -ENOMEM.
 */
int process_search_unaided(struct process *process, uint64_t now_ns);

#endif
