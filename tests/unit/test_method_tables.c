/* SPDX-License-Identifier: MIT */
/* test_method_tables.c - the names of builtins in real interpreters, against what those say
 * themselves.
 *
 * Each interpreter runs a script that walks its own modules and types, reads
 * the C function behind every builtin through ctypes, and prints its place in
 * a file together with the name that Python gives it. The same places are
 * looked up here, where only the file is known. The layouts that the script
 * relies on are those of running objects (PyCFunctionObject, PyMethodDescrObject,
 * PyTypeObject's slots), not the static tables that are scanned.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <elf.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/elf_file.h"
#include "base/util.h"
#include "elf_address.h"
#include "symbolize/symbolize.h"

/* Print "KIND NAME FILE-OFFSET PATH" per builtin: "must" for builtins to find by name, else "all". */
static const char script[] =
	"import sys, types, ctypes, builtins, zlib, json, math, functools, time, collections\n"
	"import _json, _functools, _io, _sre, itertools, operator, _struct, _datetime, _hashlib, "
	"_thread\n"
	"word = lambda at: ctypes.c_uint64.from_address(at).value\n"
	"more = 16 * ('t' in sys.abiflags)\n" /* an object's head is longer without a GIL */
	"maps = []\n"
	"for line in open('/proc/self/maps'):\n"
	"    f = line.split(None, 5)\n"
	"    if len(f) == 6 and f[5].startswith('/'):\n"
	"        a, b = (int(x, 16) for x in f[0].split('-'))\n"
	"        maps.append((a, b, int(f[2], 16), f[5].strip()))\n"
	"def show(kind, name, address):\n"
	"    for a, b, offset, path in maps:\n"
	"        if a <= address < b:\n"
	"            print(kind, name.replace(' ', '_'), '%x' % (address - a + offset), path)\n"
	"def function(f):\n"
	"    return word(word(id(f) + (16 if isinstance(f, types.BuiltinFunctionType) else 40) + more) + "
	"8)\n"
	"def type_name(t):\n"
	"    return ctypes.string_at(word(id(t) + 24 + more)).decode()\n"
	"def name(owner, f):\n"
	"    return f.__name__ if owner == 'builtins' else owner + '.' + f.__name__\n"
	"show('must', 'len', function(len))\n"
	"show('must', 'sorted', function(sorted))\n"
	"show('must', 'str.join', function(str.join))\n"
	"show('must', 'list.sort', function(list.sort))\n"
	"show('must', 'dict.get', function(dict.get))\n"
	"show('must', '_thread.lock.acquire', function(type(_thread.allocate_lock()).acquire))\n"
	"show('must', 'math.sqrt', function(math.sqrt))\n"
	"show('must', 'time.sleep', function(time.sleep))\n"
	"show('must', 'zlib.compress', function(zlib.compress))\n"
	"show('must', '_json.scanstring', function(_json.scanstring))\n"
	"show('must', '_hashlib.HASH.update', function(type(_hashlib.openssl_sha256()).update))\n"
	"show('must', '_json.Scanner.__call__', word(id(_json.make_scanner) + 128 + more))\n"
	"show('must', '_json.Encoder.__call__', word(id(_json.make_encoder) + 128 + more))\n"
	"show('must', 'functools.partial.__call__', word(id(functools.partial) + 128 + more))\n"
	"show('must', 'list.__init__', word(id(list) + 296 + more))\n"
	"show('must', 'int.__add__', word(word(id(int) + 96 + more)))\n"
	"show('must', 'map.__next__', word(id(map) + 224 + more))\n"
	"types_seen, todo = set(), [object]\n"
	"while todo:\n"
	"    t = todo.pop()\n"
	"    if t not in types_seen:\n"
	"        types_seen.add(t)\n"
	"        todo += type.__subclasses__(t)\n"
	"for t in types_seen:\n"
	"    for f in list(vars(t).values()):\n"
	"        if isinstance(f, types.MethodDescriptorType):\n"
	"            show('all', type_name(f.__objclass__) + '.' + f.__name__, function(f))\n"
	"for m in list(sys.modules.values()):\n"
	"    for f in list(vars(m).values()):\n"
	"        if isinstance(f, types.BuiltinFunctionType) and isinstance(f.__self__, "
	"types.ModuleType):\n"
	"            show('all', name(f.__self__.__name__, f), function(f))\n";

enum { MAX_MODULES = 64, MAX_LINE = 4096 };

