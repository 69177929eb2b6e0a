/* SPDX-License-Identifier: MIT */
/* old_glibc_program.c - what the program with all libraries in it needs beside old_glibc.c; see old_glibc.h.
 *
 * The program names libpthread.so.0 and libdl.so.2 as libraries it needs, for until 2.33 these functions were there.
 */
#undef _FILE_OFFSET_BITS
#undef _FORTIFY_SOURCE

#include "base/old_glibc.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- The start of the program ---- */

extern void (*__preinit_array_start[])(int, char **, char **), (*__preinit_array_end[])(int, char **, char **);
extern void (*__init_array_start[])(int, char **, char **), (*__init_array_end[])(int, char **, char **);
extern void _init(void);

/* Until 2.33 this was in each program, in the part of glibc that is linked statically (csu/elf-init.c); 2.34 leaves it out, and
 * an older glibc calls what the program passes.
 */
static void run_constructors(int argc, char **argv, char **environment)
{
	for (void (**one)(int, char **, char **) = __preinit_array_start; one < __preinit_array_end; one++)
		(*one)(argc, argv, environment);
	_init();
	for (void (**one)(int, char **, char **) = __init_array_start; one < __init_array_end; one++)
		(*one)(argc, argv, environment);
}

int old_start(int (*main)(int, char **, char **), int argc, char **argv, void (*constructors)(int, char **, char **),
	      void (*destructors)(void), void (*end_linker)(void), void *stack_end);
__asm__(".symver old_start,__libc_start_main@" OLDEST);

int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv,
		      void (*constructors)(int, char **, char **), void (*destructors)(void), void (*end_linker)(void),
		      void *stack_end);
HIDDEN int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv,
			     void (*constructors)(int, char **, char **), void (*destructors)(void),
			     void (*end_linker)(void), void *stack_end)
{
	(void)constructors;
	return old_start(main, argc, argv, run_constructors, destructors, end_linker, stack_end);
}

/* ---- Threads and loading ---- */

FORWARD(int, pthread_join, OLDEST, (pthread_t thread, void **ret), (thread, ret))
FORWARD(int, pthread_cancel, OLDEST, (pthread_t thread), (thread))
FORWARD(int, pthread_once, OLDEST, (pthread_once_t * once, void (*start)(void)), (once, start))
FORWARD(int, pthread_setaffinity_np, SINCE("GLIBC_2.3.4"), (pthread_t thread, size_t n_bytes, const cpu_set_t *set),
	(thread, n_bytes, set))
FORWARD(int, pthread_mutex_trylock, OLDEST, (pthread_mutex_t * mutex), (mutex))
FORWARD(int, pthread_mutexattr_init, OLDEST, (pthread_mutexattr_t * attributes), (attributes))
FORWARD(int, pthread_mutexattr_destroy, OLDEST, (pthread_mutexattr_t * attributes), (attributes))
FORWARD(int, pthread_mutexattr_settype, OLDEST, (pthread_mutexattr_t * attributes, int type), (attributes, type))
FORWARD(int, pthread_rwlock_init, OLDEST, (pthread_rwlock_t * lock, const pthread_rwlockattr_t *attributes),
	(lock, attributes))
FORWARD(int, pthread_rwlock_destroy, OLDEST, (pthread_rwlock_t * lock), (lock))
FORWARD(int, pthread_rwlock_rdlock, OLDEST, (pthread_rwlock_t * lock), (lock))
FORWARD(int, pthread_rwlock_tryrdlock, OLDEST, (pthread_rwlock_t * lock), (lock))
FORWARD(int, pthread_rwlock_wrlock, OLDEST, (pthread_rwlock_t * lock), (lock))
FORWARD(int, pthread_rwlock_unlock, OLDEST, (pthread_rwlock_t * lock), (lock))
FORWARD(int, pthread_barrier_init, OLDEST,
	(pthread_barrier_t * barrier, const pthread_barrierattr_t *attributes, unsigned n), (barrier, attributes, n))
FORWARD(int, pthread_barrier_destroy, OLDEST, (pthread_barrier_t * barrier), (barrier))
FORWARD(int, pthread_barrier_wait, OLDEST, (pthread_barrier_t * barrier), (barrier))
FORWARD(int, sem_init, OLDEST, (sem_t * semaphore, int is_shared, unsigned value), (semaphore, is_shared, value))
FORWARD(int, sem_destroy, OLDEST, (sem_t * semaphore), (semaphore))
FORWARD(int, sem_post, OLDEST, (sem_t * semaphore), (semaphore))
FORWARD(int, sem_trywait, OLDEST, (sem_t * semaphore), (semaphore))
FORWARD(void *, dlopen, OLDEST, (const char *path, int flags), (path, flags))
FORWARD(int, dlclose, OLDEST, (void *library), (library))
FORWARD(char *, dlerror, OLDEST, (void), ())

HIDDEN pid_t gettid(void)
{
	return (pid_t)syscall(SYS_gettid);
}
