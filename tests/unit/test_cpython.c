/* SPDX-License-Identifier: MIT */
/* test_cpython.c - reading real interpreters that say themselves what is true.
 *
 * A script parks its threads in known stacks and prints what the interpreter
 * knows of them; the reader must see the same: functions, files, lines.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <cmocka.h>

#include "base/util.h"
#include "tests/unit/python_target.h"
#include "unwind/cpython/cpython.h"
#include "unwind/cpython/reader.h"

/* Each line: tid, then the frames innermost first as "line qualname", separated by "|". */
static const char parked[] =
	"# -*- coding: utf-8 -*-\n"
	"import ctypes, functools, os, sys, threading, time\n"
	"gate = threading.Event()\n"
	"ready = []\n"
	"native = {}\n"
	"def park():\n"
	"    native[threading.current_thread().name] = ctypes.CDLL(None).syscall(SYS_gettid)\n"
	"    ready.append(1)\n"
	"    gate.wait()\n"
	"SYS_gettid = {'x86_64': 186, 'aarch64': 178}[os.uname()[4]]\n"
	"class Outer(object):\n"
	"    def method(self, n):\n"
	"        if n:\n"
	"            return self.method(n - 1)\n"
	"        return [park() for _ in range(1)]\n"
	"def generator():\n"
	"    yield park()\n"
	"def callback():\n"
	"    return sorted([2, 1], key=lambda x: park())\n"
	"def partial():\n"
	"    functools.reduce(lambda a, b: park(), [1, 2])\n"
	"def module_level():\n"
	"    exec(compile('class Body:\\n    x = 1\\n    y = (lambda: park())()\\n', 'body.py', 'exec'), {'park': park})\n"
	"class Deleted(object):\n"
	"    def __del__(self):\n"
	"        park()\n"
	"def collected():\n"
	"    thing = Deleted()\n"
	"    del thing\n"
	"if sys.version_info[0] > 2:\n"
	"    exec('def delegating():\\n    yield from generator()\\n')\n"
	"    exec(u'def \xc3\xbcmlaut_\xe5\x90\x8d\xe5\x89\x8d():\\n    park()\\nwide = \xc3\xbcmlaut_\xe5\x90\x8d\xe5\x89\x8d')\n"
	"else:\n"
	"    def delegating():\n"
	"        for x in generator(): yield x\n"
	"    def wide(): park()\n"
	"targets = [lambda: Outer().method(40), lambda: list(delegating()), callback, partial, wide, module_level,\n"
	"           collected]\n"
	"threads = [threading.Thread(target=t) for t in targets]\n"
	"for t in threads:\n"
	"    t.daemon = True\n"
	"    t.start()\n"
	"while len(ready) < len(targets): time.sleep(0.01)\n"
	"time.sleep(0.2)\n"
	"frames = sys._current_frames()\n"
	"for t in threads:\n"
	"    f, out = frames[t.ident], []\n"
	"    while f:\n"
	"        out.append(u'%d %s' % (f.f_lineno, getattr(f.f_code, 'co_qualname', f.f_code.co_name)))\n"
	"        f = f.f_back\n"
	"    os.write(1, (u'%d|%s\\n' % (native[t.name], u'|'.join(out))).encode('utf-8'))\n"
	"os.write(1, b'end\\n')\n"
	"gate.wait()\n";

/* All Python frames of a thread, from live memory. */
static void read_thread(struct python_target *target, pid_t tid, struct py_frames *frames)
{
	struct py_anchor anchors[64];
	uint64_t end, outer = 0;
	int n;

	py_begin_sample(target->runtime);
	n = py_live_anchors(target->runtime, tid, false, anchors, N_ELEMENTS(anchors));
	assert_true(n > 0);
	frames->n = 0;
	for (int i = 0; i < n; i++) {
		assert_int_equal(py_walk(target->runtime, anchors[i].top, frames, &end, &outer), 0);
		/* Each evaluation leads on to the next. */
		if (i + 1 < n)
			assert_int_equal(outer, anchors[i + 1].top);
	}
	/* 0, or the base frame of a thread. */
	if (outer != 0)
		assert_int_equal(py_walk(target->runtime, outer, frames, &end, &outer), 0);
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
	struct python_target target;
	char line[8192];
	unsigned n = 0;

	python_target_open(interpreter, parked, &target);
	while (fgets(line, sizeof line, target.script.output) && strcmp(line, "end\n") != 0) {
		char *rest;
		pid_t tid = (pid_t)strtol(line, &rest, 10);

		assert_int_equal(*rest, '|');
		read_thread(&target, tid, &frames);
		compare(&frames, rest + 1);
		n++;
	}
	assert_int_equal(n, 7);
	print_message("Python %s: %u parked threads agree\n", py_runtime_version(target.runtime), n);
	py_frames_done(&frames);
	python_target_close(&target);
}

