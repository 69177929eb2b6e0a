/* SPDX-License-Identifier: MIT */
/* cache.c - the folder with cached symbols: $XDG_CACHE_HOME/probing/names or ~/.cache/probing/names.
 *
 * Its contents decide which names users see, so it is used only if nobody else can write to it: the folder must be ours
 * and writable by us alone, and so must each file. It is opened once, and all later calls are relative to its
 * descriptor. Under sudo HOME may be another user's: a folder is created only in one that is ours, so root leaves no
 * files in a user's home, and uses /var/cache instead.
 *
 * Invariants: a file has its name only when it is complete; names are of our own making, without a slash.
 */
#include "symbolize/cache.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/new_file.h"
#include "base/util.h"

enum { MAX_FILES = 1 << 16, USE_NOTED_S = 3600 };

#define MAX_BYTES (UINT64_C(256) << 20)  /* limit of all files together */
#define KEPT_BYTES (UINT64_C(192) << 20) /* evict down to this size */
#define ROOM_TO_LEAVE (UINT64_C(1) << 30)

struct symbol_cache {
	int folder;
};

static bool is_ours(const struct stat *st)
{
	return st->st_uid == geteuid() && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* ---- Folder ---- */

static int open_folder(int at, const char *name, int flags, int *ret)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);

	if (fd < 0)
		return -errno;
	*ret = fd;
	return 0;
}

