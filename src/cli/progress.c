/* SPDX-License-Identifier: MIT */
/* progress.c - see progress.h. */
#include "src/cli/progress.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/duration.h"
#include "src/cli/format.h"

enum { PROGRESS_NS = 100000000 };

static volatile sig_atomic_t caught; /* the signal to end by; 0: none */

static void catch (int number)
{
	caught = number;
}

void progress_begin_shown(struct progress *progress, bool quiet)
{
	uint64_t now = monotonic_ns();

	*progress = (struct progress){ .on = !quiet && isatty(STDERR_FILENO),
				       .next_ns = now + PROGRESS_NS,
				       .since_ns = now };
}

void progress_begin(struct progress *progress, bool quiet)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	const struct sigaction action = { .sa_handler = catch };
	struct sigaction before;

	progress_begin_shown(progress, quiet);
	for (size_t i = 0; i < N_ELEMENTS(signals); i++)
		if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			sigaction(signals[i], &action, NULL);
}

/* Work with several parts, as the samples after the stacks, begins a new estimate with each. */
static void begin_part(struct progress *progress, const char *what, uint64_t n_done, uint64_t now)
{
	if (progress->what == what && n_done >= progress->n_done)
		return;
	progress->what = what;
	progress->n_begun = n_done;
	progress->since_ns = now;
}

bool progress_show(struct progress *progress, const char *what, uint64_t n_done, uint64_t n_all)
{
	uint64_t now = progress->on ? monotonic_ns() : 0;
	char done[32], all[32], left[DURATION_LEFT_BYTES];

	if (!progress->on || now < progress->next_ns)
		return !caught;
	progress->next_ns = now + PROGRESS_NS;
	progress->is_dirty = true;
	begin_part(progress, what, n_done, now);
	progress->n_done = n_done;
	duration_format_left(now - progress->since_ns, n_done - progress->n_begun,
			     n_all > progress->n_begun ? n_all - progress->n_begun : 0, left);
	format_count(n_done, done);
	format_count(n_all, all);
	fprintf(stderr, "\r%s%s%s %s%s\033[K", done, n_all > 0 ? " of " : "", n_all > 0 ? all : "", what, left);
	return !caught;
}

bool progress_is_stopped(void)
{
	return caught != 0;
}

int progress_end(struct progress *progress, int status)
{
	if (progress->is_dirty)
		fputs("\r\033[K", stderr);
	progress->is_dirty = false;
	if (caught && status != EXIT_OK) {
		signal(caught, SIG_DFL);
		raise(caught);
	}
	return status;
}
