/* SPDX-License-Identifier: MIT */
/* packer.h - Protocol Buffers messages as bytes, for formats whose message is larger than one wants in memory.
 *
 * A message is the sum of its pieces: fields may be written in any order, one at a time, and a repeated one continues
 * (Protocol Buffers, Encoding, "Last One Wins"). So each entry is packed and written separately.
 */
#ifndef PROBING_EXPORT_PACKER_H
#define PROBING_EXPORT_PACKER_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <protobuf-c/protobuf-c.h>

/* Zeroed: empty. The last packed message. */
struct packer {
	uint8_t *bytes;
	size_t n, allocated;
};

/* packer_pack - a message's bytes; borrowed until the next call. -ENOMEM. */
int packer_pack(struct packer *packer, const ProtobufCMessage *message);
void packer_done(struct packer *packer);

/* packer_put_head - tag and length of a field whose n_bytes follow. Errors of writing stay in out. */
void packer_put_head(FILE *out, unsigned field, uint64_t n_bytes);
/* packer_field_bytes - the bytes of a field with n_bytes, with its tag and length. */
uint64_t packer_field_bytes(unsigned field, uint64_t n_bytes);

#endif
