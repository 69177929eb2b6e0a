/* SPDX-License-Identifier: MIT */
/* python_target.h - a script under a real interpreter, with that interpreter found in it. For cmocka tests. */
#ifndef PROBING_TESTS_PYTHON_TARGET_H
#define PROBING_TESTS_PYTHON_TARGET_H

#include "base/address_space.h"
#include "tests/unit/interpreters.h"
#include "unwind/cpython/cpython.h"

struct python_target {
	struct script script;
	struct module_table *modules;
	struct address_space *space;
	struct remote *remote;
	struct py_runtime *runtime;
};

static inline void python_target_open(const struct interpreter *interpreter, const char *text,
				      struct python_target *target)
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

static inline void python_target_close(struct python_target *target)
{
	py_runtime_free(target->runtime);
	remote_free(target->remote);
	address_space_free(target->space);
	module_table_free(target->modules);
	end_script(&target->script);
}

#endif
