/* SPDX-License-Identifier: MIT */
/* apt_lists.c - see debian.h.
 *
 * A list is some 50 MB of stanzas, one a package, each a field a line. It is read in pieces, plain or
 * decompressed, and parsed line by line: only the name of the current package is kept.
 */
#include "src/cli/debian.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <lz4frame.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"

enum { PIECE_BYTES = 256 << 10, MAX_LINE_BYTES = 8 << 20 };

/* Limit over all lists: Debian's, with debug packages, have 100 MB. */
#define MAX_BYTES (UINT64_C(1) << 30)

DEFINE_CLEANUP(LZ4F_dctx *, LZ4F_freeDecompressionContext)

struct search {
	struct apt_query *queries;
	unsigned n_queries;
	char package[APT_PACKAGE_BYTES]; /* package of the current stanza */
	char *line;                      /* unfinished line from the previous piece */
	size_t n_line, allocated;
	uint64_t n_bytes_left;
};

/* ---- Lines ---- */

static const char *value_of(const char *line, const char *field)
{
	const size_t n = strlen(field);

	if (strncmp(line, field, n) != 0)
		return NULL;
	for (line += n; *line == ' '; line++)
		;
	return line;
}

/* Rank of the found package, 0 is best; APT_MAX_CANDIDATES: none found. */
static unsigned rank(const struct apt_query *query, const char *package)
{
	unsigned i = 0;

	while (i < APT_MAX_CANDIDATES && !(query->candidates[i] && strcmp(query->candidates[i], package) == 0))
		i++;
	return i;
}

static void take_package(struct search *search, const char *package)
{
	snprintf(search->package, sizeof search->package, "%s", package);
	for (unsigned i = 0; i < search->n_queries; i++) {
		struct apt_query *query = &search->queries[i];

		if (!query->has_file && rank(query, package) < rank(query, query->package))
			snprintf(query->package, sizeof query->package, "%s", package);
	}
}

static void take_build_ids(struct search *search, const char *ids)
{
	for (unsigned i = 0; i < search->n_queries; i++) {
		struct apt_query *query = &search->queries[i];

		if (query->has_file || !query->build_id || !query->build_id[0] || !strstr(ids, query->build_id))
			continue;
		memcpy(query->package, search->package, sizeof query->package);
		query->has_file = true;
	}
}

static void take_line(struct search *search, const char *line)
{
	const char *value;

	if ((value = value_of(line, "Package:")) != NULL)
		take_package(search, value);
	else if ((value = value_of(line, "Build-Ids:")) != NULL)
		take_build_ids(search, value);
}

/* Append to the unfinished line. -E2BIG, -ENOMEM. */
static int add_to_line(struct search *search, const char *bytes, size_t n_bytes)
{
	int r;

	if (n_bytes > MAX_LINE_BYTES - search->n_line)
		return -E2BIG;
	r = grow(&search->line, search->n_line + n_bytes, &search->allocated, 1);
	if (r < 0)
		return r;
	memcpy(search->line + search->n_line, bytes, n_bytes);
	search->n_line += n_bytes;
	search->line[search->n_line] = '\0';
	return 0;
}

/* Returns 0, or negative if the rest of the list is not needed. */
static int take_piece(struct search *search, const char *bytes, size_t n_bytes)
{
	if (n_bytes > search->n_bytes_left)
		return -E2BIG;
	search->n_bytes_left -= n_bytes;
	while (n_bytes > 0) {
		const char *end = memchr(bytes, '\n', n_bytes);
		const size_t n = end ? (size_t)(end - bytes) : n_bytes;
		int r = add_to_line(search, bytes, n);

		if (r < 0)
			return r;
		if (!end)
			return 0;
		take_line(search, search->line);
		search->n_line = 0;
		bytes += n + 1;
		n_bytes -= n + 1;
	}
	return 0;
}

/* ---- Files ---- */

static void read_plain(struct search *search, int fd, char *piece)
{
	ssize_t n;

	while ((n = read(fd, piece, PIECE_BYTES)) > 0)
		if (take_piece(search, piece, (size_t)n) < 0)
			return;
}

/* Decompress a piece completely; negative: stop. */
static int unpack(struct search *search, LZ4F_dctx *context, const char *packed, size_t n_packed, char *piece)
{
	size_t at = 0, n_in, n_out;

	do {
		n_in = n_packed - at;
		n_out = PIECE_BYTES;
		if (LZ4F_isError(LZ4F_decompress(context, piece, &n_out, packed + at, &n_in, NULL)))
			return -EBADMSG;
		if (take_piece(search, piece, n_out) < 0)
			return -E2BIG;
		at += n_in;
	} while (n_out == PIECE_BYTES || (at < n_packed && (n_in > 0 || n_out > 0)));
	return 0;
}

static void read_lz4(struct search *search, int fd, char *packed)
{
	CLEANUP(LZ4F_freeDecompressionContextp) LZ4F_dctx *context = NULL;
	CLEANUP(freep) char *piece = malloc(PIECE_BYTES);
	ssize_t n;

	if (!piece || LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION)))
		return;
	while ((n = read(fd, packed, PIECE_BYTES)) > 0)
		if (unpack(search, context, packed, (size_t)n, piece) < 0)
			return;
}

static bool ends_with(const char *name, const char *end)
{
	const size_t n = strlen(name), n_end = strlen(end);

	return n >= n_end && strcmp(name + n - n_end, end) == 0;
}

static void read_list(struct search *search, int folder, const char *name, char *buffer)
{
	CLEANUP(closep) int fd = -1;
	const bool is_plain = ends_with(name, "_Packages");

	if (!is_plain && !ends_with(name, "_Packages.lz4"))
		return;
	fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	if (fd < 0)
		return;
	search->n_line = 0;
	(is_plain ? read_plain : read_lz4)(search, fd, buffer);
}

static bool is_done(const struct search *search)
{
	for (unsigned i = 0; i < search->n_queries; i++)
		if (!search->queries[i].has_file)
			return false;
	return true;
}

void apt_lists_search(const char *folder, struct apt_query *queries, unsigned n_queries)
{
	struct search search = { .queries = queries, .n_queries = n_queries, .n_bytes_left = MAX_BYTES };
	CLEANUP(closedirp) DIR *lists = opendir(folder);
	CLEANUP(freep) char *buffer = malloc(PIECE_BYTES);
	struct dirent *entry;

	for (unsigned i = 0; i < n_queries; i++) {
		queries[i].package[0] = '\0';
		queries[i].has_file = false;
	}
	while (lists && buffer && !is_done(&search) && (entry = readdir(lists)) != NULL)
		read_list(&search, dirfd(lists), entry->d_name, buffer);
	free(search.line);
}
