/* SPDX-License-Identifier: MIT */
/* cache_entry.c - see cache_entry.h.
 *
 * The head, then each existing part, aligned. A checksum over the whole file detects one that a crash has left
 * incomplete, since writing does not wait for the disk. Against crafted files bounds protect, not the checksum.
 *
 * Invariants: parts lie inside the file, contain whole elements, and strings end in it. The user of an element checks
 * its contents.
 */
#include "symbolize/cache_entry.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"

static const char magic[8] = "prbNames";
enum {
	VERSION = 3, /* increment it if the structs change, or functions get other names */
	LANES = 4,
	STEP = LANES * sizeof(uint64_t)
};

struct head {
	char magic[8];
	uint32_t version, flags;
	uint64_t n_bytes, checksum; /* size of the file, and checksum over it with 0 in this field */
	struct cache_key key;
	struct {
		uint64_t offset, n_bytes; /* offset 0: missing */
	} parts[CACHE_N_PARTS];
	uint8_t unused[24];
};

_Static_assert(sizeof(struct head) % STEP == 0 && sizeof(struct head) <= CACHE_HEAD_BYTES,
	       "whole steps, and room for it");
_Static_assert(offsetof(struct head, checksum) == CACHE_CHECKSUM_AT && offsetof(struct head, key) == CACHE_KEY_AT,
	       "as told");
_Static_assert(sizeof(struct cache_symbol) == 40 && sizeof(struct cache_method) == 24 &&
		       sizeof(struct cache_range) == 24,
	       "no padding, which would not be set");

static const size_t element_bytes[CACHE_N_PARTS] = {
	[CACHE_SYMBOLS] = sizeof(struct cache_symbol),
	[CACHE_METHODS] = sizeof(struct cache_method),
	[CACHE_INTERNAL] = sizeof(uint64_t),
	[CACHE_UNITS] = sizeof(uint64_t),
	[CACHE_RANGES] = sizeof(struct cache_range),
	[CACHE_STRINGS] = 1,
	[CACHE_IMAGE] = 1,
};

static const uint8_t zeros[CACHE_IMAGE_ALIGNMENT]; /* padding; no part points here */

/* ---- Checksum ---- */

struct sum {
	uint64_t lanes[LANES];
};

static inline void sum_step(struct sum *sum, const uint8_t *bytes)
{
	uint64_t words[LANES];

	memcpy(words, bytes, sizeof words);
	for (int i = 0; i < LANES; i++)
		sum->lanes[i] = ((sum->lanes[i] ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15)) ^ (sum->lanes[i] >> 32);
}

/*
 * Four independent words at a time: about 10 bytes per nanosecond. An incomplete step is padded with zeros, like a part
 * in the file.
 */
static void sum_add(struct sum *sum, const void *bytes, size_t n)
{
	const uint8_t *at = bytes, *end = at + n / STEP * STEP;
	uint8_t last[STEP] = { 0 };
	struct sum now = *sum;

	for (; at < end; at += STEP)
		sum_step(&now, at);
	if (n % STEP > 0) {
		memcpy(last, at, n % STEP);
		sum_step(&now, last);
	}
	*sum = now;
}

static uint64_t sum_end(const struct sum *sum)
{
	uint64_t result = 0;

	for (int i = 0; i < LANES; i++)
		result = mix64(result ^ sum->lanes[i]);
	return result;
}

uint64_t cache_checksum(const void *bytes, size_t n)
{
	struct sum sum = { 0 };
	uint8_t first[STEP];

	memcpy(first, bytes, sizeof first);
	memset(first + CACHE_CHECKSUM_AT, 0, sizeof(uint64_t));
	sum_step(&sum, first);
	sum_add(&sum, (const uint8_t *)bytes + sizeof first, n - sizeof first);
	return sum_end(&sum);
}

/* ---- Read ---- */

static bool is_sound_part(const struct head *head, enum cache_part part, size_t n_file)
{
	uint64_t offset = head->parts[part].offset, n = head->parts[part].n_bytes;
	size_t alignment = part == CACHE_IMAGE ? CACHE_IMAGE_ALIGNMENT : STEP;

	if (offset == 0)
		return n == 0;
	return offset >= sizeof *head && offset % alignment == 0 && offset <= n_file && n <= n_file - offset &&
	       n % element_bytes[part] == 0;
}

