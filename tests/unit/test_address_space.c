/* SPDX-License-Identifier: MIT */
/* test_address_space.c - maps lines, carving, and modules of real processes.
 *
 * What the dynamic linker says of this process is the truth that biases and
 * addresses are compared with.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/address_space.h"
#include "base/module.h"
#include "base/util.h"

struct home {
	struct module_table *modules;
	struct address_space *space;
};

static struct home open_home(pid_t pid)
{
	struct home home;

	assert_int_equal(module_table_new(&home.modules), 0);
	assert_int_equal(address_space_new(pid, home.modules, &home.space), 0);
	return home;
}

static struct home load_home(pid_t pid)
{
	struct home home = open_home(pid);

	assert_int_equal(address_space_load(home.space), 0);
	return home;
}

static void close_home(struct home *home)
{
	address_space_free(home->space);
	module_table_free(home->modules);
}

/* --- lines of maps --- */

static void lines_are_parsed(void **state)
{
	static const struct {
		const char *line;
		struct mapping_source source;
	} cases[] = {
		{ "00400000-0047e000 r-xp 00001000 fd:01 1234567890123 /usr/bin/x",
		  { 0x400000, 0x47e000, 0x1000, true, false, 0, 1234567890123, "/usr/bin/x" } },
		{ "7ffc1000-7ffc2000 rw-p 00000000 fd:01 0                          [stack]\n",
		  { 0x7ffc1000, 0x7ffc2000, 0, false, true, 0, 0, "[stack]" } },
		{ "1000-2000 ---s 00000000 fd:01 5 /a b/c\\012d (deleted)",
		  { 0x1000, 0x2000, 0, false, false, 0, 5, "/a b/c\nd (deleted)" } },
		{ "1000-2000 rwxp 00000000 fd:01 0 ", { 0x1000, 0x2000, 0, true, true, 0, 0, "" } },
		{ "1000-2000 rwxp 00000000 fd:01 0", { 0x1000, 0x2000, 0, true, true, 0, 0, "" } },
		{ "fffffffffffff000-ffffffffffffffff r--p fffffffffffff000 fd:01 0 x\\01",
		  { 0xfffffffffffff000, UINT64_MAX, 0xfffffffffffff000, false, false, 0, 0, "x\\01" } },
	};

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		CLEANUP(freep) char *line = strdup(cases[i].line);
		struct mapping_source got;

		assert_int_equal(maps_parse_line(line, &got), 0);
		assert_int_equal(got.start, cases[i].source.start);
		assert_int_equal(got.end, cases[i].source.end);
		assert_int_equal(got.file_offset, cases[i].source.file_offset);
		assert_int_equal(got.executable, cases[i].source.executable);
		assert_int_equal(got.writable, cases[i].source.writable);
		assert_int_equal(got.device, makedev(0xfd, 1));
		assert_int_equal(got.inode, cases[i].source.inode);
		assert_string_equal(got.path, cases[i].source.path);
	}
}

static void bad_lines_are_refused(void **state)
{
	static const char *const lines[] = {
		"",
		"1000",
		"1000-",
		"1000-2000",
		"2000-1000 r-xp 00000000 fd:01 0 x",
		"1000-1000 r-xp 00000000 fd:01 0 x",
		"1000-g000 r-xp 00000000 fd:01 0 x",
		"-2000 r-xp 00000000 fd:01 0 x",
		"1000-2000 r-x",
		"1000-2000 r-xp",
		"1000-2000 r-xpp 00000000 fd:01 0 x",
		"1000-2000 r-xp zz fd:01 0 x",
		"1000-2000 r-xp 0 fd01 0 x",
		"1000-2000 r-xp 0 fd:100000000 0 x",
		"1000-2000 r-xp 0 fd:01 0x5 x",
		"1000-2000 r-xp 0 fd:01  x",
		"11112222333344445-2000 r-xp 0 fd:01 0 x",
		"1000-2000 r-xp 0 fd:01 18446744073709551616 x",
	};

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(lines); i++) {
		CLEANUP(freep) char *line = strdup(lines[i]);
		struct mapping_source got = { .start = 7 };

		assert_int_equal(maps_parse_line(line, &got), -EINVAL);
		assert_int_equal(got.start, 7);
	}
}

/* --- carving --- */

static int add_line(struct address_space *space, const char *text)
{
	CLEANUP(freep) char *line = strdup(text);
	struct mapping_source source;
	int r;

	r = maps_parse_line(line, &source);
	return r < 0 ? r : address_space_add(space, &source);
}

