/* SPDX-License-Identifier: MIT */
/* old_glibc.h - files that run where glibc is older than the one they were built with.
 *
 * The linker binds a name to its newest version. A file that needs GLIBC_2.34 does not load where glibc is 2.31, although nothing
 * that it calls has changed. Each function of old_glibc*.c has the name of one of libc's, is hidden, and calls the oldest version
 * of the same function. All of the file calls it, static libraries included. tests/glibc_test.py holds the limits.
 *
 * Source: glibc's sysdeps/unix/sysv/linux/<machine>/lib*.abilist; NEWS of 2.29 to 2.34.
 */
#ifndef PROBING_BASE_OLD_GLIBC_H
#define PROBING_BASE_OLD_GLIBC_H

/* The first release of a machine's port has all older functions under its own version. */
#if defined(__x86_64__)
#define SINCE(x86_64) x86_64
#define OLD_STAT_VERSION 1
#else
#define SINCE(x86_64) "GLIBC_2.17"
#define OLD_STAT_VERSION 0
#endif
#define OLDEST SINCE("GLIBC_2.2.5")

/* Declares old_NAME: NAME of that version. */
#define OLD_FUNCTION(name, version)                                                                                    \
	extern __typeof__(name) old_##name;                                                                            \
	__asm__(".symver old_" #name "," #name "@" version)

#define HIDDEN __attribute__((visibility("hidden")))

/* Defines NAME, which calls that version. */
#define FORWARD(result, name, version, parameters, arguments)                                                          \
	OLD_FUNCTION(name, version);                                                                                   \
	HIDDEN result name parameters                                                                                  \
	{                                                                                                              \
		return old_##name arguments;                                                                           \
	}

#endif