/* Open a subfolder; create it if the parent belongs to us. */
static int enter(int parent, const char *name, int flags, int *ret)
{
	struct stat st;
	int r;

	r = open_folder(parent, name, flags, ret);
	if (r != -ENOENT)
		return r;
	if (fstat(parent, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid())
		return -EPERM;
	if (mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	return open_folder(parent, name, O_NOFOLLOW, ret);
}

static int enter_own(int parent, const char *name, int *ret)
{
	CLEANUP(closep) int fd = -1;
	struct stat st;
	int r;

	r = enter(parent, name, O_NOFOLLOW, &fd);
	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!is_ours(&st))
		return -EPERM;
	*ret = TAKE_FD(fd);
	return 0;
}

/* @base: folder; @within: subfolder, NULL: none. */
static int open_in(const char *base, const char *within, int *ret)
{
	CLEANUP(closep) int outer = -1, inner = -1, own = -1;
	int r;

	r = open_folder(AT_FDCWD, base, 0, &outer);
	if (r >= 0 && within)
		r = enter(outer, within, 0, &inner); /* follow a link: users may place it on another disk */
	if (r >= 0)
		r = enter_own(within ? inner : outer, "probing", &own);
	return r < 0 ? r : enter_own(own, "names", ret);
}

int symbol_cache_open(struct symbol_cache **ret)
{
	const char *wish = getenv("PROBING_CACHE"), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	uint8_t program[BUILD_ID_MAX];
	int r = -ENOENT, fd;

	if (wish && strcmp(wish, "0") == 0)
		return -ECANCELED;
	if (cache_program(program) == 0)
		return -ENOTSUP;
	/* The XDG standard ignores a relative path. */
	if (cache && cache[0] == '/')
		r = open_in(cache, NULL, &fd);
	else if (home && home[0] == '/')
		r = open_in(home, ".cache", &fd);
	if (r < 0 && geteuid() == 0 && !cache)
		r = open_in("/var/cache", NULL, &fd);
	if (r < 0)
		return r;
	*ret = malloc(sizeof **ret);
	if (!*ret) {
		close(fd);
		return -ENOMEM;
	}
	(*ret)->folder = fd;
	return 0;
}

void symbol_cache_free(struct symbol_cache *cache)
{
	if (!cache)
		return;
	close(cache->folder);
	free(cache);
}

void symbol_cache_freep(struct symbol_cache **cache)
{
	symbol_cache_free(*cache);
}

/* ---- Files ---- */

static bool is_name(const char *name)
{
	return name[0] != '\0' && name[strspn(name, "0123456789abcdef-")] == '\0';
}

/* Update the time of use for eviction. Errors do not matter. */
static void note_use(int fd, const struct stat *st)
{
	if (time(NULL) - st->st_mtim.tv_sec > USE_NOTED_S)
		(void)futimens(fd, NULL);
}

int symbol_cache_find(struct symbol_cache *cache, const char *name, int *ret)
{
	CLEANUP(closep) int fd = -1;
	struct stat st;

	if (!is_name(name))
		return -EINVAL;
	fd = openat(cache->folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || !is_ours(&st))
		return -EPERM;
	note_use(fd, &st);
	*ret = TAKE_FD(fd);
	return 0;
}

static int write_pieces(int fd, struct cache_pieces *pieces)
{
	struct iovec *at = pieces->pieces;
	int n = pieces->n;

	while (n > 0) {
		ssize_t written = writev(fd, at, n);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return written < 0 ? -errno : -EIO;
		for (; n > 0 && (size_t)written >= at->iov_len; n--)
			written -= (ssize_t)(at++)->iov_len;
		if (n > 0) {
			at->iov_base = (char *)at->iov_base + written;
			at->iov_len -= (size_t)written;
		}
	}
	return 0;
}

struct cached {
	char name[CACHE_NAME_BYTES + 8]; /* longer names are not ours */
	uint64_t n_bytes;
	struct timespec used;
};

static int compare_cached(const void *a, const void *b)
{
	const struct timespec *x = &((const struct cached *)a)->used, *y = &((const struct cached *)b)->used;

	if (x->tv_sec != y->tv_sec)
		return x->tv_sec < y->tv_sec ? -1 : 1;
	return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

static int list(int folder, DIR *entries, struct cached **files, size_t *n)
{
	size_t allocated = 0;
	struct dirent *entry;
	struct stat st;
	int r;

	while (*n < MAX_FILES && (entry = readdir(entries)) != NULL) {
		if (strlen(entry->d_name) >= sizeof(*files)->name ||
		    fstatat(folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
			continue;
		r = grow(files, *n, &allocated, sizeof **files);
		if (r < 0)
			return r;
		(*files)[*n] = (struct cached){ .n_bytes = (uint64_t)st.st_size, .used = st.st_mtim };
		strcpy((*files)[(*n)++].name, entry->d_name);
	}
	return 0;
}

/* Temporary files of killed writers are evicted like others. */
static int evict(int folder)
{
	CLEANUP(freep) struct cached *files = NULL;
	uint64_t n_bytes = 0;
	size_t n = 0;
	DIR *entries;
	int fd = -1, r;

	r = open_folder(folder, ".", 0, &fd);
	if (r < 0)
		return r;
	entries = fdopendir(fd);
	if (!entries) {
		close(fd);
		return -ENOMEM;
	}
	r = list(folder, entries, &files, &n);
	closedir(entries);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		n_bytes += files[i].n_bytes;
	if (n_bytes <= MAX_BYTES && n < MAX_FILES)
		return 0;
	qsort(files, n, sizeof *files, compare_cached);
	for (size_t i = 0; i < n && (n_bytes > KEPT_BYTES || n - i > MAX_FILES / 2); i++) {
		if (unlinkat(folder, files[i].name, 0) < 0 && errno != ENOENT)
			return -errno;
		n_bytes -= files[i].n_bytes;
	}
	return 0;
}

static bool has_room(int folder, size_t n_bytes)
{
	struct statvfs fs;

	return fstatvfs(folder, &fs) == 0 && (uint64_t)fs.f_bavail * fs.f_frsize >= ROOM_TO_LEAVE + n_bytes;
}

int cache_write(struct symbol_cache *cache, const char *name, struct cache_pieces *pieces)
{
	char temporary[sizeof ".new-" + NEW_FILE_RANDOM_BYTES] = ".new-";
	CLEANUP(closep) int fd = -1;
	int r;

	if (!has_room(cache->folder, pieces->n_bytes))
		return -ENOSPC;
	r = new_file_random(temporary + strlen(temporary));
	if (r < 0)
		return r;
	fd = openat(cache->folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = write_pieces(fd, pieces);
	if (r >= 0 && renameat(cache->folder, temporary, cache->folder, name) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(cache->folder, temporary, 0);
	return r < 0 ? r : evict(cache->folder);
}

/* ---- The program ---- */

struct program {
	uint8_t *to;
	unsigned n;
};

/* The first object is the program itself. Source: dl_iterate_phdr(3); elf(5), "Notes (Nhdr)". */
static int find_build_id(struct dl_phdr_info *info, size_t n_info, void *data)
{
	struct program *program = data;

	(void)n_info;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		const uint8_t *at = (const uint8_t *)info->dlpi_addr + header->p_vaddr, *end = at + header->p_memsz;

		if (header->p_type != PT_NOTE || header->p_align > 4)
			continue;
		while (end - at > (ptrdiff_t)sizeof(ElfW(Nhdr))) {
			const ElfW(Nhdr) *note = (const void *)at;
			const uint8_t *id = at + sizeof *note + ((note->n_namesz + 3) & ~3U);

			if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && note->n_descsz <= BUILD_ID_MAX) {
				memcpy(program->to, id, note->n_descsz);
				program->n = note->n_descsz;
				return 1;
			}
			at = id + ((note->n_descsz + 3) & ~3U);
		}
	}
	return 1;
}

unsigned cache_program(uint8_t *to)
{
	struct program program = { .to = to };

	(void)dl_iterate_phdr(find_build_id, &program);
	return program.n;
}
