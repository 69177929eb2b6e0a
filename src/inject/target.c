/* SPDX-License-Identifier: MIT */
/* target.c - see target.h. */
#include "src/inject/target.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/path.h"
#include "base/proc.h"
#include "base/util.h"
#include "src/inject/place.h"

static int __attribute__((format(printf, 3, 4))) refuse(char *why, int error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(why, INJECT_WHY_BYTES, format, arguments);
	va_end(arguments);
	return error;
}

/* ---- Agent library ---- */

void agent_library_done(struct agent_library *library)
{
	elf_file_free(library->elf);
	library->elf = NULL;
}

static int offset_of(const struct elf_file *elf, uint64_t address, uint64_t *ret)
{
	struct elf_segment segment;

	for (size_t i = 0; elf_file_segment(elf, i, &segment); i++)
		if (address - segment.address < segment.n_file_bytes) {
			*ret = segment.file_offset + (address - segment.address);
			return 0;
		}
	return -ENOENT;
}

int agent_library_open(const char *path, struct agent_library *ret)
{
	struct agent_library library = { 0 };
	uint64_t n_bytes;
	int fd, r;

	if (strlen(path) >= sizeof library.path)
		return -ENAMETOOLONG;
	strcpy(library.path, path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = elf_file_open(fd, &library.elf);
	if (r < 0) {
		close(fd);
		return r;
	}
	r = elf_file_section(library.elf, AGENT_SECTION, &library.state, &n_bytes);
	if (r >= 0 && n_bytes != sizeof(struct agent_state))
		r = -EBADMSG;
	if (r >= 0)
		r = elf_file_section(library.elf, AGENT_STUB_SECTION, &library.stub, &library.stub_bytes);
	if (r >= 0)
		r = elf_file_symbol(library.elf, AGENT_ENTRY, &library.entry, &n_bytes);
	if (r >= 0)
		r = offset_of(library.elf, library.stub, &library.stub_offset);
	if (r < 0) {
		agent_library_done(&library);
		return r;
	}
	*ret = library;
	return 0;
}

static bool is_agent(const struct module *module)
{
	const char *name = path_base_name(module->path);

	return strncmp(name, AGENT_FILE, strlen(AGENT_FILE)) == 0 || strcmp(name, "memfd:" AGENT_FILE) == 0;
}

int inject_target_agent(struct address_space *space, const struct agent_library *library, uint64_t *ret_base)
{
	struct mapping *mapping;

	for (size_t i = 0; (mapping = address_space_nth(space, i)); i++) {
		struct build_id id;

		/* A mapping of the stub is from the same file, but not at its start. */
		if (!mapping->module || mapping->file_offset != 0 || !is_agent(mapping->module))
			continue;
		if (module_build_id(mapping->module, &id) < 0 || !build_id_equal(&id, elf_file_build_id(library->elf)))
			return -EXDEV;
		*ret_base = mapping->start;
		return 0;
	}
	return -ENOENT;
}

/* ---- libc ---- */

bool is_library(const struct module *module, const char *name)
{
	const char *base = path_base_name(module->path);
	size_t n = strlen(name);

	if (strncmp(base, name, n) != 0)
		return false;
	if (strncmp(base + n, ".so.", 4) == 0 && isdigit((unsigned char)base[n + 4]))
		return true;
	return base[n] == '-' && isdigit((unsigned char)base[n + 1]);
}

static const struct {
	const char *name;
	size_t at;
} functions[] = {
#define FUNCTION(name, member)                                                                                         \
	{                                                                                                              \
		name, offsetof(struct inject_target, member)                                                           \
	}
	FUNCTION("pthread_create", pthread_create),
	FUNCTION("pthread_self", pthread_self),
	FUNCTION("pthread_detach", pthread_detach),
	FUNCTION("dlopen", dlopen),
	FUNCTION("dlsym", dlsym),
	FUNCTION("dlerror", dlerror),
	FUNCTION("__errno_location", errno_location),
	FUNCTION("close", close),
	FUNCTION("syscall", syscall),
#undef FUNCTION
};

static uint64_t *function_at(struct inject_target *target, size_t i)
{
	return (uint64_t *)((char *)target + functions[i].at);
}

static bool is_libc(const struct module *module)
{
	return is_library(module, "libc") || is_library(module, "libpthread") || is_library(module, "libdl");
}

static void find_in(struct inject_target *target, struct elf_file *elf, int64_t bias)
{
	for (size_t i = 0; i < N_ELEMENTS(functions); i++) {
		uint64_t value, n_bytes;

		if (*function_at(target, i) == 0 && elf_file_symbol(elf, functions[i].name, &value, &n_bytes) == 0 &&
		    value != 0)
			*function_at(target, i) = value + (uint64_t)bias;
	}
}

static int find_functions(struct inject_target *target, char *why)
{
	struct mapping *mapping;

	for (size_t i = 0; (mapping = address_space_nth(target->space, i)); i++) {
		struct module *module;
		struct elf_file *elf;
		uint64_t address;

		if (!mapping->executable || !mapping->module)
			continue;
		if (strstr(path_base_name(mapping->module->path), "ld-musl"))
			return refuse(why, -EOPNOTSUPP, "process %d runs on musl: the agent is for glibc",
				      (int)target->pid);
		if (!is_libc(mapping->module) ||
		    address_space_resolve(target->space, mapping->start, &module, &address) < 0 ||
		    module_elf(module, &elf) < 0)
			continue;
		find_in(target, elf, mapping->bias);
		if (is_library(module, "libc")) {
			/* Several in a row where a program has changed some of it, as Open MPI does. */
			if (!target->code_start)
				target->code_start = target->code_end = mapping->start;
			if (mapping->start == target->code_end)
				target->code_end = mapping->end;
		}
	}
	if (!target->code_start)
		return refuse(why, -EOPNOTSUPP,
			      "process %d is a static program, or its libc cannot be read: the agent needs a "
			      "shared glibc",
			      (int)target->pid);
	for (size_t i = 0; i < N_ELEMENTS(functions); i++)
		if (*function_at(target, i) == 0)
			return refuse(why, -EOPNOTSUPP, "process %d has no %s: the agent needs a glibc with it",
				      (int)target->pid, functions[i].name);
	return 0;
}

/* ---- Process ---- */

/* Value of a line of the status file without leading blanks; "": no such line. */
static const char *status_of(const char *status, const char *key)
{
	const char *value = proc_status_value(status, key);

	return value ? value + strspn(value, " \t") : "";
}

/* Check before reading anything else of the process. */
static int check_kind(struct inject_target *target, char *why)
{
	pid_t pid = target->pid;
	CLEANUP(freep) char *status = NULL;
	char path[64];
	const char *value;

	snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	if (read_file(path, 1 << 16, &status, NULL) < 0)
		return -ESRCH;
	value = status_of(status, "TracerPid");
	if (strtol(value, NULL, 10) != 0)
		snprintf(target->untraceable, sizeof target->untraceable,
			 "process %d is being traced by process %ld (a debugger, or strace), and there can be only "
			 "one: end that first",
			 (int)pid, strtol(value, NULL, 10));
	if (strncmp(status_of(status, "x86_Thread_features"), "shstk", 5) == 0)
		snprintf(target->untraceable, sizeof target->untraceable,
			 "process %d has a shadow stack, so its threads cannot run other code", (int)pid);
	value = status_of(status, "State");
	if (*value == 't')
		return refuse(why, -EBUSY, "process %d is stopped by its tracer: let that continue it first", (int)pid);
	if (*value == 'T')
		return refuse(why, -EBUSY, "process %d is stopped (SIGSTOP): continue it first, with `kill -CONT %d`",
			      (int)pid, (int)pid);
	if (*value == 'Z')
		return refuse(why, -ESRCH, "process %d has ended and only waits for its parent to take note (a zombie)",
			      (int)pid);
	if (proc_is_32_bit(pid))
		return refuse(why, -EOPNOTSUPP,
			      "process %d is a 32-bit program: the agent is for those of this machine's kind",
			      (int)pid);
	return 0;
}

static int check_python(struct inject_target *target, char *why)
{
	int r = py_runtime_find(target->space, target->remote, target->python, &target->runtime);
	int minor;

	if (r == -ENOMEM || r == -EPERM || r == -ESRCH)
		return r;
	if (r == -EAGAIN)
		return refuse(why, -EOPNOTSUPP, "Python in process %d is still starting up: try again in a moment",
			      (int)target->pid);
	if (target->python[0] == '\0')
		return refuse(why, -EOPNOTSUPP, "no Python was found in process %d: the agent is for Python processes",
			      (int)target->pid);
	if (sscanf(target->python, "3.%d", &minor) != 1 || minor < 6)
		return refuse(why, -EOPNOTSUPP, "process %d runs Python %s: the agent is for 3.6 and later",
			      (int)target->pid, target->python);
	return 0;
}

void inject_target_free(struct inject_target *target)
{
	if (!target)
		return;
	place_names_free(target);
	py_runtime_free(target->runtime);
	native_stack_done(&target->walked);
	native_process_free(target->native);
	native_unwinder_free(target->unwinder);
	remote_free(target->remote);
	address_space_free(target->space);
	module_table_free(target->modules);
	free(target->stack_bytes);
	free(target);
}

void inject_target_freep(struct inject_target **target)
{
	inject_target_free(*target);
}

static int load(struct inject_target *target)
{
	const struct mapping *first;
	uint8_t byte;
	int r;

	r = module_table_new(&target->modules);
	if (r >= 0)
		r = address_space_new(target->pid, target->modules, &target->space);
	if (r >= 0)
		r = address_space_load(target->space);
	if (r >= 0)
		r = remote_open_process(target->pid, &target->remote);
	if (r < 0)
		return r;
	first = address_space_nth(target->space, 0);
	if (!first)
		return -ESRCH;
	r = remote_read(target->remote, RADDR(first->start), &byte, 1);
	return r == -EPERM || r == -ESRCH ? r : 0;
}

int inject_target_open(pid_t pid, struct inject_target **ret, char *why)
{
	CLEANUP(inject_target_freep) struct inject_target *target = calloc(1, sizeof *target);
	int r;

	if (!target)
		return -ENOMEM;
	target->pid = pid;
	r = check_kind(target, why);
	if (r >= 0)
		r = load(target);
	if (r >= 0)
		r = check_python(target, why);
	if (r >= 0)
		r = find_functions(target, why);
	if (r >= 0)
		r = native_unwinder_new(target->modules, &target->unwinder);
	if (r >= 0)
		r = native_process_new(target->unwinder, target->space, &target->native);
	if (r < 0)
		return r;
	target->stack_bytes = malloc(SAMPLE_STACK_BYTES);
	if (!target->stack_bytes)
		return -ENOMEM;
	*ret = TAKE(target);
	return 0;
}

int inject_target_write(pid_t pid, uint64_t address, const void *bytes, size_t n_bytes)
{
	const struct iovec from = { (void *)(uintptr_t)bytes, n_bytes }, to = { (void *)(uintptr_t)address, n_bytes };
	ssize_t n = process_vm_writev(pid, &from, 1, &to, 1, 0);

	if (n < 0)
		return -errno;
	return (size_t)n == n_bytes ? 0 : -EFAULT;
}
