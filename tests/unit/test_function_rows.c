/* SPDX-License-Identifier: MIT */
/* Rows of whole functions, from one process to another: the same as those compiled here, and no lie among them. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "native_target.h"
#include "unwind/native/cfi.h"

/* A fake of the other process, inside this one: its answer, and the result of its use. */
struct other {
	uint8_t bytes[NATIVE_ROWS_MAX_BYTES];
	size_t n_bytes;
	bool is_made; /* the bytes are the answer; else they are compiled */
	struct module module;
	unsigned n_asked, n_refused;
	uint64_t addresses[NATIVE_ROWS_MAX_ADDRESSES]; /* of the last question */
	size_t n_addresses;
};

static int ask(void *data, struct module *module, const uint64_t *addresses, size_t n, const uint8_t **ret,
	       size_t *ret_bytes)
{
	struct other *other = data;

	other->n_asked++;
	memcpy(other->addresses, addresses, n * sizeof *addresses);
	other->n_addresses = n;
	other->module.elf = module->elf;
	if (!other->is_made)
		assert_int_equal(native_rows_compile(&other->module, addresses, n, other->bytes, &other->n_bytes), 0);
	*ret = other->bytes;
	*ret_bytes = other->n_bytes;
	return 0;
}

static void refuse(void *data, struct module *module)
{
	struct other *other = data;

	assert_non_null(module);
	other->n_refused++;
}

struct home {
	struct other other;
	struct native_row_source source;
	struct module module;
	struct row_pool pool;
};

static struct home *home_open(struct elf_file *file)
{
	struct home *home = calloc(1, sizeof *home);

	assert_non_null(home);
	home->source = (struct native_row_source){ ask, refuse, &home->other };
	home->module.elf = file;
	assert_int_equal(row_pool_init(&home->pool), 0);
	return home;
}

static void home_close(struct home *home)
{
	native_rows_done(&home->other.module);
	cfi_module_done(&home->module);
	row_pool_done(&home->pool);
	free(home);
}

static bool same_ops(const struct cfi_expression *a, const struct cfi_expression *b)
{
	if (a->n_ops != b->n_ops || a->is_value != b->is_value)
		return false;
	for (size_t i = 0; i < a->n_ops; i++)
		if (a->ops[i].atom != b->ops[i].atom || a->ops[i].number != b->ops[i].number ||
		    a->ops[i].number2 != b->ops[i].number2)
			return false;
	return true;
}

static bool same_row(const struct row_pool *a, uint32_t row_a, const struct row_pool *b, uint32_t row_b)
{
	struct cfi_row one = a->rows[row_a], two = b->rows[row_b];
	const struct cfi_slow none = { 0 };
	const struct cfi_slow *slow = one.slow ? &a->slow[one.slow] : &none,
			      *slow_too = two.slow ? &b->slow[two.slow] : &none;

	one.slow = two.slow = 0;
	if (memcmp(&one, &two, sizeof one) != 0 || !same_ops(&slow->cfa, &slow_too->cfa))
		return false;
	for (unsigned i = 0; i < ROW_N_SAVED; i++)
		if (!same_ops(&slow->saved[i], &slow_too->saved[i]))
			return false;
	return true;
}

/* Compare at each byte of some functions. @every: test one function of this many. */
static void compare_file(const char *path, unsigned every)
{
	struct elf_segment segment;
	size_t n_functions = 0, n_bytes = 0, n_seen = 0, n_slow = 0;
	struct elf_file *file;
	struct home *home;
	struct module here = { .path = (char *)(uintptr_t)path };
	struct row_pool pool;

	assert_int_equal(elf_file_open(open(path, O_RDONLY | O_CLOEXEC), &file), 0);
	home = home_open(file);
	here.elf = file;
	assert_int_equal(row_pool_init(&pool), 0);
	for (size_t i = 0; elf_file_segment(file, i, &segment); i++) {
		uint64_t at = segment.address, end = at + segment.n_file_bytes, start, function_end;

		for (; segment.executable && at < end; at++) {
			if (elf_file_function(file, at, &start, &function_end) < 0 || n_seen++ % every != 0) {
				if (elf_file_function(file, at, &start, &function_end) >= 0)
					at = function_end - 1;
				continue;
			}
			n_functions++;
			for (uint64_t byte = start; byte < function_end; byte++, n_bytes++) {
				uint32_t ours, theirs;

				assert_int_equal(cfi_row_at(&pool, NULL, &here, byte, &ours), 0);
				assert_int_equal(cfi_row_at(&home->pool, &home->source, &home->module, byte, &theirs),
						 0);
				if (!same_row(&pool, ours, &home->pool, theirs))
					fail_msg("rows at %#llx of %s differ", (unsigned long long)byte, path);
				n_slow += pool.rows[ours].slow != 0;
			}
			at = function_end - 1;
		}
	}
	print_message("%s: %zu bytes of %zu functions (%zu with expressions), %u questions\n", path, n_bytes,
		      n_functions, n_slow, home->other.n_asked);
	assert_true(n_functions > 10);
	assert_int_equal(home->other.n_refused, 0);
	assert_true(home->other.n_asked < n_bytes / 10);
	home_close(home);
	cfi_module_done(&here);
	row_pool_done(&pool);
	elf_file_free(file);
}

