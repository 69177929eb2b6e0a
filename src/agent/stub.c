/* SPDX-License-Identifier: MIT */
/* stub.c - the first code of ours that runs in a process.
 *
 * It is not loaded, but mapped: this section of the file, wherever there is room. Nothing in it is relocated, and it
 * calls through addresses that it finds in struct agent_stub alone. A thread that probing has stopped calls it first: it
 * makes a thread, and that one calls it again, loads the library, and starts the agent.
 */
#include "src/agent/agent.h"

#include <pthread.h>
#include <sys/syscall.h>

#if defined(__has_attribute)
#if __has_attribute(no_stack_protector)
#define UNPROTECTED __attribute__((no_stack_protector))
#endif
#endif
#ifndef UNPROTECTED
#define UNPROTECTED
#endif

#define FUNCTION(type, address) ((type)(uintptr_t)(address))

typedef void *stub_body(void *);
typedef int create_function(uint64_t *, const void *, stub_body *, void *);
typedef pthread_t self_function(void);
typedef int detach_function(pthread_t);
typedef void *open_function(const char *, int);
typedef void *symbol_function(void *, const char *);
typedef char *error_function(void);
typedef int *errno_function(void);
typedef int start_function(uint32_t);
typedef int close_function(int);
typedef long system_function(long, ...);

enum { OPEN_NOW = 2 }; /* RTLD_NOW */

/* The section's only function, at its start. It does both steps, because a second function would need relocation. */
static __attribute__((section(AGENT_STUB_SECTION), used, noinline)) UNPROTECTED void *stub(void *data)
{
	struct agent_stub *in = data;
	start_function *start = FUNCTION(start_function *, in->entry);

	if (!__atomic_exchange_n(&in->is_called, 1, __ATOMIC_SEQ_CST)) {
		int *at = FUNCTION(errno_function *, in->errno_location)(), saved = *at;

		in->create_error = FUNCTION(create_function *, in->pthread_create)(&in->thread, 0, stub, in);
		*at = saved;
		return 0;
	}
	FUNCTION(detach_function *, in->pthread_detach)(FUNCTION(self_function *, in->pthread_self)());
	in->tid = (int32_t)FUNCTION(system_function *, in->syscall)(SYS_gettid);
	if (!start) {
		void *library = FUNCTION(open_function *, in->dlopen)(in->path, OPEN_NOW);

		if (in->fd >= 0)
			FUNCTION(close_function *, in->close)(in->fd);
		if (library)
			start = FUNCTION(start_function *,
					 FUNCTION(symbol_function *, in->dlsym)(library, in->entry_name));
	}
	if (start) {
		in->start_error = start(in->options);
	} else {
		const char *why = FUNCTION(error_function *, in->dlerror)();

		for (unsigned i = 0; why && why[i] && i < sizeof in->error - 1; i++)
			((volatile char *)in->error)[i] = why[i]; /* volatile: no call of memcpy() or strncpy() */
	}
	__atomic_store_n(&in->is_done, 1, __ATOMIC_SEQ_CST);
	return 0;
}