/* "1000-2000@0 a, ..." in order of address. */
static void describe(struct address_space *space, char *to, size_t n_bytes)
{
	const struct mapping *mapping;
	size_t at = 0;

	to[0] = '\0';
	for (size_t n = 0; (mapping = address_space_nth(space, n)) != NULL; n++)
		at += (size_t)snprintf(to + at, n_bytes - at, "%s%llx-%llx@%llx %s", n > 0 ? ", " : "",
				       (unsigned long long)mapping->start, (unsigned long long)mapping->end,
				       (unsigned long long)mapping->file_offset,
				       mapping->module ? module_name(mapping->module) : "-");
}

static void newer_mappings_carve_older_ones(void **state)
{
	static const struct {
		const char *lines[5];
		const char *result;
	} cases[] = {
		{ { "3000-4000 r-xp 0 0:1 1 /a", "1000-2000 r-xp 0 0:1 2 /b" }, "1000-2000@0 b, 3000-4000@0 a" },
		{ { "1000-2000 r-xp 0 0:1 1 /a", "2000-3000 r-xp 1000 0:1 1 /a" }, "1000-2000@0 a, 2000-3000@1000 a" },
		/* head, tail, middle, all, exactly */
		{ { "2000-6000 r-xp 1000 0:1 1 /a", "1000-3000 r--p 0 0:1 2 /b" }, "1000-3000@0 b, 3000-6000@2000 a" },
		{ { "2000-6000 r-xp 1000 0:1 1 /a", "5000-8000 r--p 0 0:1 2 /b" }, "2000-5000@1000 a, 5000-8000@0 b" },
		{ { "2000-6000 r-xp 1000 0:1 1 /a", "3000-4000 r--p 0 0:1 2 /b" },
		  "2000-3000@1000 a, 3000-4000@0 b, 4000-6000@3000 a" },
		{ { "2000-6000 r-xp 1000 0:1 1 /a", "1000-7000 r--p 0 0:1 2 /b" }, "1000-7000@0 b" },
		{ { "2000-6000 r-xp 1000 0:1 1 /a", "2000-6000 r--p 0 0:0 0 " }, "2000-6000@0 -" },
		/* over several mappings, with the gaps between them and behind */
		{ { "1000-3000 r-xp 0 0:1 1 /a", "4000-5000 r-xp 0 0:1 2 /b", "6000-8000 r-xp 4000 0:1 3 /c",
		    "2000-7000 r-xp 0 0:1 4 /d" },
		  "1000-2000@0 a, 2000-7000@0 d, 7000-8000@5000 c" },
		/* a loader's reservation, mapped over piece by piece */
		{ { "1000-9000 r--p 0 0:1 1 /a", "2000-4000 r-xp 1000 0:1 1 /a", "4000-6000 r--p 3000 0:1 1 /a",
		    "6000-8000 rw-p 4000 0:1 1 /a", "8000-9000 rw-p 0 0:0 0 " },
		  "1000-2000@0 a, 2000-4000@1000 a, 4000-6000@3000 a, 6000-8000@4000 a, "
		  "8000-9000@0 -" },
		{ { "f000-ffffffffffffffff r-xp 0 0:1 1 /a", "fffffffffffff000-ffffffffffffffff "
							     "r-xp 0 0:1 2 /b" },
		  "f000-fffffffffffff000@0 a, fffffffffffff000-ffffffffffffffff@0 b" },
	};
	char got[512];

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		struct home home = open_home(1);

		for (size_t k = 0; k < 5 && cases[i].lines[k]; k++)
			assert_int_equal(add_line(home.space, cases[i].lines[k]), 0);
		describe(home.space, got, sizeof got);
		assert_string_equal(got, cases[i].result);
		close_home(&home);
	}
}

enum { MODEL_PAGES = 48, MODEL_STEPS = 20000 };

struct model_page {
	unsigned owner; /* 0: none */
	uint64_t file_offset;
	bool executable;
};

