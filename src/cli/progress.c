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

/* Whether it is time for another line. Then @left gets ", 12 s left", or "". */
static bool is_due(struct progress *progress, const char *what, uint64_t n_done, uint64_t n_all,
		   char left[DURATION_LEFT_BYTES])
{
	uint64_t now = progress->on ? monotonic_ns() : 0;

	if (!progress->on || now < progress->next_ns)
		return false;
	progress->next_ns = now + PROGRESS_NS;
	progress->is_dirty = true;
	begin_part(progress, what, n_done, now);
	progress->n_done = n_done;
	duration_format_left(now - progress->since_ns, n_done - progress->n_begun,
			     n_all > progress->n_begun ? n_all - progress->n_begun : 0, left);
	return true;
}

bool progress_show_item(struct progress *progress, const char *what, uint64_t n_done, uint64_t n_all, const char *item)
{
	char done[32], all[32], left[DURATION_LEFT_BYTES];

	if (!is_due(progress, what, n_done, n_all, left))
		return !caught;
	format_count(n_done, done);
	format_count(n_all, all);
	fprintf(stderr, "\r%s%s%s %s%s%s%s\033[K", done, n_all > 0 ? " of " : "", n_all > 0 ? all : "", what, left,
		item[0] ? "  " : "", item);
	return !caught;
}

bool progress_show(struct progress *progress, const char *what, uint64_t n_done, uint64_t n_all)
{
	return progress_show_item(progress, what, n_done, n_all, "");
}

bool progress_show_share(struct progress *progress, const struct progress_share *share)
{
	char n[32], part[48] = "", left[DURATION_LEFT_BYTES];

	if (!is_due(progress, share->what, share->n_done, share->n_all, left))
		return !caught;
	format_count(share->n, n);
	if (share->n_all > 0)
		snprintf(part, sizeof part, ", %u %% %s",
			 (unsigned)MIN(100.0, 100.0 * (double)share->n_done / (double)share->n_all), share->what);
	fprintf(stderr, "\r%s %s%s%s\033[K", n, share->unit, part, left);
	return !caught;
}

void progress_clear(struct progress *progress)
{
	if (progress->is_dirty)
		fputs("\r\033[K", stderr);
	progress->is_dirty = false;
}

bool progress_is_stopped(void)
{
	return caught != 0;
}

int progress_end(struct progress *progress, int status)
{
	progress_clear(progress);
	if (caught && status != EXIT_OK) {
		signal(caught, SIG_DFL);
		raise(caught);
	}
	return status;
}
