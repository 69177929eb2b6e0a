/* SPDX-License-Identifier: MIT */
/* old_glibc_words.c - numbers and words, for the program and SQLite's extension; see old_glibc.h. */
#include "base/old_glibc.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <string.h>

/* ---- Numbers: these versions also report errors to SVID's handler, which nobody has ---- */

FORWARD(double, exp, OLDEST, (double x), (x))
FORWARD(double, log, OLDEST, (double x), (x))
FORWARD(double, pow, OLDEST, (double x, double y), (x, y))

/* ---- Words: since 2.32; strerror(3) and strsignal(3) have the same ones, in the user's language ---- */

HIDDEN const char *strerrordesc_np(int error)
{
	return error >= 0 && error < EHWPOISON + 1 ? strerror(error) : NULL;
}

HIDDEN const char *sigdescr_np(int number)
{
	return number > 0 && number < SIGSYS + 1 ? strsignal(number) : NULL;
}

HIDDEN const char *sigabbrev_np(int number)
{
	/* clang-format off */
	static const char *const names[] = {
		[SIGHUP] = "HUP", [SIGINT] = "INT", [SIGQUIT] = "QUIT", [SIGILL] = "ILL", [SIGTRAP] = "TRAP", [SIGABRT] = "ABRT",
		[SIGBUS] = "BUS", [SIGFPE] = "FPE", [SIGKILL] = "KILL", [SIGUSR1] = "USR1", [SIGSEGV] = "SEGV", [SIGUSR2] = "USR2",
		[SIGPIPE] = "PIPE", [SIGALRM] = "ALRM", [SIGTERM] = "TERM", [SIGSTKFLT] = "STKFLT", [SIGCHLD] = "CHLD",
		[SIGCONT] = "CONT", [SIGSTOP] = "STOP", [SIGTSTP] = "TSTP", [SIGTTIN] = "TTIN", [SIGTTOU] = "TTOU", [SIGURG] = "URG",
		[SIGXCPU] = "XCPU", [SIGXFSZ] = "XFSZ", [SIGVTALRM] = "VTALRM", [SIGPROF] = "PROF", [SIGWINCH] = "WINCH",
		[SIGIO] = "POLL", [SIGPWR] = "PWR", [SIGSYS] = "SYS",
	};
	/* clang-format on */

	return number > 0 && (size_t)number < sizeof names / sizeof names[0] ? names[number] : NULL;
}