static bool are_strings(const struct cache_bytes *strings)
{
	const char *bytes = strings->bytes;

	return !bytes || (strings->n > 0 && bytes[0] == '\0' && bytes[strings->n - 1] == '\0');
}

int cache_entry_read(const void *bytes, size_t n, const struct cache_key *key, struct cache_entry *ret)
{
	struct cache_entry entry = { 0 };
	struct head head;

	if (n < sizeof head || n > CACHE_MAX_ENTRY)
		return -EBADMSG;
	memcpy(&head, bytes, sizeof head);
	if (memcmp(head.magic, magic, sizeof magic) != 0 || head.n_bytes != n)
		return -EBADMSG;
	if (head.version != VERSION || memcmp(&head.key, key, sizeof *key) != 0)
		return -ESTALE;
	if (cache_checksum(bytes, n) != head.checksum)
		return -EBADMSG;
	for (enum cache_part part = 0; part < CACHE_N_PARTS; part++) {
		if (!is_sound_part(&head, part, n))
			return -EBADMSG;
		if (head.parts[part].offset != 0)
			entry.parts[part] = (struct cache_bytes){ (const uint8_t *)bytes + head.parts[part].offset,
								  head.parts[part].n_bytes };
	}
	if (!are_strings(&entry.parts[CACHE_STRINGS]))
		return -EBADMSG;
	entry.flags = head.flags;
	*ret = entry;
	return 0;
}

/* ---- Write ---- */

static void put(struct cache_pieces *to, const void *bytes, size_t n)
{
	if (n > 0)
		to->pieces[to->n++] = (struct iovec){ (void *)bytes, n };
	to->n_bytes += n;
}

/*
 * A piece that ends inside a step is followed by zeros. They are part of its last step, so only count further whole
 * steps of zeros.
 */
static uint64_t checksum_of(const struct cache_pieces *pieces)
{
	struct sum sum = { 0 };

	for (int i = 0; i < pieces->n; i++) {
		const struct iovec *piece = &pieces->pieces[i];

		sum_add(&sum, piece->iov_base,
			piece->iov_base == zeros ? piece->iov_len / STEP * STEP : piece->iov_len);
	}
	return sum_end(&sum);
}

int cache_entry_write(const struct cache_entry *entry, const struct cache_key *key, struct cache_pieces *to)
{
	struct head head = { .version = VERSION, .flags = entry->flags, .key = *key };

	memcpy(head.magic, magic, sizeof magic);
	*to = (struct cache_pieces){ .n = 0 };
	put(to, to->head, sizeof head);
	for (enum cache_part part = 0; part < CACHE_N_PARTS; part++) {
		const struct cache_bytes *bytes = &entry->parts[part];

		if (!bytes->bytes)
			continue;
		put(to, zeros, -to->n_bytes % (part == CACHE_IMAGE ? CACHE_IMAGE_ALIGNMENT : STEP));
		if (bytes->n > CACHE_MAX_ENTRY - MIN(to->n_bytes, (size_t)CACHE_MAX_ENTRY))
			return -E2BIG;
		head.parts[part].offset = to->n_bytes;
		head.parts[part].n_bytes = bytes->n;
		put(to, bytes->bytes, bytes->n);
	}
	head.n_bytes = to->n_bytes;
	memcpy(to->head, &head, sizeof head);
	head.checksum = checksum_of(to);
	memcpy(to->head, &head, sizeof head);
	return 0;
}

/* ---- Keys ---- */

void cache_file_of(const struct stat *st, struct cache_file *ret)
{
	*ret = (struct cache_file){
		.device = st->st_dev,
		.inode = st->st_ino,
		.n_bytes = (uint64_t)st->st_size,
		.modified_s = st->st_mtim.tv_sec,
		.modified_ns = st->st_mtim.tv_nsec,
		.changed_s = st->st_ctim.tv_sec,
		.changed_ns = st->st_ctim.tv_nsec,
	};
}

void cache_key_name(const struct cache_key *key, char to[CACHE_NAME_BYTES])
{
	struct build_id id = { .n_bytes = key->n_id };

	memcpy(id.bytes, key->id, sizeof id.bytes);
	build_id_format(&id, to);
	snprintf(to + 2 * key->n_id, 18, "-%016llx",
		 (unsigned long long)mix64(hash_bytes(HASH_START, key, sizeof *key)));
}