static void compare_with_model(struct address_space *space, const struct model_page *model)
{
	for (uint64_t page = 0; page < MODEL_PAGES; page++) {
		uint64_t address = page * 0x1000 + 0x123;
		const struct mapping *mapping = address_space_find(space, address);
		char name[16];

		if (model[page].owner == 0) {
			assert_null(mapping);
			continue;
		}
		assert_non_null(mapping);
		snprintf(name, sizeof name, "%u", model[page].owner);
		assert_string_equal(module_name(mapping->module), name);
		assert_int_equal(address - mapping->start + mapping->file_offset, model[page].file_offset + 0x123);
		assert_int_equal(mapping->executable, model[page].executable);
	}
}

static bool model_add(struct model_page *model, const struct mapping_source *source, unsigned owner)
{
	bool touches_code = false, changes = false;

	for (uint64_t page = source->start >> 12; page < source->end >> 12; page++) {
		struct model_page new = { owner, source->file_offset + (page << 12) - source->start,
					  source->executable };

		changes |= model[page].owner != owner || model[page].file_offset != new.file_offset ||
			   model[page].executable != new.executable;
		touches_code |= model[page].executable | new.executable;
		model[page] = new;
	}
	return touches_code && changes;
}

/* Against an array with one element per page; any seed must do. */
static void carving_agrees_with_a_model(void **state)
{
	struct model_page model[MODEL_PAGES] = { 0 };
	struct home home = open_home(1);
	unsigned seed = 20240229;

	(void)state;
	for (unsigned step = 0; step < MODEL_STEPS; step++) {
		unsigned owner = 1 + (unsigned)rand_r(&seed) % 5;
		unsigned first = (unsigned)rand_r(&seed) % MODEL_PAGES;
		unsigned n = 1 + (unsigned)rand_r(&seed) % (MODEL_PAGES - first);
		unsigned generation = address_space_generation(home.space);
		char path[16];
		struct mapping_source source = {
			.start = (uint64_t)first << 12,
			.end = (uint64_t)(first + n) << 12,
			.file_offset = (uint64_t)((unsigned)rand_r(&seed) % 4) << 12,
			.executable = rand_r(&seed) % 8 == 0,
			.inode = owner,
			.path = path,
		};

		snprintf(path, sizeof path, "/%u", owner);
		assert_int_equal(address_space_add(home.space, &source), 0);
		if (model_add(model, &source, owner))
			assert_int_not_equal(address_space_generation(home.space), generation);
		compare_with_model(home.space, model);
	}
	close_home(&home);
}

static void the_generation_follows_code(void **state)
{
	struct home home = open_home(1);
	unsigned g = address_space_generation(home.space);

	(void)state;
	assert_int_equal(add_line(home.space, "1000-2000 rw-p 0 0:1 1 /a"), 0);
	assert_int_equal(address_space_generation(home.space), g);
	assert_int_equal(add_line(home.space, "3000-5000 r-xp 0 0:1 1 /a"), 0);
	assert_int_equal(address_space_generation(home.space), g + 1);
	assert_int_equal(add_line(home.space, "3000-5000 r-xp 0 0:1 1 /a"), 0);
	assert_int_equal(address_space_generation(home.space), g + 1);
	assert_int_equal(add_line(home.space, "4000-5000 rw-p 0 0:0 0 "), 0);
	assert_int_equal(address_space_generation(home.space), g + 2);
	address_space_clear(home.space);
	assert_int_equal(address_space_generation(home.space), g + 3);
	assert_null(address_space_nth(home.space, 0));
	close_home(&home);
}

static void empty_mappings_are_refused(void **state)
{
	struct home home = open_home(1);
	struct mapping_source source = { .start = 0x1000, .end = 0x1000, .path = "/a" };

	(void)state;
	assert_int_equal(address_space_add(home.space, &source), -EINVAL);
	source.end = 0x800;
	assert_int_equal(address_space_add(home.space, &source), -EINVAL);
	assert_int_equal(module_table_size(home.modules), 0);
	close_home(&home);
}

static void a_fork_goes_its_own_way(void **state)
{
	CLEANUP(address_space_freep) struct address_space *child = NULL;
	struct home home = open_home(1);
	char got[128];

	(void)state;
	assert_int_equal(add_line(home.space, "1000-2000 r-xp 0 0:1 1 /a"), 0);
	assert_int_equal(address_space_fork(home.space, 2, &child), 0);
	assert_int_equal(address_space_pid(child), 2);
	address_space_clear(home.space);
	assert_int_equal(add_line(child, "2000-3000 r-xp 0 0:1 1 /a"), 0);
	describe(child, got, sizeof got);
	assert_string_equal(got, "1000-2000@0 a, 2000-3000@0 a");
	assert_null(address_space_find(home.space, 0x1000));
	assert_int_equal(module_table_size(home.modules), 1);
	close_home(&home);
}

