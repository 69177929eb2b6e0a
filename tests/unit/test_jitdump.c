/* SPDX-License-Identifier: MIT */
/* test_jitdump.c - jitdump files written here, record by record. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"
#include "symbolize/jitdump.h"
#include "symbolize/symbolize.h"

enum { LOAD, MOVE, DEBUG_INFO, CLOSE, UNWINDING_INFO };

struct header {
	uint32_t magic, version, total_size, elf_machine, padding, pid;
	uint64_t timestamp, flags;
};

static const struct header sound = { .magic = 0x4A695444, .version = 1, .total_size = 40, .pid = 1 };

static void append(int fd, const void *bytes, size_t n_bytes)
{
	assert_int_equal(write(fd, bytes, n_bytes), n_bytes);
}

static int open_memory(const struct header *header, size_t n_bytes)
{
	int fd = memfd_create("jitdump", MFD_CLOEXEC);

	assert_true(fd >= 0);
	append(fd, header, n_bytes);
	return fd;
}

static void open_sound(const struct header *header, struct jitdump *ret)
{
	assert_int_equal(jitdump_open(open_memory(header, sizeof *header), ret), 0);
}

static void put_prefix(int fd, uint32_t id, uint64_t time_ns, size_t n_bytes)
{
	struct {
		uint32_t id, total_size;
		uint64_t timestamp;
	} prefix = { id, (uint32_t)(sizeof prefix + n_bytes), time_ns };

	append(fd, &prefix, sizeof prefix);
}

static void put_load(int fd, uint64_t time_ns, uint64_t address, uint64_t n_bytes, uint64_t index, const char *name)
{
	static const char code[16];
	struct {
		uint32_t pid, tid;
		uint64_t vma, address, n_bytes, index;
	} load = { 1, 1, address, address, n_bytes, index };

	put_prefix(fd, LOAD, time_ns, sizeof load + strlen(name) + 1 + sizeof code);
	append(fd, &load, sizeof load);
	append(fd, name, strlen(name) + 1);
	append(fd, code, sizeof code);
}

static void put_move(int fd, uint64_t time_ns, uint64_t from, uint64_t to, uint64_t n_bytes, uint64_t index)
{
	struct {
		uint32_t pid, tid;
		uint64_t vma, from, to, n_bytes, index;
	} move = { 1, 1, to, from, to, n_bytes, index };

	put_prefix(fd, MOVE, time_ns, sizeof move);
	append(fd, &move, sizeof move);
}

struct entry {
	uint64_t address;
	int32_t line;
	const char *file;
};

static void put_lines(int fd, uint64_t address, const struct entry *entries, size_t n)
{
	uint64_t head[2] = { address, n };
	size_t n_bytes = sizeof head;

	for (size_t i = 0; i < n; i++)
		n_bytes += 16 + strlen(entries[i].file) + 1;
	put_prefix(fd, DEBUG_INFO, 1, n_bytes);
	append(fd, head, sizeof head);
	for (size_t i = 0; i < n; i++) {
		struct {
			uint64_t address;
			int32_t line, discriminator;
		} entry = { entries[i].address, entries[i].line, 0 };

		append(fd, &entry, sizeof entry);
		append(fd, entries[i].file, strlen(entries[i].file) + 1);
	}
}

static const struct code_range *find(struct jitdump *dump, uint64_t address, uint64_t time_ns)
{
	const struct code_range *range;

	assert_int_equal(code_ranges_find(&dump->ranges, address, time_ns, &range), 0);
	return range;
}

static void assert_name(struct jitdump *dump, uint64_t address, uint64_t time_ns, const char *name)
{
	const struct code_range *range = find(dump, address, time_ns);

	if (!name) {
		assert_null(range);
		return;
	}
	assert_non_null(range);
	assert_string_equal(code_range_name(&dump->ranges, range), name);
}

static int open_header(struct header header, size_t n_bytes)
{
	int fd = open_memory(&header, n_bytes), r;
	struct jitdump dump;

	r = jitdump_open(fd, &dump);
	if (r < 0)
		close(fd);
	else
		jitdump_done(&dump);
	return r;
}

static void test_headers(void **state)
{
	struct header header = sound;

	(void)state;
	assert_int_equal(open_header(sound, sizeof sound), 0);
	assert_int_equal(open_header(sound, sizeof sound - 1), -EBADMSG);
	assert_int_equal(open_header(sound, 0), -EBADMSG);
	header.magic = __builtin_bswap32(sound.magic);
	assert_int_equal(open_header(header, sizeof header), -EOPNOTSUPP);
	header.magic = 0x464c457f;
	assert_int_equal(open_header(header, sizeof header), -EBADMSG);
	header = sound;
	header.version = 2;
	assert_int_equal(open_header(header, sizeof header), -EPROTONOSUPPORT);
	header = sound;
	header.total_size = 39;
	assert_int_equal(open_header(header, sizeof header), -EBADMSG);
}

static void test_code_at_an_address_changes(void **state)
{
	CLEANUP(jitdump_done) struct jitdump dump;

	(void)state;
	open_sound(&sound, &dump);
	put_load(dump.fd, 100, 0x1000, 0x20, 0, "first");
	put_load(dump.fd, 200, 0x1000, 0x10, 1, "second");
	assert_int_equal(jitdump_read(&dump), 1);
	assert_name(&dump, 0x1000, 150, "first");
	assert_name(&dump, 0x1000, 200, "second");
	assert_name(&dump, 0x1010, 200, "first");
	assert_name(&dump, 0x1020, 200, NULL);
	assert_int_equal(jitdump_read(&dump), 0);
	put_load(dump.fd, 300, 0x1000, 0x20, 2, "third");
	assert_int_equal(jitdump_read(&dump), 1);
	assert_name(&dump, 0x1000, 299, "second");
	assert_name(&dump, 0x1010, 300, "third");
}

static void test_code_moves(void **state)
{
	CLEANUP(jitdump_done) struct jitdump dump;
	const struct entry lines[] = { { 0x1000, 3, "f.src" }, { 0x1004, 7, "f.src" } };
	const struct code_range *range;
	const char *file;
	int line;

	(void)state;
	open_sound(&sound, &dump);
	put_lines(dump.fd, 0x1000, lines, 2);
	put_load(dump.fd, 100, 0x1000, 0x10, 5, "moving");
	put_move(dump.fd, 200, 0x1000, 0x2000, 0x10, 5);
	put_move(dump.fd, 300, 0x2000, 0x3000, 0x10, 5);
	put_move(dump.fd, 300, 0x9000, 0x4000, 0x10, 6); /* was never loaded */
	assert_int_equal(jitdump_read(&dump), 1);
	assert_name(&dump, 0x1000, 150, "moving");
	assert_name(&dump, 0x1000, 250, NULL);
	assert_name(&dump, 0x2000, 250, "moving");
	assert_name(&dump, 0x2000, 350, NULL);
	assert_name(&dump, 0x300f, 350, "moving");
	assert_name(&dump, 0x4000, 350, NULL);
	range = find(&dump, 0x3008, 350);
	jitdump_find_line(&dump, range, 0x3008, &file, &line);
	assert_int_equal(line, 7);
	assert_string_equal(file, "f.src");
}

