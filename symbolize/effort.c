/* SPDX-License-Identifier: MIT */
/* effort.c - see effort.h.
 *
 * Time is the thread's CPU time, so that a slow disk or a busy machine does not cost a module its names. The clock is
 * read every CHECK_STEPS steps. A call into libdw is not interrupted: its cost counts at its end. Reading the clock
 * is a system call, which takes as long as most look-ups: these use CLOCK_MONOTONIC.
 *
 * The numbers leave room for real files (docs/symbols.md): Debian's Python, 16.5 MB of debug information when unpacked,
 * takes 50 ms until its first name, which is 3 s for a GB.
 */
#include "symbolize/effort.h"

#include <errno.h>

#include "base/util.h"

enum { CHECK_STEPS = 1 << 12 };

#define NS_PER_S UINT64_C(1000000000)
#define MODULE_NS (10 * NS_PER_S)
#define LOOK_UP_NS (NS_PER_S / 1000)
#define BYTE_NS 10 /* 10 s for 1 GB */
#define MAX_ALLOWED_BYTES (UINT64_C(5) << 30)
/* After this total, a module only gets a fraction of its time. */
#define ALL_NS (300 * NS_PER_S)
enum { PART_AT_LAST = 20 };
#define MAX_DERIVED_BYTES (UINT64_C(512) << 20)
#define MAX_ALL_BYTES (UINT64_C(1) << 30)

#define SHORT_NS (NS_PER_S / 1000)

static _Thread_local struct effort *current;
static _Thread_local uint64_t last_cpu_ns; /* the thread's CPU clock at the last reading */

static uint64_t limit_ns(const struct effort *effort)
{
	bool is_late = effort->budget && effort->budget->used_ns > ALL_NS;

	return (MODULE_NS + effort->allowed_ns) / (is_late ? PART_AT_LAST : 1);
}

void effort_allow(struct effort *effort, uint64_t n_bytes)
{
	n_bytes = MIN(n_bytes, MAX_ALLOWED_BYTES - effort->n_allowed_bytes);
	effort->n_allowed_bytes += n_bytes;
	effort->allowed_ns += n_bytes * BYTE_NS;
}

void effort_allow_one(struct effort *effort)
{
	effort->allowed_ns += LOOK_UP_NS;
}

static void add_time(struct effort *effort, uint64_t spent_ns)
{
	effort->used_ns += spent_ns;
	if (effort->budget)
		effort->budget->used_ns += spent_ns;
	effort->is_spent |= effort->used_ns > limit_ns(effort);
}

/* The first reading has no earlier one of this module: count at most the elapsed time and the thread's CPU time. */
static void account(struct effort *effort)
{
	uint64_t now_ns = thread_cpu_ns();

	add_time(effort, effort->read_ns ? now_ns - effort->read_ns
					 : MIN(monotonic_ns() - effort->entered_ns, now_ns - last_cpu_ns));
	effort->read_ns = last_cpu_ns = now_ns;
}

static void leave_list(struct effort *effort)
{
	struct effort_budget *budget = effort->budget;

	if (!effort->is_listed)
		return;
	*(effort->newer ? &effort->newer->older : &budget->newest) = effort->older;
	*(effort->older ? &effort->older->newer : &budget->oldest) = effort->newer;
	effort->newer = effort->older = NULL;
	effort->is_listed = false;
}

static void enter_list(struct effort *effort)
{
	struct effort_budget *budget = effort->budget;

	if (!budget)
		return;
	effort->older = budget->newest;
	*(budget->newest ? &budget->newest->newer : &budget->oldest) = effort;
	budget->newest = effort;
	effort->is_listed = true;
}

void effort_begin(struct effort *effort)
{
	if (effort->is_listed && effort->budget->newest != effort) {
		leave_list(effort);
		enter_list(effort);
	}
	effort->entered_ns = monotonic_ns();
	effort->read_ns = 0;
	current = effort;
}

void effort_end(struct effort *effort)
{
	uint64_t passed_ns = monotonic_ns() - effort->entered_ns;

	if (effort->read_ns || passed_ns > SHORT_NS)
		account(effort);
	else
		add_time(effort, passed_ns);
	current = NULL;
}

bool effort_go_on(size_t n_steps)
{
	struct effort *effort = current;

	if (!effort)
		return true;
	n_steps += effort->n_steps;
	effort->n_steps = (unsigned)(n_steps % CHECK_STEPS);
	if (n_steps >= CHECK_STEPS)
		account(effort);
	return !effort->is_spent;
}

void effort_spend(uint64_t spent_ns)
{
	if (current)
		add_time(current, spent_ns);
}

/* Evict other modules' data until the total fits. For a single module, its own limits apply. */
static void make_room(struct effort *effort)
{
	struct effort_budget *budget = effort->budget;

	while (budget->n_bytes > MAX_ALL_BYTES && budget->oldest && budget->oldest != effort) {
		struct effort *oldest = budget->oldest;

		oldest->n_given_back++;
		oldest->give_back(oldest->owner);
		leave_list(oldest); /* even if it freed nothing */
	}
}

int effort_take(uint64_t n_bytes, bool is_derived)
{
	struct effort *effort = current;

	if (!effort)
		return 0;
	if (is_derived && n_bytes > MAX_DERIVED_BYTES - MIN(effort->n_derived, MAX_DERIVED_BYTES))
		return -E2BIG;
	effort->n_bytes += n_bytes;
	effort->n_derived += is_derived ? n_bytes : 0;
	if (!is_derived)
		effort_allow(effort, n_bytes);
	if (!effort->budget)
		return 0;
	if (!effort->is_listed)
		enter_list(effort);
	effort->budget->n_bytes += n_bytes;
	make_room(effort);
	return 0;
}

void effort_return(struct effort *effort, uint64_t n_bytes)
{
	n_bytes = MIN(n_bytes, effort->n_bytes);
	effort->n_bytes -= n_bytes;
	effort->n_derived = MIN(effort->n_derived, effort->n_bytes);
	if (effort->budget)
		effort->budget->n_bytes -= n_bytes;
	if (effort->n_bytes == 0)
		leave_list(effort);
}

int effort_grow(void *array, size_t n, size_t *allocated, size_t size)
{
	size_t before = *allocated;
	int r;

	if (n < before)
		return 0;
	/* The same growth as in grow(). */
	r = effort_take((MAX(MAX(n + 1, before * 2), (size_t)16) - before) * size, true);
	return r < 0 ? r : grow(array, n, allocated, size);
}
