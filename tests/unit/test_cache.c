/* SPDX-License-Identifier: MIT */
/* test_cache.c - what was found out about a module is found again, by its owner alone, and never believed blindly. */
#include <dirent.h>
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
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/elf_file.h"
#include "base/util.h"
#include "symbolize/cache.h"
#include "symbolize/symbolize.h"
#include "tests/unit/shell.h"

/* Functions enough to be worth a file, and an inlined one. */
static const char program[] =
	"#define F(n) int f##n(int x); __attribute__((noinline)) int f##n(int x) { return inner(x) + n; }\n"
	"#define G(n) F(n##0) F(n##1) F(n##2) F(n##3) F(n##4) F(n##5) F(n##6) F(n##7)\n"
	"#define H(n) G(n##0) G(n##1) G(n##2) G(n##3) G(n##4) G(n##5) G(n##6) G(n##7)\n"
	"static inline __attribute__((always_inline)) int inner(int x)\n"
	"{ __asm__ volatile(\"nop; nop\"); return x * 3; }\n"
	"H(1) H(2) H(3) H(4) H(5)\n";

enum { MAX_TEXT = 1 << 15 };

static char folder[] = "/tmp/test_cache.XXXXXX";
static char cache_path[64];

static int run(const char *command)
{
	return shell_in(folder, command);
}

static int make_files(void **state)
{
	(void)state;
	if (!mkdtemp(folder) || write_in(folder, "a.c", program) < 0)
		return -1;
	snprintf(cache_path, sizeof cache_path, "%s/cache", folder);
	return run(
		"cc -O2 -g -shared -fPIC -Wl,--build-id a.c -o plain.so && objcopy --compress-debug-sections=zlib plain.so packed.so && "
		"cc -O2 -shared -fPIC -Wl,--build-id a.c -o bare.so && cc -O2 -shared -fPIC -Wl,--build-id=none a.c -o nameless.so");
}

static int remove_files(void **state)
{
	(void)state;
	return run("rm -rf \"$PWD\"") == 0 ? 0 : -1;
}

/* An empty cache for each test. */
static int make_cache(void **state)
{
	(void)state;
	unsetenv("PROBING_CACHE");
	return run("rm -rf cache && mkdir -m 700 cache") == 0 && setenv("XDG_CACHE_HOME", cache_path, 1) == 0 ? 0 : -1;
}

static void put_symbol(char *to, size_t *used, const struct symbol *symbol)
{
	*used += (size_t)snprintf(to + *used, MAX_TEXT - *used, "%s %s %s:%d %llx %d %d\n", symbol->name,
				  symbol->linkage ? symbol->linkage : "-", symbol->file ? symbol->file : "-",
				  symbol->line, (unsigned long long)symbol->start, (int)symbol->role,
				  symbol->is_offset);
	assert_true(*used < MAX_TEXT);
}

/* Collect the names of a file's addresses, and how they were found. @keep: store them in the cache. */
static void look(const char *path, uint64_t start, uint64_t step, bool use_cache, bool keep, char text[MAX_TEXT],
		 struct symbol_sources *ret)
{
	CLEANUP(symbol_cache_freep) struct symbol_cache *cache = NULL;
	CLEANUP(symbol_search_freep) struct symbol_search *search = NULL;
	CLEANUP(symbol_module_freep) struct symbol_module *module = NULL;
	struct symbol_search_options options = { .is_brief = true };
	struct symbol symbols[SYMBOL_MAX_INLINED];
	size_t used = 0;

	if (use_cache)
		assert_int_equal(symbol_cache_open(&cache), 0);
	options.cache = cache;
	assert_int_equal(symbol_search_new(&options, &search), 0);
	assert_int_equal(symbol_module_open(path, -1, &module), 0);
	assert_int_equal(symbol_module_set_search(module, search, NULL), 0);
	text[0] = '\0';
	for (int i = 0; i < 40; i++) {
		int n;

		if (symbol_lookup_internal(module, start + step * (uint64_t)i, symbols) > 0)
			put_symbol(text, &used, &symbols[0]);
		n = symbol_lookup(module, start + step * (uint64_t)i, symbols, N_ELEMENTS(symbols));
		assert_true(n >= 1);
		for (int j = 0; j < n; j++)
			put_symbol(text, &used, &symbols[j]);
	}
	symbol_module_sources(module, ret);
	if (keep)
		symbol_module_keep(module);
}

static uint64_t first_function(const char *path)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	uint64_t start, n;

	assert_int_equal(elf_file_open(open(path, O_RDONLY | O_CLOEXEC), &elf), 0);
	assert_int_equal(elf_file_symbol(elf, "f100", &start, &n), 0);
	return start;
}

