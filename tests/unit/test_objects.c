/* SPDX-License-Identifier: MIT */
/* test_objects.c - objects of real interpreters, which say themselves what they hold.
 *
 * A program makes containers and instances of all kinds, and prints for each its address and
 * those of what is in it; the reader must find the same, and in the same order, where there is one.
 */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/util.h"
#include "tests/unit/python_target.h"
#include "unwind/cpython/object.h"

/* Each line: kind, address, then addresses of items, or of keys and values in turn. */
static const char program[] =
	"import os, sys, threading, time, types, weakref\n"
	"kept = []\n"
	"def say(kind, thing, items):\n"
	"    kept.append((thing, items))\n"
	"    line = '%s %x' % (kind, id(thing)) + ''.join(' %x' % id(item) for item in items)\n"
	"    os.write(1, (line + '\\n').encode('ascii'))\n"
	"def pairs(dictionary):\n"
	"    return [each for item in dictionary.items() for each in item]\n"
	"def dictionary(thing):\n"
	"    say('dict', thing, pairs(thing))\n"
	"def attributes(thing, *names):\n"
	"    known = dict((name, name) for name in names)\n"
	"    say('attributes', thing, [each for name in names for each in (INTERNED[name], getattr(thing, name))])\n"
	"INTERNED = {}\n"
	"intern = getattr(sys, 'intern', None) or __builtins__.intern\n"
	"for name in ['x', 'y', 'z', 'added', '_name'] + ['n%d' % n for n in range(40)]: INTERNED[name] = intern(name)\n"
	"dictionary({})\n"
	"dictionary({'a': 1})\n"
	"dictionary({'a': object(), 2: object(), None: object(), ('t',): 1.5})\n"
	"some = dict(('k%d' % n, object()) for n in range(20))\n"
	"for n in (3, 4, 17): del some['k%d' % n]\n"
	"some['again'] = 1\n"
	"dictionary(some)\n"
	"for n in (100, 200, 300): dictionary(dict((n, float(n)) for n in range(n)))\n"
	"big = dict((str(n), n) for n in range(70000))\n"
	"say('size', big, [])\n"
	"os.write(1, ('find %x 43210 %x\\n' % (id(big), id(big['43210']))).encode('ascii'))\n"
	"os.write(1, ('find %x nothing 0\\n' % id(big)).encode('ascii'))\n"
	"class Plain(object): pass\n"
	"class Point(object):\n"
	"    def __init__(self, x, y): self.x, self.y = x, y\n"
	"for n in range(3): attributes(Point(n, object()), 'x', 'y')\n"
	"point = Point(1, 2)\n"
	"vars(point)\n"
	"attributes(point, 'x', 'y')\n"
	"dictionary(vars(Point(3, 4)))\n"
	"point = Point(1, 2)\n"
	"del point.x\n"
	"attributes(point, 'y')\n"
	"point = Point(1, 2)\n"
	"point.added = 7\n"
	"attributes(point, 'x', 'y', 'added')\n"
	"many = Plain()\n"
	"for n in range(40): setattr(many, 'n%d' % n, n)\n"
	"attributes(many, *['n%d' % n for n in range(40)])\n"
	"class Numbers(list): pass\n"
	"class Pair(tuple): pass\n"
	"class Whole(type(1 << 70)): pass\n"
	"class Wrong(ValueError): pass\n"
	"class Words(dict): pass\n"
	"for thing in (Numbers([1]), Pair((1, 2, 3)), Pair(()), Whole(5), Whole(1 << 70), Wrong('w'), Words(a=1)):\n"
	"    thing.x = object()\n"
	"    attributes(thing, 'x')\n"
	"def function(): pass\n"
	"function.x = 1\n"
	"attributes(function, 'x')\n"
	"attributes(object())\n"
	"attributes(Plain())\n"
	"dictionary(Words(a=1, b=2))\n"
	"for items in ([], [1], [object() for n in range(3000)]):\n"
	"    say('list', items, items)\n"
	"    say('tuple', tuple(items), items)\n"
	"    say('set', set(items), items)\n"
	"    say('set', frozenset(items), items)\n"
	"say('list', Numbers([7, 8]), [7, 8])\n"
	"say('tuple', Pair((7, 8)), [7, 8])\n"
	"less = set(range(100, 1100))\n"
	"for n in range(100, 1000): less.discard(n)\n"
	"say('set', less, list(less))\n"
	"few = set('abc')\n"
	"few.discard('b')\n"
	"say('set', few, list(few))\n"
	"say('weak', weakref.ref(many), [many])\n"
	"gone = Plain()\n"
	"reference = weakref.ref(gone)\n"
	"del gone\n"
	"say('weak', reference, [])\n"
	"os.write(1, ('module %x threading\\n' % id(vars(threading))).encode('ascii'))\n"
	"os.write(1, b'end 0\\n')\n"
	"time.sleep(60)\n";

