/* SPDX-License-Identifier: MIT */
/* test_effort.c - what the names of one module, and of all, may cost. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "symbolize/effort.h"
#include "symbolize/module.h"
#include "symbolize/symbolize.h"

#define MB (UINT64_C(1) << 20)

struct owner {
	struct effort effort;
	unsigned n_given_back;
};

static void give_back(void *data)
{
	struct owner *owner = data;

	owner->n_given_back++;
	effort_return(&owner->effort, UINT64_MAX);
}

static void make_owner(struct owner *owner, struct effort_budget *budget)
{
	*owner = (struct owner){ .effort = { .budget = budget, .give_back = give_back, .owner = owner } };
}

static void take(struct owner *owner, uint64_t n_bytes)
{
	effort_begin(&owner->effort);
	assert_int_equal(effort_take(n_bytes, false), 0);
	effort_end(&owner->effort);
}

static void use(struct owner *owner)
{
	effort_begin(&owner->effort);
	effort_end(&owner->effort);
}

static void the_longest_unused_gives_back(void **state)
{
	struct effort_budget budget = { 0 };
	struct owner owners[4];

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(owners); i++)
		make_owner(&owners[i], &budget);
	for (size_t i = 0; i < 3; i++)
		take(&owners[i], 300 * MB);
	use(&owners[0]);
	take(&owners[3], 300 * MB);
	assert_int_equal(owners[1].n_given_back, 1);
	assert_int_equal(owners[0].n_given_back + owners[2].n_given_back + owners[3].n_given_back, 0);
	assert_int_equal(budget.n_bytes, 900 * MB);
	/* One that is larger than what all may have is alone then. */
	take(&owners[1], 1500 * MB);
	assert_int_equal(budget.n_bytes, 1500 * MB);
	assert_int_equal(owners[1].n_given_back, 1);
	take(&owners[2], MB);
	assert_int_equal(owners[1].n_given_back, 2);
	assert_int_equal(budget.n_bytes, MB);
	effort_return(&owners[2].effort, UINT64_MAX);
	assert_null(budget.newest);
	assert_null(budget.oldest);
	assert_int_equal(budget.n_bytes, 0);
}

static void one_alone_has_a_bound(void **state)
{
	struct owner owner;
	uint64_t *items = NULL;
	size_t n, allocated = 0;
	int r = 0;

	(void)state;
	make_owner(&owner, NULL);
	effort_begin(&owner.effort);
	for (n = 0; r >= 0; n = allocated)
		r = effort_grow(&items, n, &allocated, sizeof *items);
	effort_end(&owner.effort);
	assert_int_equal(r, -E2BIG);
	assert_true(allocated * sizeof *items >= 200 * MB && allocated * sizeof *items <= 512 * MB);
	free(items);
	/* Without an active owner there is no limit. */
	assert_int_equal(effort_take(UINT64_MAX / 2, true), 0);
}

static double cpu_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Run until the time is spent. @used_ns: time used before. */
static double run_until_spent(struct effort_budget *budget, uint64_t used_ns, uint64_t allowed_bytes)
{
	struct owner owner;
	double began_s = cpu_s();

	make_owner(&owner, budget);
	owner.effort.used_ns = used_ns;
	effort_allow(&owner.effort, allowed_bytes);
	effort_begin(&owner.effort);
	while (effort_go_on(1) && cpu_s() - began_s < 5)
		;
	effort_end(&owner.effort);
	assert_true(owner.effort.is_spent);
	return cpu_s() - began_s;
}

static void time_ends(void **state)
{
	struct effort_budget budget = { 0 };

	(void)state;
	assert_true(run_until_spent(&budget, 9900000000, 0) < 1);
	assert_true(budget.used_ns > 50000000 && budget.used_ns < 1000000000);
	assert_true(run_until_spent(&budget, 9900000000, 10 * MB) > 0.15); /* 100 ms more */
	/* Where all together have had much, one has little. */
	budget.used_ns = UINT64_C(400) * 1000000000;
	assert_true(run_until_spent(&budget, 400000000, 0) < 1);
	/* However large it says that it is. */
	assert_true(run_until_spent(NULL, UINT64_C(70) * 1000000000, UINT64_MAX) < 1);
}

/* ---- A module ---- */

static void look_up_main(struct symbol_module *module, struct symbol *symbol)
{
	uint64_t address, size;

	assert_int_equal(elf_file_symbol(module->elf, "look_up_here", &address, &size), 0);
	assert_int_equal(symbol_lookup(module, address, symbol, 1), 1);
}

__attribute__((used)) void look_up_here(void);
void look_up_here(void)
{
	__asm__ volatile("nop; nop");
}

static void a_module_out_of_time_keeps_its_offsets(void **state)
{
	CLEANUP(symbol_module_freep) struct symbol_module *module = NULL;
	struct symbol_sources sources;
	struct symbol symbol;

	(void)state;
	assert_int_equal(symbol_module_open("/proc/self/exe", -1, &module), 0);
	look_up_main(module, &symbol);
	assert_string_equal(symbol.name, "look_up_here");
	module->effort.is_spent = true;
	module->tried_lines = false; /* something is left to be read */
	debug_lines_free(TAKE(module->lines));
	for (unsigned i = 0; i < 3; i++)
		look_up_main(module, &symbol);
	assert_true(symbol.is_offset);
	assert_non_null(strstr(symbol.name, "+0x"));
	symbol_module_sources(module, &sources);
	assert_int_equal(sources.limit, SYMBOL_LIMIT_TIME);
	assert_int_equal(sources.n_limited, 3);
	assert_non_null(symbol_limit_text(sources.limit));
	assert_int_equal(module->effort.n_bytes, 0);
}

/* Earlier names stay valid, and are found again. */
static void what_was_given_back_is_read_again(void **state)
{
	CLEANUP(symbol_search_freep) struct symbol_search *search = NULL;
	CLEANUP(symbol_module_freep) struct symbol_module *module = NULL;
	const struct symbol_search_options options = { 0 };
	struct symbol before, after;
	char file[256];

	(void)state;
	assert_int_equal(symbol_search_new(&options, &search), 0);
	assert_int_equal(symbol_module_open("/proc/self/exe", -1, &module), 0);
	assert_int_equal(symbol_module_set_search(module, search, NULL), 0);
	look_up_main(module, &before);
	assert_true(module->effort.n_bytes > 0);
	snprintf(file, sizeof file, "%s", before.file ? before.file : "");
	module->effort.give_back(module->effort.owner);
	assert_int_equal(module->effort.n_bytes, 0);
	assert_null(module->dwfl);
	assert_string_equal(before.name, "look_up_here");
	assert_string_equal(before.file ? before.file : "", file);
	look_up_main(module, &after);
	assert_string_equal(after.name, "look_up_here");
	assert_string_equal(after.file ? after.file : "", file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_longest_unused_gives_back),
		cmocka_unit_test(one_alone_has_a_bound),
		cmocka_unit_test(time_ends),
		cmocka_unit_test(a_module_out_of_time_keeps_its_offsets),
		cmocka_unit_test(what_was_given_back_is_read_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