static void test_they_are_the_same(void **state)
{
	static const struct {
		const char *path;
		unsigned every;
	} files[] = {
		{ "/proc/self/exe", 1 },
		{ "/lib/x86_64-linux-gnu/libc.so.6", 3 },
		{ "/usr/lib/x86_64-linux-gnu/libcrypto.so.3", 20 },
		{ "/lib/aarch64-linux-gnu/libc.so.6", 3 },
	};

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(files); i++)
		if (access(files[i].path, R_OK) == 0)
			compare_file(files[i].path, files[i].every);
}

/* ---- Answers that were made ---- */

static struct elf_file *own;

static int open_own(void **state)
{
	(void)state;
	return elf_file_open(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), &own);
}

static int close_own(void **state)
{
	(void)state;
	elf_file_free(own);
	return 0;
}

enum {
	START = 0x1000,
	PART_BYTES = 8,
	HEAD_BYTES = 20,
	FIRST_ROW = PART_BYTES + HEAD_BYTES,
	ROW_BYTES = 16 + 2 * ROW_N_SAVED
};

static void put(struct other *other, uint64_t number, size_t n_bytes)
{
	memcpy(other->bytes + other->n_bytes, &number, n_bytes);
	other->n_bytes += n_bytes;
}

/* A part of an answer without expressions. */
static void put_part(struct other *other, uint32_t number, uint64_t start, uint64_t end, uint32_t n)
{
	put(other, number, 4);
	put(other, HEAD_BYTES + n * ROW_BYTES, 4);
	put(other, start, 8);
	put(other, end, 8);
	put(other, n, 4);
}

static void put_head(struct other *other, uint64_t start, uint64_t end, uint32_t n)
{
	other->is_made = true;
	other->n_bytes = 0;
	put_part(other, 0, start, end, n);
}

static void put_row(struct other *other, uint32_t from, uint32_t to, unsigned kind, unsigned reg)
{
	put(other, from, 4);
	put(other, to, 4);
	put(other, kind, 1);
	put(other, reg, 1);
	put(other, 0, 2);
	put(other, 8, 4);
	for (unsigned i = 0; i < ROW_N_SAVED; i++)
		put(other, (uint16_t)SAVED_SAME, 2);
}

/* A head and two rows, [0, 10) and [10, 20) of [START, START + 20). */
static void put_good(struct other *other)
{
	put_head(other, START, START + 20, 2);
	put_row(other, 0, 10, CFA_REGISTER, MACHINE_REG_SP);
	put_row(other, 10, 20, CFA_REGISTER, MACHINE_REG_FP);
}

static uint32_t row_at(struct home *home, uint64_t address)
{
	uint32_t row;

	assert_int_equal(cfi_row_at(&home->pool, &home->source, &home->module, address, &row), 0);
	return row;
}

static void test_one_answer_serves_a_function(void **state)
{
	struct home *home = home_open(own);

	(void)state;
	put_good(&home->other);
	assert_int_equal(home->pool.rows[row_at(home, START + 5)].cfa_register, MACHINE_REG_SP);
	for (uint64_t i = 0; i < 20; i++)
		assert_int_equal(home->pool.rows[row_at(home, START + i)].cfa_register,
				 i < 10 ? MACHINE_REG_SP : MACHINE_REG_FP);
	assert_int_equal(home->other.n_asked, 1);
	assert_int_equal(home->pool.n, 3);
	home_close(home);
}

/* Received rows stay valid. An answer that overlaps them only counts for the requested address. */
static void test_what_was_told_stays(void **state)
{
	struct home *home = home_open(own);

	(void)state;
	put_good(&home->other);
	row_at(home, START);
	put_head(&home->other, START - 100, START + 20, 1);
	put_row(&home->other, 0, 120, CFA_DEREF, MACHINE_REG_SP);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(home->pool.rows[row_at(home, START - 50)].cfa_kind, CFA_DEREF);
		assert_int_equal(home->pool.rows[row_at(home, START + 5)].cfa_kind, CFA_REGISTER);
	}
	assert_int_equal(home->other.n_asked, 2);
	home_close(home);
}

