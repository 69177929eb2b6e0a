/* SPDX-License-Identifier: MIT */
/* test_unpack.c - packed debug information says the same as when it was not packed. */
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <linux/magic.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/elf_file.h"
#include "base/util.h"
#include "symbolize/symbolize.h"
#include "symbolize/unpack.h"
#include "tests/unit/shell.h"

static const char program[] = "#define M(n) int a##n, b##n, c##n, d##n, e##n, f##n, g##n, h##n;\n"
			      "#define T(n) M(n##0) M(n##1) M(n##2) M(n##3) M(n##4) M(n##5) M(n##6) M(n##7)\n"
			      "struct wide { T(0) T(1) T(2) T(3) T(4) T(5) T(6) T(7) T(8) T(9) T(10) T(11) } wide;\n"
			      "static inline __attribute__((always_inline)) int inner(int x)\n"
			      "{ __asm__ volatile(\"nop; nop\"); return x * 3; }\n"
			      "__attribute__((noinline)) int outer(int x);\n"
			      "int outer(int x)\n"
			      "{\n"
			      "	return inner(x) + 1;\n"
			      "}\n"
			      "int main(int argc, char **argv)\n"
			      "{\n"
			      "	(void)argv;\n"
			      "	return outer(argc);\n"
			      "}\n";

/* The debug information of 65,536 members takes more than a megabyte: enough for a helper thread. */
static const char large[] = "#define M(q) int a##q, b##q, c##q, d##q, e##q, f##q, g##q, h##q, \\\n"
			    "	i##q, j##q, k##q, l##q, m##q, n##q, o##q, p##q;\n"
			    "#define R(T, n) T(n##0) T(n##1) T(n##2) T(n##3) T(n##4) T(n##5) T(n##6) T(n##7) \\\n"
			    "	T(n##8) T(n##9) T(n##a) T(n##b) T(n##c) T(n##d) T(n##e) T(n##f)\n"
			    "#define S(n) M(n##0) M(n##1) M(n##2) M(n##3) M(n##4) M(n##5) M(n##6) M(n##7) \\\n"
			    "	M(n##8) M(n##9) M(n##a) M(n##b) M(n##c) M(n##d) M(n##e) M(n##f)\n"
			    "#define T(n) R(S, n)\n"
			    "struct large { T(0) T(1) T(2) T(3) T(4) T(5) T(6) T(7)\n"
			    "	T(8) T(9) T(a) T(b) T(c) T(d) T(e) T(f) } large;\n"
			    "#include \"a.c\"\n";

static char folder[] = "/tmp/test_unpack.XXXXXX";

static int run(const char *command)
{
	return shell_in(folder, command);
}

static int make_files(void **state)
{
	(void)state;
	if (!mkdtemp(folder) || write_in(folder, "a.c", program) < 0 || write_in(folder, "large.c", large) < 0)
		return -1;
	return run(
		"cc -O2 -g a.c -o plain && cc -x c++ -O2 -g -gz=zlib a.c -o cxx && objcopy --compress-debug-sections=zlib plain within && "
		"objcopy --only-keep-debug --compress-debug-sections=zlib plain packed.debug && "
		"strip -o apart plain && objcopy --add-gnu-debuglink=packed.debug apart && "
		"cc -O2 -g large.c -o large && objcopy --compress-debug-sections=zlib large large_within && "
		"objcopy --only-keep-debug --compress-debug-sections=zlib large large.debug && "
		"strip -o large_apart large && objcopy --add-gnu-debuglink=large.debug large_apart");
}

static int remove_files(void **state)
{
	(void)state;
	return run("rm -rf \"$PWD\"") == 0 ? 0 : -1;
}

