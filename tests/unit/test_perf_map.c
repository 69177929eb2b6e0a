/* SPDX-License-Identifier: MIT */
/* test_perf_map.c - the text of perf maps, files that grow, files that are not to be
 * believed, and the names that come out of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "symbolize/perf_map.h"

#define LATER UINT64_MAX

static void add(struct perf_map *map, const char *text, uint64_t since_ns)
{
	assert_int_equal(perf_map_add(map, text, strlen(text), since_ns), 0);
}

/* NULL: no entry. */
static const char *name_at(struct perf_map *map, uint64_t address, uint64_t time_ns)
{
	const struct code_range *range;

	assert_int_equal(code_ranges_find(&map->ranges, address, time_ns, &range), 0);
	return range ? code_range_name(&map->ranges, range) : NULL;
}

static void assert_name(struct perf_map *map, uint64_t address, const char *name)
{
	const char *found = name_at(map, address, LATER);

	if (!name) {
		assert_null(found);
		return;
	}
	assert_non_null(found);
	assert_string_equal(found, name);
}

static void test_lines(void **state)
{
	CLEANUP(perf_map_done) struct perf_map map = {};

	(void)state;
	add(&map, "7f00 10 one\n0x8000 0X20 two words\r\n  9000\t8\tthree \nA000 B upper\n", 0);
	assert_name(&map, 0x7eff, NULL);
	assert_name(&map, 0x7f00, "one");
	assert_name(&map, 0x7f0f, "one");
	assert_name(&map, 0x7f10, NULL);
	assert_name(&map, 0x801f, "two words");
	assert_name(&map, 0x9007, "three");
	assert_name(&map, 0xa00a, "upper");
	assert_name(&map, 0xa00b, NULL);
}

static void test_nonsense_is_left_out(void **state)
{
	CLEANUP(perf_map_done) struct perf_map map = {};

	(void)state;
	add(&map,
	    "\n\n \n1000\n1000 10\n1000 10 \nxyz 10 name\n1000 -1 name\n11112222333344445 1 name\n"
	    "1000 0 empty\nfffffffffffffff0 20 wraps\n1000 10name\n# a comment\n",
	    0);
	assert_int_equal(map.ranges.n, 0);
	add(&map,
	    "2000 10 a\x01"
	    "b\x7f\n",
	    0);
	assert_name(&map, 0x2000, "a?b?");
}

static void test_long_name_is_cut(void **state)
{
	CLEANUP(perf_map_done) struct perf_map map = {};
	char line[3 * PERF_MAP_MAX_NAME];

	(void)state;
	memset(line, 'n', sizeof line);
	memcpy(line, "1000 10 ", 8);
	line[sizeof line - 1] = '\n';
	assert_int_equal(perf_map_add(&map, line, sizeof line, 0), 0);
	assert_int_equal(strlen(name_at(&map, 0x1000, LATER)), PERF_MAP_MAX_NAME);
	/* The same in pieces. */
	for (size_t i = 0; i < sizeof line; i += 1000)
		assert_int_equal(perf_map_add(&map, line + i, MIN(sizeof line - i, (size_t)1000), 0), 0);
	assert_int_equal(map.ranges.n, 2);
	assert_int_equal(strlen(name_at(&map, 0x1000, LATER)), PERF_MAP_MAX_NAME);
}

static void test_newest_wins_where_ranges_overlap(void **state)
{
	CLEANUP(perf_map_done) struct perf_map map = {};

	(void)state;
	add(&map, "1000 1000 wide\n1800 10 inner\n0f00 180 lower\n", 0);
	assert_name(&map, 0x0f00, "lower");
	assert_name(&map, 0x107f, "lower");
	assert_name(&map, 0x1080, "wide");
	assert_name(&map, 0x1808, "inner");
	assert_name(&map, 0x1810, "wide");
	assert_name(&map, 0x1fff, "wide");
	add(&map, "1000 1000 wide again\n", 0);
	assert_name(&map, 0x1808, "wide again");
	assert_name(&map, 0x0fff, "lower");
}