static void look_in_folder(const char *name, bool use_cache, bool keep, char text[MAX_TEXT], struct symbol_sources *ret)
{
	char path[64];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	look(path, first_function(path), 3, use_cache, keep, text, ret);
}

/* Find the only file in the cache; false: none. */
static bool find_only(char to[512])
{
	char path[128];
	unsigned n = 0;
	struct dirent *entry;
	DIR *entries;

	snprintf(path, sizeof path, "%s/probing/names", cache_path);
	entries = opendir(path);
	assert_non_null(entries);
	while ((entry = readdir(entries)) != NULL)
		if (entry->d_name[0] != '.' && ++n == 1)
			snprintf(to, 512, "%s/%s", path, entry->d_name);
	closedir(entries);
	assert_true(n <= 1);
	return n == 1;
}

static void a_second_look_finds_nothing_out(void **state)
{
	static const char *const names[] = { "plain.so", "packed.so", "bare.so" };
	char plain[MAX_TEXT], first[MAX_TEXT], second[MAX_TEXT];
	struct symbol_sources sources;

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(names); i++) {
		look_in_folder(names[i], false, true, plain, &sources);
		look_in_folder(names[i], true, true, first, &sources);
		assert_false(sources.is_cached);
		assert_true(sources.n_found_out > 0);
		assert_int_equal(sources.n_unpacked_bytes > 0, strcmp(names[i], "packed.so") == 0);
		look_in_folder(names[i], true, true, second, &sources);
		assert_true(sources.is_cached);
		assert_int_equal(sources.n_found_out, 0);
		assert_int_equal(sources.n_unpacked_bytes, 0);
		assert_string_equal(plain, first);
		assert_string_equal(plain, second);
		assert_non_null(strstr(plain, "f107"));
		assert_int_equal(strstr(plain, "a.c:") != NULL, strcmp(names[i], "bare.so") != 0);
	}
}

/* Test method tables, internal functions and available debug information of an installed interpreter. */
static void an_interpreter_is_found_again(void **state)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	char first[MAX_TEXT], second[MAX_TEXT], plain[MAX_TEXT];
	struct symbol_sources sources;
	struct elf_segment segment;
	int fd = open("/usr/bin/python3", O_RDONLY | O_CLOEXEC);
	size_t i = 0;

	(void)state;
	if (fd < 0 || elf_file_open(fd, &elf) < 0 || elf_file_build_id(elf)->n_bytes == 0) {
		print_message("/usr/bin/python3 is not here, or has no build-id\n");
		skip();
	}
	while (elf_file_segment(elf, i, &segment) && !segment.executable)
		i++;
	look("/usr/bin/python3", segment.address, segment.n_memory_bytes / 41, false, false, plain, &sources);
	look("/usr/bin/python3", segment.address, segment.n_memory_bytes / 41, true, true, first, &sources);
	assert_true(sources.n_found_out >= 2);
	look("/usr/bin/python3", segment.address, segment.n_memory_bytes / 41, true, true, second, &sources);
	assert_int_equal(sources.n_found_out, 0);
	assert_string_equal(plain, first);
	assert_string_equal(plain, second);
}

/* For its symbols alone: debug information is left where it is. */
static void look_at_symbols(const char *name, struct symbol_sources *ret)
{
	CLEANUP(symbol_cache_freep) struct symbol_cache *cache = NULL;
	CLEANUP(symbol_search_freep) struct symbol_search *search = NULL;
	CLEANUP(symbol_module_freep) struct symbol_module *module = NULL;
	struct symbol_search_options options = { 0 };
	struct symbol symbol;
	char path[64];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	assert_int_equal(symbol_cache_open(&cache), 0);
	options.cache = cache;
	assert_int_equal(symbol_search_new(&options, &search), 0);
	assert_int_equal(symbol_module_open(path, -1, &module), 0);
	assert_int_equal(symbol_module_set_search(module, search, NULL), 0);
	assert_int_equal(symbol_lookup_internal(module, first_function(path), &symbol), 0);
	symbol_module_sources(module, ret);
	symbol_module_keep(module);
}