static void names_decide_what_is_a_module(void **state)
{
	static const struct {
		const char *path;
		const char *name; /* NULL: anonymous */
		bool is_stack;
	} cases[] = {
		{ "", NULL, false },
		{ "[heap]", NULL, false },
		{ "[stack]", NULL, true },
		{ "[anon: glibc: thread stack: 77]", NULL, true },
		{ "[anon:x]", NULL, false },
		{ "[vvar]", NULL, false },
		{ "[vsyscall]", NULL, false },
		{ "//anon", NULL, false },
		{ "/dev/zero (deleted)", NULL, false },
		{ "/SYSV00000000 (deleted)", NULL, false },
		{ "/anon_hugepage (deleted)", NULL, false },
		{ "[vdso]", "[vdso]", false },
		{ "/usr/lib/a b.so", "a b.so", false },
		{ "/usr/lib/c.so (deleted)", "c.so", false },
		{ "/memfd:jit (deleted)", "memfd:jit", false },
	};

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		struct home home = open_home(1);
		struct mapping_source source = { .start = 0x1000, .end = 0x2000, .inode = 9, .path = cases[i].path };
		const struct mapping *mapping;

		assert_int_equal(address_space_add(home.space, &source), 0);
		mapping = address_space_find(home.space, 0x1000);
		assert_int_equal(mapping->is_stack, cases[i].is_stack);
		if (cases[i].name)
			assert_string_equal(module_name(mapping->module), cases[i].name);
		else
			assert_null(mapping->module);
		close_home(&home);
	}
}

static void a_file_is_one_module(void **state)
{
	struct home home = open_home(1);

	(void)state;
	assert_int_equal(add_line(home.space, "1000-2000 r-xp 0 0:1 1 /a"), 0);
	assert_int_equal(add_line(home.space, "2000-3000 rw-p 0 0:1 1 /a"), 0);
	assert_int_equal(add_line(home.space, "3000-4000 rw-p 0 0:1 1 /a (deleted)"), 0);
	assert_int_equal(module_table_size(home.modules), 1);
	assert_int_equal(add_line(home.space, "4000-5000 rw-p 0 0:1 2 /a"), 0);
	assert_int_equal(add_line(home.space, "5000-6000 rw-p 0 0:2 1 /a"), 0);
	assert_int_equal(add_line(home.space, "6000-7000 rw-p 0 0:1 1 /b"), 0);
	assert_int_equal(module_table_size(home.modules), 4);
	/* Without an inode, the device says nothing. */
	assert_int_equal(add_line(home.space, "7000-8000 r-xp 0 0:0 0 /a"), 0);
	assert_int_equal(add_line(home.space, "8000-9000 r-xp 0 0:1 0 /a"), 0);
	assert_int_equal(module_table_size(home.modules), 5);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(module_table_get(home.modules, i)->id, i);
	assert_null(module_table_get(home.modules, 5));
	close_home(&home);
}

/* --- this process, as the dynamic linker knows it --- */

enum { MAX_TRUTHS = 256 };

/* The first and the last byte of each segment in the file. */
struct truth {
	struct {
		uint64_t own, bias;
	} places[MAX_TRUTHS];
	size_t n;
};

/* Asserts nothing: the dynamic linker's lock is held here. */
static int note_object(struct dl_phdr_info *info, size_t n_bytes, void *data)
{
	struct truth *truth = data;

	(void)n_bytes;
	for (size_t i = 0; i < info->dlpi_phnum && truth->n + 2 <= MAX_TRUTHS; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];

		if (header->p_type != PT_LOAD)
			continue;
		truth->places[truth->n].bias = info->dlpi_addr;
		truth->places[truth->n++].own = header->p_vaddr;
		truth->places[truth->n].bias = info->dlpi_addr;
		truth->places[truth->n++].own = header->p_vaddr + header->p_filesz - 1;
	}
	return 0;
}

static void compare_address(struct address_space *space, uint64_t own, uint64_t bias)
{
	struct module *module;
	struct elf_file *elf;
	uint64_t got;

	assert_int_equal(address_space_resolve(space, own + bias, &module, &got), 0);
	assert_non_null(module);
	assert_int_equal(got, own);
	assert_int_equal(module_elf(module, &elf), 0);
	assert_int_equal(address_space_find(space, own + bias)->bias, bias);
}

