/* SPDX-License-Identifier: MIT */
/* kernel_types.c - see kernel_types.h.
 *
 * A type is three words: name, info, and size or another type. Some kinds have more words behind them, a number that the kind and
 * the count in info determine. So types are found by walking over all of them. Names are offsets into the strings, and no
 * string is there twice: comparing a name is comparing its offset.
 *
 * The bytes are the kernel's own. All the same, each index is checked against the end, and nested structures are followed
 * a limited number of times.
 */
#include "src/capture/kernel_types.h"

#include <errno.h>
#include <linux/btf.h>
#include <stdbool.h>
#include <string.h>

#include "base/util.h"

enum {
	TYPE_WORDS = 3,
	MEMBER_WORDS = 3,
	MAX_KIND = 19,   /* BTF_KIND_ENUM64 */
	MAX_NESTED = 64, /* structures and unions without a name that are searched for one member */
};

/* Words behind a type of each kind: always, and for each of its parts. */
static const struct {
	uint8_t fixed, each;
} kinds[MAX_KIND + 1] = {
	[1] = { 1, 0 },  /* integer */
	[3] = { 3, 0 },  /* array */
	[4] = { 0, 3 },  /* structure */
	[5] = { 0, 3 },  /* union */
	[6] = { 0, 2 },  /* enumeration */
	[13] = { 0, 2 }, /* prototype of a function */
	[14] = { 1, 0 }, /* variable */
	[15] = { 0, 3 }, /* section */
	[17] = { 1, 0 }, /* tag of a declaration */
	[19] = { 0, 3 }, /* enumeration of 64 bits */
};

/* Bits that had no meaning up to 6.18, and were 0, belong to both numbers. */
static unsigned kind_of(uint32_t info)
{
	return info >> 24 & 0x7f;
}

static unsigned parts_of(uint32_t info)
{
	return info & 0xffffff;
}

/* Whether a part of the file is inside it, and aligned. */
static bool is_inside(uint64_t offset, uint64_t n_part, uint64_t n_bytes)
{
	return offset % sizeof(uint32_t) == 0 && offset <= n_bytes && n_part <= n_bytes - offset;
}

int kernel_types_parse(const void *bytes, size_t n_bytes, struct kernel_types *ret)
{
	struct btf_header header;
	uint64_t types, strings;

	if (n_bytes < sizeof header)
		return -EBADMSG;
	memcpy(&header, bytes, sizeof header);
	types = (uint64_t)header.hdr_len + header.type_off;
	strings = (uint64_t)header.hdr_len + header.str_off;
	if (header.magic != BTF_MAGIC || !is_inside(types, header.type_len, n_bytes) ||
	    !is_inside(strings, header.str_len, n_bytes) || header.str_len == 0 ||
	    ((const char *)bytes)[strings + header.str_len - 1] != '\0')
		return -EBADMSG;
	*ret = (struct kernel_types){
		.words = (const uint32_t *)((const char *)bytes + types),
		.n_words = header.type_len / sizeof(uint32_t),
		.strings = (const char *)bytes + strings,
		.n_string_bytes = header.str_len,
	};
	return 0;
}

/* The offset of a whole string; 0, which is that of "": there is none. */
static uint32_t find_string(const struct kernel_types *types, const char *name)
{
	const char *end = types->strings + types->n_string_bytes, *at = types->strings;
	size_t n = strlen(name) + 1;

	while ((at = memmem(at, (size_t)(end - at), name, n)) && at > types->strings && at[-1] != '\0')
		at++;
	return at ? (uint32_t)(at - types->strings) : 0;
}

/* Go to the next type. Returns false at the end, or where the rest is no type. */
static bool next_type(const struct kernel_types *types, size_t *index)
{
	uint32_t info = types->words[*index + 1];
	unsigned kind = kind_of(info);

	if (kind == 0 || kind > MAX_KIND)
		return false;
	*index += TYPE_WORDS + kinds[kind].fixed + (size_t)kinds[kind].each * parts_of(info);
	return *index + TYPE_WORDS <= types->n_words;
}

int kernel_types_find(const struct kernel_types *types, struct kernel_type *wanted, size_t n)
{
	enum { MAX = 8 };
	uint32_t names[MAX], id = 1;
	size_t index = 0, n_left = n;

	if (n > MAX)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		names[i] = find_string(types, wanted[i].name);
		if (names[i] == 0)
			return -ENOENT;
		wanted[i].id = 0;
	}
	if (types->n_words < TYPE_WORDS)
		return -ENOENT;
	do {
		for (size_t i = 0; i < n; i++) {
			if (types->words[index] != names[i] || kind_of(types->words[index + 1]) != wanted[i].kind ||
			    wanted[i].id != 0)
				continue;
			wanted[i].id = id;
			wanted[i].index = index;
			n_left--;
		}
		id++;
	} while (n_left > 0 && next_type(types, &index));
	return n_left > 0 ? -ENOENT : 0;
}

/* The index of a type by its id. */
static int find_id(const struct kernel_types *types, uint32_t id, size_t *ret)
{
	size_t index = 0;

	if (id == 0 || types->n_words < TYPE_WORDS)
		return -EBADMSG;
	for (uint32_t i = 1; i < id; i++)
		if (!next_type(types, &index))
			return -EBADMSG;
	*ret = index;
	return 0;
}

static int find_member(const struct kernel_types *types, size_t index, uint32_t name, unsigned *n_nested,
		       uint64_t *ret_bits)
{
	uint32_t info = types->words[index + 1];
	const uint32_t *member = types->words + index + TYPE_WORDS;
	bool has_bit_fields = info >> 31;
	unsigned kind = kind_of(info);

	if (kind != BTF_KIND_STRUCT && kind != BTF_KIND_UNION)
		return -ENOENT;
	if ((size_t)parts_of(info) * MEMBER_WORDS > types->n_words - index - TYPE_WORDS)
		return -EBADMSG;
	for (unsigned i = 0; i < parts_of(info); i++, member += MEMBER_WORDS) {
		uint64_t bits = has_bit_fields ? member[2] & 0xffffff : member[2];
		size_t inner;
		int r;

		if (member[0] == name) {
			*ret_bits += bits;
			return has_bit_fields && member[2] >> 24 != 0 ? -EOPNOTSUPP : 0;
		}
		if (member[0] != 0 || ++*n_nested > MAX_NESTED || find_id(types, member[1], &inner) < 0)
			continue;
		r = find_member(types, inner, name, n_nested, ret_bits);
		if (r == 0)
			*ret_bits += bits;
		if (r != -ENOENT)
			return r;
	}
	return -ENOENT;
}

int kernel_types_member(const struct kernel_types *types, size_t index, const char *name, uint32_t *ret)
{
	uint32_t string = find_string(types, name);
	unsigned n_nested = 0;
	uint64_t bits = 0;
	int r;

	r = string == 0 ? -ENOENT : find_member(types, index, string, &n_nested, &bits);
	if (r < 0)
		return r;
	if (bits % 8 != 0 || bits / 8 > INT32_MAX)
		return -EOPNOTSUPP;
	*ret = (uint32_t)(bits / 8);
	return 0;
}
