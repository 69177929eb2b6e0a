/* SPDX-License-Identifier: MIT */
/*
 * strings.c - strings packed into big blocks.
 * A recording has tens of thousands of names, loaded together and freed
 * together. Blocks never move, so a string's address is stable. A string that
 * would waste much of a block gets one of its own, behind the current one.
 */
#include "src/profile/strings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

enum { BLOCK_BYTES = 64 << 10, BIG_BYTES = 4 << 10 };

struct block {
	struct block *next;
	size_t used, allocated;
	char bytes[];
};

struct strings {
	struct block *first; /* the current block, then full ones */
};

int strings_new(struct strings **ret)
{
	struct strings *strings;

	strings = calloc(1, sizeof *strings);
	if (!strings)
		return -ENOMEM;
	*ret = strings;
	return 0;
}

void strings_free(struct strings *strings)
{
	struct block *block, *next;

	if (!strings)
		return;
	for (block = strings->first; block; block = next) {
		next = block->next;
		free(block);
	}
	free(strings);
}

static struct block *block_new(size_t n_bytes)
{
	struct block *block;

	block = malloc(sizeof *block + n_bytes);
	if (!block)
		return NULL;
	block->next = NULL;
	block->used = 0;
	block->allocated = n_bytes;
	return block;
}

static struct block *block_for(struct strings *strings, size_t n_bytes)
{
	struct block *first = strings->first, *block;

	if (first && first->allocated - first->used >= n_bytes)
		return first;
	block = block_new(n_bytes > BIG_BYTES ? n_bytes : BLOCK_BYTES);
	if (!block)
		return NULL;
	if (first && n_bytes > BIG_BYTES) {
		block->next = first->next;
		first->next = block;
	} else {
		block->next = first;
		strings->first = block;
	}
	return block;
}

int strings_add(struct strings *strings, const char *text, size_t n_bytes, const char **ret)
{
	struct block *block;
	char *to;

	block = block_for(strings, n_bytes + 1);
	if (!block)
		return -ENOMEM;
	to = block->bytes + block->used;
	memcpy(to, text, n_bytes);
	to[n_bytes] = '\0';
	block->used += n_bytes + 1;
	*ret = to;
	return 0;
}
