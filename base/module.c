/* SPDX-License-Identifier: MIT */
/* module.c - the files behind mappings, one struct each, and how to open them.
 *
 * A process names a mapped file by a path that was valid at the time of mapping,
 * in its own mount namespace. By now the file may be replaced or deleted, the
 * process may have ended, and the path may be visible to that process only. So a
 * file found by path counts only if its inode is the mapped one. Otherwise the
 * kernel's link in map_files still refers to the right file, which needs
 * privilege; the mapped copy in the process' memory needs none.
 *
 * Invariants:
 * 1. Modules never move, and live until module_table ends.
 * 2. elf and open_error change once, at the first module_elf(), together.
 * 3. Only regular files are opened for reading: opening a device or a pipe can
 *    block or have side effects.
 */
#include "base/address_space.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/id_map.h"
#include "base/module.h"
#include "base/proc.h"
#include "base/util.h"

/* The kernel's has two pages on AMD64. */
enum { MAX_VDSO_BYTES = 1 << 20 };
/* Program headers and build-id are in the first page. */
enum { MAX_HEAD_BYTES = 4096 };

struct module_table {
	struct module **modules;
	size_t n, n_allocated;
	struct id_map by_identity;
	const struct elf_reader *reader; /* NULL: none */
};

int module_table_new(struct module_table **ret)
{
	struct module_table *table;

	table = calloc(1, sizeof *table);
	if (!table)
		return -ENOMEM;
	*ret = table;
	return 0;
}

static void module_free(struct module *module)
{
	elf_file_free(module->elf);
	free(module->image);
	free(module->path);
	free(module);
}

DEFINE_CLEANUP(struct module *, module_free)

void module_table_free(struct module_table *table)
{
	if (!table)
		return;
	for (size_t i = 0; i < table->n; i++)
		module_free(table->modules[i]);
	id_map_done(&table->by_identity);
	free(table->modules);
	free(table);
}

void module_table_freep(struct module_table **table)
{
	module_table_free(*table);
}

void module_table_set_reader(struct module_table *table, const struct elf_reader *reader)
{
	table->reader = reader;
}

size_t module_table_size(const struct module_table *table)
{
	return table->n;
}

struct module *module_table_get(struct module_table *table, size_t id)
{
	return id < table->n ? table->modules[id] : NULL;
}

/* Without an inode, the path alone is the identity. */
static bool is_same(const struct module *module, const struct module_identity *identity)
{
	return module->inode == identity->inode && (identity->inode == 0 || module->device == identity->device) &&
	       strlen(module->path) == identity->path_bytes &&
	       memcmp(module->path, identity->path, identity->path_bytes) == 0;
}

static uint64_t hash_identity(const struct module_identity *identity)
{
	uint64_t hash = mix64(identity->inode);

	if (identity->inode != 0)
		hash = mix64(hash ^ identity->device);
	for (size_t i = 0; i < identity->path_bytes; i++)
		hash = (hash ^ (uint8_t)identity->path[i]) * 0x100000001b3ULL;
	return hash;
}

static int add_module(struct module_table *table, uint64_t key, const struct module_identity *identity,
		      struct module **ret)
{
	CLEANUP(module_freep) struct module *module = NULL;
	int r;

	module = calloc(1, sizeof *module);
	if (!module)
		return -ENOMEM;
	module->path = strndup(identity->path, identity->path_bytes);
	if (!module->path)
		return -ENOMEM;
	module->id = (unsigned)table->n;
	module->device = identity->device;
	module->inode = identity->inode;
	module->reader = table->reader;
	module->is_vdso = strcmp(module->path, "[vdso]") == 0;
	r = grow(&table->modules, table->n, &table->n_allocated, sizeof(struct module *));
	if (r < 0)
		return r;
	r = id_map_add(&table->by_identity, key, module->id);
	if (r < 0)
		return r;
	table->modules[table->n++] = module;
	*ret = TAKE(module);
	return 0;
}

int module_table_intern(struct module_table *table, const struct module_identity *identity, struct module **ret)
{
	uint64_t key = hash_identity(identity);

	/* Identities with equal hashes use consecutive keys; 0 is no key. */
	for (;; key++) {
		const struct id_slot *slot;

		if (key == 0)
			continue;
		slot = id_map_find(&table->by_identity, key);
		if (!slot)
			return add_module(table, key, identity, ret);
		if (is_same(table->modules[slot->id], identity)) {
			*ret = table->modules[slot->id];
			return 0;
		}
	}
}

/* Overlay and btrfs show different device numbers in maps and stat, so compare the inode only. */
static int check_identity(const struct module *module, const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return -ENOEXEC;
	if (module->inode != 0 && module->inode != st->st_ino)
		return -ESTALE;
	return 0;
}

/* Check with O_PATH first; open only a file that passes. */
static int open_checked(const struct module *module, const char *path, int *ret)
{
	CLEANUP(closep) int found = -1;
	struct stat st;
	int fd, r;

	found = open(path, O_PATH | O_CLOEXEC);
	if (found < 0 || fstat(found, &st) < 0)
		return -errno;
	r = check_identity(module, &st);
	if (r < 0)
		return r;
	fd = reopen_to_read(found);
	if (fd < 0)
		return fd;
	*ret = fd;
	return 0;
}

/*
 * Try the path in the process's root, then in ours. Ours serves an ended process, and one in a chroot, whose maps show
 * paths from the reader's root. Without an inode to compare, ours would be a guess.
 */
