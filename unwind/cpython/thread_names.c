/* SPDX-License-Identifier: MIT */
/* thread_names.c - names of threads in Python.
 *
 * threading._active maps a thread's threading.get_ident() to its Thread object, which
 * has the name as an attribute (Lib/threading.py, 2.7 to 3.15).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "unwind/cpython/object.h"

enum { MAX_INTERPRETERS = 64, MAX_NAMES = 65536, MAX_NAME_BYTES = 128 };

void py_thread_names_done(struct py_thread_names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->names[i].name);
	free(names->names);
	*names = (struct py_thread_names){ 0 };
}

const char *py_thread_name(const struct py_thread_names *names, uint64_t ident)
{
	for (size_t i = 0; i < names->n; i++)
		if (names->names[i].ident == ident)
			return names->names[i].name;
	return NULL;
}

/* Whether the name is a default: "Thread-7", "Thread-7 (target)", "Dummy-7". */
static bool is_made_up(const char *name)
{
	static const char *const prefixes[] = { "Thread-", "Dummy-" };

	for (size_t i = 0; i < N_ELEMENTS(prefixes); i++) {
		size_t n = strlen(prefixes[i]), n_digits;

		if (strncmp(name, prefixes[i], n) != 0)
			continue;
		n_digits = strspn(name + n, "0123456789");
		return n_digits > 0 && (name[n + n_digits] == '\0' || name[n + n_digits] == ' ');
	}
	return false;
}

const char *py_thread_title(const char *python, const char *comm, const char *process)
{
	enum { COMM_BYTES = 15 }; /* TASK_COMM_LEN - 1 */
	size_t n = strlen(comm);
	bool is_cut = python && n == COMM_BYTES && strncmp(python, comm, n) == 0;

	if (!python || !python[0])
		return comm;
	return comm[0] && is_made_up(python) && !is_cut && strcmp(comm, process) != 0 ? comm : python;
}

static int add_thread(struct py_runtime *runtime, uint64_t ident, uint64_t thread, struct py_thread_names *names)
{
	uint64_t object;
	char *name;
	int r;

	r = object_attribute(runtime, thread, "_name", &object);
	if (r == -ENOENT) /* 2.7: a name-mangled attribute */
		r = object_attribute(runtime, thread, "_Thread__name", &object);
	if (r >= 0)
		r = grow(&names->names, names->n, &names->allocated, sizeof *names->names);
	if (r >= 0)
		r = reader_string(runtime, object, MAX_NAME_BYTES, &name);
	if (r < 0)
		return r;
	/* The main interpreter comes last, and its name wins. */
	for (size_t i = 0; i < names->n; i++)
		if (names->names[i].ident == ident) {
			free(names->names[i].name);
			names->names[i].name = name;
			return 0;
		}
	names->names[names->n++] = (struct py_thread_named){ .ident = ident, .name = name };
	return 0;
}

static int add_interpreter(struct py_runtime *runtime, uint64_t interpreter, struct py_thread_names *names)
{
	uint64_t module, active, key, thread;
	struct dict_walk walk;
	int64_t ident;
	int r;

	r = object_module_dict(runtime, interpreter, "threading", &module);
	if (r >= 0)
		r = object_dict_find(runtime, module, "_active", &active);
	if (r >= 0)
		r = object_dict_walk(runtime, active, &walk);
	while (r >= 0 && names->n < MAX_NAMES && (r = object_dict_next(runtime, &walk, &key, &thread)) > 0)
		if (object_int(runtime, key, &ident) >= 0 &&
		    add_thread(runtime, (uint64_t)ident, thread, names) == -ENOMEM)
			return -ENOMEM;
	return r;
}

int py_thread_names_read(struct py_runtime *runtime, struct py_thread_names *ret)
{
	uint64_t interpreter;
	int r;

	py_begin_sample(runtime);
	r = reader_interpreters(runtime, &interpreter);
	for (unsigned i = 0; r >= 0 && interpreter != 0 && i < MAX_INTERPRETERS; i++) {
		r = add_interpreter(runtime, interpreter, ret);
		if (r == -ENOMEM)
			return r;
		/* An interpreter without `threading` must not end the loop. */
		r = object_word(runtime, interpreter + reader_field(runtime, INTERPRETER_NEXT), &interpreter);
	}
	return r < 0 ? r : 0;
}
