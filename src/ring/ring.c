/* SPDX-License-Identifier: MIT */
/* ring.c - the writer; layout.h has the protocol.
 *
 * Invariants:
 * 1. A slot's cells are stored only between the writer's own 2i + 1 and 2i + 2.
 * 2. The process may be stopped or killed at any instruction: then one slot keeps an odd sequence, and other writers
 *    pass it over.
 * 3. Sizes and offsets come from struct ring, never from the file: whoever changes that can spoil rows, but not this process.
 */
#include "src/ring/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/clock_offset.h"
#include "src/ring/layout.h"

enum { MAX_TRIES = 64, MAX_FILES = 10000, FILE_NAME_BYTES = 32 };

struct ring {
	struct ring_header *header;
	uint64_t *sequence, *time_ns, *nulls, *reals;
	uint64_t n_rows, file_bytes;
	size_t n_columns;
	struct column {
		uint64_t *cells;
		enum ring_type type;
		uint32_t cell_words;
	} columns[RING_MAX_COLUMNS];
	char file[FILE_NAME_BYTES];
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- Creation ---- */

static bool is_name(const char *name, size_t n_bytes)
{
	size_t n = strnlen(name, n_bytes);

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)name[i] < ' ' || name[i] == '\x7f')
			return false;
	return n > 0 && n < n_bytes;
}

static int fill_columns(struct ring_header *header, const struct ring_description *from)
{
	for (size_t i = 0; i < from->n_columns; i++) {
		const struct ring_column *column = &from->columns[i];
		struct ring_header_column *to = &header->columns[i];

		if (!is_name(column->name, sizeof to->name))
			return -EINVAL;
		strcpy(to->name, column->name);
		to->type = column->type;
		to->cell_bytes = RING_WORD;
		if (column->type == RING_TEXT)
			to->cell_bytes = (column->bytes + RING_WORD - 1) / RING_WORD * RING_WORD;
		if (column->type < RING_INTEGER || column->type > RING_TEXT || to->cell_bytes == 0 ||
		    to->cell_bytes > RING_MAX_CELL_BYTES)
			return -EINVAL;
	}
	return 0;
}

static int fill_header(struct ring_header *header, const struct ring_description *from)
{
	uint64_t n_rows = from->n_rows ? from->n_rows : RING_ROWS;

	if (from->n_columns > RING_MAX_COLUMNS || !is_name(from->name, sizeof header->name) ||
	    n_rows > RING_MAX_FILE_BYTES / RING_WORD)
		return -EINVAL;
	memset(header, 0, sizeof *header);
	header->magic = RING_MAGIC;
	header->version = RING_VERSION;
	header->n_columns = (uint32_t)from->n_columns;
	header->n_rows = (n_rows + RING_ROWS_UNIT - 1) / RING_ROWS_UNIT * RING_ROWS_UNIT;
	header->pid = getpid();
	header->start_time = ring_start_time(header->pid);
	header->realtime_offset_ns = clock_offset_ns(clock_gettime);
	strcpy(header->name, from->name);
	if (fill_columns(header, from) < 0)
		return -EINVAL;
	header->file_bytes = RING_HEADER_BYTES + header->n_rows * ring_row_bytes(header->columns, from->n_columns);
	return header->file_bytes > RING_MAX_FILE_BYTES ? -EINVAL : 0;
}

static void place_arrays(struct ring *ring, const struct ring_header *from, void *map)
{
	uint64_t *at = (uint64_t *)((char *)map + RING_HEADER_BYTES);

	ring->header = map;
	ring->n_rows = from->n_rows;
	ring->file_bytes = from->file_bytes;
	ring->n_columns = from->n_columns;
	ring->sequence = at;
	ring->time_ns = at + ring->n_rows;
	ring->nulls = at + 2 * ring->n_rows;
	ring->reals = at + 3 * ring->n_rows;
	at += RING_N_FIXED * ring->n_rows;
	for (size_t i = 0; i < ring->n_columns; i++) {
		uint32_t words = from->columns[i].cell_bytes / RING_WORD;

		ring->columns[i] = (struct column){ .cells = at, .type = from->columns[i].type, .cell_words = words };
		at += words * ring->n_rows;
	}
}

