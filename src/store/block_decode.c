/* SPDX-License-Identifier: MIT */
/*
 * block_decode.c - compressed columns back into samples; block.h has the format.
 *
 * The bytes are foreign: a bit may have been flipped, which the checksum detects, or the block may be
 * crafted, including the checksum. So everything is checked:
 * 1. Nothing is read outside of the bytes, nor written outside of n_rows values; a Zstandard frame must
 *    yield exactly as many bytes as its plane has.
 * 2. Every index is inside of its dictionary, every number in the range of a sample, before
 *    a caller gets it.
 * 3. A block that fails is empty; memory is bounded by BLOCK_MAX_ROWS.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/cursor.h"
#include "base/util.h"
#include "src/store/block.h"
#include "src/store/times.h"

enum { CRC_BYTES = 4 };

/* ---- Planes ---- */

/* Read a plane of n values; @to: n bytes. */
static int read_plane(struct block *block, struct cursor *from, size_t n, uint8_t *to)
{
	uint64_t coding = cursor_fixed(from, 1);
	uint64_t n_bytes = coding == 2 ? cursor_leb128(from) : coding == 1 ? n : 1;

	if (from->failed || coding > 2 || n_bytes > cursor_left(from))
		return -EBADMSG;
	if (coding == 0)
		memset(to, from->at[0], n);
	else if (coding == 1)
		memcpy(to, from->at, n);
	else if (ZSTD_decompressDCtx(block->zstd, to, n, from->at, n_bytes) != n)
		return -EBADMSG;
	from->at += n_bytes;
	return 0;
}

static void add_plane(const uint8_t *plane, size_t n, unsigned shift, uint64_t *to)
{
	for (size_t i = 0; i < n; i++)
		to[i] |= (uint64_t)plane[i] << shift;
}

static int read_values(struct block *block, struct cursor *from, size_t n, uint64_t *to)
{
	uint64_t n_planes = cursor_fixed(from, 1);
	uint8_t *plane = block->bytes + block->n_bytes; /* see keep_bytes() */
	int r = 0;

	if (from->failed || n_planes > 8)
		return -EBADMSG;
	memset(to, 0, n * sizeof *to);
	for (unsigned p = 0; p < n_planes && r >= 0; p++) {
		r = read_plane(block, from, n, plane);
		if (r >= 0)
			add_plane(plane, n, 8 * p, to);
	}
	return r;
}

/* Number of entries in a dictionary: at most the number of rows. */
static int read_count(struct block *block, struct cursor *from, size_t least, size_t *ret)
{
	uint64_t n = cursor_leb128(from);

	if (from->failed || n < least || n > block->n_rows)
		return -EBADMSG;
	*ret = n;
	return 0;
}

static int check_below(const uint64_t *values, size_t n, uint64_t limit)
{
	uint64_t most = 0;

	for (size_t i = 0; i < n; i++)
		most = MAX(most, values[i]);
	return most < limit ? 0 : -EBADMSG;
}

static int read_below(struct block *block, struct cursor *from, size_t n, uint64_t limit, uint64_t *to)
{
	int r = read_values(block, from, n, to);

	return r < 0 ? r : check_below(to, n, limit);
}

/* ---- Columns ---- */

static int load_threads(struct block *block, struct cursor *from, uint64_t *to)
{
	int r;

	r = read_count(block, from, 1, &block->n_threads);
	if (r >= 0)
		r = read_below(block, from, block->n_threads, INT32_MAX + UINT64_C(1), block->pids);
	if (r >= 0)
		r = read_below(block, from, block->n_threads, INT32_MAX + UINT64_C(1), block->tids);
	return r < 0 ? r : read_below(block, from, block->n_rows, block->n_threads, to);
}

static int load_cpus(struct block *block, struct cursor *from, uint64_t *to)
{
	return read_below(block, from, block->n_rows, UINT32_MAX + UINT64_C(1), to);
}

static int load_weights(struct block *block, struct cursor *from, uint64_t *to)
{
	uint64_t least = cursor_leb128(from);
	int r;

	if (from->failed || least > INT64_MAX)
		return -EBADMSG;
	r = read_below(block, from, block->n_rows, INT64_MAX - least + 1, to);
	for (size_t i = 0; i < block->n_rows && r >= 0; i++)
		to[i] += least;
	return r;
}

static int load_stack_ids(struct block *block, struct cursor *from)
{
	uint64_t id = 0;
	int r = read_below(block, from, block->n_stacks, INT64_MAX, block->stacks);

	for (size_t i = 0; i < block->n_stacks && r >= 0; i++) {
		if (block->stacks[i] > INT64_MAX - id)
			return -EBADMSG;
		id += block->stacks[i];
		block->stacks[i] = id;
	}
	return r;
}

