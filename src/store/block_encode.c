/* SPDX-License-Identifier: MIT */
/*
 * block_encode.c - samples into compressed columns; block.h has the format.
 *
 * Each column is first converted to small or repeated numbers, then split into planes of bytes, because the high bytes
 * of adjacent rows agree and the low ones do not, and each plane is compressed by Zstandard separately.
 * If there are several encodings (the base of a time; stacks with or without a dictionary), a cheap estimate
 * chooses the smaller one.
 *
 * A block causes no allocation once the encoder has seen one of that size.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/util.h"
#include "src/store/block.h"
#include "src/store/bytes.h"
#include "src/store/times.h"

enum {
	ZSTD_LEVEL = 3,
	HASH_BITS = 14, /* hash table for up to BLOCK_ROWS keys */
	ASKED_STEPS = 509,
	CRC_AT = 1,
	BODY_AT = 5,
};
_Static_assert(1 << HASH_BITS >= 2 * BLOCK_ROWS, "a free slot is always found");

struct slot {
	uint64_t high, low;
	uint32_t index_1; /* index plus 1; 0: free */
};

struct block_encoder {
	ZSTD_CCtx *zstd;
	struct bytes out, columns[BLOCK_N_COLUMNS];
	uint8_t plane[BLOCK_ROWS], packed[BLOCK_ROWS];
	uint64_t values[BLOCK_ROWS], other[BLOCK_ROWS], keys[BLOCK_ROWS], bases[BLOCK_ROWS];
	uint64_t dictionary[BLOCK_ROWS], dictionary_low[BLOCK_ROWS];
	size_t n_dictionary;
	uint64_t times[BLOCK_ROWS]; /* of the rows, in ticks */
	uint64_t last[BLOCK_ROWS];  /* by key: time of the last row */
	struct slot slots[1 << HASH_BITS];
	size_t n_slots; /* slots in use: power of two */
};

int block_encoder_new(struct block_encoder **ret)
{
	struct block_encoder *encoder = calloc(1, sizeof *encoder);

	if (!encoder)
		return -ENOMEM;
	encoder->zstd = ZSTD_createCCtx();
	if (!encoder->zstd) {
		free(encoder);
		return -ENOMEM;
	}
	*ret = encoder;
	return 0;
}

void block_encoder_free(struct block_encoder *encoder)
{
	if (!encoder)
		return;
	for (size_t i = 0; i < BLOCK_N_COLUMNS; i++)
		free(encoder->columns[i].at);
	free(encoder->out.at);
	ZSTD_freeCCtx(encoder->zstd);
	free(encoder);
}

/* ---- Planes ---- */

static bool is_constant(const uint8_t *plane, size_t n)
{
	return memcmp(plane, plane + 1, n - 1) == 0;
}

static int put_plane(struct block_encoder *encoder, const uint8_t *plane, size_t n, struct bytes *to)
{
	size_t packed;
	int r;

	if (is_constant(plane, n)) {
		r = put_byte(to, 0);
		return r < 0 ? r : put_byte(to, plane[0]);
	}
	/* On error the data did not shrink. */
	packed = ZSTD_compressCCtx(encoder->zstd, encoder->packed, n, plane, n, ZSTD_LEVEL);
	if (ZSTD_isError(packed) || packed + 2 >= n) {
		r = put_byte(to, 1);
		return r < 0 ? r : put_bytes(to, plane, n);
	}
	r = put_byte(to, 2);
	if (r >= 0)
		r = put_number(to, packed);
	return r < 0 ? r : put_bytes(to, encoder->packed, packed);
}

/* @n: at least 1. */
static int put_values(struct block_encoder *encoder, const uint64_t *values, size_t n, struct bytes *to)
{
	uint64_t all = 0;
	unsigned n_planes = 0;
	int r;

	for (size_t i = 0; i < n; i++)
		all |= values[i];
	for (; all != 0; all >>= 8)
		n_planes++;
	r = put_byte(to, (uint8_t)n_planes);
	for (unsigned p = 0; p < n_planes && r >= 0; p++) {
		for (size_t i = 0; i < n; i++)
			encoder->plane[i] = (uint8_t)(values[i] >> 8 * p);
		r = put_plane(encoder, encoder->plane, n, to);
	}
	return r;
}