static void test_parked(void **state)
{
	struct interpreter interpreters[MAX_INTERPRETERS];
	size_t n = find_interpreters(interpreters);

	(void)state;
	for (size_t i = 0; i < n; i++)
		check_parked(&interpreters[i]);
	if (n == 0) {
		print_message("SKIP: no CPython is installed\n");
		skip();
	}
}

/*
 * Prints for many code objects of the library: first line, line table, and every unit's line
 * as the interpreter has it: code.co_lines(), or before 3.10 dis.findlinestarts(), which
 * leaves out lines that do not change.
 */
static const char lines_program[] =
	"import types, json.decoder, json.encoder, argparse, inspect, ast, dis, binascii, sys\n"
	"def codes(c):\n"
	"    yield c\n"
	"    for k in c.co_consts:\n"
	"        if isinstance(k, types.CodeType):\n"
	"            for inner in codes(k): yield inner\n"
	"def source(m):\n"
	"    return m.__file__[:-1] if m.__file__.endswith('.pyc') else m.__file__\n"
	"for m in (json.decoder, json.encoder, argparse, inspect, ast, types, dis):\n"
	"    top = compile(open(source(m), 'rb').read(), source(m), 'exec')\n"
	"    for c in codes(top):\n"
	"        lines = [0] * len(c.co_code)\n"
	"        if hasattr(c, 'co_lines'):\n"
	"            for start, end, line in c.co_lines():\n"
	"                for i in range(start, end): lines[i] = line or 0\n"
	"        else:\n"
	"            starts = dict(dis.findlinestarts(c))\n"
	"            line = c.co_firstlineno\n"
	"            for i in range(len(lines)):\n"
	"                line = starts.get(i, line)\n"
	"                lines[i] = line\n"
	"        spans = []\n"
	"        if hasattr(c, 'co_positions'):\n"
	"            for p in c.co_positions(): spans += 2 * [tuple(-1 if n is None else n for n in p[1:])]\n"
	"        table = getattr(c, 'co_linetable', None)\n"
	"        table = c.co_lnotab if table is None else table\n"
	"        sys.stdout.write(' '.join([str(c.co_firstlineno), binascii.hexlify(table).decode() or '-', str(len(lines))]\n"
	"                                  + [str(n) for n in lines] + [str(len(spans))]\n"
	"                                  + ['%d %d %d' % span for span in spans]) + '\\n')\n"
	"sys.stdout.flush()\n";

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

/* End line, column, end column of every byte of bytecode, -1 if absent; from 3.11. */
static void check_columns(FILE *output, const struct layout *layout, const uint8_t *table, size_t n_bytes,
			  int first_line)
{
	unsigned n;

	assert_int_equal(fscanf(output, "%u", &n), 1);
	for (unsigned offset = 0; offset < n; offset++) {
		struct py_position position;
		int end_line, column, end_column;

		assert_int_equal(fscanf(output, "%d %d %d", &end_line, &column, &end_column), 3);
		position_at((unsigned)layout->field[LINES], table, n_bytes, first_line, offset, &position);
		assert_int_equal(position.column, column);
		assert_int_equal(position.end_column, end_column);
		assert_int_equal(position.end_line, MAX(end_line, 0));
	}
}

static void check_lines(const struct interpreter *interpreter)
{
	static char hex[1 << 18];
	static uint8_t table[1 << 17];
	struct script script = { 0 };
	size_t n_codes = 0, n_bytes_seen = 0;
	struct layout layout;
	int first_line;
	unsigned n;

	if (layout_of(interpreter->version << 16 | 0xf0, false, &layout) < 0)
		return;
	assert_int_equal(start_script(interpreter, lines_program, &script), 0);
	while (fscanf(script.output, "%d %262143s %u", &first_line, hex, &n) == 3) {
		size_t n_bytes = parse_hex(hex, table, sizeof table);

		for (unsigned offset = 0; offset < n; offset++, n_bytes_seen++) {
			int line;

			assert_int_equal(fscanf(script.output, "%d", &line), 1);
			assert_int_equal(line_at((unsigned)layout.field[LINES], table, n_bytes, first_line, offset),
					 line);
		}
		check_columns(script.output, &layout, table, n_bytes, first_line);
		n_codes++;
	}
	end_script(&script);
	assert_true(n_codes > 200);
	print_message("%s: lines of %zu bytes of bytecode in %zu functions agree\n", interpreter->path, n_bytes_seen,
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
		print_message("SKIP: no CPython is installed\n");
		skip();
	}
}