/* Without a dictionary, each row has its own entry. */
static int load_stacks(struct block *block, struct cursor *from, uint64_t *to)
{
	int r;

	r = read_count(block, from, 0, &block->n_stacks);
	if (r < 0)
		return r;
	if (block->n_stacks > 0) {
		r = load_stack_ids(block, from);
		return r < 0 ? r : read_below(block, from, block->n_rows, block->n_stacks, to);
	}
	block->n_stacks = block->n_rows;
	for (size_t i = 0; i < block->n_rows; i++)
		to[i] = i;
	return read_below(block, from, block->n_rows, INT64_MAX, block->stacks);
}

static int load_flags(struct block *block, struct cursor *from, uint64_t *to)
{
	struct sample_row ignored;
	int r;

	r = read_count(block, from, 1, &block->n_flags);
	if (r >= 0)
		r = read_values(block, from, block->n_flags, block->flags);
	for (size_t i = 0; i < block->n_flags && r >= 0; i++)
		r = block_unflags(block->flags[i], &ignored);
	return r < 0 ? r : read_below(block, from, block->n_rows, block->n_flags, to);
}

static uint64_t unzigzag(uint64_t value)
{
	return value >> 1 ^ -(value & 1);
}

/* Times are relative to the last row with the same key, a CPU or thread. @keys: below n_keys. */
static int add_up(const uint64_t *keys, uint64_t n_keys, size_t n, uint64_t first, uint64_t step, uint64_t *times)
{
	CLEANUP(freep) uint64_t *last = malloc(n_keys * sizeof *last);

	if (!last)
		return -ENOMEM;
	for (size_t i = 0; i < n_keys; i++)
		last[i] = first;
	for (size_t i = 0; i < n; i++) {
		times[i] = last[keys[i]] + step + unzigzag(times[i]);
		last[keys[i]] = times[i];
	}
	return 0;
}

static void add_up_rows(size_t n, uint64_t first, uint64_t step, uint64_t *times)
{
	for (size_t i = 0; i < n; i++) {
		times[i] = first + step + unzigzag(times[i]);
		first = times[i];
	}
}

/* Reject times beyond the range of SQL's numbers. */
static int check_times(const struct block *block, uint64_t *times)
{
	int r;

	if (block->counts_ns)
		return check_below(times, block->n_rows, INT64_MAX);
	r = check_below(times, block->n_rows, time_ticks(TIMES_MAX_NS) + 1);
	for (size_t i = 0; i < block->n_rows && r >= 0; i++)
		times[i] = ticks_time(times[i]);
	return r;
}

static int load_times(struct block *block, struct cursor *from, uint64_t *to)
{
	uint64_t first = cursor_leb128(from), base = cursor_leb128(from), step = unzigzag(cursor_leb128(from));
	int r;

	if (from->failed || base >= BASE_N)
		return -EBADMSG;
	r = block_load(block, base == BASE_CPU      ? BLOCK_HAS(BLOCK_CPU)
			      : base == BASE_THREAD ? BLOCK_HAS(BLOCK_THREAD)
						    : 0);
	if (r >= 0 && base == BASE_CPU)
		r = check_below(block->values[BLOCK_CPU], block->n_rows, BLOCK_MAX_CPUS);
	if (r >= 0)
		r = read_values(block, from, block->n_rows, to);
	if (r < 0)
		return r;
	if (base == BASE_ROW)
		add_up_rows(block->n_rows, first, step, to);
	else if (base == BASE_CPU)
		r = add_up(block->values[BLOCK_CPU], BLOCK_MAX_CPUS, block->n_rows, first, step, to);
	else
		r = add_up(block->values[BLOCK_THREAD], block->n_threads, block->n_rows, first, step, to);
	return r < 0 ? r : check_times(block, to);
}

static int (*const load_column[BLOCK_N_COLUMNS])(struct block *block, struct cursor *from, uint64_t *to) = {
	[BLOCK_TIME] = load_times,     [BLOCK_THREAD] = load_threads, [BLOCK_CPU] = load_cpus,
	[BLOCK_WEIGHT] = load_weights, [BLOCK_STACK] = load_stacks,   [BLOCK_FLAGS] = load_flags,
};

static int load_one(struct block *block, enum block_column column)
{
	struct cursor from = { block->parts[column].at, block->parts[column].at + block->parts[column].n_bytes };
	int r = load_column[column](block, &from, block->values[column]);

	if (r < 0)
		return r;
	if (cursor_left(&from) > 0)
		return -EBADMSG;
	block->loaded |= BLOCK_HAS(column);
	return 0;
}