static void compare_with_the_dynamic_linker(struct address_space *space)
{
	struct truth truth = { .n = 0 };

	dl_iterate_phdr(note_object, &truth);
	assert_true(truth.n > 20);
	for (size_t i = 0; i < truth.n; i++)
		compare_address(space, truth.places[i].own, truth.places[i].bias);
}

static void addresses_agree_with_the_dynamic_linker(void **state)
{
	struct home home = load_home(getpid());

	(void)state;
	compare_with_the_dynamic_linker(home.space);
	close_home(&home);
}

static void own_ground_is_known(void **state)
{
	struct home home = load_home(getpid());
	void *heap = malloc(64);
	struct module *module;
	const struct mapping *mapping;
	uint64_t address, got;

	(void)state;
	mapping = address_space_find(home.space, (uintptr_t)&state);
	assert_non_null(mapping);
	assert_true(mapping->writable && !mapping->executable);
	mapping = address_space_find(home.space, (uintptr_t)own_ground_is_known);
	assert_true(mapping->executable && !mapping->writable);
	assert_true(strstr(mapping->module->path, "test_address_space") != NULL);

	address = (uintptr_t)heap;
	assert_int_equal(address_space_resolve(home.space, address, &module, &got), 0);
	assert_null(module);
	assert_int_equal(got, address);
	assert_int_equal(address_space_resolve(home.space, 8, &module, &got), -ENOENT);
	free(heap);
	close_home(&home);
}

static void the_main_threads_stack_is_marked(void **state)
{
	struct home home = load_home(getpid());
	/* The kernel puts these bytes at the stack's far end. */
	uint64_t random_bytes = getauxval(AT_RANDOM);

	(void)state;
	assert_true(address_space_find(home.space, random_bytes)->is_stack);
	close_home(&home);
}

static void loading_again_changes_nothing(void **state)
{
	struct home home = load_home(getpid());
	unsigned generation;
	size_t n_modules;

	(void)state;
	assert_int_equal(address_space_load(home.space), 0);
	generation = address_space_generation(home.space);
	n_modules = module_table_size(home.modules);
	assert_int_equal(address_space_load(home.space), 0);
	assert_int_equal(address_space_generation(home.space), generation);
	assert_int_equal(module_table_size(home.modules), n_modules);
	close_home(&home);
}

static void processes_that_are_not_there(void **state)
{
	struct home home;
	pid_t child = fork();

	(void)state;
	if (child == 0)
		_exit(0);
	assert_true(child > 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	home = open_home(child);
	assert_int_equal(address_space_load(home.space), -ESRCH);
	close_home(&home);
}

static int load_without_permission(void)
{
	CLEANUP(module_table_freep) struct module_table *modules = NULL;
	CLEANUP(address_space_freep) struct address_space *space = NULL;
	pid_t other = getuid() == 0 ? getppid() : 1;

	if (getuid() == 0 && setresuid(65534, 65534, 65534) < 0)
		return -errno;
	if (module_table_new(&modules) < 0 || address_space_new(other, modules, &space) < 0)
		return -ENOMEM;
	return address_space_load(space);
}

static void a_strangers_maps_are_refused(void **state)
{
	pid_t child = fork();
	int status;

	(void)state;
	if (child == 0)
		_exit(-load_without_permission());
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WEXITSTATUS(status), EPERM);
}

/* --- files that are copied, deleted, replaced, hidden --- */

struct scratch {
	char folder[64];
	char library[128];
};

static int copy_file(const char *from, const char *to)
{
	CLEANUP(freep) char *bytes = NULL;
	CLEANUP(closep) int fd = -1;
	size_t n_bytes;
	int r;

	r = read_file(from, 64 << 20, &bytes, &n_bytes);
	if (r < 0)
		return r;
	fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	if (fd < 0)
		return -errno;
	return write(fd, bytes, n_bytes) == (ssize_t)n_bytes ? 0 : -EIO;
}

static const char *libm_path(void)
{
	static char path[4096];
	void *handle = dlopen("libm.so.6", RTLD_NOW);
	struct link_map *map;

	assert_non_null(handle);
	assert_int_equal(dlinfo(handle, RTLD_DI_LINKMAP, &map), 0);
	snprintf(path, sizeof path, "%s", map->l_name);
	return path;
}