/* ---- Dictionaries ---- */

/* @n: maximum number of keys. Sized so that a small block is cheap. */
static void forget_keys(struct block_encoder *encoder, size_t n)
{
	encoder->n_slots = 64;
	while (encoder->n_slots < 2 * n)
		encoder->n_slots *= 2;
	memset(encoder->slots, 0, encoder->n_slots * sizeof *encoder->slots);
	encoder->n_dictionary = 0;
}

/* Index of a key; keys are numbered in the order of their first rows. */
static uint32_t index_of(struct block_encoder *encoder, uint64_t high, uint64_t low)
{
	size_t mask = encoder->n_slots - 1;
	size_t at = mix64(high * 31 + low) & mask;

	for (; encoder->slots[at].index_1 != 0; at = (at + 1) & mask)
		if (encoder->slots[at].high == high && encoder->slots[at].low == low)
			return encoder->slots[at].index_1 - 1;
	encoder->slots[at] = (struct slot){ high, low, (uint32_t)encoder->n_dictionary + 1 };
	encoder->dictionary[encoder->n_dictionary] = high;
	encoder->dictionary_low[encoder->n_dictionary] = low;
	return (uint32_t)encoder->n_dictionary++;
}

static int encode_threads(struct block_encoder *encoder, const struct sample_row *rows, size_t n)
{
	struct bytes *to = &encoder->columns[BLOCK_THREAD];
	int r;

	forget_keys(encoder, n);
	for (size_t i = 0; i < n; i++)
		encoder->values[i] = index_of(encoder, (uint32_t)rows[i].pid, (uint32_t)rows[i].tid);
	r = put_number(to, encoder->n_dictionary);
	if (r >= 0)
		r = put_values(encoder, encoder->dictionary, encoder->n_dictionary, to);
	if (r >= 0)
		r = put_values(encoder, encoder->dictionary_low, encoder->n_dictionary, to);
	return r < 0 ? r : put_values(encoder, encoder->values, n, to);
}

static int encode_flags(struct block_encoder *encoder, const struct sample_row *rows, size_t n)
{
	struct bytes *to = &encoder->columns[BLOCK_FLAGS];
	unsigned flags = 0;
	int r = 0;

	forget_keys(encoder, n);
	for (size_t i = 0; i < n && r >= 0; i++) {
		r = block_flags(&rows[i], &flags);
		encoder->values[i] = index_of(encoder, flags, 0);
	}
	if (r >= 0)
		r = put_number(to, encoder->n_dictionary);
	if (r >= 0)
		r = put_values(encoder, encoder->dictionary, encoder->n_dictionary, to);
	return r < 0 ? r : put_values(encoder, encoder->values, n, to);
}