static int open_by_path(const struct module *module, int *ret)
{
	CLEANUP(freep) char *in_root = NULL;
	char root[PROC_PATH_BYTES];
	int r;

	if (module->is_deleted)
		return -ESTALE;
	proc_path(module->opener, "root", root);
	if (asprintf(&in_root, "%s%s", root, module->path) < 0)
		return -ENOMEM;
	r = open_checked(module, in_root, ret);
	if (r < 0 && module->inode != 0 && open_checked(module, module->path, ret) == 0)
		return 0;
	return r;
}

static int open_by_mapping(const struct module *module, int *ret)
{
	pid_t living = module->opener;
	char link[96];

	(void)proc_live_tid(module->opener, &living); /* only /proc/TID has map_files */
	snprintf(link, sizeof link, "/proc/%d/map_files/%llx-%llx", (int)living, (unsigned long long)module->map_start,
		 (unsigned long long)module->map_end);
	return open_checked(module, link, ret);
}

int module_open_file(const struct module *module, int *ret)
{
	int r;

	r = open_by_path(module, ret);
	if (r < 0 && r != -ENOMEM && open_by_mapping(module, ret) == 0)
		r = 0;
	return r;
}

static int open_image(const struct module *module, const void *image, size_t n_bytes, struct elf_file **ret)
{
	if (module->reader)
		return elf_file_open_through(module->reader, module->path, -1, image, n_bytes, ret);
	return elf_file_open_memory(image, n_bytes, ret);
}

static int open_file(const struct module *module, struct elf_file **ret)
{
	CLEANUP(closep) int fd = -1;
	int r;

	r = module_open_file(module, &fd);
	if (r < 0)
		return r;
	if (module->reader)
		r = elf_file_open_through(module->reader, module->path, fd, NULL, 0, ret);
	else
		r = elf_file_open(fd, ret);
	if (r < 0)
		return r;
	TAKE_FD(fd);
	return 0;
}

static int copy_memory(pid_t pid, uint64_t start, void *to, size_t n_bytes)
{
	CLEANUP(remote_freep) struct remote *remote = NULL;
	int r;

	r = remote_open_process(pid, &remote);
	if (r < 0)
		return r;
	return remote_read(remote, RADDR(start), to, n_bytes);
}

/*
 * A kernel maps the same vdso into every process of this class, so use ours if the process has ended or is unreadable.
 */
static int open_vdso(struct module *module, struct elf_file **ret)
{
	CLEANUP(freep) void *image = NULL;
	uint64_t n_bytes = module->map_end - module->map_start;
	uint64_t own = getauxval(AT_SYSINFO_EHDR);
	int r;

	if (n_bytes == 0 || n_bytes > MAX_VDSO_BYTES)
		return -ENOEXEC;
	image = malloc(n_bytes);
	if (!image)
		return -ENOMEM;
	r = copy_memory(module->opener, module->map_start, image, n_bytes);
	if (r < 0 && own != 0 && copy_memory(getpid(), own, image, n_bytes) == 0)
		r = 0;
	if (r < 0)
		return r;
	r = open_image(module, image, n_bytes, ret);
	if (r < 0)
		return r;
	module->image = TAKE(image);
	module->n_image_bytes = n_bytes;
	return 0;
}

static int open_copy(struct module *module, struct elf_file **ret)
{
	CLEANUP(freep) void *image = NULL;
	size_t n_bytes;
	int r;

	r = module_copy(module, &image, &n_bytes);
	if (r >= 0)
		r = open_image(module, image, n_bytes, ret);
	if (r < 0)
		return r;
	module->image = TAKE(image);
	module->n_image_bytes = n_bytes;
	return 0;
}

static int open_module(struct module *module, struct elf_file **ret)
{
	int r;

	if (module->is_vdso)
		return open_vdso(module, ret);
	r = open_file(module, ret);
	if (r < 0 && r != -ENOMEM && r != -ENOEXEC && open_copy(module, ret) == 0)
		return 0;
	return r;
}

int module_elf(struct module *module, struct elf_file **ret)
{
	if (!module->elf && module->open_error == 0)
		module->open_error = open_module(module, &module->elf);
	if (!module->elf)
		return module->open_error;
	*ret = module->elf;
	return 0;
}

/*
 * A linker maps the headers and notes, which are at the start of a file, below the code, at the same distance as in the
 * file.
 */
static int read_mapped_build_id(const struct module *module, struct build_id *ret)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	CLEANUP(remote_freep) struct remote *remote = NULL;
	uint8_t head[MAX_HEAD_BYTES];
	ssize_t n;
	int r;

	if (module->map_end == 0 || module->map_offset > module->map_start)
		return -ENOENT;
	r = remote_open_process(module->opener, &remote);
	if (r < 0)
		return r;
	n = remote_read_some(remote, RADDR(module->map_start - module->map_offset), head, sizeof head);
	if (n < 0)
		return (int)n;
	r = open_image(module, head, (size_t)n, &elf);
	if (r < 0)
		return r;
	*ret = *elf_file_build_id(elf);
	return ret->n_bytes > 0 ? 0 : -ENOENT;
}

int module_build_id(struct module *module, struct build_id *ret)
{
	struct elf_file *elf;
	struct build_id id;

	if (module_elf(module, &elf) >= 0)
		id = *elf_file_build_id(elf);
	else if (read_mapped_build_id(module, &id) < 0)
		return -ENOENT;
	if (id.n_bytes == 0)
		return -ENOENT;
	*ret = id;
	return 0;
}

const char *module_name(const struct module *module)
{
	const char *slash = strrchr(module->path, '/');

	return slash && slash[1] != '\0' ? slash + 1 : module->path;
}
