/* SPDX-License-Identifier: MIT */
/* packer.c - see packer.h. */
#include "src/export/packer.h"

#include <stdlib.h>

#include "base/util.h"
#include "base/varint.h"

enum { LENGTH_DELIMITED = 2 };

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

static size_t encode_head(unsigned field, uint64_t n_bytes, uint8_t *to)
{
	size_t n = varint_encode((uint64_t)field << 3 | LENGTH_DELIMITED, to);

	return n + varint_encode(n_bytes, to + n);
}

void packer_put_head(FILE *out, unsigned field, uint64_t n_bytes)
{
	uint8_t head[2 * VARINT_MAX_BYTES];

	fwrite(head, 1, encode_head(field, n_bytes, head), out);
}

uint64_t packer_field_bytes(unsigned field, uint64_t n_bytes)
{
	uint8_t head[2 * VARINT_MAX_BYTES];

	return encode_head(field, n_bytes, head) + n_bytes;
}
