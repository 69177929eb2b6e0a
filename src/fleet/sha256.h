/* SPDX-License-Identifier: MIT */
/* sha256.h - SHA-256 in one call, for ids made of contents. Private. Source: FIPS 180-4. */
#ifndef PROBING_FLEET_SHA256_H
#define PROBING_FLEET_SHA256_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The first half of a hash: an id that no two contents share. */
struct fleet_hash {
	uint8_t bytes[16];
};

void sha256(const void *bytes, size_t n_bytes, uint8_t ret[32]);

static inline struct fleet_hash fleet_hash(const void *bytes, size_t n_bytes)
{
	struct fleet_hash hash;
	uint8_t all[32];

	sha256(bytes, n_bytes, all);
	memcpy(hash.bytes, all, sizeof hash.bytes);
	return hash;
}

/* What samples hold: its first 8 bytes as a little-endian number, never 0. */
static inline uint64_t fleet_id(const struct fleet_hash *hash)
{
	uint64_t id = 0;

	for (unsigned i = 0; i < 8; i++)
		id |= (uint64_t)hash->bytes[i] << (8 * i);
	return id ? id : 1;
}

#endif
