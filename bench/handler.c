/* SPDX-License-Identifier: MIT */
/* bench/handler.c - how long a signal takes from its sending to the thread's next instruction.
 *
 * Loaded by bench/handler.py into a program that an agent samples. A thread sends itself signals that look like those of
 * a timer, many more than timers can deliver. It does the same with another signal, whose handler is empty: the
 * difference is the agent's handler.
 */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LINE_BYTES = 64 };

int time_signals(int signal, unsigned n, size_t stack_bytes, size_t cold_bytes, uint64_t *ret_ns);
int take_empty(int signal);

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int send_as_timer(int signal)
{
	siginfo_t info;

	memset(&info, 0, sizeof info);
	info.si_signo = signal;
	info.si_code = SI_TIMER; /* the main thread's slot is the first, 0 */
	return syscall(SYS_rt_tgsigqueueinfo, getpid(), (pid_t)syscall(SYS_gettid), signal, &info) < 0 ? -errno : 0;
}

/* What a program does between two samples: it uses the caches for itself. */
static void use_caches(volatile uint8_t *memory, size_t n_bytes)
{
	for (size_t i = 0; i < n_bytes; i += LINE_BYTES)
		memory[i]++;
}

static void ignore(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	(void)context;
}

/* take_empty - give a signal a handler that does nothing, as the agent installs its own. Negative errno. */
int take_empty(int signal)
{
	struct sigaction empty = { .sa_sigaction = ignore, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK };

	sigfillset(&empty.sa_mask);
	return sigaction(signal, &empty, NULL) < 0 ? -errno : 0;
}

/*
 * time_signals - send the calling thread n signals.
 * @stack_bytes: of stack more than the program has. @cold_bytes: of other memory, written before each signal; 0: none.
 * @ret_ns: n times, each from before a system call that sends one until after its handler.
 * Errors: -ENOMEM, or those of rt_tgsigqueueinfo(2).
 */
int time_signals(int signal, unsigned n, size_t stack_bytes, size_t cold_bytes, uint64_t *ret_ns)
{
	volatile uint8_t *stack = __builtin_alloca(stack_bytes + 1), *cold = calloc(1, cold_bytes + 1);
	int r = cold ? 0 : -ENOMEM;

	use_caches(stack, stack_bytes);
	for (unsigned i = 0; i < n && r >= 0; i++) {
		uint64_t before;

		use_caches(cold, cold_bytes);
		before = now_ns();
		r = send_as_timer(signal);
		ret_ns[i] = now_ns() - before;
	}
	free((void *)cold);
	return r;
}