/* A lookup adds to the cached names and keeps unused ones. Without new names it writes nothing. */
static void looks_add_up(void **state)
{
	char text[MAX_TEXT], file[512];
	struct symbol_sources sources;
	struct stat before, after;

	(void)state;
	look_at_symbols("packed.so", &sources);
	assert_int_equal(sources.n_found_out, 1);
	look_in_folder("packed.so", true, true, text, &sources);
	assert_true(sources.is_cached);
	assert_int_equal(sources.n_found_out, 1);
	assert_true(sources.n_unpacked_bytes > 0);
	assert_true(find_only(file));
	assert_int_equal(stat(file, &before), 0);
	assert_int_equal(before.st_mode & 07777, 0600);
	look_at_symbols("packed.so", &sources);
	assert_int_equal(sources.n_found_out, 0);
	look_in_folder("packed.so", true, true, text, &sources);
	assert_int_equal(sources.n_found_out, 0);
	assert_int_equal(stat(file, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
}

static void another_file_is_not_this_one(void **state)
{
	char first[MAX_TEXT], second[MAX_TEXT];
	struct symbol_sources sources;

	(void)state;
	look_in_folder("packed.so", true, true, first, &sources);
	/* The same bytes and build-id in another file: its creator may intend to mislead. */
	assert_int_equal(run("cp -p packed.so copy.so"), 0);
	look_in_folder("copy.so", true, false, second, &sources);
	assert_false(sources.is_cached);
	/* The same file, written to. */
	assert_int_equal(run("touch -d '1 hour ago' packed.so"), 0);
	look_in_folder("packed.so", true, false, second, &sources);
	assert_false(sources.is_cached);
	assert_string_equal(first, second);
}

static void what_has_no_build_id_is_left_out(void **state)
{
	char text[MAX_TEXT], path[512];
	struct symbol_sources sources;

	(void)state;
	look_in_folder("nameless.so", true, true, text, &sources);
	assert_true(sources.n_found_out > 0);
	assert_false(find_only(path));
}

/* ---- Damage ---- */

static void replace_bytes(const char *path, uint64_t at, const void *bytes, size_t n)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, n, (off_t)at), n);
	close(fd);
}

/* After a change of any single byte, the names are equal, since they are resolved again. */
static void damaged_files_are_not_believed(void **state)
{
	char path[512], first[MAX_TEXT], text[MAX_TEXT];
	CLEANUP(freep) char *whole = NULL;
	struct symbol_sources sources;
	size_t n;

	(void)state;
	look_in_folder("packed.so", true, true, first, &sources);
	assert_true(find_only(path));
	assert_int_equal(read_file(path, 1 << 24, &whole, &n), 0);
	for (size_t at = 0; at < n; at += at < 512 ? 1 : n / 200) {
		const char byte = (char)(whole[at] ^ 0x41);

		replace_bytes(path, at, &byte, 1);
		look_in_folder("packed.so", true, false, text, &sources);
		assert_false(sources.is_cached);
		assert_string_equal(first, text);
		replace_bytes(path, at, &whole[at], 1);
	}
	look_in_folder("packed.so", true, false, text, &sources);
	assert_true(sources.is_cached);
	for (size_t length = 0; length < n; length += n / 50) {
		assert_int_equal(truncate(path, (off_t)length), 0);
		look_in_folder("packed.so", true, false, text, &sources);
		assert_false(sources.is_cached);
		assert_string_equal(first, text);
		replace_bytes(path, 0, whole, n);
	}
}

/* ---- Owner ---- */

static void is_refused(int expected)
{
	CLEANUP(symbol_cache_freep) struct symbol_cache *cache = NULL;
	int r = symbol_cache_open(&cache);

	assert_int_equal(r, expected);
}

static void folders_of_others_are_not_used(void **state)
{
	char text[MAX_TEXT], path[512];
	struct symbol_sources sources;

	(void)state;
	look_in_folder("packed.so", true, true, text, &sources);
	assert_int_equal(run("chmod 770 cache/probing"), 0);
	is_refused(-EPERM);
	assert_int_equal(run("chmod 755 cache/probing && chmod 770 cache/probing/names"), 0);
	is_refused(-EPERM);
	assert_int_equal(run("chmod 707 cache/probing"), 0);
	is_refused(-EPERM);
	assert_int_equal(
		run("chmod 700 cache/probing cache/probing/names && mv cache/probing moved && ln -s ../moved cache/probing"),
		0);
	is_refused(-ENOTDIR);
	assert_int_equal(run("rm cache/probing && mv moved cache/probing"), 0);
	assert_true(find_only(path));
	setenv("PROBING_CACHE", "0", 1);
	is_refused(-ECANCELED);
	setenv("PROBING_CACHE", "1", 1);
	look_in_folder("packed.so", true, false, text, &sources);
	assert_true(sources.is_cached);
}