/* Of rows that overlap known ones, one is kept. */
static void test_other_rows_do_not_stay(void **state)
{
	struct home *home = home_open(own);

	(void)state;
	put_good(&home->other);
	row_at(home, START);
	assert_int_equal(home->pool.n, 3);
	put_head(&home->other, START - 100, START + 20, 3);
	put_row(&home->other, 0, 40, CFA_DEREF, MACHINE_REG_SP);
	put_row(&home->other, 40, 80, CFA_DEREF, MACHINE_REG_FP);
	put_row(&home->other, 80, 120, CFA_DEREF, MACHINE_REG_PC);
	assert_int_equal(home->pool.rows[row_at(home, START - 50)].cfa_register, MACHINE_REG_FP);
	assert_int_equal(home->pool.n, 4);
	home_close(home);
}

/* A process taken over by a file does not fill the recorder's memory: from a limit on, one row of an answer is kept. */
static void test_there_is_an_end_to_keeping(void **state)
{
	struct home *home = home_open(own);

	(void)state;
	home->pool.n_kept_bytes = SIZE_MAX / 2;
	put_good(&home->other);
	for (unsigned i = 0; i < 2; i++) {
		row_at(home, START + 5);
		row_at(home, START + 6);
	}
	assert_int_equal(home->other.n_asked, 2);
	assert_int_equal(home->pool.n, 2);
	home_close(home);
}

/* ---- Answers for several addresses ---- */

static uint32_t ask_for(struct home *home, const uint64_t *addresses, size_t n)
{
	uint32_t row;

	assert_int_equal(cfi_rows_ask(&home->pool, &home->source, &home->module, addresses, n, &row), 0);
	return row;
}

static void test_several_addresses_are_answered(void **state)
{
	const uint64_t addresses[] = { START + 5, START + 100, START + 300, START + 15, START + 200 };
	struct home *home = home_open(own);

	(void)state;
	put_good(&home->other);
	put_part(&home->other, 1, START + 90, START + 110, 1);
	put_row(&home->other, 0, 20, CFA_DEREF, MACHINE_REG_FP);
	put_part(&home->other, 4, START + 200, START + 201, 0); /* it has no CFI; the third address has no part */
	assert_int_equal(home->pool.rows[ask_for(home, addresses, N_ELEMENTS(addresses))].cfa_register, MACHINE_REG_SP);
	assert_int_equal(home->pool.rows[row_at(home, START + 15)].cfa_register, MACHINE_REG_FP);
	assert_int_equal(home->pool.rows[row_at(home, START + 95)].cfa_kind, CFA_DEREF);
	assert_int_equal(row_at(home, START + 200), ROW_NONE);
	assert_int_equal(home->other.n_asked, 1);
	assert_int_equal(home->other.n_refused, 0);
	put_head(&home->other, START + 300, START + 301, 0);
	row_at(home, START + 300);
	assert_int_equal(home->other.n_asked, 2);
	home_close(home);
}

/* The second part lies: its file is refused, and the rows of the first part remain. */
static void test_lies_of_later_parts_are_refused(void **state)
{
	const uint64_t addresses[] = { START + 5, START + 100 };
	struct home *home;

	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		home = home_open(own);
		put_good(&home->other);
		put_part(&home->other, i == 0 ? 2 : i == 1 ? 0 : 1, START + (i == 2 ? 200 : 90), START + 210, 1);
		put_row(&home->other, 0, i == 3 ? 1 : 110, CFA_DEREF, MACHINE_REG_FP);
		if (i == 4)
			put(&home->other, 0, 1);
		assert_int_equal(home->pool.rows[ask_for(home, addresses, 2)].cfa_register, MACHINE_REG_SP);
		if (home->other.n_refused != 1)
			fail_msg("lie %u was believed", i);
		assert_int_equal(home->pool.rows[row_at(home, START + 5)].cfa_register, MACHINE_REG_SP);
		assert_int_equal(home->other.n_asked, 1);
		home_close(home);
	}
}

