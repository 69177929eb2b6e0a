/* SPDX-License-Identifier: MIT */
/* search.c - where to search for separate debug files, and which to accept.
 *
 * In this order: DIR/.build-id/xx/yyyy.debug in each folder, /usr/lib/debug
 * last; by the name in .gnu_debuglink beside the module, in .debug/ there, and
 * below each folder under the module's own; DIR/PATH and DIR/PATH.debug; the
 * servers. libdwfl could do much of this, but would open anything that a link's
 * name refers to: a pipe there, created by the recorded process, would block the
 * recorder forever.
 *
 * Invariants: only regular files are opened for reading. A file is accepted
 * if it has the right build-id; without a build-id to compare, if it has
 * the link's checksum. Files that exceed the limits of libdw are rejected.
 * Source: GDB manual, "Debugging Information in Separate Files".
 */
#include "symbolize/search.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/util.h"
#include "symbolize/debuginfod.h"
#include "symbolize/unpack_limits.h"

#define SYSTEM_FOLDER "/usr/lib/debug"

enum { MAX_LINK_BYTES = 255, READ_BYTES = 1 << 16 };

struct symbol_search {
	struct symbol_search_options options;
	char **folders; /* ends with SYSTEM_FOLDER, then NULL */
	size_t n_folders;
	struct debuginfod *servers; /* NULL: do not ask servers */
	int server_error;
	struct effort_budget budget;
	struct symbol_limited limited;
};

void symbol_search_free(struct symbol_search *search)
{
	if (!search)
		return;
	debuginfod_close(search->servers);
	for (size_t i = 0; i < search->n_folders; i++)
		free(search->folders[i]);
	free(search->folders);
	free(search);
}

void symbol_search_freep(struct symbol_search **search)
{
	symbol_search_free(*search);
}

static int add_folder(struct symbol_search *search, const char *folder)
{
	search->folders[search->n_folders] = strdup(folder);
	if (!search->folders[search->n_folders])
		return -ENOMEM;
	search->n_folders++;
	return 0;
}

int symbol_search_new(const struct symbol_search_options *options, struct symbol_search **ret)
{
	CLEANUP(symbol_search_freep) struct symbol_search *search = NULL;
	int r = 0;

	search = calloc(1, sizeof *search);
	if (!search)
		return -ENOMEM;
	search->options = *options;
	search->folders = calloc(options->n_folders + 1, sizeof *search->folders);
	if (!search->folders)
		return -ENOMEM;
	for (size_t i = 0; i < options->n_folders && r >= 0; i++)
		r = add_folder(search, options->folders[i]);
	if (r >= 0)
		r = add_folder(search, SYSTEM_FOLDER);
	if (r >= 0 && options->debuginfod && !options->opener)
		r = debuginfod_open(&search->options, &search->servers);
	if (r < 0)
		return r;

	*ret = TAKE(search);
	return 0;
}

int symbol_search_server_error(const struct symbol_search *search)
{
	return search->server_error;
}

const char *search_scratch_folder(const struct symbol_search *search)
{
	return search ? search->options.scratch_folder : NULL;
}

bool search_has_cache(const struct symbol_search *search)
{
	const struct symbol_search_options *options = search ? &search->options : NULL;

	return options && options->n_folders == 0 && !options->debuginfod &&
	       (options->cache || (options->opener && options->opener->find_cached));
}

struct symbol_cache *search_cache(const struct symbol_search *search)
{
	return search_has_cache(search) ? search->options.cache : NULL;
}

int search_cached(struct symbol_search *search, const char *name, int *ret)
{
	const struct symbol_opener *opener = search->options.opener;

	if (!search_has_cache(search))
		return -ENOENT;
	return search->options.cache ? symbol_cache_find(search->options.cache, name, ret)
				     : opener->find_cached(opener->data, name, ret);
}

bool search_is_brief(const struct symbol_search *search)
{
	return search && search->options.is_brief;
}

