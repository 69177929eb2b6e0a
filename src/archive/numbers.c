/* SPDX-License-Identifier: MIT */
/* numbers.c - which number a row of a source has in the new file. */
#include <errno.h>

#include "src/archive/copy_private.h"

int numbers_add(struct numbers *numbers, int64_t old, int64_t new)
{
	int r;

	if (old <= 0)
		return -EBADMSG;
	r = grow(&numbers->new, numbers->n, &numbers->allocated, sizeof *numbers->new);
	if (r >= 0)
		r = id_map_add(&numbers->places, (uint64_t)old, (uint32_t)numbers->n);
	if (r < 0)
		return r == -EINVAL ? -EBADMSG : r;
	numbers->new[numbers->n++] = new;
	return 0;
}

bool numbers_find(const struct numbers *numbers, int64_t old, int64_t *ret)
{
	const struct id_slot *slot = old != 0 ? id_map_find(&numbers->places, (uint64_t)old) : NULL;

	if (old != 0 && !slot)
		return false;
	*ret = slot ? numbers->new[slot->id] : 0;
	return true;
}

void numbers_done(struct numbers *numbers)
{
	id_map_done(&numbers->places);
	free(numbers->new);
}
