/* SPDX-License-Identifier: MIT */
/* test_unpack_limits.c - what is packed in a file is measured before libdw unpacks it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/elf_file.h"
#include "base/util.h"
#include "symbolize/unpack_limits.h"
#include "symbolize/symbolize.h"
#include "tests/unit/shell.h"

enum { MAX_BYTES = 64 << 20 };

static char folder[] = "/tmp/test_unpack_limits.XXXXXX";

static int run(const char *command)
{
	return shell_in(folder, command);
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	char line[64];

	(void)state;
	snprintf(line, sizeof line, "rm -rf %s", folder);
	return system(line) == 0 ? 0 : -1;
}

static char *contents(const char *name, size_t *ret_bytes)
{
	char path[128], *bytes;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	assert_int_equal(read_file(path, MAX_BYTES, &bytes, ret_bytes), 0);
	return bytes;
}

static void need_xz(void)
{
	if (run("xz --version") == 0)
		return;
	print_message("no xz here\n");
	skip();
}

static void expect_size(const char *make, uint64_t size)
{
	CLEANUP(freep) char *bytes = NULL;
	uint64_t found = 0;
	size_t n;

	assert_int_equal(run(make), 0);
	bytes = contents("x.xz", &n);
	assert_int_equal(unpack_limits_xz_bytes((uint8_t *)bytes, n, &found), 0);
	assert_true(found == size);
	/* Cut anywhere before the end of the blocks it is damaged, and never read beyond. */
	for (size_t cut = 0; cut < MIN(n, (size_t)300) - 40; cut++) {
		CLEANUP(freep) uint8_t *part = malloc(cut + 1);

		assert_non_null(part);
		memcpy(part, bytes, cut);
		assert_int_equal(unpack_limits_xz_bytes(part, cut, &found), -EBADMSG);
	}
}

static void test_sizes_of_real_files(void **state)
{
	(void)state;
	need_xz();
	expect_size("head -c 5000000 /dev/zero | xz > x.xz", 5000000);
	expect_size("head -c 3000000 /dev/urandom | xz -0 > x.xz", 3000000);
	expect_size("seq 200000 | xz --check=crc32 > x.xz", 1288895);
	expect_size("seq 200000 | xz --check=sha256 --block-size=65536 > x.xz", 1288895);
	expect_size("seq 200000 | xz --check=none -T2 --block-size=300000 > x.xz", 1288895);
}

static void test_what_is_not_measured(void **state)
{
	static const uint8_t raw_lzma[32] = { 0x5d, 0, 0, 0x80 };
	CLEANUP(freep) char *bytes = NULL;
	uint64_t found;
	size_t n;

	(void)state;
	assert_int_equal(unpack_limits_xz_bytes(raw_lzma, sizeof raw_lzma, &found), -EBADMSG);
	need_xz();
	/* Another filter in front, a dictionary of 1.5 GB. */
	assert_int_equal(run("seq 20000 | xz --x86 --lzma2 > x.xz"), 0);
	bytes = contents("x.xz", &n);
	assert_int_equal(unpack_limits_xz_bytes((uint8_t *)bytes, n, &found), -EBADMSG);
	free(TAKE(bytes));
	assert_int_equal(run("seq 2000 | xz > x.xz"), 0);
	bytes = contents("x.xz", &n);
	assert_int_equal(unpack_limits_xz_bytes((uint8_t *)bytes, n, &found), 0);
	bytes[12 + 4] = 40; /* the dictionary's property: 4 GB */
	assert_int_equal(unpack_limits_xz_bytes((uint8_t *)bytes, n, &found), -EBADMSG);
}

static struct elf_file *open_elf(char *bytes, size_t n)
{
	struct elf_file *elf;

	assert_int_equal(elf_file_open_memory(bytes, n, &elf), 0);
	return elf;
}