static int compare_numbers(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

/* Write indices into sorted ids: stacks that were created together then have similar bytes. */
static int encode_stack_indices(struct block_encoder *encoder, size_t n, struct bytes *to)
{
	size_t n_ids = encoder->n_dictionary;
	uint64_t *sorted = encoder->dictionary_low;
	int r;

	memcpy(sorted, encoder->dictionary, n_ids * sizeof *sorted);
	qsort(sorted, n_ids, sizeof *sorted, compare_numbers);
	for (size_t i = 0; i < n_ids; i++) {
		uint64_t *place = bsearch(&encoder->dictionary[i], sorted, n_ids, sizeof *sorted, compare_numbers);

		encoder->other[i] = (uint64_t)(place - sorted);
	}
	for (size_t i = 0; i < n; i++)
		encoder->values[i] = encoder->other[encoder->values[i]];
	for (size_t i = 0; i < n_ids; i++)
		encoder->keys[i] = sorted[i] - (i > 0 ? sorted[i - 1] : 0);
	r = put_number(to, n_ids);
	if (r >= 0)
		r = put_values(encoder, encoder->keys, n_ids, to);
	return r < 0 ? r : put_values(encoder, encoder->values, n, to);
}

/* Encode with and without a dictionary; the shorter one wins. */
static int encode_stacks(struct block_encoder *encoder, const struct sample_row *rows, size_t n)
{
	struct bytes *to = &encoder->columns[BLOCK_STACK];
	size_t with;
	int r;

	forget_keys(encoder, n);
	for (size_t i = 0; i < n; i++)
		encoder->values[i] = index_of(encoder, (uint64_t)rows[i].stack, 0);
	r = encode_stack_indices(encoder, n, to);
	if (r < 0 || encoder->n_dictionary < n / 8)
		return r;
	with = to->n;
	for (size_t i = 0; i < n; i++)
		encoder->values[i] = (uint64_t)rows[i].stack;
	r = put_number(to, 0);
	if (r >= 0)
		r = put_values(encoder, encoder->values, n, to);
	if (r < 0)
		return r;
	if (to->n - with < with) {
		memmove(to->at, to->at + with, to->n - with);
		to->n -= with;
	} else {
		to->n = with;
	}
	return 0;
}

/* ---- Times and weights ---- */

static uint64_t zigzag(uint64_t difference)
{
	return difference << 1 ^ (uint64_t)((int64_t)difference >> 63);
}

/* encoder->bases: the time to which each row's time is relative. */
static void find_bases(struct block_encoder *encoder, const struct sample_row *rows, size_t n, enum time_base base)
{
	forget_keys(encoder, n);
	for (size_t i = 0; i < n; i++) {
		size_t known = encoder->n_dictionary;
		uint32_t key = base == BASE_ROW   ? index_of(encoder, 0, 0)
			       : base == BASE_CPU ? index_of(encoder, rows[i].cpu, 0)
						  : index_of(encoder, (uint32_t)rows[i].pid, (uint32_t)rows[i].tid);

		encoder->bases[i] = key == known ? encoder->times[0] : encoder->last[key];
		encoder->last[key] = encoder->times[i];
	}
}

/* The median of some steps: subtracting it leaves small numbers. */
static uint64_t usual_step(struct block_encoder *encoder, size_t n)
{
	size_t n_asked = MIN(n, (size_t)ASKED_STEPS);

	for (size_t i = 0; i < n_asked; i++) {
		size_t row = i * n / n_asked;

		encoder->other[i] = encoder->times[row] - encoder->bases[row] + (UINT64_C(1) << 63);
	}
	qsort(encoder->other, n_asked, sizeof *encoder->other, compare_numbers);
	return encoder->other[n_asked / 2] - (UINT64_C(1) << 63);
}

/* Store the remaining differences in encoder->keys; returns the bits they need. */
static uint64_t tell_times(struct block_encoder *encoder, size_t n, uint64_t step)
{
	uint64_t n_bits = 0;

	for (size_t i = 0; i < n; i++) {
		encoder->keys[i] = zigzag(encoder->times[i] - encoder->bases[i] - step);
		n_bits += 64 - (unsigned)__builtin_clzll(encoder->keys[i] | 1);
	}
	return n_bits;
}

static bool are_few_cpus(const struct sample_row *rows, size_t n)
{
	unsigned most = 0;

	for (size_t i = 0; i < n; i++)
		most = MAX(most, rows[i].cpu);
	return most < BLOCK_MAX_CPUS;
}

static int encode_times(struct block_encoder *encoder, const struct sample_row *rows, size_t n)
{
	struct bytes *to = &encoder->columns[BLOCK_TIME];
	uint64_t n_bits, fewest = UINT64_MAX, step = 0, best_step = 0;
	enum time_base best = BASE_ROW;
	int r;

	for (size_t i = 0; i < n; i++)
		encoder->times[i] = time_ticks(rows[i].time_ns);
	for (enum time_base base = BASE_ROW; base < BASE_N; base++) {
		if (base == BASE_CPU && !are_few_cpus(rows, n))
			continue;
		find_bases(encoder, rows, n, base);
		step = usual_step(encoder, n);
		n_bits = tell_times(encoder, n, step);
		if (n_bits >= fewest)
			continue;
		fewest = n_bits;
		best = base;
		best_step = step;
		memcpy(encoder->values, encoder->keys, n * sizeof *encoder->keys);
	}
	r = put_number(to, encoder->times[0]);
	if (r >= 0)
		r = put_number(to, best);
	if (r >= 0)
		r = put_number(to, zigzag(best_step));
	return r < 0 ? r : put_values(encoder, encoder->values, n, to);
}

static int encode_cpus(struct block_encoder *encoder, const struct sample_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		encoder->values[i] = rows[i].cpu;
	return put_values(encoder, encoder->values, n, &encoder->columns[BLOCK_CPU]);
}

static int encode_weights(struct block_encoder *encoder, const struct sample_row *rows, size_t n)
{
	uint64_t least = UINT64_MAX;
	int r;

	for (size_t i = 0; i < n; i++)
		least = MIN(least, rows[i].weight);
	for (size_t i = 0; i < n; i++)
		encoder->values[i] = rows[i].weight - least;
	r = put_number(&encoder->columns[BLOCK_WEIGHT], least);
	return r < 0 ? r : put_values(encoder, encoder->values, n, &encoder->columns[BLOCK_WEIGHT]);
}

/* ---- Blocks ---- */

static int (*const encode_column[BLOCK_N_COLUMNS])(struct block_encoder *encoder, const struct sample_row *rows,
						   size_t n) = {
	[BLOCK_TIME] = encode_times,     [BLOCK_THREAD] = encode_threads, [BLOCK_CPU] = encode_cpus,
	[BLOCK_WEIGHT] = encode_weights, [BLOCK_STACK] = encode_stacks,   [BLOCK_FLAGS] = encode_flags,
};

static int join(struct block_encoder *encoder, size_t n)
{
	static const uint8_t head[BODY_AT] = { BLOCK_VERSION };
	struct bytes *out = &encoder->out;
	uint32_t crc;
	int r;

	out->n = 0;
	r = put_bytes(out, head, sizeof head);
	if (r >= 0)
		r = put_number(out, n);
	for (size_t i = 0; i < BLOCK_N_COLUMNS && r >= 0; i++)
		r = put_number(out, encoder->columns[i].n);
	for (size_t i = 0; i < BLOCK_N_COLUMNS && r >= 0; i++)
		r = put_bytes(out, encoder->columns[i].at, encoder->columns[i].n);
	if (r < 0)
		return r;
	crc = (uint32_t)crc32(0, out->at + BODY_AT, (uInt)(out->n - BODY_AT));
	for (unsigned i = 0; i < sizeof crc; i++)
		out->at[CRC_AT + i] = (uint8_t)(crc >> 8 * i);
	return 0;
}

int block_encode(struct block_encoder *encoder, const struct sample_row *rows, size_t n, const uint8_t **ret,
		 size_t *ret_bytes)
{
	int r = 0;

	if (n == 0 || n > BLOCK_ROWS)
		return -EINVAL;
	for (size_t i = 0; i < n && r >= 0; i++)
		r = block_check_row(&rows[i]);
	for (size_t i = 0; i < BLOCK_N_COLUMNS && r >= 0; i++) {
		encoder->columns[i].n = 0;
		r = encode_column[i](encoder, rows, n);
	}
	if (r >= 0)
		r = join(encoder, n);
	if (r < 0)
		return r;
	*ret = encoder->out.at;
	*ret_bytes = encoder->out.n;
	return 0;
}
