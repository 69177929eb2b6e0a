/* SPDX-License-Identifier: MIT */
/* old_glibc.c - threads, signals and files; see old_glibc.h. */
#undef _FILE_OFFSET_BITS /* whose headers give one function the name of another */
#undef _FORTIFY_SOURCE

#include "base/old_glibc.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>

/* Until 2.32 the functions of stat were inline, and called these. */
int __xstat64(int version, const char *path, struct stat64 *ret);
int __lxstat64(int version, const char *path, struct stat64 *ret);
int __fxstat64(int version, int fd, struct stat64 *ret);
int __fxstatat64(int version, int folder, const char *path, struct stat64 *ret, int flags);

_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "one layout, on 64 bits");

HIDDEN int stat64(const char *path, struct stat64 *ret)
{
	return __xstat64(OLD_STAT_VERSION, path, ret);
}

HIDDEN int lstat64(const char *path, struct stat64 *ret)
{
	return __lxstat64(OLD_STAT_VERSION, path, ret);
}

HIDDEN int fstat64(int fd, struct stat64 *ret)
{
	return __fxstat64(OLD_STAT_VERSION, fd, ret);
}

HIDDEN int fstatat64(int folder, const char *path, struct stat64 *ret, int flags)
{
	return __fxstatat64(OLD_STAT_VERSION, folder, path, ret, flags);
}

HIDDEN int stat(const char *path, struct stat *ret)
{
	return __xstat64(OLD_STAT_VERSION, path, (struct stat64 *)ret);
}

HIDDEN int lstat(const char *path, struct stat *ret)
{
	return __lxstat64(OLD_STAT_VERSION, path, (struct stat64 *)ret);
}

HIDDEN int fstat(int fd, struct stat *ret)
{
	return __fxstat64(OLD_STAT_VERSION, fd, (struct stat64 *)ret);
}

HIDDEN int fstatat(int folder, const char *path, struct stat *ret, int flags)
{
	return __fxstatat64(OLD_STAT_VERSION, folder, path, (struct stat64 *)ret, flags);
}

/* The same function on 64 bits, which 2.28 gave a second name. Its argument is an int or a pointer: both arrive in one register. */
HIDDEN int fcntl64(int fd, int command, ...)
{
	va_list arguments;
	void *argument;

	va_start(arguments, command);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	return fcntl(fd, command, argument);
}

FORWARD(int, pthread_sigmask, OLDEST, (int how, const sigset_t *set, sigset_t *ret), (how, set, ret))
FORWARD(int, pthread_create, OLDEST,
	(pthread_t * ret, const pthread_attr_t *attributes, void *(*start)(void *), void *data),
	(ret, attributes, start, data))
FORWARD(int, pthread_detach, OLDEST, (pthread_t thread), (thread))
FORWARD(int, pthread_attr_setstacksize, OLDEST, (pthread_attr_t * attributes, size_t stack_bytes),
	(attributes, stack_bytes))

/* What pthread_cleanup_push() calls: they link @buffer to the thread, and look at no frame. */
OLD_FUNCTION(__pthread_register_cancel, SINCE("GLIBC_2.3.3"));
HIDDEN void __pthread_register_cancel(__pthread_unwind_buf_t *buffer)
{
	old___pthread_register_cancel(buffer);
}

OLD_FUNCTION(__pthread_unregister_cancel, SINCE("GLIBC_2.3.3"));
HIDDEN void __pthread_unregister_cancel(__pthread_unwind_buf_t *buffer)
{
	old___pthread_unregister_cancel(buffer);
}

OLD_FUNCTION(__pthread_unwind_next, SINCE("GLIBC_2.3.3"));
HIDDEN void __pthread_unwind_next(__pthread_unwind_buf_t *buffer)
{
	old___pthread_unwind_next(buffer);
	__builtin_unreachable();
}

/* RTLD_NEXT depends on the file that calls it, which stays this one. */
FORWARD(void *, dlsym, OLDEST, (void *library, const char *name), (library, name))
FORWARD(int, dladdr, OLDEST, (const void *address, Dl_info *ret), (address, ret))
