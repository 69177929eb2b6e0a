/* SPDX-License-Identifier: MIT */
/* perf_stack.h - the processes of a perf.data file, and stacks of their samples. Private. */
#ifndef PROBING_IMPORT_PERF_STACK_H
#define PROBING_IMPORT_PERF_STACK_H

#include "base/id_map.h"
#include "src/import/perf_file.h"
#include "unwind/native/native.h"

struct perf_process {
	pid_t pid;
	struct address_space *space;
	struct native_process *native;
};

struct perf_stacks {
	struct sink *sink;
	const struct perf_file *file;
	struct module_table *modules;
	struct native_unwinder *unwinder;
	struct perf_process *processes;
	size_t n_processes, processes_allocated;
	struct id_map by_pid; /* pid + 1 -> index; the newest of that number */
	struct native_stack stack;
	uint8_t *copy; /* of stack bytes, aligned */
	size_t copy_bytes;
	bool *is_checked; /* modules by id: their files are those of the recording, or closed */
	size_t n_checked;
	uint64_t kernel_text, kernel_end; /* of the kernel's own image, from _text on; 0: not recorded */
};

/* @file: borrowed, as its sink. @ret: ended with perf_stacks_done(), also after an error. -ENOMEM. */
int perf_stacks_init(const struct perf_file *file, struct perf_stacks *ret);
void perf_stacks_done(struct perf_stacks *stacks);

/* Mappings of address spaces from records. -ENOMEM. */
int perf_stacks_map(struct perf_stacks *stacks, pid_t pid, const struct mapping_source *source);
void perf_stacks_kernel_map(struct perf_stacks *stacks, const struct mapping_source *source, struct piece name);
int perf_stacks_fork(struct perf_stacks *stacks, pid_t parent, pid_t pid);
int perf_stacks_exec(struct perf_stacks *stacks, pid_t pid);

/*
 * perf_stacks_put - the stack of a sample: kernel's part of its chain, and the user's part by call frame information
 * where registers and stack were recorded, else out of the chain.
 * @misc: of the record's header. @ret: number of a stack; 0: none.
 */
int perf_stacks_put(struct perf_stacks *stacks, const struct perf_event *event, const struct perf_sample *sample,
		    uint16_t misc, int64_t *ret, enum stack_end *ret_end);

#endif