enum { MAX_LINE_BYTES = 1 << 17, MAX_ITEMS = 8192 };

struct target {
	struct python_target python;
	uint64_t object, items[MAX_ITEMS];
	size_t n;
};

static int by_value(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

static void compare_items(struct target *target, struct item_walk *walk)
{
	static uint64_t seen[MAX_ITEMS];
	size_t n = 0;
	uint64_t item;
	int r;

	while ((r = object_item_next(target->python.runtime, walk, &item)) > 0) {
		assert_true(n < MAX_ITEMS);
		seen[n++] = item;
	}
	assert_int_equal(r, 0);
	assert_int_equal(n, target->n);
	if (walk->is_set) {
		qsort(seen, n, sizeof *seen, by_value);
		qsort(target->items, n, sizeof *target->items, by_value);
	}
	assert_memory_equal(seen, target->items, n * sizeof *seen);
}

static int by_key(const void *a, const void *b)
{
	return by_value(a, b);
}

/* Attributes in the order of other instances, or of a hash table. */
static void compare_pairs(struct target *target, struct dict_walk *walk, bool is_ordered)
{
	static uint64_t seen[MAX_ITEMS];
	uint64_t key, value;
	size_t n = 0;
	int r;

	while ((r = object_dict_next(target->python.runtime, walk, &key, &value)) > 0) {
		assert_true(n + 2 <= MAX_ITEMS);
		seen[n++] = key;
		seen[n++] = value;
	}
	assert_int_equal(r, 0);
	assert_int_equal(n, target->n);
	if (!is_ordered) {
		qsort(seen, n / 2, 2 * sizeof *seen, by_key);
		qsort(target->items, n / 2, 2 * sizeof *target->items, by_key);
	}
	assert_memory_equal(seen, target->items, n * sizeof *seen);
}

static void check_dict(struct target *target)
{
	struct dict_walk walk;
	uint64_t size;

	assert_int_equal(object_dict_walk(target->python.runtime, target->object, &walk), 0);
	compare_pairs(target, &walk, true);
	assert_int_equal(object_dict_size(target->python.runtime, target->object, &size), 0);
	assert_int_equal(size, target->n / 2);
}

static void check_attributes(struct target *target)
{
	struct dict_walk walk;

	assert_int_equal(object_attributes_walk(target->python.runtime, target->object, &walk), 0);
	compare_pairs(target, &walk, false);
}

static void check_list(struct target *target)
{
	struct item_walk walk;

	assert_int_equal(object_list_walk(target->python.runtime, target->object, &walk), 0);
	compare_items(target, &walk);
}

static void check_tuple(struct target *target)
{
	struct item_walk walk;

	assert_int_equal(object_tuple_walk(target->python.runtime, target->object, &walk), 0);
	compare_items(target, &walk);
}

static void check_set(struct target *target)
{
	struct item_walk walk;
	uint64_t size;

	assert_int_equal(object_set_walk(target->python.runtime, target->object, &walk), 0);
	compare_items(target, &walk);
	assert_int_equal(object_set_size(target->python.runtime, target->object, &size), 0);
	assert_int_equal(size, target->n);
}

static void check_weak(struct target *target)
{
	uint64_t referent = 0;

	assert_int_equal(object_weakref_target(target->python.runtime, target->object, &referent),
			 target->n ? 0 : -ENOENT);
	if (target->n)
		assert_int_equal(referent, target->items[0]);
}

static void check_size(struct target *target)
{
	struct object_type type;
	uint64_t size;

	assert_int_equal(object_dict_size(target->python.runtime, target->object, &size), 0);
	assert_int_equal(size, 70000);
	assert_int_equal(object_type_of(target->python.runtime, target->object, &type), 0);
	assert_string_equal(type.name, "dict");
	/* An address of no object is refused. */
	assert_int_equal(object_type_of(target->python.runtime, target->object + 4, &type), -EBADMSG);
	assert_int_equal(object_type_of(target->python.runtime, 4096, &type), -EFAULT);
	assert_int_equal(object_type_of(target->python.runtime, 0, &type), -EBADMSG);
}

static const struct {
	const char *kind;
	void (*check)(struct target *target);
} checks[] = {
	{ "dict", check_dict }, { "attributes", check_attributes },
	{ "list", check_list }, { "tuple", check_tuple },
	{ "set", check_set },   { "weak", check_weak },
	{ "size", check_size },
};

static void check_find(struct target *target, const char *rest)
{
	uint64_t dict, value, seen = 0;
	char key[64];

	assert_int_equal(sscanf(rest, "%" SCNx64 " %63s %" SCNx64, &dict, key, &value), 3);
	assert_int_equal(object_dict_find(target->python.runtime, dict, key, &seen), value ? 0 : -ENOENT);
	assert_int_equal(seen, value);
}

static void check_module(struct target *target, const char *rest)
{
	uint64_t dict, interpreter, seen;
	char name[64];

	assert_int_equal(sscanf(rest, "%" SCNx64 " %63s", &dict, name), 2);
	assert_int_equal(reader_interpreters(target->python.runtime, &interpreter), 0);
	assert_int_equal(object_module_dict(target->python.runtime, interpreter, name, &seen), 0);
	assert_int_equal(seen, dict);
	assert_int_equal(object_module_dict(target->python.runtime, interpreter, "no_such_module", &seen), -ENOENT);
}

static void check_line(struct target *target, const char *kind, char *rest)
{
	py_begin_sample(target->python.runtime);
	if (strcmp(kind, "find") == 0) {
		check_find(target, rest);
		return;
	}
	if (strcmp(kind, "module") == 0) {
		check_module(target, rest);
		return;
	}
	target->object = strtoull(rest, &rest, 16);
	target->n = 0;
	while (*rest == ' ' && target->n < MAX_ITEMS)
		target->items[target->n++] = strtoull(rest, &rest, 16);
	for (size_t i = 0; i < N_ELEMENTS(checks); i++)
		if (strcmp(kind, checks[i].kind) == 0) {
			checks[i].check(target);
			return;
		}
	fail();
}

static void check_interpreter(const struct interpreter *interpreter)
{
	static char line[MAX_LINE_BYTES];
	static struct target target;
	unsigned n = 0;

	python_target_open(interpreter, program, &target.python);
	while (fgets(line, sizeof line, target.python.script.output) && strcmp(line, "end 0\n") != 0) {
		char *rest = strchr(line, ' ');

		*rest = '\0';
		check_line(&target, line, rest + 1);
		n++;
	}
	assert_true(n > 40);
	print_message("Python %s: %u objects agree\n", py_runtime_version(target.python.runtime), n);
	python_target_close(&target.python);
}

static void test_objects(void **state)
{
	struct interpreter interpreters[MAX_INTERPRETERS];
	size_t n = find_interpreters(interpreters);

	(void)state;
	for (size_t i = 0; i < n; i++)
		check_interpreter(&interpreters[i]);
	if (n == 0) {
		print_message("SKIP: no CPython is installed\n");
		skip();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_objects),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