static void test_damaged_lines(void **state)
{
	static const uint8_t unfinished[] = { 0xf0, 0xff };
	static const uint8_t no_start_bit[] = { 0x00 };
	static const uint8_t odd[] = { 0 };
	static const uint8_t backwards[] = { 0, 200 };

	(void)state;
	assert_int_equal(line_at(LINES_LOCATIONS, unfinished, sizeof unfinished, 1, 0), 0);
	assert_int_equal(line_at(LINES_LOCATIONS, no_start_bit, sizeof no_start_bit, 1, 0), 0);
	assert_int_equal(line_at(LINES_LOCATIONS, unfinished, 0, 1, 0), 0);
	assert_int_equal(line_at(LINES_RANGES, odd, sizeof odd, 1, 0), 0);
	assert_int_equal(line_at(LINES_RANGES, odd, 0, 1, 0), 0);
	assert_int_equal(line_at(LINES_SIGNED_DELTAS, odd, sizeof odd, 1, 0), 0);
	assert_int_equal(line_at(LINES_SIGNED_DELTAS, backwards, sizeof backwards, 1, 0), 0);
	assert_int_equal(line_at(LINES_UNSIGNED_DELTAS, backwards, sizeof backwards, 1, 0), 201);
}

/* Functions made and dropped again and again at the same address: never a name of before. */
static const char reused[] = "import os, sys\n"
			     "def run(i):\n"
			     "    space = {'turn': turn}\n"
			     "    exec('def f%d():\\n    turn(%d)\\n' % (i, i), space)\n"
			     "    space['f%d' % i]()\n"
			     "def turn(i):\n"
			     "    sys.stdout.write('%d f%d\\n' % (os.getpid(), i))\n"
			     "    sys.stdout.flush()\n"
			     "    sys.stdin.readline()\n"
			     "for i in range(1000): run(i % 7)\n";

/* A thread has got to the read(2) that waits. Source: proc_pid_syscall(5). */
static void await_read(pid_t pid, pid_t tid)
{
	enum { PATIENCE_MS = 60000 };
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/task/%d/syscall", (int)pid, (int)tid);
	for (int i = 0; i < PATIENCE_MS * 5; i++) {
		CLEANUP(freep) char *text = NULL;

		assert_int_equal(read_file(path, 256, &text, NULL), 0);
		if (strtol(text, NULL, 10) == SYS_read && strncmp(text, "running", 7) != 0)
			return;
		usleep(200);
	}
	fail_msg("thread %d does not wait", (int)tid);
}

static void check_reused(const struct interpreter *interpreter)
{
	struct py_frames frames = { 0 };
	struct python_target target;
	int saved = dup(STDIN_FILENO), ends[2], tid;
	char name[32];

	assert_int_equal(pipe(ends), 0);
	dup2(ends[0], STDIN_FILENO);
	python_target_open(interpreter, reused, &target);
	dup2(saved, STDIN_FILENO);
	close(saved);
	for (int i = 0; i < 1000 && fscanf(target.script.output, "%d %31s", &tid, name) == 2; i++) {
		bool found = false;

		await_read(tid, tid);
		read_thread(&target, tid, &frames);
		for (size_t k = 0; k < frames.n; k++)
			found |= strcmp(frames.frames[k].code->qualname, name) == 0;
		assert_true(found);
		assert_int_equal(write(ends[1], "\n", 1), 1);
	}
	close(ends[0]);
	close(ends[1]);
	py_frames_done(&frames);
	python_target_close(&target);
}

static void test_reused(void **state)
{
	struct interpreter interpreters[MAX_INTERPRETERS];
	size_t n = find_interpreters(interpreters);

	(void)state;
	for (size_t i = 0; i < n; i++)
		check_reused(&interpreters[i]);
	if (n == 0) {
		print_message("SKIP: no CPython is installed\n");
		skip();
	}
}

/*
 * Three phases, each told by a line "tid of main, tid of worker", and ended by one of ours: the
 * worker computes while the main thread waits; both wait; both wait within a collection.
 */
