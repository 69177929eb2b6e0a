/* SPDX-License-Identifier: MIT */
/* log_check.c - see vfs.h. */
#include "src/store/vfs.h"

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"

#define MAGIC UINT32_C(0x377f0682) /* the lowest bit: checksums of big-endian words */

enum { HEADER_BYTES = 32, FRAME_BYTES = 24, MIN_PAGE = 512, MAX_PAGE = 65536 };

struct checksum {
	bool is_big_endian;
	uint32_t sums[2];
};

static uint32_t big_endian_at(const uint8_t *bytes)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof value);
	return be32toh(value);
}

/* @n: a multiple of 8. */
static void add(struct checksum *checksum, const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i += 8) {
		uint32_t words[2];

		memcpy(words, bytes + i, sizeof words);
		for (unsigned j = 0; j < 2; j++)
			checksum->sums[j] += (checksum->is_big_endian ? be32toh(words[j]) : le32toh(words[j])) +
					     checksum->sums[1 - j];
	}
}

static bool is_sum(const struct checksum *checksum, const uint8_t *stored)
{
	return big_endian_at(stored) == checksum->sums[0] && big_endian_at(stored + 4) == checksum->sums[1];
}

/* 1: all bytes; 0: the file is shorter. */
static int read_whole(int fd, uint8_t *to, size_t n, int64_t offset)
{
	size_t n_read;
	int r = pread_all(fd, to, n, (uint64_t)offset, &n_read);

	return r < 0 ? r : n_read == n;
}

int log_has_transaction(int fd)
{
	uint8_t header[HEADER_BYTES], frame[FRAME_BYTES + MAX_PAGE];
	struct checksum checksum = { 0 };
	uint32_t n_page;
	int64_t offset = HEADER_BYTES;
	int r;

	r = read_whole(fd, header, sizeof header, 0);
	if (r <= 0)
		return r;
	n_page = big_endian_at(header + 8);
	checksum.is_big_endian = big_endian_at(header) & 1;
	add(&checksum, header, 24);
	if ((big_endian_at(header) & ~1u) != MAGIC || n_page < MIN_PAGE || n_page > MAX_PAGE ||
	    (n_page & (n_page - 1)) != 0 || !is_sum(&checksum, header + 24))
		return 0;
	for (;; offset += FRAME_BYTES + n_page) {
		r = read_whole(fd, frame, FRAME_BYTES + n_page, offset);
		if (r <= 0)
			return r;
		add(&checksum, frame, 8);
		add(&checksum, frame + FRAME_BYTES, n_page);
		if (big_endian_at(frame) == 0 || memcmp(frame + 8, header + 16, 8) != 0 ||
		    !is_sum(&checksum, frame + 16))
			return 0;
		if (big_endian_at(frame + 4) != 0) /* the database's pages after the transaction */
			return 1;
	}
}
