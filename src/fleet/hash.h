/* SPDX-License-Identifier: MIT */
/* hash.h - SHA-256 in one call, by libmd, for ids made of contents. Private. Source: FIPS 180-4; sha2(3bsd). */
#ifndef PROBING_FLEET_HASH_H
#define PROBING_FLEET_HASH_H

#include <sha2.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The first half of a hash: an id that no two contents share. */
struct fleet_hash {
	uint8_t bytes[16];
};

static inline void sha256(const void *bytes, size_t n_bytes, uint8_t ret[SHA256_DIGEST_LENGTH])
{
	SHA2_CTX context;

	SHA256Init(&context);
	SHA256Update(&context, bytes, n_bytes);
	SHA256Final(ret, &context);
}

static inline struct fleet_hash fleet_hash(const void *bytes, size_t n_bytes)
{
	struct fleet_hash hash;
	uint8_t all[SHA256_DIGEST_LENGTH];

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