/* A copy of libm in a separate folder. */
static struct scratch make_scratch(const char *library)
{
	struct scratch scratch = { .folder = "/tmp/test_address_space.XXXXXX" };

	assert_non_null(mkdtemp(scratch.folder));
	snprintf(scratch.library, sizeof scratch.library, "%s/%s", scratch.folder, library);
	assert_int_equal(copy_file(libm_path(), scratch.library), 0);
	return scratch;
}

static void free_scratch(const struct scratch *scratch)
{
	unlink(scratch->library);
	rmdir(scratch->folder);
}

/* Whether the kernel lets us through /proc/PID/map_files. */
static bool may_follow_map_files(struct home *home)
{
	const struct mapping *mapping = address_space_find(home->space, (uintptr_t)may_follow_map_files);
	char link[96];
	int fd;

	snprintf(link, sizeof link, "/proc/self/map_files/%llx-%llx", (unsigned long long)mapping->start,
		 (unsigned long long)mapping->end);
	fd = open(link, O_PATH | O_CLOEXEC);
	closep(&fd);
	return fd >= 0;
}

static void paths_may_hold_anything(void **state)
{
	struct scratch scratch = make_scratch("a b\nc (deleted) .so");
	void *library = dlopen(scratch.library, RTLD_NOW);
	void *function = dlsym(library, "cbrt");
	const struct mapping *mapping;
	struct elf_file *elf;
	struct home home;

	(void)state;
	assert_non_null(function);
	home = load_home(getpid());
	mapping = address_space_find(home.space, (uintptr_t)function);
	assert_string_equal(mapping->module->path, scratch.library);
	assert_int_equal(module_elf(mapping->module, &elf), 0);
	close_home(&home);
	dlclose(library);
	free_scratch(&scratch);
}

/* With the privilege, the deleted file is readable; without, only its mapped part. */
static void check_gone_file(const struct scratch *scratch, void *function)
{
	struct home home = load_home(getpid());
	uint64_t at = (uintptr_t)function, address, value, size;
	struct module *module;
	struct elf_file *elf;

	assert_int_equal(address_space_resolve(home.space, at, &module, &address), 0);
	assert_string_equal(module->path, scratch->library);
	assert_true(module->is_deleted);
	if (may_follow_map_files(&home)) {
		assert_int_equal(module_elf(module, &elf), 0);
		assert_int_equal(elf_file_symbol(elf, "cbrt", &value, &size), 0);
		assert_int_equal(value, address);
	} else {
		assert_int_equal(module_elf(module, &elf), 0);
		assert_non_null(module->image);
		assert_int_equal(elf_file_function(elf, address, &value, &size), 0);
		assert_int_equal(value, address);
	}
	close_home(&home);
}

/* Unwinding from the mapped contents of a file gives the same result as from the file. */
static void copies_from_memory_have_the_same_functions(void **state)
{
	struct scratch scratch = make_scratch("libcopy.so");
	void *library = dlopen(scratch.library, RTLD_NOW);
	struct home home = load_home(getpid());
	uint64_t address, start, end, n_functions = 0;
	struct elf_file *file, *copy;
	struct module *module;
	size_t n_bytes;
	void *image;

	(void)state;
	assert_int_equal(address_space_resolve(home.space, (uintptr_t)dlsym(library, "cbrt"), &module, &address), 0);
	assert_int_equal(module_elf(module, &file), 0);
	assert_int_equal(module_copy(module, &image, &n_bytes), 0);
	assert_int_equal(elf_file_open_memory(image, n_bytes, &copy), 0);
	for (uint64_t at = address - 0x4000; at < address + 0x4000; at = MAX(at + 1, end)) {
		struct elf_cfi a, b;

		end = at;
		if (elf_file_function(file, at, &start, &end) < 0) {
			assert_int_equal(elf_file_function(copy, at, &start, &end), -ENOENT);
			end = at;
			continue;
		}
		assert_int_equal(elf_file_cfi(file, at, &a), 0);
		assert_int_equal(elf_file_cfi(copy, at, &b), 0);
		assert_int_equal(a.start, b.start);
		assert_int_equal(a.n_program, b.n_program);
		assert_memory_equal(a.program, b.program, a.n_program);
		n_functions++;
	}
	assert_true(n_functions > 20);
	elf_file_free(copy);
	free(image);
	close_home(&home);
	dlclose(library);
	free_scratch(&scratch);
}

