/* SPDX-License-Identifier: MIT */
/* size_limit.c - see size_limit.h. */
#include "base/size_limit.h"

#include <signal.h>

static struct sigaction found; /* zeros: SIG_DFL */

void size_limit_as_error(void)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };

	sigaction(SIGXFSZ, &ignore, &found);
}

void size_limit_as_found(void)
{
	sigaction(SIGXFSZ, &found, NULL);
}