int block_load(struct block *block, unsigned columns)
{
	int r = 0;

	for (unsigned i = 0; i < BLOCK_N_COLUMNS && r >= 0; i++)
		if (BLOCK_HAS(i) & columns & ~block->loaded)
			r = load_one(block, (enum block_column)i);
	return r;
}

/* ---- Opening ---- */

static uint64_t **array_of(struct block *block, size_t i)
{
	uint64_t **const more[] = { &block->pids, &block->tids, &block->stacks, &block->flags };

	return i < BLOCK_N_COLUMNS ? &block->values[i] : more[i - BLOCK_N_COLUMNS];
}

enum { N_ARRAYS = BLOCK_N_COLUMNS + 4 };

static int make_room(struct block *block, size_t n_rows)
{
	if (block->room >= n_rows)
		return 0;
	block->room = 0;
	for (size_t i = 0; i < N_ARRAYS; i++) {
		free(*array_of(block, i));
		*array_of(block, i) = malloc(n_rows * sizeof(uint64_t));
	}
	for (size_t i = 0; i < N_ARRAYS; i++)
		if (!*array_of(block, i))
			return -ENOMEM;
	block->room = n_rows;
	return 0;
}

/* Leave space for a plane after the bytes. */
static int keep_bytes(struct block *block, const void *bytes, size_t n_bytes)
{
	size_t room = n_bytes + BLOCK_MAX_ROWS;

	if (!block->zstd)
		block->zstd = ZSTD_createDCtx();
	if (block->bytes_room < room) {
		free(block->bytes);
		block->bytes_room = 0;
		block->bytes = malloc(2 * room);
		if (block->bytes)
			block->bytes_room = 2 * room;
	}
	if (!block->zstd || !block->bytes)
		return -ENOMEM;
	memcpy(block->bytes, bytes, n_bytes);
	block->n_bytes = n_bytes;
	return 0;
}

static int find_parts(struct block *block, struct cursor *from, size_t *ret_rows)
{
	uint64_t n_rows = cursor_leb128(from), lengths[BLOCK_N_COLUMNS];

	for (size_t i = 0; i < BLOCK_N_COLUMNS; i++)
		lengths[i] = cursor_leb128(from);
	if (from->failed || n_rows == 0 || n_rows > BLOCK_MAX_ROWS)
		return -EBADMSG;
	for (size_t i = 0; i < BLOCK_N_COLUMNS; i++) {
		if (lengths[i] > cursor_left(from))
			return -EBADMSG;
		block->parts[i].at = from->at;
		block->parts[i].n_bytes = lengths[i];
		from->at += lengths[i];
	}
	if (cursor_left(from) > 0)
		return -EBADMSG;
	*ret_rows = n_rows;
	return 0;
}

int block_open(struct block *block, const void *bytes, size_t n_bytes)
{
	size_t n_rows = 0;
	struct cursor from;
	uint64_t version, crc;
	int r;

	block->n_rows = 0;
	block->loaded = 0;
	if (n_bytes == 0 || n_bytes > BLOCK_MAX_BYTES)
		return -EBADMSG;
	r = keep_bytes(block, bytes, n_bytes);
	if (r < 0)
		return r;
	from = (struct cursor){ block->bytes, block->bytes + n_bytes };
	version = cursor_fixed(&from, 1);
	crc = cursor_fixed(&from, CRC_BYTES);
	if (!from.failed && version > BLOCK_VERSION)
		return -EPROTONOSUPPORT;
	if (from.failed || version < BLOCK_OLDEST || crc != crc32(0, from.at, (uInt)cursor_left(&from)))
		return -EBADMSG;
	r = find_parts(block, &from, &n_rows);
	if (r >= 0)
		r = make_room(block, n_rows);
	if (r >= 0)
		block->n_rows = n_rows;
	block->counts_ns = version == 1;
	return r;
}

void block_row(const struct block *block, size_t i, struct sample_row *ret)
{
	size_t thread = block->values[BLOCK_THREAD][i];

	*ret = (struct sample_row){
		.time_ns = block->values[BLOCK_TIME][i],
		.pid = (pid_t)block->pids[thread],
		.tid = (pid_t)block->tids[thread],
		.cpu = (unsigned)block->values[BLOCK_CPU][i],
		.weight = block->values[BLOCK_WEIGHT][i],
		.stack = (int64_t)block->stacks[block->values[BLOCK_STACK][i]],
	};
	/* The flags were checked at loading. */
	block_unflags(block->flags[block->values[BLOCK_FLAGS][i]], ret);
}

void block_done(struct block *block)
{
	for (size_t i = 0; i < N_ARRAYS; i++)
		free(*array_of(block, i));
	free(block->bytes);
	if (block->zstd)
		ZSTD_freeDCtx(block->zstd);
	*block = (struct block){ 0 };
}
