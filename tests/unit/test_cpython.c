/* test_cpython.c - reading real interpreters that say themselves what is true.
 *
 * A script parks its threads in known stacks and prints what the interpreter
 * knows of them; the reader must see the same: functions, files, lines.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/util.h"
#include "tests/unit/interpreters.h"
#include "unwind/cpython/cpython.h"
#include "unwind/cpython/reader.h"

/* Each line: tid, then the frames innermost first as "line qualname", separated by "|". */
static const char parked[] =
	"import sys, threading, functools\n"
	"gate = threading.Event()\n"
	"ready = []\n"
	"def park():\n"
	"    ready.append(threading.get_native_id())\n"
	"    gate.wait()\n"
	"class Outer:\n"
	"    def method(self, n):\n"
	"        if n:\n"
	"            return self.method(n - 1)\n"
	"        return [park() for _ in range(1)]\n"
	"def generator():\n"
	"    yield park()\n"
	"def delegating():\n"
	"    yield from generator()\n"
	"def callback():\n"
	"    return sorted([2, 1], key=lambda x: park())\n"
	"def partial():\n"
	"    functools.reduce(lambda a, b: park(), [1, 2])\n"
	"def \xc3\xbcmlaut_\xe5\x90\x8d\xe5\x89\x8d():\n"
	"    park()\n"
	"targets = [lambda: Outer().method(40), lambda: list(delegating()), callback, partial,\n"
	"           \xc3\xbcmlaut_\xe5\x90\x8d\xe5\x89\x8d]\n"
	"threads = [threading.Thread(target=t, daemon=True) for t in targets]\n"
	"for t in threads: t.start()\n"
	"import time\n"
	"while len(ready) < len(targets): time.sleep(0.01)\n"
	"time.sleep(0.2)\n"
	"sys.stdout.reconfigure(encoding='utf-8')\n"
	"frames = sys._current_frames()\n"
	"for t in threads:\n"
	"    f, out = frames[t.ident], []\n"
	"    while f:\n"
	"        out.append('%d %s' % (f.f_lineno, f.f_code.co_qualname))\n"
	"        f = f.f_back\n"
	"    print(t.native_id, '|'.join(out), sep='|')\n"
	"print('end', flush=True)\n"
	"gate.wait()\n";

struct target {
	struct script script;
	struct module_table *modules;
	struct address_space *space;
	struct remote *remote;
	struct py_runtime *runtime;
};

static void open_target(const struct interpreter *interpreter, const char *text, struct target *target)
{
	char version[32];

	memset(target, 0, sizeof *target);
	assert_int_equal(start_script(interpreter, text, &target->script), 0);
	assert_int_equal(module_table_new(&target->modules), 0);
	assert_int_equal(address_space_new(target->script.pid, target->modules, &target->space), 0);
	assert_int_equal(remote_open_process(target->script.pid, &target->remote), 0);
	for (int tries = 0; tries < 500 && !target->runtime; tries++) {
		address_space_load(target->space);
		if (py_runtime_find(target->space, target->remote, version, &target->runtime) < 0)
			usleep(10000);
	}
	assert_non_null(target->runtime);
}

static void close_target(struct target *target)
{
	py_runtime_free(target->runtime);
	remote_free(target->remote);
	address_space_free(target->space);
	module_table_free(target->modules);
	end_script(&target->script);
}

/* All Python frames of a thread, from live memory. */
static void read_thread(struct target *target, pid_t tid, struct py_frames *frames)
{
	struct py_anchor anchors[64];
	uint64_t top, end, outer;
	int n;

	py_begin_sample(target->runtime);
	n = py_live_anchors(target->runtime, tid, anchors, N_ELEMENTS(anchors), &top);
	assert_true(n > 0);
	frames->n = 0;
	for (int i = 0; i < n; i++) {
		if (py_anchor_tells_top(target->runtime))
			top = anchors[i].top;
		assert_int_equal(py_walk(target->runtime, top, frames, &end, &outer), 0);
		/* Each evaluation leads on to the next. */
		if (i + 1 < n && py_anchor_tells_top(target->runtime))
			assert_int_equal(outer, anchors[i + 1].top);
		top = outer;
	}
	assert_int_equal(outer, 0);
}

