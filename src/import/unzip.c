/* SPDX-License-Identifier: MIT */
/* unzip.c - see unzip.h. */
#include "src/import/unzip.h"

#include <errno.h>
#include <zlib.h>

#include "base/util.h"

enum { FIRST_BYTES = 1 << 16, GZIP_WINDOW = 15 + 16 };

static int inflate_all(z_stream *stream, size_t most, uint8_t **to, size_t *n)
{
	size_t room = 0;
	int code = Z_OK;

	while (code == Z_OK) {
		if (*n == room) {
			size_t wanted = MIN(room > 0 ? 2 * room : FIRST_BYTES, most + 1); /* + 1 shows excess */
			uint8_t *more = *n > most ? NULL : realloc(*to, wanted);

			if (!more)
				return *n > most ? -E2BIG : -ENOMEM;
			*to = more;
			room = wanted;
		}
		stream->next_out = *to + *n;
		stream->avail_out = (unsigned)MIN(room - *n, (size_t)1 << 30);
		code = inflate(stream, Z_NO_FLUSH);
		*n = (size_t)(stream->next_out - *to);
		if (*n > most)
			return -E2BIG;
	}
	return code == Z_STREAM_END ? 0 : code == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
}

int unzip(const uint8_t *bytes, size_t n_bytes, size_t most, uint8_t **ret, size_t *ret_bytes)
{
	z_stream stream = { .next_in = (uint8_t *)bytes, .avail_in = (unsigned)n_bytes };
	uint8_t *to = NULL;
	size_t n = 0;
	int r;

	if (n_bytes > UINT32_MAX)
		return -E2BIG;
	if (inflateInit2(&stream, GZIP_WINDOW) != Z_OK)
		return -ENOMEM;
	r = inflate_all(&stream, most, &to, &n);
	inflateEnd(&stream);
	if (r < 0) {
		free(to);
		return r;
	}
	*ret = to;
	*ret_bytes = n;
	return 0;
}

int unzip_head(const uint8_t *bytes, size_t n_bytes, size_t most, uint8_t **ret, size_t *ret_bytes)
{
	z_stream stream = { .next_in = (uint8_t *)bytes, .avail_in = (unsigned)MIN(n_bytes, (size_t)UINT32_MAX) };
	uint8_t *to = malloc(most);

	if (!to)
		return -ENOMEM;
	if (inflateInit2(&stream, GZIP_WINDOW) != Z_OK) {
		free(to);
		return -ENOMEM;
	}
	stream.next_out = to;
	stream.avail_out = (unsigned)most;
	inflate(&stream, Z_SYNC_FLUSH); /* an error shows when all is unpacked */
	*ret = to;
	*ret_bytes = (size_t)(stream.next_out - to);
	inflateEnd(&stream);
	return 0;
}

int unzip_input(const struct import_input *input, struct sink *sink, uint8_t **owned, struct piece *ret)
{
	size_t most = unzip_most(input->n_bytes);
	int r;

	*owned = NULL;
	*ret = (struct piece){ (const char *)input->bytes, input->n_bytes };
	if (!is_gzip(input->bytes, input->n_bytes))
		return 0;
	r = unzip(input->bytes, input->n_bytes, most, owned, &ret->n);
	ret->at = (const char *)*owned;
	if (r == -E2BIG)
		return sink_explain(sink, -EBADMSG,
				    "its %zu KiB expand to more than %zu MiB; if you trust it, expand it with gunzip "
				    "and import the result",
				    input->n_bytes >> 10, most >> 20);
	return r >= 0 || r == -ENOMEM ? r : sink_explain(sink, -EBADMSG, "it cannot be decompressed");
}