/* Functions of this program, asked for together: fewer questions, equal rows. */
static void test_a_question_serves_several_functions(void **state)
{
	struct module here = { .path = (char *)(uintptr_t) "own", .elf = own };
	struct home *home = home_open(own);
	uint64_t addresses[NATIVE_ROWS_MAX_ADDRESSES], start, end;
	struct row_pool pool;
	uint32_t row, theirs;
	size_t n = 0;

	(void)state;
	assert_int_equal(row_pool_init(&pool), 0);
	for (uint64_t at = 0; at < 1 << 20 && n < N_ELEMENTS(addresses); at += 16)
		if (elf_file_function(own, at, &start, &end) == 0 && end - start > 64) {
			addresses[n++] = start + 32;
			at = end;
		}
	assert_int_equal(n, N_ELEMENTS(addresses));
	ask_for(home, addresses, n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(cfi_row_at(&pool, NULL, &here, addresses[i], &row), 0);
		theirs = row_at(home, addresses[i]);
		assert_true(same_row(&pool, row, &home->pool, theirs));
	}
	assert_in_range(home->other.n_asked, 1, 3);
	assert_int_equal(home->other.n_refused, 0);
	home_close(home);
	cfi_module_done(&here);
	row_pool_done(&pool);
}

/* A gap between received rows gets a request of its own. */
static void test_gaps_are_asked_for(void **state)
{
	struct home *home = home_open(own);

	(void)state;
	put_head(&home->other, START, START + 20, 2);
	put_row(&home->other, 0, 5, CFA_REGISTER, MACHINE_REG_SP);
	put_row(&home->other, 15, 20, CFA_REGISTER, MACHINE_REG_SP);
	row_at(home, START);
	put_head(&home->other, START + 10, START + 11, 0);
	assert_int_equal(row_at(home, START + 10), ROW_NONE);
	assert_int_equal(row_at(home, START + 10), ROW_NONE);
	assert_int_equal(home->other.n_asked, 2);
	assert_int_equal(home->other.n_refused, 0);
	home_close(home);
}

static void set(struct other *other, size_t at, uint64_t number, size_t n_bytes)
{
	memcpy(other->bytes + at, &number, n_bytes);
}

static void lie_of_no_length(struct other *other)
{
	set(other, PART_BYTES + 8, START, 8);
}

static void lie_of_another_place(struct other *other)
{
	set(other, PART_BYTES, START + 15, 8);
}

static void lie_that_ends_early(struct other *other)
{
	other->n_bytes--;
}

static void lie_that_goes_on(struct other *other)
{
	put(other, 0, 1);
	set(other, 4, other->n_bytes - PART_BYTES, 4);
}

static void lie_of_many_rows(struct other *other)
{
	set(other, PART_BYTES + 16, UINT32_MAX, 4);
}

static void lie_without_the_row(struct other *other)
{
	set(other, FIRST_ROW + 4, 2, 4); /* [0, 2): another address than that of the question */
}

static void lie_of_overlapping_rows(struct other *other)
{
	set(other, FIRST_ROW + ROW_BYTES, 9, 4);
}

static void lie_beyond_the_end(struct other *other)
{
	set(other, FIRST_ROW + ROW_BYTES + 4, 21, 4);
}

static void lie_of_a_register(struct other *other)
{
	set(other, FIRST_ROW + 9, MACHINE_N_REGS, 1);
}

static void lie_of_a_kind(struct other *other)
{
	set(other, FIRST_ROW + 8, CFA_EXPRESSION + 1, 1);
}

static void lie_of_an_expression(struct other *other)
{
	set(other, FIRST_ROW + 8, CFA_EXPRESSION, 1); /* whose operations are the next row */
}

static void lie_of_a_saved_expression(struct other *other)
{
	set(other, FIRST_ROW + 16, (uint16_t)SAVED_EXPRESSION, 2);
}

static void lie_of_another_address(struct other *other)
{
	set(other, 0, 1, 4);
}

static void lie_of_a_long_part(struct other *other)
{
	set(other, 4, UINT32_MAX, 4);
}

static void lie_of_a_short_part(struct other *other)
{
	set(other, 4, HEAD_BYTES, 4);
}

static void lie_of_nothing(struct other *other)
{
	other->n_bytes = 0;
}

static void test_lies_are_refused(void **state)
{
	static void (*const lies[])(struct other *) = {
		lie_of_no_length,  lie_of_another_place,   lie_that_ends_early,     lie_that_goes_on,
		lie_of_many_rows,  lie_without_the_row,    lie_of_overlapping_rows, lie_beyond_the_end,
		lie_of_a_register, lie_of_a_kind,          lie_of_an_expression,    lie_of_a_saved_expression,
		lie_of_nothing,    lie_of_another_address, lie_of_a_long_part,      lie_of_a_short_part,
	};

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(lies); i++) {
		struct home *home = home_open(own);

		put_good(&home->other);
		lies[i](&home->other);
		if (row_at(home, START + 5) != ROW_NONE || home->other.n_refused != 1)
			fail_msg("lie %zu was believed", i);
		assert_int_equal(row_at(home, START + 5), ROW_NONE);
		assert_int_equal(home->other.n_asked, 1);
		home_close(home);
	}
}

