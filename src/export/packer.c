/* SPDX-License-Identifier: MIT */
/* packer.c - see packer.h. */
#include "src/export/packer.h"

#include <stdlib.h>

#include "base/util.h"

enum { MAX_VARINT_BYTES = 10, LENGTH_DELIMITED = 2 };

int packer_pack(struct packer *packer, const ProtobufCMessage *message)
{
	size_t n = protobuf_c_message_get_packed_size(message);
	int r;

	r = grow(&packer->bytes, n, &packer->allocated, 1);
	if (r < 0)
		return r;
	packer->n = protobuf_c_message_pack(message, packer->bytes);
	return 0;
}

void packer_done(struct packer *packer)
{
	free(packer->bytes);
	*packer = (struct packer){ 0 };
}

/* Base 128, low digits first. @to: MAX_VARINT_BYTES. Returns how many. */
static size_t encode_varint(uint64_t value, uint8_t *to)
{
	size_t n = 0;

	for (; value >= 0x80; value >>= 7)
		to[n++] = (uint8_t)(value | 0x80);
	to[n++] = (uint8_t)value;
	return n;
}

static size_t encode_head(unsigned field, uint64_t n_bytes, uint8_t *to)
{
	size_t n = encode_varint((uint64_t)field << 3 | LENGTH_DELIMITED, to);

	return n + encode_varint(n_bytes, to + n);
}

void packer_put_head(FILE *out, unsigned field, uint64_t n_bytes)
{
	uint8_t head[2 * MAX_VARINT_BYTES];

	fwrite(head, 1, encode_head(field, n_bytes, head), out);
}

uint64_t packer_field_bytes(unsigned field, uint64_t n_bytes)
{
	uint8_t head[2 * MAX_VARINT_BYTES];

	return encode_head(field, n_bytes, head) + n_bytes;
}
