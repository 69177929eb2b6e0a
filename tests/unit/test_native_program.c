/* SPDX-License-Identifier: MIT */
/* Our own reading of .eh_frame against libdw's, at every row of real files.
 *
 * Each file's functions are walked row by row, as libdw divides them; at a row's
 * first and last byte the program is run and must give what libdw gives.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "native_target.h"
#include "unwind/native/program.h"

struct tally {
	size_t n_functions, n_rows, n_slow, n_left; /* left: to libdw, said so */
};

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

static bool same_slow(const struct cfi_slow *a, const struct cfi_slow *b)
{
	for (unsigned i = 0; i < ROW_N_SAVED; i++)
		if (!same_ops(&a->saved[i], &b->saved[i]))
			return false;
	return same_ops(&a->cfa, &b->cfa);
}

static void show(const char *who, const struct cfi_row *row)
{
	print_message("%s: kind %d register %d offset %d signal %d outermost %d plain %d saved", who, row->cfa_kind,
		      row->cfa_register, row->cfa_offset, row->is_signal, row->is_outermost, row->is_plain);
	for (unsigned i = 0; i < ROW_N_SAVED; i++)
		print_message(" %d", row->saved[i]);
	print_message("\n");
}

static void compare_at(struct elf_file *file, Dwarf_CFI *theirs, uint64_t address, struct tally *tally)
{
	struct cfi_slow our_slow = { 0 }, their_slow = { 0 };
	struct cfi_row our_row, their_row;
	Dwarf_Frame *frame = NULL;
	struct elf_cfi cfi;
	int ours, libdws;

	assert_int_equal(elf_file_cfi(file, address, &cfi), 0);
	assert_int_equal(dwarf_cfi_addrframe(theirs, address, &frame), 0);
	ours = program_row(&cfi, address, &our_row, &our_slow);
	libdws = row_compile(frame, &their_row, &their_slow);
	free(frame);
	tally->n_rows++;
	if (ours == -EOPNOTSUPP) {
		tally->n_left++;
	} else {
		if (ours != libdws || memcmp(&our_row, &their_row, sizeof our_row) != 0) {
			show("ours", &our_row);
			show("libdw", &their_row);
			fail_msg("at %#llx: %d, libdw %d", (unsigned long long)address, ours, libdws);
		}
		if (ours == 1 && !same_slow(&our_slow, &their_slow))
			fail_msg("expressions at %#llx differ", (unsigned long long)address);
		tally->n_slow += ours == 1;
	}
	if (ours >= 0)
		cfi_slow_done(&our_slow);
	if (libdws >= 0)
		cfi_slow_done(&their_slow);
}

static void compare_function(struct elf_file *file, Dwarf_CFI *theirs, uint64_t start, uint64_t end,
			     struct tally *tally)
{
	for (uint64_t at = start; at < end;) {
		Dwarf_Frame *frame = NULL;
		Dwarf_Addr row_start, row_end;
		bool is_signal;

		assert_int_equal(dwarf_cfi_addrframe(theirs, at, &frame), 0);
		assert_true(dwarf_frame_info(frame, &row_start, &row_end, &is_signal) >= 0);
		free(frame);
		assert_true(row_start <= at && row_end > at);
		compare_at(file, theirs, at, tally);
		compare_at(file, theirs, MIN(row_end, end) - 1, tally);
		at = row_end;
	}
	tally->n_functions++;
}

/* @every: compare one function of this many. */
static void compare_file(struct elf_file *file, unsigned every, struct tally *tally)
{
	Dwarf_CFI *theirs = dwarf_getcfi_elf(elf_file_elf(file));
	struct elf_segment segment;
	unsigned n = 0;

	assert_non_null(theirs);
	for (size_t i = 0; elf_file_segment(file, i, &segment); i++) {
		uint64_t at = segment.address, segment_end = segment.address + segment.n_file_bytes;

		while (segment.executable && at < segment_end) {
			uint64_t start, end;

			if (elf_file_function(file, at, &start, &end) < 0) {
				at++;
				continue;
			}
			if (n++ % every == 0)
				compare_function(file, theirs, start, end, tally);
			at = end;
		}
	}
	dwarf_cfi_end(theirs);
}

static bool compare_path(const char *path, unsigned every, struct tally *tally)
{
	struct elf_file *file;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	assert_int_equal(elf_file_open(fd, &file), 0);
	compare_file(file, every, tally);
	elf_file_free(file);
	return true;
}

static void report(const char *what, const struct tally *tally)
{
	print_message("%s: %zu functions, %zu rows, %zu with expressions, %zu left to libdw\n", what,
		      tally->n_functions, tally->n_rows, tally->n_slow, tally->n_left);
	assert_true(tally->n_functions > 0);
	assert_true(tally->n_left * 1000 <= tally->n_rows);
}

static void test_libraries(void **state)
{
	static const struct {
		const char *path;
		unsigned every;
	} files[] = {
		{ "/proc/self/exe", 1 },
		{ "/lib/x86_64-linux-gnu/libc.so.6", 1 },
		{ "/lib64/ld-linux-x86-64.so.2", 1 },
		{ "/lib/x86_64-linux-gnu/libm.so.6", 1 },
		{ "/lib/x86_64-linux-gnu/libdw.so.1", 1 },
		{ "/lib/x86_64-linux-gnu/libstdc++.so.6", 4 },
		{ "/lib/x86_64-linux-gnu/libcrypto.so.3", 4 },
		{ "/usr/bin/python3", 2 },
		{ "/usr/lib/llvm-14/lib/libLLVM-14.so.1", 64 },
		{ "/lib/x86_64-linux-gnu/libtorch_cpu.so", 64 },
		{ "/usr/lib/x86_64-linux-gnu/libtorch_cpu.so.1.13.0", 64 },
		{ "/usr/bin/node", 64 },
	};
	unsigned n_files = 0;

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(files); i++) {
		struct tally tally = { 0 };

		if (!compare_path(files[i].path, files[i].every, &tally))
			continue;
		report(files[i].path, &tally);
		n_files++;
	}
	assert_true(n_files >= 2);
}

static void test_vdso(void **state)
{
	const uint8_t *image = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	struct tally tally = { 0 };
	struct elf_file *file;

	(void)state;
	if (!image) {
		print_message("skipped: this kernel gives no vdso\n");
		skip();
	}
	assert_int_equal(elf_file_open_memory(image, 4096, &file), 0);
	compare_file(file, 1, &tally);
	report("[vdso]", &tally);
	elf_file_free(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_libraries),
		cmocka_unit_test(test_vdso),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