/* ---- Questions about a stack ---- */

#define MAPPED_AT UINT64_C(0x10000000)
#define STACK_AT UINT64_C(0x7ffd00000000)

enum { MAPPED_BYTES = 1 << 16, STACK_WORDS = 1024 };

static void walk(struct native_process *process, uint64_t pc, const uint64_t *words)
{
	struct native_stack stack = { 0 };
	struct sample sample = { .has_user = true };

	sample.stack = (const uint8_t *)words;
	sample.stack_bytes = STACK_WORDS * sizeof *words;
	sample.regs.value[MACHINE_REG_SP] = STACK_AT;
	sample.regs.value[MACHINE_REG_PC] = pc;
	assert_int_equal(native_unwind(process, &sample, NULL, &stack), 0);
	native_stack_done(&stack);
}

/* Words further up the stack that point into the same mapping are asked for at once, each once, and never again. */
static void test_the_stack_is_asked_for(void **state)
{
	const struct mapping_source source = {
		.start = MAPPED_AT, .end = MAPPED_AT + MAPPED_BYTES, .executable = true, .inode = 1, .path = "/own"
	};
	const uint64_t expected[] = { START, START + 0x100, START + 0x200, START + 0x300 };
	uint64_t words[STACK_WORDS] = { 1, MAPPED_AT + START + 0x101, STACK_AT, MAPPED_AT + START + 0x201,
					MAPPED_AT + START + 0x101 };
	struct home *home = home_open(own);
	struct native_unwinder *unwinder;
	struct native_process *process;
	struct address_space *space;
	struct module_table *modules;

	(void)state;
	words[5] = MAPPED_AT + MAPPED_BYTES + 1; /* beyond the mapping */
	words[6] = MAPPED_AT + START + 1;        /* the PC itself */
	words[100] = MAPPED_AT + START + 0x301;
	words[STACK_WORDS - 1] = MAPPED_AT + START + 0x401; /* too far up */
	assert_int_equal(module_table_new(&modules), 0);
	assert_int_equal(address_space_new(1, modules, &space), 0);
	assert_int_equal(address_space_add(space, &source), 0);
	module_table_get(modules, 0)->elf = own;
	assert_int_equal(native_unwinder_new(modules, &unwinder), 0);
	native_unwinder_set_source(unwinder, &home->source);
	assert_int_equal(native_process_new(unwinder, space, &process), 0);
	put_head(&home->other, START, START + 1, 0);
	for (uint32_t i = 1; i < 4; i++)
		put_part(&home->other, i, expected[i], expected[i] + 1, 0);
	for (unsigned i = 0; i < 2; i++)
		walk(process, MAPPED_AT + START, words);
	assert_int_equal(home->other.n_refused, 0);
	assert_int_equal(home->other.n_asked, 1);
	assert_int_equal(home->other.n_addresses, N_ELEMENTS(expected));
	assert_memory_equal(home->other.addresses, expected, sizeof expected);

	put_head(&home->other, START + 4, START + 5, 0);
	walk(process, MAPPED_AT + START + 4, words);
	assert_int_equal(home->other.n_asked, 2);
	assert_int_equal(home->other.n_addresses, 1);
	native_process_free(process);
	native_unwinder_free(unwinder);
	module_table_get(modules, 0)->elf = NULL; /* another test needs it */
	address_space_free(space);
	module_table_free(modules);
	home_close(home);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_they_are_the_same),
		cmocka_unit_test(test_one_answer_serves_a_function),
		cmocka_unit_test(test_what_was_told_stays),
		cmocka_unit_test(test_other_rows_do_not_stay),
		cmocka_unit_test(test_there_is_an_end_to_keeping),
		cmocka_unit_test(test_several_addresses_are_answered),
		cmocka_unit_test(test_lies_of_later_parts_are_refused),
		cmocka_unit_test(test_a_question_serves_several_functions),
		cmocka_unit_test(test_the_stack_is_asked_for),

		cmocka_unit_test(test_gaps_are_asked_for),
		cmocka_unit_test(test_lies_are_refused),
	};

	return cmocka_run_group_tests(tests, open_own, close_own);
}