struct opened {
	char path[MAX_LINE];
	struct symbol_module *module;
	struct elf_file *elf;
};

struct check {
	struct opened opened[MAX_MODULES];
	size_t n_opened;
	unsigned n_must, n_must_right, n_all, n_all_right, n_shared;
};

static struct opened *open_once(struct check *check, const char *path)
{
	struct opened *opened;
	int fd;

	for (size_t i = 0; i < check->n_opened; i++)
		if (strcmp(check->opened[i].path, path) == 0)
			return &check->opened[i];
	assert_true(check->n_opened < MAX_MODULES);
	opened = &check->opened[check->n_opened++];
	snprintf(opened->path, sizeof opened->path, "%s", path);
	assert_int_equal(symbol_module_open(path, -1, &opened->module), 0);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(elf_file_open(fd, &opened->elf), 0);
	return opened;
}

static void check_must(struct check *check, const char *name, const struct symbol *symbol)
{
	check->n_must++;
	if (strcmp(symbol->name, name) == 0 && symbol->role == SYMBOL_BUILTIN)
		check->n_must_right++;
	else
		print_error("%s was found as %s (role %d)\n", name, symbol->name, symbol->role);
}

/* If types share a function, its bare name or its C name is right too. */
static void check_any(struct check *check, const char *name, const struct symbol *symbol)
{
	const char *dot = strrchr(name, '.');

	check->n_all++;
	if (strcmp(symbol->name, name) == 0)
		check->n_all_right++;
	else if ((dot && strcmp(symbol->name, dot + 1) == 0) || !strchr(symbol->name, '+'))
		check->n_shared++;
	else
		print_error("%s was found as %s\n", name, symbol->name);
}

static void check_line(struct check *check, char *line)
{
	char kind[8], name[256], path[MAX_LINE];
	struct symbol symbol;
	struct opened *opened;
	unsigned long offset;
	uint64_t address = 0;

	assert_int_equal(sscanf(line, "%7s %255s %lx %4095[^\n]", kind, name, &offset, path), 4);
	opened = open_once(check, path);
	assert_int_equal(elf_address(opened->elf, offset, &address), 0);
	assert_int_equal(symbol_lookup(opened->module, address, &symbol, 1), 1);
	if (strcmp(kind, "must") == 0)
		check_must(check, name, &symbol);
	else
		check_any(check, name, &symbol);
}

static void run_script(struct check *check, const char *python)
{
	char command[MAX_LINE], line[MAX_LINE + 512], file[] = "/tmp/test_method_tables.XXXXXX";
	FILE *output;
	int fd = mkstemp(file);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, script, sizeof script - 1), sizeof script - 1);
	close(fd);
	snprintf(command, sizeof command, "'%s' -E -s -B '%s'", python, file);
	output = popen(command, "r");
	assert_non_null(output);
	while (fgets(line, sizeof line, output))
		check_line(check, line);
	assert_int_equal(pclose(output), 0);
	unlink(file);
}

static void check_python(const char *python)
{
	CLEANUP(freep) struct check *check = calloc(1, sizeof *check);

	assert_non_null(check);
	run_script(check, python);
	for (size_t i = 0; i < check->n_opened; i++) {
		symbol_module_free(check->opened[i].module);
		elf_file_free(check->opened[i].elf);
	}
	print_message("%s: %u of %u by name; of all %u: %u the same, %u of several\n", python, check->n_must_right,
		      check->n_must, check->n_all, check->n_all_right, check->n_shared);
	assert_true(check->n_must >= 17);
	assert_int_equal(check->n_must_right, check->n_must);
	assert_true(check->n_all > 1000);
	assert_true(check->n_all_right * 100 >= check->n_all * 85);
	assert_int_equal(check->n_all_right + check->n_shared, check->n_all);
}

static void check_pattern(const char *pattern)
{
	glob_t found;

	if (glob(pattern, GLOB_TILDE, NULL, &found) != 0) {
		print_message("no interpreter matches %s\n", pattern);
		skip();
	}
	for (size_t i = 0; i < found.gl_pathc; i++)
		check_python(found.gl_pathv[i]);
	globfree(&found);
}

static void test_system_python(void **state)
{
	(void)state;
	check_pattern("/usr/bin/python3");
}

static void test_python_3_11(void **state)
{
	(void)state;
	check_pattern("~/.pyenv/versions/3.11.*/bin/python3");
}

static void test_python_3_12(void **state)
{
	(void)state;
	check_pattern("~/.pyenv/versions/3.12.*/bin/python3");
}