static void files_of_others_are_not_used(void **state)
{
	char text[MAX_TEXT], path[512];
	struct symbol_sources sources;

	(void)state;
	look_in_folder("packed.so", true, true, text, &sources);
	assert_true(find_only(path));
	assert_int_equal(chmod(path, 0620), 0);
	look_in_folder("packed.so", true, false, text, &sources);
	assert_false(sources.is_cached);
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(run("f=$(echo cache/probing/names/*) && mv $f elsewhere && ln -s \"$PWD/elsewhere\" $f"), 0);
	look_in_folder("packed.so", true, false, text, &sources);
	assert_false(sources.is_cached);
	assert_int_equal(run("f=$(echo cache/probing/names/*) && rm $f && mkfifo -m 600 $f"), 0);
	look_in_folder("packed.so", true, false, text, &sources); /* does not wait for who writes to it */
	assert_false(sources.is_cached);
	assert_int_equal(run("f=$(echo cache/probing/names/*) && rm $f && cp elsewhere $f && chmod 600 $f"), 0);
	look_in_folder("packed.so", true, false, text, &sources);
	assert_true(sources.is_cached);
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 65534, 65534), 0);
		look_in_folder("packed.so", true, false, text, &sources);
		assert_false(sources.is_cached);
	}
}

/* As with sudo, where HOME may still be the user's. */
static void nothing_is_made_in_a_home_of_others(void **state)
{
	CLEANUP(symbol_cache_freep) struct symbol_cache *cache = NULL;
	bool is_there = access("/var/cache/probing/names", F_OK) == 0;
	char home[64];

	(void)state;
	if (geteuid() != 0) {
		print_message("needs root, to make another user's home\n");
		skip();
	}
	assert_int_equal(run("mkdir -p home/.cache && chown -R 65534 home"), 0);
	snprintf(home, sizeof home, "%s/home", folder);
	setenv("HOME", home, 1);
	unsetenv("XDG_CACHE_HOME");
	(void)symbol_cache_open(&cache);
	assert_int_not_equal(run("test -e home/.cache/probing"), 0);
	if (!is_there)
		assert_int_equal(run("rmdir -p --ignore-fail-on-non-empty /var/cache/probing/names"),
				 0); /* where root goes then */
}

static void names_lead_nowhere_else(void **state)
{
	static const char *const names[] = { "", "..", "../../plain.so", "/etc/passwd", ".new-1", "a b" };
	CLEANUP(symbol_cache_freep) struct symbol_cache *cache = NULL;
	int fd;

	(void)state;
	assert_int_equal(symbol_cache_open(&cache), 0);
	for (size_t i = 0; i < N_ELEMENTS(names); i++)
		assert_int_equal(symbol_cache_find(cache, names[i], &fd), -EINVAL);
	assert_int_equal(symbol_cache_find(cache, "abc-0", &fd), -ENOENT);
}

/* ---- Size ---- */

static void the_oldest_go(void **state)
{
	char text[MAX_TEXT];
	struct symbol_sources sources;

	(void)state;
	assert_int_equal(
		run("mkdir -m 700 cache/probing cache/probing/names && cd cache/probing/names && for i in 1 2 3 4 5 6; do truncate -s 50M aa-$i && "
		    "touch -d \"$i hours ago\" aa-$i; done"),
		0);
	look_in_folder("packed.so", true, true, text, &sources);
	assert_int_equal(
		run("cd cache/probing/names && test -e aa-1 -a -e aa-2 -a -e aa-3 -a ! -e aa-4 -a ! -e aa-5 -a ! -e aa-6"),
		0);
	look_in_folder("packed.so", true, false, text, &sources);
	assert_true(sources.is_cached);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_second_look_finds_nothing_out, make_cache),
		cmocka_unit_test_setup(an_interpreter_is_found_again, make_cache),
		cmocka_unit_test_setup(looks_add_up, make_cache),
		cmocka_unit_test_setup(another_file_is_not_this_one, make_cache),
		cmocka_unit_test_setup(what_has_no_build_id_is_left_out, make_cache),
		cmocka_unit_test_setup(damaged_files_are_not_believed, make_cache),
		cmocka_unit_test_setup(folders_of_others_are_not_used, make_cache),
		cmocka_unit_test_setup(files_of_others_are_not_used, make_cache),
		cmocka_unit_test_setup(nothing_is_made_in_a_home_of_others, make_cache),
		cmocka_unit_test_setup(names_lead_nowhere_else, make_cache),
		cmocka_unit_test_setup(the_oldest_go, make_cache),
	};

	return cmocka_run_group_tests(tests, make_files, remove_files);
}