/* An entry is valid from its time on, and before it if no older one exists. */
static void test_times(void **state)
{
	CLEANUP(perf_map_done) struct perf_map map = {};

	(void)state;
	add(&map, "1000 10 old\n", 100);
	add(&map, "1000 10 new\n3000 10 only\n", 200);
	assert_string_equal(name_at(&map, 0x1000, 50), "old");
	assert_string_equal(name_at(&map, 0x1000, 199), "old");
	assert_string_equal(name_at(&map, 0x1000, 200), "new");
	assert_string_equal(name_at(&map, 0x3000, 1), "only");
}

/* Many ranges, added between look-ups, against the plain search. */
static void test_against_linear_search(void **state)
{
	CLEANUP(perf_map_done) struct perf_map map = {};
	uint64_t seed = 1;

	(void)state;
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < 100; i++) {
			struct code_range range = { .since_ns = round };

			seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
			range.start = 0x1000 + (seed >> 40) % 4000;
			range.end = range.start + 1 + (seed >> 32) % (i % 10 == 0 ? 2000 : 40);
			assert_int_equal(code_ranges_add(&map.ranges, &range, "x", 1), 0);
		}
		for (uint64_t address = 0x1000; address < 0x1000 + 4000; address += 7) {
			const struct code_range *found, *wanted = NULL;

			for (size_t i = 0; i < map.ranges.n; i++)
				if (map.ranges.ranges[i].start <= address && address < map.ranges.ranges[i].end &&
				    map.ranges.ranges[i].since_ns <= round / 2)
					wanted = &map.ranges.ranges[i];
			assert_int_equal(code_ranges_find(&map.ranges, address, round / 2, &found), 0);
			if (wanted)
				assert_ptr_equal(found, wanted);
		}
	}
}

/* ---- Files ---- */