/* Under a name that readers pass over. */
static int open_new(int folder, unsigned number, char name[FILE_NAME_BYTES])
{
	int fd;

	snprintf(name, FILE_NAME_BYTES, "%u.new", number);
	fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

static int map_file(int fd, const struct ring_header *header, void **ret)
{
	void *map;
	int r;

	r = posix_fallocate(fd, 0, (off_t)header->file_bytes);
	if (r != 0)
		return -r;
	map = mmap(NULL, header->file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	memcpy(map, header, sizeof *header);
	*ret = map;
	return 0;
}

/* A link, as it never replaces a file: a program that this process executed earlier has left its own. */
static int give_name(int folder, const char *from, unsigned number, struct ring *ring)
{
	snprintf(ring->file, sizeof ring->file, "%u.ring", number);
	return linkat(folder, from, folder, ring->file, 0) < 0 ? -errno : 0;
}

static int try_number(int folder, unsigned number, const struct ring_header *header, struct ring *ring)
{
	char name[FILE_NAME_BYTES];
	void *map = NULL;
	int fd, r;

	snprintf(name, sizeof name, "%u.ring", number);
	if (faccessat(folder, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return -EEXIST;
	fd = open_new(folder, number, name);
	if (fd < 0)
		return fd;
	r = map_file(fd, header, &map);
	close(fd);
	if (r == 0)
		r = give_name(folder, name, number, ring);
	(void)unlinkat(folder, name, 0);
	if (r == 0)
		place_arrays(ring, header, map);
	else if (map)
		munmap(map, header->file_bytes);
	return r;
}

int ring_create(int folder, const struct ring_description *description, struct ring **ret)
{
	struct ring_header header;
	struct ring *ring;
	int r;

	r = fill_header(&header, description);
	if (r < 0)
		return r;
	ring = calloc(1, sizeof *ring);
	if (!ring)
		return -ENOMEM;
	r = -EEXIST;
	for (unsigned i = 1; i < MAX_FILES && r == -EEXIST; i++)
		r = try_number(folder, i, &header, ring);
	if (r < 0)
		free(ring);
	else
		*ret = ring;
	return r;
}

void ring_close(struct ring *ring)
{
	if (!ring)
		return;
	munmap(ring->header, ring->file_bytes);
	free(ring);
}

uint64_t ring_file_bytes(const struct ring *ring)
{
	return ring->file_bytes;
}

int ring_remove(const struct ring *ring, int folder)
{
	return unlinkat(folder, ring->file, 0) < 0 ? -errno : 0;
}

void ring_source_own(const struct ring *ring, struct ring_source *ret)
{
	ring_source_memory(ring->header, ring->file_bytes, ret);
}

/* ---- Rows ---- */

/* A release store is not moved before the claim of the slot. On x86-64 it is a plain one. */
static void store(uint64_t *to, uint64_t word)
{
	__atomic_store_n(to, word, __ATOMIC_RELEASE);
}

static bool is_continuation(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

static void store_text(uint64_t *to, size_t n_words, const char *text, size_t n_text)
{
	size_t n = strnlen(text, n_text);

	if (n > n_words * RING_WORD) {
		n = n_words * RING_WORD;
		while (n > 0 && is_continuation(text[n])) /* no part of a character */
			n--;
	}
	for (size_t i = 0; i < n_words; i++) {
		size_t left = n - (n < i * RING_WORD ? n : i * RING_WORD);
		uint64_t word = 0;

		memcpy(&word, text + (left > 0 ? i * RING_WORD : 0), left < RING_WORD ? left : RING_WORD);
		store(&to[i], word);
	}
}

static bool is_whole(double real)
{
	return real >= -0x1p63 && real < 0x1p63 && real == (double)(int64_t)real;
}

static uint64_t word_of(double real)
{
	uint64_t word;

	memcpy(&word, &real, sizeof word);
	return word;
}

/* How a value is stored. */
enum fit { FITS, FITS_AS_REAL, IS_NULL, IS_UNFIT };

static enum fit store_number(uint64_t *to, enum ring_type type, const struct ring_value *value)
{
	if (value->kind == RING_IS_INTEGER && type != RING_REAL) {
		store(to, (uint64_t)value->integer);
		return FITS;
	}
	if (value->kind == RING_IS_INTEGER) {
		store(to, word_of((double)value->integer));
		return FITS;
	}
	if (type == RING_INTEGER && !is_whole(value->real))
		return IS_UNFIT;
	store(to, type == RING_INTEGER ? (uint64_t)(int64_t)value->real : word_of(value->real));
	return type == RING_NUMBER ? FITS_AS_REAL : FITS;
}

static enum fit store_cell(const struct column *column, uint64_t slot, const struct ring_value *value)
{
	uint64_t *to = column->cells + slot * column->cell_words;

	if (value->kind == RING_NULL)
		return IS_NULL;
	if ((value->kind == RING_IS_TEXT) != (column->type == RING_TEXT))
		return IS_UNFIT;
	if (value->kind != RING_IS_TEXT)
		return store_number(to, column->type, value);
	store_text(to, column->cell_words, value->text, value->n_text);
	return FITS;
}

static void store_row(struct ring *ring, uint64_t slot, uint64_t time_ns, const struct ring_value *values)
{
	uint64_t nulls = 0, reals = 0, n_unfit = 0;

	for (size_t i = 0; i < ring->n_columns; i++) {
		enum fit fit = store_cell(&ring->columns[i], slot, &values[i]);

		nulls |= (uint64_t)(fit >= IS_NULL) << i;
		reals |= (uint64_t)(fit == FITS_AS_REAL) << i;
		n_unfit += fit == IS_UNFIT;
	}
	store(&ring->time_ns[slot], time_ns);
	store(&ring->nulls[slot], nulls);
	store(&ring->reals[slot], reals);
	if (n_unfit > 0)
		ring_count_unfit(ring, n_unfit);
}

/* Whether the slot is now this writer's: there was no row in it, or an older one. */
static bool claim(uint64_t *sequence, uint64_t number)
{
	uint64_t before = __atomic_load_n(sequence, __ATOMIC_RELAXED);

	return before % 2 == 0 && before <= 2 * number &&
	       __atomic_compare_exchange_n(sequence, &before, 2 * number + 1, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

uint64_t ring_append(struct ring *ring, const struct ring_value *values)
{
	return ring_append_at(ring, clock_ns(CLOCK_MONOTONIC), values);
}

uint64_t ring_append_at(struct ring *ring, uint64_t time_ns, const struct ring_value *values)
{
	for (int i = 0; i < MAX_TRIES; i++) {
		uint64_t number = __atomic_fetch_add(&ring->header->head, 1, __ATOMIC_RELAXED);
		uint64_t slot = number % ring->n_rows;

		if (claim(&ring->sequence[slot], number)) {
			store_row(ring, slot, time_ns, values);
			store(&ring->sequence[slot], 2 * number + 2);
			return number;
		}
		__atomic_fetch_add(&ring->header->skipped, 1, __ATOMIC_RELAXED);
	}
	__atomic_fetch_add(&ring->header->dropped, 1, __ATOMIC_RELAXED);
	return RING_DROPPED;
}

void ring_count_unfit(struct ring *ring, uint64_t n)
{
	__atomic_fetch_add(&ring->header->unfit, n, __ATOMIC_RELAXED);
}