static void deleted_files_are_still_named(void **state)
{
	struct scratch scratch = make_scratch("libgone.so");
	void *library = dlopen(scratch.library, RTLD_NOW);
	void *function = dlsym(library, "cbrt");

	(void)state;
	assert_non_null(function);
	assert_int_equal(unlink(scratch.library), 0);
	check_gone_file(&scratch, function);
	/* Another file under the old name must not be taken for it. */
	assert_int_equal(copy_file("/proc/self/exe", scratch.library), 0);
	check_gone_file(&scratch, function);
	dlclose(library);
	free_scratch(&scratch);
}

/* Mapped at an unused address, so map_files cannot help. */
static int open_as(const char *path, uint64_t device, uint64_t inode)
{
	struct home home = open_home(getpid());
	struct mapping_source source = { .start = 0x1000,
					 .end = 0x5000,
					 .file_offset = 0x2000,
					 .executable = true,
					 .device = device,
					 .inode = inode,
					 .path = path };
	struct module *module;
	struct elf_file *elf;
	uint64_t address;
	int r;

	assert_int_equal(address_space_add(home.space, &source), 0);
	assert_int_equal(address_space_resolve(home.space, 0x1234, &module, &address), 0);
	r = module_elf(module, &elf);
	assert_int_equal(module_elf(module, &elf), r);
	if (r < 0)
		assert_int_equal(address, 0x2234);
	close_home(&home);
	return r;
}

static void only_the_mapped_file_is_opened(void **state)
{
	struct scratch scratch = make_scratch("libx.so");
	struct stat st;

	(void)state;
	assert_int_equal(stat(scratch.library, &st), 0);
	assert_int_equal(open_as(scratch.library, st.st_dev, st.st_ino), 0);
	assert_int_equal(open_as(scratch.library, st.st_dev + 1, st.st_ino), 0);
	assert_int_equal(open_as(scratch.library, st.st_dev, st.st_ino + 1), -ESTALE);
	assert_int_equal(open_as(scratch.library, 0, 0), 0);
	unlink(scratch.library);
	assert_int_equal(open_as(scratch.library, st.st_dev, st.st_ino), -ENOENT);
	/* Opening a pipe without a writer would never return. */
	assert_int_equal(mkfifo(scratch.library, 0600), 0);
	assert_int_equal(open_as(scratch.library, 0, 0), -ENOEXEC);
	assert_int_equal(open_as("/dev/null", 0, 0), -ENOEXEC);
	assert_int_equal(open_as("/proc/self/status", 0, 0), -ENOEXEC);
	free_scratch(&scratch);
}

/* --- other processes --- */

