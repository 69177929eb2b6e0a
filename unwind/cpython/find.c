/* SPDX-License-Identifier: MIT */
/* find.c - the interpreter among the files that a process has mapped.
 *
 * Its roots are dynamic symbols, also in stripped static executables: _PyRuntime
 * from 3.7, _PyThreadState_Current before.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "unwind/cpython/reader.h"

/* Symbols that only debug builds have, in one release or another. */
static const char *const debug_symbols[] = { "_Py_NegativeRefcount", "_Py_RefTotal",
					     "_PyGILState_GetThisThreadState_debug" };

static uint64_t address_of(const struct mapping *mapping, struct elf_file *elf, const char *name)
{
	uint64_t value, size;

	return elf_file_symbol(elf, name, &value, &size) < 0 ? 0 : value + (uint64_t)mapping->bias;
}

static void find_data(const struct mapping *mapping, const struct elf_file *elf, struct py_symbols *symbols)
{
	struct elf_segment segment;

	for (size_t n = 0; elf_file_segment(elf, n, &segment); n++) {
		if (!segment.writable)
			continue;
		if (symbols->data_end == 0)
			symbols->data_start = segment.address + (uint64_t)mapping->bias;
		symbols->data_end = segment.address + segment.n_memory_bytes + (uint64_t)mapping->bias;
	}
}

/* False: the file contains no interpreter. */
static bool find_symbols(const struct mapping *mapping, struct elf_file *elf, struct py_symbols *symbols)
{
	*symbols = (struct py_symbols){
		.runtime = address_of(mapping, elf, "_PyRuntime"),
		.current_thread = address_of(mapping, elf, "_PyThreadState_Current"),
	};
	if (!symbols->runtime && !symbols->current_thread)
		return false;
	symbols->interpreters = address_of(mapping, elf, "interp_head");
	symbols->collecting = address_of(mapping, elf, "collecting");
	symbols->version = address_of(mapping, elf, "Py_Version");
	symbols->lock = address_of(mapping, elf, "interpreter_lock");
	symbols->code_type = address_of(mapping, elf, "PyCode_Type");
	symbols->loop = address_of(mapping, elf, "_PyEval_EvalFrameDefault");
	if (!symbols->loop) /* up to 3.5 */
		symbols->loop = address_of(mapping, elf, "PyEval_EvalFrameEx");
	for (size_t i = 0; i < N_ELEMENTS(debug_symbols); i++)
		symbols->is_debug_build |= address_of(mapping, elf, debug_symbols[i]) != 0;
	find_data(mapping, elf, symbols);
	return true;
}

/* All executable memory of the module, so that two comparisons classify a PC. */
static void find_text(struct address_space *space, struct py_runtime *runtime)
{
	const struct mapping *mapping;

	runtime->text_start = UINT64_MAX;
	for (size_t n = 0; (mapping = address_space_nth(space, n)) != NULL; n++) {
		if (mapping->module != runtime->module || !mapping->executable)
			continue;
		runtime->text_start = MIN(runtime->text_start, mapping->start);
		runtime->text_end = MAX(runtime->text_end, mapping->end);
	}
}

/* @own_pid: PID of an ended process (a core file); 0: it is alive. */
static int try_mapping(struct address_space *space, struct remote *remote, const struct mapping *mapping, pid_t own_pid,
		       char *version, struct py_runtime **ret)
{
	CLEANUP(task_ids_freep) struct task_ids *ids = NULL;
	pid_t pid = address_space_pid(space);
	struct py_symbols symbols;
	struct module *module;
	struct elf_file *elf;
	uint64_t own;
	int r;

	/* Resolving computes the mapping's bias. */
	r = address_space_resolve(space, mapping->start, &module, &own);
	if (r < 0 || !mapping->has_bias)
		return -ENOENT;
	r = module_elf(mapping->module, &elf);
	if (r < 0)
		return -ENOENT;
	if (!find_symbols(mapping, elf, &symbols)) {
		mapping->module->without_python = true;
		return -ENOENT;
	}
	r = 0;
	if (own_pid == 0) {
		r = task_ids_new(pid, &ids);
		if (r >= 0)
			r = task_ids_own(ids, pid, &own_pid);
	}
	if (r >= 0)
		r = py_runtime_open(remote, own_pid, &symbols, version, ret);
	if (r < 0)
		return r;
	(*ret)->ids = TAKE(ids);
	(*ret)->module = mapping->module;
	(*ret)->bias = mapping->bias;
	find_text(space, *ret);
	return 0;
}

static bool is_likely(const struct mapping *mapping, bool by_name)
{
	if (!mapping->executable || !mapping->module || mapping->module->is_vdso || mapping->module->without_python)
		return false;
	return (strstr(module_name(mapping->module), "python") != NULL) == by_name;
}

static int find(struct address_space *space, struct remote *remote, pid_t own_pid, char *version,
		struct py_runtime **ret)
{
	char candidate[VERSION_BYTES];
	int found = -ENOENT;

	version[0] = '\0';
	/*
	 * Try modules named python first, then the others, for embedded interpreters. An interpreter that has not
	 * started ends no search: it may be an unused second copy of the library.
	 */
	for (int by_name = 1; by_name >= 0; by_name--) {
		const struct mapping *mapping;

		for (size_t n = 0; (mapping = address_space_nth(space, n)) != NULL; n++) {
			int r;

			if (!is_likely(mapping, by_name))
				continue;
			r = try_mapping(space, remote, mapping, own_pid, candidate, ret);
			if (r == -ENOENT || (r == -EOPNOTSUPP && found == -EAGAIN))
				continue;
			found = r;
			memcpy(version, candidate, sizeof candidate);
			if (r >= 0 || r == -EPERM || r == -ENOMEM)
				return r;
		}
	}
	return found;
}

int py_runtime_find(struct address_space *space, struct remote *remote, char *version, struct py_runtime **ret)
{
	return find(space, remote, 0, version, ret);
}

int py_runtime_find_dumped(struct address_space *space, struct remote *remote, pid_t pid, char *version,
			   struct py_runtime **ret)
{
	return find(space, remote, pid, version, ret);
}