static void test_python_3_13(void **state)
{
	(void)state;
	check_pattern("~/.pyenv/versions/3.13.*/bin/python3");
}

static void test_free_threaded(void **state)
{
	(void)state;
	check_pattern("~/.cache/probing/roots/free-threaded/3.*t/bin/python3.*[0-9]t");
}

/* What carries calls in an interpreter without symbols is found by who refers to it. */
static void test_nameless_plumbing(void **state)
{
	CLEANUP(symbol_module_freep) struct symbol_module *module = NULL;
	CLEANUP(symbol_module_freep) struct symbol_module *stripped = NULL;
	char file[] = "/tmp/test_method_tables.XXXXXX", command[MAX_LINE], line[512], name[256], type;
	unsigned n_nameless = 0, n_internal = 0;
	unsigned long address;
	struct symbol symbol;
	FILE *symbols;
	glob_t found;
	int fd;

	(void)state;
	if (glob("~/.pyenv/versions/3.1[123].*/lib/libpython3.1[123].so.1.0", GLOB_TILDE, NULL, &found) != 0) {
		print_message("no shared interpreter with symbols to strip\n");
		skip();
	}
	fd = mkstemp(file);
	assert_true(fd >= 0);
	close(fd);
	snprintf(command, sizeof command, "strip -o %s '%s'", file, found.gl_pathv[0]);
	assert_int_equal(system(command), 0);
	assert_int_equal(symbol_module_open(file, -1, &stripped), 0);
	assert_int_equal(symbol_module_open(found.gl_pathv[0], -1, &module), 0);
	snprintf(command, sizeof command, "nm '%s'", found.gl_pathv[0]);
	symbols = popen(command, "r");
	assert_non_null(symbols);
	while (fgets(line, sizeof line, symbols)) {
		if (sscanf(line, "%lx %c %255s", &address, &type, name) != 3 || type != 't' || strchr(name, '.'))
			continue;
		assert_int_equal(symbol_lookup(stripped, address, &symbol, 1), 1);
		/* The sorter and the collector always appear. */
		if (strcmp(name, "list_sort_impl") == 0 || strcmp(name, "gc_collect_main") == 0 ||
		    strncmp(name, "builtin_", 8) == 0)
			assert_int_not_equal(symbol.role, SYMBOL_INTERNAL);
		if (!symbol_is_internal(name) || !strchr(symbol.name, '+'))
			continue;
		n_nameless++;
		n_internal += symbol.role == SYMBOL_INTERNAL;
	}
	assert_int_equal(pclose(symbols), 0);
	unlink(file);
	globfree(&found);
	print_message("%u of %u nameless functions of the internal functions were recognised\n", n_internal,
		      n_nameless);
	assert_true(n_nameless > 20);
	assert_true(n_internal * 100 >= n_nameless * 70);
}

static void check_made(struct opened *made, const char *symbol, const char *expected)
{
	uint64_t address, size;
	struct symbol found;

	assert_int_equal(elf_file_symbol(made->elf, symbol, &address, &size), 0);
	assert_int_equal(symbol_lookup(made->module, address, &found, 1), 1);
	assert_string_equal(found.name, expected);
}

/* Where code fills the tables at start-up, as in torch, the file has no pointers to functions in them. */
static void test_tables_filled_by_code(void **state)
{
	CLEANUP(freep) struct check *check = calloc(1, sizeof *check);
	const char *root = getenv("PROBING_BUILD_ROOT");
	struct opened *made;
	char path[MAX_LINE];

	(void)state;
	assert_non_null(check);
	assert_non_null(root);
	snprintf(path, sizeof path, "%s/tests/unit/libmade_python.so", root);
	made = open_once(check, path);
	if (elf_file_machine(made->elf) != EM_X86_64) {
		print_message("code of this machine is not read\n");
		skip();
	}
	check_made(made, "made_convolve", "made.convolve");
	check_made(made, "made_add", "made.add");
	check_made(made, "made_relu", "made_python.relu");
	check_made(made, "made_exp", "made_python.exp");
	check_made(made, "made_helper", "made_helper");
	symbol_module_free(made->module);
	elf_file_free(made->elf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_system_python),         cmocka_unit_test(test_python_3_11),
		cmocka_unit_test(test_python_3_12),           cmocka_unit_test(test_python_3_13),
		cmocka_unit_test(test_free_threaded),         cmocka_unit_test(test_nameless_plumbing),
		cmocka_unit_test(test_tables_filled_by_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