static void write_file(const char *path, const char *text, int flags)
{
	int fd = open(path, O_WRONLY | O_CREAT | flags, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void test_a_file_that_grows(void **state)
{
	char path[] = "/tmp/test_perf_map.XXXXXX";
	CLEANUP(perf_map_done) struct perf_map map = {};
	CLEANUP(closep) int fd = mkstemp(path);
	uint64_t between_ns;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(perf_map_read(&map, fd), 0);
	write_file(path, "1000 10 one\n2000 10 tw", O_APPEND);
	assert_int_equal(perf_map_read(&map, fd), 1);
	assert_name(&map, 0x1000, "one");
	assert_name(&map, 0x2000, NULL); /* half written */
	assert_int_equal(perf_map_read(&map, fd), 0);
	between_ns = monotonic_ns();
	assert_int_equal(perf_map_read(&map, fd), 0);
	write_file(path, "o\n1000 10 instead\n", O_APPEND);
	assert_int_equal(perf_map_read(&map, fd), 1);
	assert_name(&map, 0x2000, "two");
	assert_name(&map, 0x1000, "instead");
	assert_string_equal(name_at(&map, 0x1000, between_ns), "one");
	/* Written again. */
	write_file(path, "5000 10 five\n", O_TRUNC);
	assert_int_equal(perf_map_read(&map, fd), 1);
	assert_name(&map, 0x5000, "five");
	unlink(path);
}

/* A process that lives until it is killed, its owner, and the path of its map. */
struct sleeper {
	pid_t pid;
	struct generated_owner owner;
	char path[64];
};

static int set_up(void **state)
{
	struct sleeper *sleeper = calloc(1, sizeof *sleeper);

	assert_non_null(sleeper);
	sleeper->pid = fork();
	if (sleeper->pid == 0)
		for (;;)
			pause();
	assert_true(sleeper->pid > 0);
	generated_owner_read(sleeper->pid, &sleeper->owner);
	assert_true(sleeper->owner.is_known);
	snprintf(sleeper->path, sizeof sleeper->path, "/tmp/perf-%d.map", (int)sleeper->pid);
	unlink(sleeper->path);
	*state = sleeper;
	return 0;
}

static void kill_it(struct sleeper *sleeper)
{
	if (sleeper->pid == 0)
		return;
	kill(sleeper->pid, SIGKILL);
	waitpid(sleeper->pid, NULL, 0);
	sleeper->pid = 0;
}

static int tear_down(void **state)
{
	struct sleeper *sleeper = *state;

	kill_it(sleeper);
	unlink(sleeper->path);
	free(sleeper);
	return 0;
}

/* An error, or 0 for a file. */
static int try_open(const struct sleeper *sleeper)
{
	CLEANUP(closep) int fd = -1;

	return perf_map_open(&sleeper->owner, &fd);
}

static void test_owner(void **state)
{
	struct sleeper *sleeper = *state;
	const struct generated_owner *owner = &sleeper->owner;
	uint64_t now_ns = realtime_ns();
	struct generated_owner gone = { .started_ns = 7 };

	assert_int_equal(owner->pid, sleeper->pid);
	assert_int_equal(owner->ns_pid, sleeper->pid); /* of the same namespace as this test */
	assert_int_equal(owner->uid, geteuid());
	assert_true(owner->started_ns < now_ns + 1000000000 && owner->started_ns + 60000000000 > now_ns);
	kill_it(sleeper);
	generated_owner_read(owner->pid, &gone);
	assert_false(gone.is_known);
	assert_int_equal(gone.pid, owner->pid);
	assert_int_equal(gone.started_ns, 7);
}

static void test_a_file_of_the_process(void **state)
{
	struct sleeper *sleeper = *state;

	assert_int_equal(try_open(sleeper), -ENOENT);
	write_file(sleeper->path, "1000 10 one\n", 0);
	assert_int_equal(try_open(sleeper), 0);
	/* Also once it has gone, whether or not it was known before. */
	kill_it(sleeper);
	assert_int_equal(try_open(sleeper), 0);
	sleeper->owner.is_known = false;
	assert_int_equal(try_open(sleeper), 0);
	/* Another process may have its number of the inner namespace. */
	sleeper->owner.is_known = true;
	sleeper->owner.ns_pid = 1;
	assert_int_equal(try_open(sleeper), -ENOENT);
}

static void test_no_regular_file(void **state)
{
	struct sleeper *sleeper = *state;

	assert_int_equal(symlink("/etc/passwd", sleeper->path), 0);
	assert_int_equal(try_open(sleeper), -ENOEXEC);
	unlink(sleeper->path);
	assert_int_equal(mkfifo(sleeper->path, 0600), 0); /* opening it would wait for a writer */
	assert_int_equal(try_open(sleeper), -ENOEXEC);
	unlink(sleeper->path);
	assert_int_equal(mkdir(sleeper->path, 0700), 0);
	assert_int_equal(try_open(sleeper), -ENOEXEC);
	rmdir(sleeper->path);
}

static void test_somebody_elses_file(void **state)
{
	struct sleeper *sleeper = *state;

	write_file(sleeper->path, "1000 10 one\n", 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(sleeper->path, 12345, (gid_t)-1), 0);
		assert_int_equal(try_open(sleeper), -EPERM);
		sleeper->owner.uid = 12345;
		assert_int_equal(try_open(sleeper), 0);
	} else {
		sleeper->owner.uid = geteuid() + 1;
		assert_int_equal(try_open(sleeper), -EPERM);
	}
}

static void test_a_file_of_an_earlier_process(void **state)
{
	struct sleeper *sleeper = *state;
	struct timespec times[2];

	write_file(sleeper->path, "1000 10 one\n", 0);
	times[0].tv_sec = times[1].tv_sec = (time_t)(sleeper->owner.started_ns / 1000000000) - 3;
	times[0].tv_nsec = times[1].tv_nsec = 0;
	assert_int_equal(utimensat(AT_FDCWD, sleeper->path, times, 0), 0);
	assert_int_equal(try_open(sleeper), -ESTALE);
}

/* ---- From entries to names ---- */

static struct generated_symbol look_up(struct sleeper *sleeper, const char *entry)
{
	struct generated_symbol symbol;
	struct generated_code *code;
	char line[256];

	snprintf(line, sizeof line, "1000 10 %s\n", entry);
	write_file(sleeper->path, line, O_TRUNC);
	assert_int_equal(generated_code_new(&sleeper->owner, &code), 0);
	assert_int_equal(generated_code_lookup(code, 0x1000, GENERATED_NOW, &symbol), 0);
	assert_int_equal(generated_code_refresh(code), 1);
	assert_int_equal(generated_code_refresh(code), 0);
	assert_false(generated_code_is_final(code));
	assert_int_equal(generated_code_lookup(code, 0x100f, GENERATED_NOW, &symbol), 1);
	assert_int_equal(generated_code_lookup(code, 0x1010, GENERATED_NOW, &symbol), 0);
	assert_string_equal(symbol.entry, entry);
	/* Strings belong to the code; the test's own copies do not need to be freed one by one. */
	symbol.name = strdup(symbol.name);
	symbol.file = symbol.file ? strdup(symbol.file) : NULL;
	symbol.entry = NULL;
	generated_code_free(code);
	return symbol;
}

static void check_symbol(struct sleeper *sleeper, const char *entry, const char *name, const char *file, int first_line,
			 bool is_python)
{
	struct generated_symbol symbol = look_up(sleeper, entry);

	assert_string_equal(symbol.name, name);
	if (file)
		assert_string_equal(symbol.file, file);
	else
		assert_null(symbol.file);
	assert_int_equal(symbol.first_line, first_line);
	assert_int_equal(symbol.is_python, is_python);
	free((char *)symbol.name);
	free((char *)symbol.file);
}

static void test_names(void **state)
{
	check_symbol(*state, "plain", "plain", NULL, 0, false);
	check_symbol(*state, "java.util.Map::get", "java.util.Map::get", NULL, 0, false);
	check_symbol(*state, "_ZN4shop4CartIiE5totalEi", "shop::Cart<int>::total", NULL, 0, false);
	check_symbol(*state, "py::A.f.<locals>.g:/x y/a:b.py", "A.f.<locals>.g", "/x y/a:b.py", 0, true);
	check_symbol(*state, "py::<module>:<frozen runpy>", "<module>", "<frozen runpy>", 0, true);
	check_symbol(*state, "py::", "py::", NULL, 0, false);
	check_symbol(*state, "py::nofile", "py::nofile", NULL, 0, false);
	check_symbol(*state, "JS:*fib /app/my file.js:12:13", "fib", "/app/my file.js", 12, false);
	check_symbol(*state, "JS:~get size node:internal/util:3:1", "get size", "node:internal/util", 3, false);
	check_symbol(*state, "LazyCompile:^f file:///a.mjs:7:2", "f", "file:///a.mjs", 7, false);
	check_symbol(*state, "Eval:~ /a.js:1:1", "(anonymous)", "/a.js", 1, false);
	check_symbol(*state, "JS:~f a.js", "f", "a.js", 0, false);
	check_symbol(*state, "JS:~f", "JS:~f", NULL, 0, false);
}

/* After the end of the process, its file is read one last time. */
static void test_final(void **state)
{
	struct sleeper *sleeper = *state;
	CLEANUP(generated_code_freep) struct generated_code *code = NULL;
	struct generated_symbol symbol;

	assert_int_equal(generated_code_new(&sleeper->owner, &code), 0);
	assert_int_equal(generated_code_refresh(code), 0);
	write_file(sleeper->path, "1000 10 last words\n", 0);
	kill_it(sleeper);
	assert_int_equal(generated_code_refresh(code), 1);
	assert_true(generated_code_is_final(code));
	assert_int_equal(generated_code_refresh(code), 0);
	assert_int_equal(generated_code_lookup(code, 0x1000, 1, &symbol), 1);
	assert_string_equal(symbol.name, "last words");
}

int main(void)
{
#define WITH_SLEEPER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_nonsense_is_left_out),
		cmocka_unit_test(test_long_name_is_cut),
		cmocka_unit_test(test_newest_wins_where_ranges_overlap),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_against_linear_search),
		cmocka_unit_test(test_a_file_that_grows),
		WITH_SLEEPER(test_owner),
		WITH_SLEEPER(test_a_file_of_the_process),
		WITH_SLEEPER(test_no_regular_file),
		WITH_SLEEPER(test_somebody_elses_file),
		WITH_SLEEPER(test_a_file_of_an_earlier_process),
		WITH_SLEEPER(test_names),
		WITH_SLEEPER(test_final),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