/* Compares with "line qualname|line qualname|..." */
static void compare(const struct py_frames *frames, char *truth)
{
	size_t i = 0;

	for (char *entry = strtok(truth, "|\n"); entry; entry = strtok(NULL, "|\n"), i++) {
		char seen[512];

		assert_true(i < frames->n);
		snprintf(seen, sizeof seen, "%d %s",
			 py_code_line(frames->frames[i].code, frames->frames[i].instruction),
			 frames->frames[i].code->qualname);
		assert_string_equal(seen, entry);
	}
	assert_int_equal(i, frames->n);
}

static void check_parked(const struct interpreter *interpreter)
{
	struct py_frames frames = { 0 };
	struct target target;
	char line[8192];
	unsigned n = 0;

	open_target(interpreter, parked, &target);
	while (fgets(line, sizeof line, target.script.output) && strcmp(line, "end\n") != 0) {
		char *rest;
		pid_t tid = (pid_t)strtol(line, &rest, 10);

		assert_int_equal(*rest, '|');
		read_thread(&target, tid, &frames);
		compare(&frames, rest + 1);
		n++;
	}
	assert_int_equal(n, 5);
	print_message("Python %s: %u parked threads agree\n", py_runtime_version(target.runtime), n);
	py_frames_done(&frames);
	close_target(&target);
}

static void test_parked(void **state)
{
	struct interpreter interpreters[MAX_INTERPRETERS];
	size_t n = find_interpreters(interpreters);

	(void)state;
	for (size_t i = 0; i < n; i++)
		check_parked(&interpreters[i]);
	if (n == 0) {
		print_message("SKIP: no CPython 3.11 to 3.13 is installed\n");
		skip();
	}
}

/* Prints for many code objects of the library: first line, line table, and every unit's line. */
static const char lines_program[] =
	"import types, json, argparse, dataclasses, typing, ast, inspect\n"
	"def codes(c):\n"
	"    yield c\n"
	"    for k in c.co_consts:\n"
	"        if isinstance(k, types.CodeType): yield from codes(k)\n"
	"seen = 0\n"
	"for m in (json.decoder, json.encoder, argparse, dataclasses, typing, ast, inspect):\n"
	"    top = compile(open(m.__file__).read(), m.__file__, 'exec')\n"
	"    for c in codes(top):\n"
	"        lines = [-1] * (len(c.co_code) // 2)\n"
	"        for start, end, line in c.co_lines():\n"
	"            for i in range(start // 2, end // 2): lines[i] = line or 0\n"
	"        print(c.co_firstlineno, c.co_linetable.hex() or '-', len(lines), *lines)\n"
	"print('end', flush=True)\n";

static size_t parse_hex(const char *hex, uint8_t *to, size_t max)
{
	size_t n = 0;

	for (; hex[2 * n] && hex[2 * n] != '-' && n < max; n++) {
		unsigned byte;

		assert_int_equal(sscanf(hex + 2 * n, "%2x", &byte), 1);
		to[n] = (uint8_t)byte;
	}
	return n;
}

static void check_lines(const struct interpreter *interpreter)
{
	static char hex[1 << 18];
	static uint8_t table[1 << 17];
	struct script script = { 0 };
	size_t n_codes = 0, n_units = 0;
	int first_line;
	unsigned n;

	assert_int_equal(start_script(interpreter, lines_program, &script), 0);
	while (fscanf(script.output, "%d %262143s %u", &first_line, hex, &n) == 3) {
		size_t n_bytes = parse_hex(hex, table, sizeof table);

		for (unsigned unit = 0; unit < n; unit++, n_units++) {
			int line;

			assert_int_equal(fscanf(script.output, "%d", &line), 1);
			assert_int_equal(line_at(table, n_bytes, first_line, unit), line);
		}
		n_codes++;
	}
	end_script(&script);
	assert_true(n_codes > 500);
	print_message("%s: lines of %zu instructions in %zu functions agree\n", interpreter->path, n_units,
		      n_codes);
}