static bool passes(const char *name)
{
	CLEANUP(freep) char *bytes = NULL;
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	size_t n;

	bytes = contents(name, &n);
	elf = open_elf(bytes, n);
	return unpack_limits_passes(elf);
}

static void test_mini_debug_information(void **state)
{
	(void)state;
	need_xz();
	assert_int_equal(run("echo 'int f(void) { return 1; }' > a.c && cc -shared -fPIC -g a.c -o a.so && "
			     "head -c 100000000 /dev/zero | xz > small.xz && "
			     "head -c 300000000 /dev/zero | xz > large.xz && "
			     "objcopy --add-section .gnu_debugdata=small.xz a.so small.so && "
			     "objcopy --add-section .gnu_debugdata=large.xz a.so large.so && "
			     "objcopy --add-section .gnu_debugdata=a.c a.so other.so"),
			 0);
	assert_true(passes("a.so"));
	assert_true(passes("small.so"));
	assert_false(passes("large.so"));
	assert_false(passes("other.so"));
}

/* A fenced file is no error: it has no names. */
static void test_a_fenced_file_has_offsets_only(void **state)
{
	CLEANUP(symbol_module_freep) struct symbol_module *module = NULL;
	struct symbol symbol;
	char path[128];

	(void)state;
	need_xz();
	snprintf(path, sizeof path, "%s/large.so", folder);
	assert_int_equal(symbol_module_open(path, -1, &module), 0);
	assert_int_equal(symbol_lookup(module, 0x1100, &symbol, 1), 1);
	assert_true(symbol.is_offset);
	assert_null(symbol.file);
}

/* The header of a compressed section claims 100 GB. */
static void test_compressed_section(void **state)
{
	CLEANUP(freep) char *bytes = NULL;
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	Elf_Scn *section = NULL;
	unsigned n_changed = 0;
	GElf_Shdr header;
	size_t n;

	(void)state;
	assert_int_equal(run("echo 'int f(void) { return 1; }' > a.c && cc -shared -fPIC -g -gz a.c -o z.so"), 0);
	assert_true(passes("z.so"));
	bytes = contents("z.so", &n);
	elf = open_elf(bytes, n);
	while ((section = elf_nextscn(elf_file_elf(elf), section)) != NULL) {
		static const uint64_t claimed = UINT64_C(100) << 30;

		if (!gelf_getshdr(section, &header) || !(header.sh_flags & SHF_COMPRESSED))
			continue;
		memcpy(bytes + header.sh_offset + offsetof(Elf64_Chdr, ch_size), &claimed, sizeof claimed);
		n_changed++;
	}
	assert_true(n_changed > 0);
	elf_file_free(TAKE(elf));
	elf = open_elf(bytes, n);
	assert_false(unpack_limits_passes(elf));
}

/* Each compressed section claims this size; none exceeds the limit alone. Return their number. */
static unsigned claim(char *bytes, size_t n, uint64_t n_claimed)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = open_elf(bytes, n);
	Elf_Scn *section = NULL;
	unsigned n_changed = 0;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf_file_elf(elf), section)) != NULL) {
		if (!gelf_getshdr(section, &header) || !(header.sh_flags & SHF_COMPRESSED))
			continue;
		memcpy(bytes + header.sh_offset + offsetof(Elf64_Chdr, ch_size), &n_claimed, sizeof n_claimed);
		n_changed++;
	}
	return n_changed;
}