static const char states[] = "import ctypes, gc, os, sys, threading, weakref\n"
			     "gc.disable()\n"
			     "SYS_gettid = {'x86_64': 186, 'aarch64': 178}[os.uname()[4]]\n"
			     "def tid(): return ctypes.CDLL(None).syscall(SYS_gettid)\n"
			     "worker, ready, gate = [0], threading.Event(), threading.Event()\n"
			     "busy = [True]\n"
			     "def work():\n"
			     "    worker[0] = tid()\n"
			     "    ready.set()\n"
			     "    while busy[0]: pass\n"
			     "    gate.wait()\n"
			     "thread = threading.Thread(target=work)\n"
			     "thread.daemon = True\n"
			     "thread.start()\n"
			     "ready.wait()\n"
			     "def turn():\n"
			     "    os.write(1, ('%d %d\\n' % (os.getpid(), worker[0])).encode())\n"
			     "    os.read(0, 1)\n"
			     "turn()\n"
			     "busy[0] = False\n"
			     "turn()\n"
			     "class Ring(object): pass\n"
			     "ring = Ring()\n"
			     "ring.ring = ring\n"
			     "watch = weakref.ref(ring, lambda _: turn())\n"
			     "del ring\n"
			     "gc.collect()\n";

static struct py_state state_of(struct python_target *target, pid_t tid)
{
	struct py_state state;

	py_begin_sample(target->runtime);
	assert_int_equal(py_state_of(target->runtime, tid, &state), 0);
	return state;
}

/* Is a thread seen to hold the GIL? One that computes gives it away now and then. */
static bool is_seen_holding(struct python_target *target, pid_t tid, unsigned n_looks)
{
	for (unsigned i = 0; i < n_looks; i++) {
		if (state_of(target, tid).holds_gil == PY_YES)
			return true;
		usleep(1000);
	}
	return false;
}

static void check_states(const struct interpreter *interpreter)
{
	int saved = dup(STDIN_FILENO), ends[2], main_tid, worker;
	struct python_target target;

	assert_int_equal(pipe(ends), 0);
	dup2(ends[0], STDIN_FILENO);
	python_target_open(interpreter, states, &target);
	dup2(saved, STDIN_FILENO);
	close(saved);
	for (unsigned phase = 0; phase < 3; phase++) {
		struct py_state state;

		assert_int_equal(fscanf(target.script.output, "%d %d", &main_tid, &worker), 2);
		await_read(main_tid, main_tid);
		usleep(100000); /* the other thread gets to its wait */
		assert_int_equal(py_has_gil(target.runtime), interpreter->has_gil);
		assert_int_equal(is_seen_holding(&target, worker, phase == 0 && interpreter->has_gil ? 1000 : 50),
				 phase == 0 && interpreter->has_gil);
		state = state_of(&target, main_tid);
		assert_int_equal(state.holds_gil, PY_NO);
		assert_int_equal(state.collects, phase == 2 ? PY_YES : PY_NO);
		assert_int_equal(state.interpreter, 0);
		assert_int_equal(py_state_of(target.runtime, getpid(), &(struct py_state){ 0 }), -ESRCH);
		assert_int_equal(write(ends[1], "\n", 1), 1);
	}
	close(ends[0]);
	close(ends[1]);
	python_target_close(&target);
}

static void test_states(void **state)
{
	struct interpreter interpreters[MAX_INTERPRETERS];
	size_t n = find_interpreters(interpreters);

	(void)state;
	for (size_t i = 0; i < n; i++)
		check_states(&interpreters[i]);
	if (n == 0) {
		print_message("SKIP: no CPython is installed\n");
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

/* ---- The one of two names that is shown ---- */

static void test_thread_titles(void **state)
{
	static const struct {
		const char *python, *comm, *process, *title;
	} cases[] = {
		{ NULL, "worker", "python3", "worker" },
		{ "", "worker", "python3", "worker" },
		{ "MainThread", "python3", "python3", "MainThread" },
		{ "MainThread", "gunicorn: master", "gunicorn: master", "MainThread" },
		{ "loader", "python3", "python3", "loader" },
		{ "loader", "native", "python3", "loader" },
		{ "Thread-1", "python3", "python3", "Thread-1" },
		{ "Thread-1 (run)", "python3", "python3", "Thread-1 (run)" },
		{ "Thread-1 (run)", "native", "python3", "native" },
		{ "Dummy-3", "pt_autograd_0", "python3", "pt_autograd_0" },
		{ "Thread-12 (a_long_target)", "Thread-12 (a_lo", "python3", "Thread-12 (a_long_target)" },
		{ "Thread-", "native", "python3", "Thread-" },
		{ "Thread-1st", "native", "python3", "Thread-1st" },
		{ "Dummy-3", "", "python3", "Dummy-3" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_string_equal(py_thread_title(cases[i].python, cases[i].comm, cases[i].process), cases[i].title);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_not_python),    cmocka_unit_test(test_damaged_lines),
		cmocka_unit_test(test_lines),         cmocka_unit_test(test_parked),
		cmocka_unit_test(test_reused),        cmocka_unit_test(test_states),
		cmocka_unit_test(test_thread_titles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
