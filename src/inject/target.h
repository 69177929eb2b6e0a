/* SPDX-License-Identifier: MIT */
/* target.h - the process that gets the agent, and the facts gathered before any of its threads is stopped. Private. */
#ifndef PROBING_INJECT_TARGET_H
#define PROBING_INJECT_TARGET_H

#include "src/inject/inject.h"
#include "unwind/cpython/cpython.h"
#include "unwind/native/native.h"

struct place_names;

/* The agent's file. */
struct agent_library {
	char path[256];
	struct elf_file *elf;
	uint64_t state, stub, stub_bytes, entry; /* addresses of its own */
	uint64_t stub_offset;                    /* in the file */
};
int agent_library_open(const char *path, struct agent_library *ret);
void agent_library_done(struct agent_library *library);

struct inject_target {
	pid_t pid;
	struct module_table *modules;
	struct address_space *space;
	struct remote *remote;
	struct native_unwinder *unwinder;
	struct native_process *native;
	struct native_stack walked;
	uint8_t *stack_bytes; /* SAMPLE_STACK_BYTES */
	char python[64];      /* version; "" none */
	struct py_runtime *runtime;
	char untraceable[160];     /* why none of its threads can be stopped, a sentence; "": no reason known */
	struct place_names *names; /* by a module's id */
	size_t n_names;
	/* Of libc; run-time addresses. */
	uint64_t pthread_create, pthread_self, pthread_detach, dlopen, dlsym, dlerror, errno_location, close, syscall;
	uint64_t code_start, code_end; /* its code, where instructions of the machine are looked for */
};

/*
 * inject_target_open - a process, nothing of which is stopped by it.
 * @why: INJECT_WHY_BYTES; a sentence where the error says too little.
 * Errors: -ESRCH, -EPERM, -EACCES, -ENOMEM; -EOPNOTSUPP with why.
 */
int inject_target_open(pid_t pid, struct inject_target **ret, char *why);
void inject_target_free(struct inject_target *target);
void inject_target_freep(struct inject_target **target);

/* inject_target_agent - address of the agent's file. -ENOENT; -EXDEV another version; -ENOMEM. */
int inject_target_agent(struct address_space *space, const struct agent_library *library, uint64_t *ret_base);

/* Write bytes into its memory: all of them, or -EFAULT, -EPERM, -ESRCH. */
int inject_target_write(pid_t pid, uint64_t address, const void *bytes, size_t n_bytes);

/* "libc.so.6", "libpthread-2.31.so": whether a module is that library of glibc. */
bool is_library(const struct module *module, const char *name);

#endif