static void test_lines(void **state)
{
	CLEANUP(jitdump_done) struct jitdump dump;
	/* "\xff" repeats the file before it; line 0 is none; entries need not be sorted. */
	const struct entry lines[] = {
		{ 0x1004, 4, "a.src" }, { 0x1008, 8, "\xff" }, { 0x1002, 2, "b.src" }, { 0x100c, 0, "a.src" }
	};
	static const struct {
		uint64_t address;
		int line;
		const char *file;
	} wanted[] = { { 0x1001, 0, NULL },    { 0x1002, 2, "b.src" }, { 0x1003, 2, "b.src" }, { 0x1004, 4, "a.src" },
		       { 0x1008, 8, "a.src" }, { 0x100b, 8, "a.src" }, { 0x100c, 0, NULL } };
	const char *file;
	int line;

	(void)state;
	open_sound(&sound, &dump);
	put_lines(dump.fd, 0x1000, lines, N_ELEMENTS(lines));
	put_prefix(dump.fd, UNWINDING_INFO, 1, 24);
	append(dump.fd, "012345678901234567890123", 24);
	put_load(dump.fd, 1, 0x1000, 0x10, 0, "f");
	put_load(dump.fd, 1, 0x2000, 0x10, 1, "g"); /* the lines were those of f */
	assert_int_equal(jitdump_read(&dump), 1);
	for (size_t i = 0; i < N_ELEMENTS(wanted); i++) {
		jitdump_find_line(&dump, find(&dump, wanted[i].address, 1), wanted[i].address, &file, &line);
		assert_int_equal(line, wanted[i].line);
		if (wanted[i].file)
			assert_string_equal(file, wanted[i].file);
		else
			assert_null(file);
	}
	jitdump_find_line(&dump, find(&dump, 0x2008, 1), 0x2008, &file, &line);
	assert_int_equal(line, 0);
	assert_null(file);
}