static struct elf_file *open_elf(const char *name, int flags)
{
	struct elf_file *elf;
	char path[64];
	int fd;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	fd = open(path, flags | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(elf_file_open(fd, &elf), 0);
	return elf;
}

static void copy_text(const char *from, char *to, size_t n_bytes)
{
	snprintf(to, n_bytes, "%s", from ? from : "-");
}

/* Describe all symbols of each byte of a function as text. @search: NULL: decompress all into memory. */
static void describe(const char *name, struct symbol_search *search, char *to, size_t n_bytes)
{
	CLEANUP(symbol_module_freep) struct symbol_module *module = NULL;
	CLEANUP(elf_file_freep)
	struct elf_file *plain = open_elf(strncmp(name, "large", 5) == 0 ? "large" : "plain", O_RDONLY);
	struct symbol symbols[SYMBOL_MAX_INLINED];
	uint64_t start, n;
	size_t used = 0;
	char path[64];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	assert_int_equal(symbol_module_open(path, -1, &module), 0);
	assert_int_equal(symbol_module_set_search(module, search, NULL), 0);
	assert_int_equal(elf_file_symbol(plain, "outer", &start, &n), 0);
	assert_true(n > 0);
	for (uint64_t at = start; at < start + n; at++) {
		int found;

		symbol_module_trim(module);
		found = symbol_lookup(module, at, symbols, N_ELEMENTS(symbols));
		assert_true(found >= 1);
		for (int i = 0; i < found && used < n_bytes; i++) {
			char file[256];

			copy_text(symbols[i].file, file, sizeof file);
			used += (size_t)snprintf(to + used, n_bytes - used, "%s %s:%d\n", symbols[i].name, file,
						 symbols[i].line);
		}
	}
	assert_true(used < n_bytes);
}

static void the_same_is_told(void **state)
{
	char plain[8192], within[8192], apart[8192];

	(void)state;
	describe("plain", NULL, plain, sizeof plain);
	describe("within", NULL, within, sizeof within);
	describe("apart", NULL, apart, sizeof apart);
	assert_non_null(strstr(plain, "outer "));
	assert_non_null(strstr(plain, "inner "));
	assert_non_null(strstr(plain, "a.c:9\n"));
	assert_string_equal(plain, within);
	assert_string_equal(plain, apart);
}

static void the_same_is_told_from_a_file(void **state)
{
	static const char *const folders[] = { "/var/tmp", "/dev/shm", "/nowhere" };
	char plain[8192], within[8192];

	(void)state;
	describe("plain", NULL, plain, sizeof plain);
	for (size_t i = 0; i < N_ELEMENTS(folders); i++) {
		CLEANUP(symbol_search_freep) struct symbol_search *search = NULL;
		const struct symbol_search_options options = { .scratch_folder = folders[i] };

		assert_int_equal(symbol_search_new(&options, &search), 0);
		describe("within", search, within, sizeof within);
		assert_string_equal(plain, within);
	}
}

/* Resident KB of mapped files without a name in this folder; -1: none. */
static long resident_kb(const char *folder_name)
{
	FILE *maps = fopen("/proc/self/smaps", "r");
	bool is_wanted = false;
	char line[512];
	long kb, all = -1;

	assert_non_null(maps);
	while (fgets(line, sizeof line, maps)) {
		const char *path = strstr(line, folder_name);

		if (path && strstr(path, "(deleted)"))
			is_wanted = true;
		if (!is_wanted || sscanf(line, "Rss: %ld", &kb) != 1)
			continue;
		all = MAX(all, 0) + kb;
		is_wanted = false;
	}
	fclose(maps);
	return all;
}

static bool is_on_disk_with_room(const char *folder_name)
{
	CLEANUP(closep) int fd = open(folder_name, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	struct statfs fs;

	return fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type != TMPFS_MAGIC &&
	       (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize > 2ULL << 30;
}

static void memory_of_a_file_is_given_back(void **state)
{
	CLEANUP(elf_file_freep) struct elf_file *file = open_elf("within", O_RDONLY);
	CLEANUP(unpacked_freep) struct unpacked *unpacked = NULL;
	Dwarf_Off next;
	size_t header_bytes;

	(void)state;
	if (!is_on_disk_with_room("/var/tmp")) {
		print_message("/var/tmp has no room, or no files without a name\n");
		skip();
	}
	assert_int_equal(unpacked_new(file, "/var/tmp", false, &unpacked), 0);
	assert_int_equal(dwarf_nextcu(unpacked_dwarf(unpacked), 0, &next, &header_bytes, NULL, NULL, NULL), 0);
	assert_true(resident_kb("/var/tmp/") > 0);
	unpacked_trim(unpacked);
	assert_int_equal(resident_kb("/var/tmp/"), 0);
	assert_int_equal(dwarf_nextcu(unpacked_dwarf(unpacked), 0, &next, &header_bytes, NULL, NULL, NULL), 0);
	assert_true(resident_kb("/var/tmp/") > 0);
}

/* Anonymous memory is kept, since it has no backing file. */
static void memory_that_is_ours_is_kept(void **state)
{
	CLEANUP(elf_file_freep) struct elf_file *file = open_elf("within", O_RDONLY);
	CLEANUP(unpacked_freep) struct unpacked *unpacked = NULL;
	Dwarf_Off next;
	size_t header_bytes;

	(void)state;
	assert_int_equal(unpacked_new(file, NULL, false, &unpacked), 0);
	unpacked_trim(unpacked);
	assert_int_equal(dwarf_nextcu(unpacked_dwarf(unpacked), 0, &next, &header_bytes, NULL, NULL, NULL), 0);
	assert_true(next > header_bytes);
}

static bool is_zero(const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bytes[i] != 0)
			return false;
	return true;
}

/* Count whole pages of .debug_info that were released. */
static unsigned pages_given_back(const char *name)
{
	CLEANUP(elf_file_freep) struct elf_file *file = open_elf(name, O_RDONLY);
	CLEANUP(unpacked_freep) struct unpacked *unpacked = NULL;
	size_t page = (size_t)getpagesize(), names;
	Elf_Scn *section = NULL;
	unsigned n = 0;
	Elf *elf;

	assert_int_equal(unpacked_new(file, NULL, false, &unpacked), 0);
	elf = dwarf_getelf(unpacked_dwarf(unpacked));
	assert_int_equal(elf_getshdrstrndx(elf, &names), 0);
	while ((section = elf_nextscn(elf, section)) != NULL) {
		GElf_Shdr header;
		Elf_Data *data;

		assert_non_null(gelf_getshdr(section, &header));
		if (strcmp(elf_strptr(elf, names, header.sh_name), ".debug_info") != 0)
			continue;
		data = elf_rawdata(section, NULL);
		assert_non_null(data);
		for (size_t at = page - (uintptr_t)data->d_buf % page; at + page <= data->d_size; at += page)
			n += is_zero((const uint8_t *)data->d_buf + at, page);
	}
	return n;
}

/* In C++ types hold functions. */
static void types_of_c_are_given_back(void **state)
{
	(void)state;
	assert_true(pages_given_back("within") > 0);
	assert_true(pages_given_back("packed.debug") > 0);
	assert_int_equal(pages_given_back("cxx"), 0);
}

static void what_is_not_packed_is_libdws(void **state)
{
	CLEANUP(elf_file_freep) struct elf_file *plain = open_elf("plain", O_RDONLY);
	CLEANUP(elf_file_freep) struct elf_file *packed = open_elf("packed.debug", O_RDONLY);
	CLEANUP(unpacked_freep) struct unpacked *unpacked = NULL;

	(void)state;
	assert_int_equal(unpacked_new(plain, NULL, false, &unpacked), -ENOTSUP);
	assert_null(unpacked);
	assert_int_equal(unpacked_new(packed, NULL, false, &unpacked), 0);
	assert_non_null(unpacked_dwarf(unpacked));
}

/* Where a packed section's bytes are in its file. */
static void find_section(const char *name, const char *wanted, uint64_t *ret_offset, uint64_t *ret_size)
{
	CLEANUP(elf_file_freep) struct elf_file *file = open_elf(name, O_RDONLY);
	Elf_Scn *section = NULL;
	size_t names;

	assert_int_equal(elf_getshdrstrndx(elf_file_elf(file), &names), 0);
	while ((section = elf_nextscn(elf_file_elf(file), section)) != NULL) {
		GElf_Shdr header;

		assert_non_null(gelf_getshdr(section, &header));
		if (strcmp(elf_strptr(elf_file_elf(file), names, header.sh_name), wanted) != 0)
			continue;
		assert_true(header.sh_flags & SHF_COMPRESSED);
		*ret_offset = header.sh_offset;
		*ret_size = header.sh_size;
		return;
	}
	fail();
}

/* After a change of any single byte of the compressed section, only a complete decompression counts. */
static void damaged_ones_are_refused(void **state)
{
	uint64_t offset = 0, size = 0;
	unsigned n_refused = 0;
	char path[64];

	(void)state;
	find_section("within", ".debug_info", &offset, &size);
	snprintf(path, sizeof path, "%s/damaged", folder);
	for (uint64_t at = 0; at < size; at += 3) {
		CLEANUP(elf_file_freep) struct elf_file *file = NULL;
		CLEANUP(unpacked_freep) struct unpacked *unpacked = NULL;
		CLEANUP(symbol_module_freep) struct symbol_module *module = NULL;
		struct symbol symbol;
		uint8_t byte;
		int fd, r;

		assert_int_equal(run("cp within damaged"), 0);
		fd = open(path, O_RDWR | O_CLOEXEC);
		assert_int_equal(pread(fd, &byte, 1, (off_t)(offset + at)), 1);
		byte ^= 0x55;
		assert_int_equal(pwrite(fd, &byte, 1, (off_t)(offset + at)), 1);
		close(fd);
		file = open_elf("damaged", O_RDONLY);
		r = unpacked_new(file, NULL, false, &unpacked);
		assert_true(r == 0 || r == -EBADMSG || r == -ENOTSUP || r == -E2BIG || r == -ENOMEM);
		n_refused += r < 0;
		assert_int_equal(symbol_module_open(path, -1, &module), 0);
		assert_true(symbol_lookup(module, 0x1100, &symbol, 1) >= 1);
	}
	/* A checksum is part of the format. */
	assert_true(n_refused > 0.9 * (double)size / 3);
}

/* ---- With a helper thread ---- */

static struct symbol_search *brief_search(void)
{
	const struct symbol_search_options options = { .is_brief = true };
	struct symbol_search *search;

	assert_int_equal(symbol_search_new(&options, &search), 0);
	return search;
}

static void the_same_is_told_by_two_threads(void **state)
{
	CLEANUP(symbol_search_freep) struct symbol_search *search = brief_search();
	char plain[8192], within[8192], apart[8192];

	(void)state;
	describe("large", NULL, plain, sizeof plain);
	describe("large_within", search, within, sizeof within);
	describe("large_apart", search, apart, sizeof apart);
	assert_non_null(strstr(plain, "inner "));
	assert_non_null(strstr(plain, "a.c:9\n"));
	assert_string_equal(plain, within);
	assert_string_equal(plain, apart);
}

/* Compare with zlib's result of each section, byte for byte. */
static void each_section_is_whole(void **state)
{
	CLEANUP(elf_file_freep) struct elf_file *packed = open_elf("large.debug", O_RDONLY);
	CLEANUP(elf_file_freep) struct elf_file *plain = open_elf("large", O_RDONLY);
	CLEANUP(unpacked_freep) struct unpacked *unpacked = NULL;
	Elf *from = elf_file_elf(plain), *elf;
	size_t names, plain_names, n_compared = 0;
	Elf_Scn *section = NULL;

	(void)state;
	assert_int_equal(unpacked_start(packed, NULL, true, &unpacked), 0);
	assert_int_equal(unpacked_finish(unpacked), 0);
	elf = dwarf_getelf(unpacked_dwarf(unpacked));
	assert_int_equal(elf_getshdrstrndx(elf, &names), 0);
	assert_int_equal(elf_getshdrstrndx(from, &plain_names), 0);
	while ((section = elf_nextscn(elf, section)) != NULL) {
		Elf_Scn *other = NULL;
		GElf_Shdr header, other_header;

		assert_non_null(gelf_getshdr(section, &header));
		while ((other = elf_nextscn(from, other)) != NULL) {
			const char *name = elf_strptr(elf, names, header.sh_name);

			assert_non_null(gelf_getshdr(other, &other_header));
			if (strncmp(name, ".debug_", 7) != 0 ||
			    strcmp(name, elf_strptr(from, plain_names, other_header.sh_name)) != 0)
				continue;
			assert_int_equal(header.sh_size, other_header.sh_size);
			assert_memory_equal(elf_rawdata(section, NULL)->d_buf, elf_rawdata(other, NULL)->d_buf,
					    header.sh_size);
			n_compared++;
		}
	}
	assert_true(n_compared >= 4);
}

static void what_is_begun_may_end_at_any_time(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		CLEANUP(elf_file_freep) struct elf_file *file = open_elf("large_within", O_RDONLY);
		CLEANUP(unpacked_freep) struct unpacked *unpacked = NULL;

		assert_int_equal(unpacked_start(file, NULL, true, &unpacked), 0);
		usleep((useconds_t)i * 100);
	}
}

static void damage_that_the_helper_meets_is_told(void **state)
{
	CLEANUP(elf_file_freep) struct elf_file *file = NULL;
	CLEANUP(unpacked_freep) struct unpacked *unpacked = NULL;
	CLEANUP(closep) int fd = -1;
	uint64_t offset = 0, size = 0;
	char path[64];
	uint8_t byte;

	(void)state;
	find_section("large_within", ".debug_info", &offset, &size);
	assert_int_equal(run("cp large_within damaged"), 0);
	snprintf(path, sizeof path, "%s/damaged", folder);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(pread(fd, &byte, 1, (off_t)(offset + size - 1)), 1); /* of the checksum */
	byte ^= 0x55;
	assert_int_equal(pwrite(fd, &byte, 1, (off_t)(offset + size - 1)), 1);
	file = open_elf("damaged", O_RDONLY);
	assert_int_equal(unpacked_start(file, NULL, true, &unpacked), 0);
	assert_int_equal(unpacked_finish(unpacked), -EBADMSG);
}

static void a_module_is_begun_once(void **state)
{
	CLEANUP(symbol_search_freep) struct symbol_search *search = brief_search();
	CLEANUP(symbol_module_freep) struct symbol_module *module = NULL, *lasting = NULL, *plain = NULL;
	struct symbol symbols[SYMBOL_MAX_INLINED];
	struct symbol_sources sources;
	char path[64];

	(void)state;
	snprintf(path, sizeof path, "%s/large_apart", folder);
	assert_int_equal(symbol_module_open(path, -1, &module), 0);
	assert_int_equal(symbol_module_set_search(module, search, NULL), 0);
	assert_int_equal(symbol_start(module), 1);
	assert_int_equal(symbol_start(module), 0);
	assert_true(symbol_lookup(module, 0x1100, symbols, N_ELEMENTS(symbols)) >= 1);
	symbol_module_sources(module, &sources);
	assert_true(sources.has_lines && sources.n_unpacked_bytes > 1 << 20);
	assert_int_equal(symbol_start(module), 0);
	assert_int_equal(symbol_module_open(path, -1, &lasting), 0);
	assert_int_equal(symbol_start(lasting), 0);
	snprintf(path, sizeof path, "%s/large", folder);
	assert_int_equal(symbol_module_open(path, -1, &plain), 0);
	assert_int_equal(symbol_module_set_search(plain, search, NULL), 0);
	assert_int_equal(symbol_start(plain), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_is_told),
		cmocka_unit_test(the_same_is_told_from_a_file),
		cmocka_unit_test(memory_of_a_file_is_given_back),
		cmocka_unit_test(memory_that_is_ours_is_kept),
		cmocka_unit_test(types_of_c_are_given_back),
		cmocka_unit_test(what_is_not_packed_is_libdws),
		cmocka_unit_test(damaged_ones_are_refused),
		cmocka_unit_test(the_same_is_told_by_two_threads),
		cmocka_unit_test(each_section_is_whole),
		cmocka_unit_test(what_is_begun_may_end_at_any_time),
		cmocka_unit_test(damage_that_the_helper_meets_is_told),
		cmocka_unit_test(a_module_is_begun_once),
	};

	return cmocka_run_group_tests(tests, make_files, remove_files);
}