void search_count_limited(struct symbol_search *search, const char *path, enum symbol_limit limit, bool is_first)
{
	if (!search)
		return;
	search->limited.n_places++;
	search->limited.n_modules += is_first;
	if (search->limited.limit != SYMBOL_LIMIT_NONE)
		return;
	search->limited.limit = limit;
	snprintf(search->limited.path, sizeof search->limited.path, "%s", path);
}

void symbol_search_limited(const struct symbol_search *search, struct symbol_limited *ret)
{
	*ret = search->limited;
}

struct effort_budget *search_budget(struct symbol_search *search)
{
	return search ? &search->budget : NULL;
}

/* ---- Open ---- */

/* Check with O_PATH first, and open only a regular file. */
static int open_regular(const char *path, int *ret)
{
	CLEANUP(closep) int found = -1;
	struct stat st;
	int fd;

	found = open(path, O_PATH | O_CLOEXEC);
	if (found < 0 || fstat(found, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	fd = reopen_to_read(found);
	if (fd < 0)
		return fd;
	*ret = fd;
	return 0;
}

/* Check an open file; the caller keeps fd. */
static int check_file(int fd, const struct build_id *id, bool *ret_has_code)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	CLEANUP(closep) int own_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	int r;

	if (own_fd < 0)
		return -errno;
	r = elf_file_open(own_fd, &elf);
	if (r < 0)
		return r;
	TAKE_FD(own_fd);
	if (id && !build_id_equal(elf_file_build_id(elf), id))
		return -ESTALE;
	if (!unpack_limits_passes(elf))
		return -E2BIG;
	*ret_has_code = unpack_limits_has_code(elf);
	return 0;
}

static int open_candidate(const struct symbol_opener *opener, const char *path, const struct build_id *id,
			  bool *ret_has_code, int *ret)
{
	CLEANUP(closep) int fd = -1;
	int r;

	r = opener ? opener->open(opener->data, path, &fd) : open_regular(path, &fd);
	if (r >= 0)
		r = check_file(fd, id, ret_has_code);
	if (r < 0)
		return r;
	*ret = TAKE_FD(fd);
	return 0;
}

int symbol_file_open(const char *path, const struct build_id *id, bool *ret_has_code, int *ret)
{
	return open_candidate(NULL, path, id, ret_has_code, ret);
}

/* .gnu_debuglink has zlib's CRC-32. */
static bool has_checksum(int fd, uint32_t wanted)
{
	CLEANUP(freep) uint8_t *bytes = malloc(READ_BYTES);
	uint64_t at = 0;
	uint32_t found = 0;
	ssize_t n;

	while (bytes && (n = pread(fd, bytes, READ_BYTES, (off_t)at)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || !effort_go_on((size_t)n / 64))
			return false;
		found = (uint32_t)crc32_z(found, bytes, (size_t)n);
		at += (uint64_t)n;
	}
	return at > 0 && found == wanted;
}

/* A missing file does no harm. */
static bool may_harm(const char *path)
{
	bool has_code;
	int fd, r;

	r = symbol_file_open(path, NULL, &has_code, &fd);
	if (r >= 0)
		close(fd);
	return r < 0 && r != -ENOENT && r != -ENOTDIR && r != -EACCES;
}

bool search_may_harm_link(struct symbol_search *search, const char *beside, const char *name)
{
	const struct symbol_opener *opener = search ? search->options.opener : NULL;
	const char *slash = strrchr(beside, '/');
	CLEANUP(freep) char *path = NULL;
	CLEANUP(closep) int fd = -1;
	int r;

	if (!opener)
		return search_may_harm(beside, name);
	if (name[0] != '/' && slash && asprintf(&path, "%.*s/%s", (int)(slash - beside), beside, name) < 0)
		return true;
	r = opener->open(opener->data, path ? path : name, &fd);
	return r < 0 && r != -ENOENT;
}

bool search_may_harm(const char *beside, const char *name)
{
	const char *slash = strrchr(beside, '/');
	CLEANUP(freep) char *path = NULL;

	if (name[0] == '/' || !slash)
		return may_harm(name);
	if (asprintf(&path, "%.*s/%s", (int)(slash - beside), beside, name) < 0)
		return true;
	return may_harm(path);
}

/* ---- Search ---- */

struct found {
	const struct symbol_opener *opener; /* NULL: open files in this process */
	int fd;
	char *path; /* owned */
};

/* Try one path, given in pieces. Returns 1 if the file matches, 0 if not, -ENOMEM. */
static int __attribute__((format(printf, 3, 4)))
try(const struct search_wanted *wanted, struct found *found, const char *format, ...)
{
	const struct build_id *id = wanted->id && wanted->id->n_bytes > 0 ? wanted->id : NULL;
	CLEANUP(freep) char *path = NULL;
	CLEANUP(closep) int fd = -1;
	va_list pieces;
	bool has_code;
	int n;

	va_start(pieces, format);
	n = vasprintf(&path, format, pieces);
	va_end(pieces);
	if (n < 0)
		return -ENOMEM;
	if (open_candidate(found->opener, path, id, &has_code, &fd) < 0 || (!id && !has_checksum(fd, wanted->crc)))
		return 0;
	found->fd = TAKE_FD(fd);
	found->path = TAKE(path);
	return 1;
}

static int try_build_id(const char *folder, const char *ending, const struct search_wanted *wanted, struct found *found)
{
	char text[2 * BUILD_ID_MAX + 1];

	build_id_format(wanted->id, text);
	return try(wanted, found, "%s/.build-id/%.2s/%s%s", folder, text, text + 2, ending);
}

/* Try the file's folder, its .debug/, and the same path below the debug folders. */
static int try_link(const struct symbol_search *search, const struct search_wanted *wanted, struct found *found)
{
	const char *slash = strrchr(wanted->path, '/');
	int n = slash ? (int)(slash - wanted->path) : 0;
	const char *root = wanted->root ? wanted->root : "";
	int r = 0;

	/* The format requires a plain file name; reject one with a slash. */
	if (!wanted->link || !slash || strchr(wanted->link, '/') || strlen(wanted->link) > MAX_LINK_BYTES)
		return 0;
	for (int in_root = wanted->root != NULL; in_root >= 0 && r == 0; in_root--) {
		const char *front = in_root ? root : "";

		r = try(wanted, found, "%s%.*s/%s", front, n, wanted->path, wanted->link);
		if (r == 0)
			r = try(wanted, found, "%s%.*s/.debug/%s", front, n, wanted->path, wanted->link);
	}
	if (!search && r == 0)
		r = try(wanted, found, SYSTEM_FOLDER "%.*s/%s", n, wanted->path, wanted->link);
	for (size_t i = 0; search && i < search->n_folders && r == 0; i++)
		r = try(wanted, found, "%s%.*s/%s", search->folders[i], n, wanted->path, wanted->link);
	return r;
}

/* Requires a build-id: a file's name alone does not identify its contents. */
static int try_folders(const struct symbol_search *search, const struct search_wanted *wanted, struct found *found)
{
	int r = 0;

	if (!search)
		return try_build_id(SYSTEM_FOLDER, ".debug", wanted, found);
	for (size_t i = 0; i < search->n_folders && r == 0; i++)
		r = try_build_id(search->folders[i], ".debug", wanted, found);
	return r;
}

static int try_mirrors(const struct symbol_search *search, const struct search_wanted *wanted, struct found *found)
{
	int r = 0;

	for (size_t i = 0; search && wanted->path[0] == '/' && i < search->n_folders && r == 0; i++) {
		r = try(wanted, found, "%s%s.debug", search->folders[i], wanted->path);
		if (r == 0)
			r = try(wanted, found, "%s%s", search->folders[i], wanted->path);
	}
	return r;
}

/* The name of a common debug file (dwz) is relative to the file that refers to it, or absolute. */
static int try_alternate(const struct search_wanted *wanted, struct found *found)
{
	const char *slash = strrchr(wanted->path, '/');

	if (!wanted->link || !strchr(wanted->link, '/'))
		return 0;
	if (wanted->link[0] == '/')
		return try(wanted, found, "%s", wanted->link);
	return slash ? try(wanted, found, "%.*s/%s", (int)(slash - wanted->path), wanted->path, wanted->link) : 0;
}

int symbol_search_ask(struct symbol_search *search, const struct build_id *id, bool executable, int *ret)
{
	const struct symbol_opener *opener = search->options.opener;
	int r;

	if (opener ? !search->options.debuginfod : !search->servers)
		return -ENOENT;
	r = opener ? opener->ask(opener->data, id, executable, ret)
		   : debuginfod_get(search->servers, id, executable, ret);
	if (r < 0 && r != -ENOENT && search->server_error != -ETIMEDOUT)
		search->server_error = r;
	return r;
}

static int try_servers(struct symbol_search *search, const struct build_id *id, bool executable, struct found *found)
{
	CLEANUP(closep) int fd = -1;
	bool has_code;
	int r;

	if (!search)
		return 0;
	r = symbol_search_ask(search, id, executable, &fd);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	if (check_file(fd, id, &has_code) < 0 || (executable && !has_code))
		return 0;
	found->path = strdup("debuginfod");
	if (!found->path)
		return -ENOMEM;
	found->fd = TAKE_FD(fd);
	return 1;
}

int search_debug_file(struct symbol_search *search, const struct search_wanted *wanted, int *ret, char **ret_path)
{
	const bool has_id = wanted->id && wanted->id->n_bytes > 0;
	struct found found = { .opener = search ? search->options.opener : NULL };
	int r = 0;

	if (has_id)
		r = try_folders(search, wanted, &found);
	if (r == 0)
		r = try_link(search, wanted, &found);
	if (r == 0 && has_id)
		r = try_alternate(wanted, &found);
	if (r == 0 && has_id)
		r = try_mirrors(search, wanted, &found);
	if (r == 0 && has_id)
		r = try_servers(search, wanted->id, false, &found);
	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	*ret = found.fd;
	*ret_path = found.path;
	return 0;
}

/* ---- Module file ---- */

static int try_code(const struct symbol_search *search, const struct search_wanted *wanted, size_t i,
		    struct found *found)
{
	int r;

	r = try_build_id(search->folders[i], "", wanted, found);
	if (r == 0 && wanted->path[0] == '/')
		r = try(wanted, found, "%s%s", search->folders[i], wanted->path);
	return r;
}

/* Whether the file is only a debug file: then close it. */
static bool put_back(struct found *found)
{
	bool has_code = false;

	if (check_file(found->fd, NULL, &has_code) == 0 && has_code)
		return false;
	close(found->fd);
	free(found->path);
	return true;
}

int symbol_search_find(struct symbol_search *search, const char *path, const struct build_id *id, int *ret,
		       char **ret_path)
{
	struct search_wanted wanted = { .path = path, .id = id };
	struct found found = { .opener = search->options.opener };
	int r = 0;

	if (id->n_bytes == 0)
		return -ENOENT;
	for (size_t i = 0; i < search->n_folders && r == 0; i++) {
		r = try_code(search, &wanted, i, &found);
		if (r > 0 && put_back(&found))
			r = 0;
	}
	if (r == 0)
		r = try_servers(search, id, true, &found);
	if (r == 0) /* its debug file alone also has names and lines */
		return search_debug_file(search, &wanted, ret, ret_path);
	if (r < 0)
		return r;
	*ret = found.fd;
	*ret_path = found.path;
	return 0;
}