/* One entry that is wrong makes all of the record's doubtful. */
static void test_lines_that_make_no_sense(void **state)
{
	static const struct entry wrong[] = {
		{ 0x0fff, 9, "a.src" }, /* before the code */
		{ 0x1004, -1, "a.src" },
		{ 0x1004, 5, "a\x14.src" },
	};
	const char *file;
	int line;

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(wrong); i++) {
		const struct entry lines[] = { { 0x1000, 3, "a.src" }, wrong[i] };
		CLEANUP(jitdump_done) struct jitdump dump;

		open_sound(&sound, &dump);
		put_lines(dump.fd, 0x1000, lines, 2);
		put_load(dump.fd, 1, 0x1000, 0x10, 0, "f");
		put_lines(dump.fd, 0x2000, &(struct entry){ 0x2000, 6, "a.src" }, 1);
		put_load(dump.fd, 1, 0x2000, 0x10, 1, "g");
		assert_int_equal(jitdump_read(&dump), 1);
		jitdump_find_line(&dump, find(&dump, 0x1008, 1), 0x1008, &file, &line);
		assert_int_equal(line, 0);
		assert_null(file);
		jitdump_find_line(&dump, find(&dump, 0x2008, 1), 0x2008, &file, &line);
		assert_int_equal(line, 6);
	}
}

/* A record is taken when the file holds all of it. */
static void test_a_record_that_is_being_written(void **state)
{
	CLEANUP(jitdump_done) struct jitdump dump;
	CLEANUP(closep) int whole = open_memory(&sound, sizeof sound);
	char bytes[512];
	ssize_t n;

	(void)state;
	put_load(whole, 1, 0x1000, 0x10, 0, "slowly");
	n = pread(whole, bytes, sizeof bytes, sizeof sound);
	assert_true(n > 16);
	open_sound(&sound, &dump);
	for (ssize_t i = 0; i < n; i++) {
		assert_int_equal(jitdump_read(&dump), 0);
		assert_name(&dump, 0x1000, 1, NULL);
		append(dump.fd, bytes + i, 1);
	}
	assert_int_equal(jitdump_read(&dump), 1);
	assert_name(&dump, 0x1000, 1, "slowly");
}

/* A file that is made large first holds zeros where the next record will be. */
static void test_zeros_ahead(void **state)
{
	CLEANUP(jitdump_done) struct jitdump dump;

	(void)state;
	open_sound(&sound, &dump);
	assert_int_equal(ftruncate(dump.fd, 4096), 0);
	assert_int_equal(jitdump_read(&dump), 0);
	put_load(dump.fd, 1, 0x1000, 0x10, 0, "f");
	assert_int_equal(jitdump_read(&dump), 1);
	assert_name(&dump, 0x1000, 1, "f");
}