static void test_lines(void **state)
{
	struct interpreter interpreters[MAX_INTERPRETERS];
	size_t n = find_interpreters(interpreters);

	(void)state;
	for (size_t i = 0; i < n; i++)
		check_lines(&interpreters[i]);
	if (n == 0) {
		print_message("SKIP: no CPython 3.11 to 3.13 is installed\n");
		skip();
	}
}

static void test_damaged_lines(void **state)
{
	static const uint8_t unfinished[] = { 0xf0, 0xff };
	static const uint8_t no_start_bit[] = { 0x00 };

	(void)state;
	assert_int_equal(line_at(unfinished, sizeof unfinished, 1, 0), 0);
	assert_int_equal(line_at(no_start_bit, sizeof no_start_bit, 1, 0), 0);
	assert_int_equal(line_at(unfinished, 0, 1, 0), 0);
}

/* Functions made and dropped again and again at the same address: never a name of before. */
static const char reused[] =
	"import sys, threading\n"
	"gate = [threading.Event(), threading.Event()]\n"
	"out = [None]\n"
	"def run(i):\n"
	"    space = {'turn': turn}\n"
	"    exec('def f%d():\\n    turn(%d)\\n' % (i, i), space)\n"
	"    space['f%d' % i]()\n"
	"def turn(i):\n"
	"    print(threading.get_native_id(), 'f%d' % i, flush=True)\n"
	"    sys.stdin.readline()\n"
	"for i in range(1000): run(i % 7)\n";

static void check_reused(const struct interpreter *interpreter)
{
	struct py_frames frames = { 0 };
	struct target target;
	int saved = dup(STDIN_FILENO), ends[2], tid;
	char name[32];

	assert_int_equal(pipe(ends), 0);
	dup2(ends[0], STDIN_FILENO);
	open_target(interpreter, reused, &target);
	dup2(saved, STDIN_FILENO);
	close(saved);
	for (int i = 0; i < 1000 && fscanf(target.script.output, "%d %31s", &tid, name) == 2; i++) {
		bool found = false;

		usleep(200); /* from the print to the read that waits */
		read_thread(&target, tid, &frames);
		for (size_t k = 0; k < frames.n; k++)
			found |= strcmp(frames.frames[k].code->qualname, name) == 0;
		assert_true(found);
		assert_int_equal(write(ends[1], "\n", 1), 1);
	}
	close(ends[0]);
	close(ends[1]);
	py_frames_done(&frames);
	close_target(&target);
}

static void test_reused(void **state)
{
	struct interpreter interpreters[MAX_INTERPRETERS];
	size_t n = find_interpreters(interpreters);

	(void)state;
	for (size_t i = 0; i < n; i++)
		check_reused(&interpreters[i]);
	if (n == 0) {
		print_message("SKIP: no CPython 3.11 to 3.13 is installed\n");
		skip();
	}
}

static void test_not_python(void **state)
{
	struct module_table *modules;
	struct address_space *space;
	struct remote *remote;
	struct py_runtime *runtime = NULL;
	char version[32];

	(void)state;
	assert_int_equal(module_table_new(&modules), 0);
	assert_int_equal(address_space_new(getpid(), modules, &space), 0);
	assert_int_equal(address_space_load(space), 0);
	assert_int_equal(remote_open_process(getpid(), &remote), 0);
	assert_int_equal(py_runtime_find(space, remote, version, &runtime), -ENOENT);
	assert_null(runtime);
	assert_string_equal(version, "");
	remote_free(remote);
	address_space_free(space);
	module_table_free(modules);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_not_python), cmocka_unit_test(test_damaged_lines),
		cmocka_unit_test(test_lines),      cmocka_unit_test(test_parked),
		cmocka_unit_test(test_reused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