static void test_sum_of_sections(void **state)
{
	CLEANUP(freep) char *bytes = NULL;
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	uint64_t n_all, n_symbols;
	unsigned n_sections;
	size_t n;

	(void)state;
	assert_int_equal(
		run("for i in $(seq 300); do echo \"struct s$i { int x; } v$i; int f$i(int a) { return a < $i ? v$i.x : f$((i-1))(a); }\"; done | "
		    "sed '1i int f0(int a) { return a; }' > b.c && cc -O2 -shared -fPIC -g -gz b.c -o z.so"),
		0);
	bytes = contents("z.so", &n);
	n_sections = claim(bytes, n, 1);
	assert_true(n_sections >= 4);
	(void)claim(bytes, n, FENCE_SMALL_BYTES / n_sections);
	elf = open_elf(bytes, n);
	assert_int_equal(unpack_limits_unpacked_bytes(elf, &n_all, &n_symbols), 0);
	assert_true(n_all > FENCE_SMALL_BYTES - n_sections && n_all <= FENCE_SMALL_BYTES);
	assert_int_equal(n_symbols, 0);
	assert_int_equal(elf_file_packed_bytes(elf), n_all); /* what keeps the unwinder from handing it to libdw */
	elf_file_free(TAKE(elf));
	(void)claim(bytes, n, FENCE_SMALL_BYTES / n_sections + 1);
	elf = open_elf(bytes, n);
	assert_false(unpack_limits_passes(elf));
}

/* Large sections are plausible if they compress as debug information does, up to the absolute limit. */
static void test_sums(void **state)
{
	const uint64_t mb = 1 << 20;

	(void)state;
	assert_true(unpack_limits_is_sane(250 * mb, 1));
	assert_false(unpack_limits_is_sane(260 * mb, 1));
	assert_true(unpack_limits_is_sane(1500 * mb, 400 * mb)); /* a web browser's */
	assert_false(unpack_limits_is_sane(1500 * mb, 80 * mb));
	assert_false(unpack_limits_is_sane(2100 * mb, 2000 * mb));
}

static void test_debug_files_have_no_code(void **state)
{
	CLEANUP(freep) char *bytes = NULL, *debug = NULL;
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL, *debug_elf = NULL;
	size_t n;

	(void)state;
	assert_int_equal(run("echo 'int f(void) { return 1; }' > a.c && cc -shared -fPIC -g a.c -o a.so && "
			     "objcopy --only-keep-debug a.so a.debug"),
			 0);
	bytes = contents("a.so", &n);
	elf = open_elf(bytes, n);
	assert_true(unpack_limits_has_code(elf));
	debug = contents("a.debug", &n);
	debug_elf = open_elf(debug, n);
	assert_false(unpack_limits_has_code(debug_elf));
}

static void test_files_by_build_id(void **state)
{
	struct build_id id = { .n_bytes = 4, .bytes = { 0xab, 0xcd, 0xef, 0x01 } };
	char path[128];
	bool has_code;
	int fd = -1;

	(void)state;
	assert_int_equal(run("echo 'int f(void) { return 1; }' > a.c && mkfifo pipe && "
			     "cc -shared -fPIC -g a.c -o id.so -Wl,--build-id=0xabcdef01"),
			 0);
	snprintf(path, sizeof path, "%s/id.so", folder);
	assert_int_equal(symbol_file_open(path, &id, &has_code, &fd), 0);
	assert_true(has_code);
	close(fd);
	id.bytes[1] = 0xce;
	assert_int_equal(symbol_file_open(path, &id, &has_code, &fd), -ESTALE);
	snprintf(path, sizeof path, "%s/pipe", folder);
	assert_int_equal(symbol_file_open(path, &id, &has_code, &fd), -ENOEXEC);
	assert_int_equal(symbol_file_open(folder, NULL, &has_code, &fd), -ENOEXEC);
	snprintf(path, sizeof path, "%s/none", folder);
	assert_int_equal(symbol_file_open(path, &id, &has_code, &fd), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes_of_real_files),
		cmocka_unit_test(test_what_is_not_measured),
		cmocka_unit_test(test_mini_debug_information),
		cmocka_unit_test(test_a_fenced_file_has_offsets_only),
		cmocka_unit_test(test_compressed_section),
		cmocka_unit_test(test_sum_of_sections),
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_debug_files_have_no_code),
		cmocka_unit_test(test_files_by_build_id),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
