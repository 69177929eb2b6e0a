/* SPDX-License-Identifier: MIT */
/* facts_python.c - the Python of a process, and its properties; see facts.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/address_space.h"
#include "base/proc.h"
#include "base/util.h"
#include "src/doctor/facts.h"
#include "unwind/cpython/cpython.h"

enum { MAX_LOOPS_LOOKED_AT = 256 };

/* Resources opened for a process, freed together. */
struct look {
	struct module_table *modules;
	struct address_space *space;
	struct remote *remote;
	struct py_runtime *runtime; /* NULL: none, or unreadable */
};

static void look_done(struct look *look)
{
	py_runtime_free(look->runtime);
	remote_free(look->remote);
	address_space_free(look->space);
	module_table_free(look->modules);
}

static int open_look(pid_t pid, struct look *look)
{
	int r;

	r = module_table_new(&look->modules);
	if (r >= 0)
		r = address_space_new(pid, look->modules, &look->space);
	if (r >= 0)
		r = address_space_load(look->space);
	if (r >= 0)
		r = remote_open_process(pid, &look->remote);
	return r;
}

static void describe_file(struct module *module, struct facts_file *ret)
{
	int fd = -1;

	snprintf(ret->path, sizeof ret->path, "%s", module->path);
	ret->is_deleted = module->is_deleted;
	ret->error = module_open_file(module, &fd);
	if (ret->error >= 0)
		ret->has_debug = facts_has_debug_file(fd);
}

/* Find the mapped file to which /proc/PID/exe refers. */
static void describe_executable(struct look *look, struct facts_process *ret)
{
	char link[PROC_PATH_BYTES], path[PATH_MAX];
	ssize_t n;

	proc_path(ret->pid, "exe", link);
	n = readlink(link, path, sizeof path - 1);
	path[MAX(n, 0)] = '\0';
	for (size_t i = 0; n > 0 && i < module_table_size(look->modules); i++) {
		struct module *module = module_table_get(look->modules, i);
		size_t n_path = strlen(module->path);

		if (strncmp(path, module->path, n_path) == 0 &&
		    (path[n_path] == '\0' || strcmp(path + n_path, " (deleted)") == 0)) {
			describe_file(module, &ret->executable);
			return;
		}
	}
}

static bool is_dump(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	size_t n = strlen(name);

	return strncmp(name, "jit-", 4) == 0 && n > 5 && strcmp(name + n - 5, ".dump") == 0;
}

/* "libc.so.6", "libc-2.31.so", "ld-musl-x86_64.so.1": a name with "musl" decides. */
static void find_libc(const char *name, struct facts_process *ret)
{
	if (strncmp(name, "ld-musl", 7) == 0 || strncmp(name, "libc.musl", 9) == 0)
		ret->libc = LIBC_MUSL;
	else if (ret->libc != LIBC_MUSL && (strncmp(name, "libc.so.", 8) == 0 || strncmp(name, "libc-", 5) == 0))
		ret->libc = LIBC_GLIBC;
}

static void look_at_mappings(struct look *look, struct facts_process *ret)
{
	const struct mapping *mapping;

	ret->libc = LIBC_NONE;
	for (size_t i = 0; (mapping = address_space_nth(look->space, i)) != NULL; i++) {
		if (!mapping->module) {
			/* [vsyscall] lies in the kernel's half of the address space. */
			ret->n_generated += mapping->executable && mapping->start >> 63 == 0;
			continue;
		}
		ret->has_jitdump |= is_dump(mapping->module->path);
		find_libc(module_name(mapping->module), ret);
		ret->has_asyncio |= strncmp(module_name(mapping->module), "_asyncio", 8) == 0;
	}
}

/* Like perf: in the process's /tmp, with the PID of its own namespace. */
static void look_for_perf_map(struct facts_process *ret)
{
	char path[PROC_PATH_BYTES], file[64];

	snprintf(file, sizeof file, "root/tmp/perf-%d.map", (int)ret->own_pid);
	proc_path(ret->pid, file, path);
	ret->has_perf_map = access(path, F_OK) == 0;
}

static int count_tasks(struct look *look, struct facts_process *ret)
{
	CLEANUP(freep) pid_t *tids = NULL;
	size_t n = 0;
	int r = 0;

	if (proc_tasks(ret->pid, &tids, &n) < 0)
		return 0;
	py_asyncio_look(look->runtime, look->space);
	for (size_t i = 0; i < MIN(n, (size_t)MAX_LOOPS_LOOKED_AT) && r != -ENOMEM; i++) {
		CLEANUP(py_tasks_done) struct py_tasks tasks = { 0 };

		py_begin_sample(look->runtime);
		r = py_tasks_of(look->runtime, tids[i], &tasks);
		if (r < 0)
			continue;
		ret->n_loops += tasks.n > 0;
		ret->n_tasks += tasks.n;
	}
	return r == -ENOMEM ? r : 0;
}

static int find_python(struct look *look, struct facts_process *ret)
{
	struct py_script_slot slot;
	struct module *module;
	int r;

	r = py_runtime_find(look->space, look->remote, ret->python, &look->runtime);
	ret->python_error = r;
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	module = module_table_get(look->modules, py_runtime_module(look->runtime)->id);
	describe_file(module, &ret->interpreter);
	r = py_script_slot(look->runtime, ret->pid, &slot);
	ret->runs_scripts = r != -EOPNOTSUPP && r != -EACCES;
	return count_tasks(look, ret);
}

int facts_python_gather(struct facts_process *ret)
{
	CLEANUP(look_done) struct look look = { 0 };
	int r;

	ret->python_error = -ENOENT;
	if (ret->memory_error < 0)
		return 0;
	r = open_look(ret->pid, &look);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	look_at_mappings(&look, ret);
	look_for_perf_map(ret);
	describe_executable(&look, ret);
	return find_python(&look, ret);
}