static void test_the_end(void **state)
{
	CLEANUP(jitdump_done) struct jitdump dump;

	(void)state;
	open_sound(&sound, &dump);
	put_prefix(dump.fd, 99, 1, 0); /* of a later version */
	put_load(dump.fd, 1, 0x1000, 0x10, 0, "f");
	put_prefix(dump.fd, CLOSE, 1, 0);
	put_load(dump.fd, 1, 0x2000, 0x10, 1, "behind");
	assert_int_equal(jitdump_read(&dump), 1);
	assert_name(&dump, 0x1000, 1, "f");
	assert_name(&dump, 0x2000, 1, NULL);
	assert_int_equal(jitdump_read(&dump), 0);
}

/* Records of another clock hold from the last reading on. */
static void check_untimed(const struct header *header, uint64_t time_ns)
{
	CLEANUP(jitdump_done) struct jitdump dump;
	uint64_t between_ns;

	open_sound(header, &dump);
	put_load(dump.fd, time_ns, 0x1000, 0x10, 0, "first");
	assert_int_equal(jitdump_read(&dump), 1);
	between_ns = monotonic_ns();
	assert_int_equal(jitdump_read(&dump), 0);
	put_load(dump.fd, time_ns + 1, 0x1000, 0x10, 1, "second");
	assert_int_equal(jitdump_read(&dump), 1);
	assert_name(&dump, 0x1000, between_ns, "first");
	assert_name(&dump, 0x1000, monotonic_ns(), "second");
}

static void test_other_clocks(void **state)
{
	struct header cycles = sound;

	(void)state;
	check_untimed(&sound, realtime_ns());
	cycles.flags = 1;
	check_untimed(&cycles, 5);
}

/* The face: a dump goes before the map, and is opened once. */
static void test_generated_code(void **state)
{
	struct generated_owner owner = { .pid = getpid() };
	CLEANUP(generated_code_freep) struct generated_code *code = NULL;
	const struct entry lines[] = { { 0x1000, 3, "f.src" } };
	const struct entry v8[] = { { 0x2040, 5, "/x.js" }, { 0x2044, 9, "/y.js" }, { 0x2048, 6, "/x.js" } };
	struct generated_symbol symbol;
	struct header other = sound;
	CLEANUP(closep) int fd = open_memory(&sound, sizeof sound);

	(void)state;
	generated_owner_read(getpid(), &owner);
	assert_int_equal(generated_code_new(&owner, &code), 0);
	put_lines(fd, 0x1000, lines, 1);
	put_load(fd, 1, 0x1000, 0x10, 0, "f");
	assert_int_equal(generated_code_add_dump(code, dup(fd)), 0);
	assert_int_equal(generated_code_add_dump(code, dup(fd)), 0);
	other.version = 9;
	assert_int_equal(generated_code_add_dump(code, open_memory(&other, sizeof other)), -EPROTONOSUPPORT);
	assert_int_equal(generated_code_refresh(code), 1);
	assert_int_equal(generated_code_lookup(code, 0x1008, 1, &symbol), 1);
	assert_string_equal(symbol.name, "f");
	assert_string_equal(symbol.file, "f.src");
	assert_int_equal(symbol.line, 3);
	assert_int_equal(generated_code_lookup(code, 0x1010, 1, &symbol), 0);
	/* V8's line table has addresses after an ELF header; lines of other files are inlined. */
	put_lines(fd, 0x2000, v8, N_ELEMENTS(v8));
	put_load(fd, 2, 0x2000, 0x10, 1, "JS:*g /x.js:5:3");
	assert_int_equal(generated_code_refresh(code), 1);
	for (size_t i = 0; i < N_ELEMENTS(v8); i++) {
		assert_int_equal(generated_code_lookup(code, v8[i].address - 0x40, 2, &symbol), 1);
		assert_string_equal(symbol.name, "g");
		assert_string_equal(symbol.file, "/x.js");
		assert_int_equal(symbol.line, i == 1 ? 0 : v8[i].line);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_headers),
		cmocka_unit_test(test_code_at_an_address_changes),
		cmocka_unit_test(test_code_moves),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_lines_that_make_no_sense),
		cmocka_unit_test(test_a_record_that_is_being_written),
		cmocka_unit_test(test_zeros_ahead),
		cmocka_unit_test(test_the_end),
		cmocka_unit_test(test_other_clocks),
		cmocka_unit_test(test_generated_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