static pid_t start_child(int (*prepare)(void *data), void *data, int *ret_answer)
{
	int ready[2];
	pid_t child;

	assert_int_equal(pipe(ready), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		int answer;

		/* A failed assertion must not leave it behind. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		answer = prepare(data);
		if (write(ready[1], &answer, sizeof answer) == sizeof answer)
			pause();
		_exit(1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], ret_answer, sizeof *ret_answer), sizeof *ret_answer);
	close(ready[0]);
	return child;
}

static void end_child(pid_t child)
{
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static int do_nothing(void *data)
{
	(void)data;
	return 0;
}

/* Modules are opened late; by then a short-lived process is gone. */
static void a_process_that_ended_is_still_resolved(void **state)
{
	uint64_t vdso = getauxval(AT_SYSINFO_EHDR), address;
	struct module *module;
	struct elf_file *elf;
	struct home home;
	int answer;
	pid_t child = start_child(do_nothing, NULL, &answer);

	(void)state;
	home = load_home(child);
	end_child(child);
	compare_with_the_dynamic_linker(home.space);
	if (vdso != 0) {
		assert_int_equal(address_space_resolve(home.space, vdso, &module, &address), 0);
		assert_int_equal(module_elf(module, &elf), 0);
	}
	close_home(&home);
}

static void the_vdso_of_a_process_is_a_module(void **state)
{
	uint64_t vdso = getauxval(AT_SYSINFO_EHDR), value, size, start, end, address;
	struct home home = load_home(getpid());
	struct module *module;
	struct elf_file *elf;

	(void)state;
	if (vdso == 0) {
		close_home(&home);
		print_message("skipped: this kernel gives no vdso\n");
		skip();
	}
	assert_int_equal(address_space_resolve(home.space, vdso + 1, &module, &address), 0);
	assert_int_equal(address, 1);
	assert_true(module->is_vdso);
	assert_string_equal(module_name(module), "[vdso]");
	assert_int_equal(module_elf(module, &elf), 0);
	assert_int_equal(elf_file_symbol(elf, "__vdso_clock_gettime", &value, &size), 0);
	assert_int_equal(elf_file_function(elf, value, &start, &end), 0);
	assert_int_equal(start, value);
	close_home(&home);
}

static int write_text(const char *path, const char *text)
{
	CLEANUP(closep) int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		return -errno;
	return 0;
}

/* Without the privilege, in a user namespace where we are root. */
static int enter_mount_namespace(void)
{
	char users[32], groups[32];
	int r;

	if (unshare(CLONE_NEWNS) == 0)
		return 0;
	snprintf(users, sizeof users, "0 %u 1", (unsigned)getuid());
	snprintf(groups, sizeof groups, "0 %u 1", (unsigned)getgid());
	if (unshare(CLONE_NEWNS | CLONE_NEWUSER) < 0)
		return -errno;
	r = write_text("/proc/self/uid_map", users);
	if (r >= 0)
		r = write_text("/proc/self/setgroups", "deny");
	if (r >= 0)
		r = write_text("/proc/self/gid_map", groups);
	return r;
}

static int hide_library(void *data)
{
	const struct scratch *scratch = data;
	char copy[256];
	int r;

	r = enter_mount_namespace();
	if (r < 0)
		return r;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", scratch->folder, "tmpfs", 0, NULL) < 0)
		return -errno;
	snprintf(copy, sizeof copy, "%s/libhidden.so", scratch->folder);
	if (copy_file(libm_path(), copy) < 0 || !dlopen(copy, RTLD_NOW))
		return -EIO;
	return 0;
}

static const struct mapping *find_by_name(struct address_space *space, const char *name)
{
	const struct mapping *mapping;

	for (size_t n = 0; (mapping = address_space_nth(space, n)) != NULL; n++)
		if (mapping->module && mapping->executable && strcmp(module_name(mapping->module), name) == 0)
			return mapping;
	return NULL;
}

static void files_of_another_mount_namespace_are_found(void **state)
{
	struct scratch scratch = make_scratch("libseen.so");
	const struct mapping *mapping;
	struct elf_file *elf;
	struct home home;
	int answer;
	pid_t child = start_child(hide_library, &scratch, &answer);

	(void)state;
	if (answer == -EPERM || answer == -ENOSPC || answer == -EINVAL) {
		end_child(child);
		free_scratch(&scratch);
		/* EINVAL: in a chroot "/" is no mount that could be made private. */
		print_message("skipped: no mount namespace may be made here\n");
		skip();
	}
	assert_int_equal(answer, 0);
	home = load_home(child);
	mapping = find_by_name(home.space, "libhidden.so");
	assert_non_null(mapping);
	assert_int_equal(access(mapping->module->path, F_OK), -1);
	assert_int_equal(module_elf(mapping->module, &elf), 0);
	end_child(child);
	close_home(&home);
	free_scratch(&scratch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_parsed),
		cmocka_unit_test(bad_lines_are_refused),
		cmocka_unit_test(newer_mappings_carve_older_ones),
		cmocka_unit_test(carving_agrees_with_a_model),
		cmocka_unit_test(the_generation_follows_code),
		cmocka_unit_test(empty_mappings_are_refused),
		cmocka_unit_test(a_fork_goes_its_own_way),
		cmocka_unit_test(names_decide_what_is_a_module),
		cmocka_unit_test(a_file_is_one_module),
		cmocka_unit_test(addresses_agree_with_the_dynamic_linker),
		cmocka_unit_test(own_ground_is_known),
		cmocka_unit_test(the_main_threads_stack_is_marked),
		cmocka_unit_test(loading_again_changes_nothing),
		cmocka_unit_test(processes_that_are_not_there),
		cmocka_unit_test(a_strangers_maps_are_refused),
		cmocka_unit_test(paths_may_hold_anything),
		cmocka_unit_test(deleted_files_are_still_named),
		cmocka_unit_test(copies_from_memory_have_the_same_functions),
		cmocka_unit_test(only_the_mapped_file_is_opened),
		cmocka_unit_test(a_process_that_ended_is_still_resolved),
		cmocka_unit_test(the_vdso_of_a_process_is_a_module),
		cmocka_unit_test(files_of_another_mount_namespace_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
