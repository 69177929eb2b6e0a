/* SPDX-License-Identifier: MIT */
/* name_place.c - see name_place.h. */
#include "src/import/name_place.h"

#include <ctype.h>
#include <string.h>

static bool cut_end(struct piece *piece, struct piece end)
{
	if (piece->n <= end.n || memcmp(piece->at + piece->n - end.n, end.at, end.n) != 0)
		return false;
	piece->n -= end.n;
	return true;
}

static struct piece without_line(struct piece name)
{
	size_t n = name.n;

	while (n > 0 && isdigit((unsigned char)name.at[n - 1]))
		n--;
	return n > 1 && n < name.n && name.at[n - 1] == ':' ? (struct piece){ name.at, n - 1 } : name;
}

struct piece name_without_place(struct piece name, struct piece file)
{
	struct piece inner = name;

	if (!cut_end(&inner, piece_of(")")))
		return name;
	inner = without_line(inner);
	for (size_t from = 0; from < file.n; from++) {
		struct piece left = inner;

		if ((from == 0 || file.at[from - 1] == '/') &&
		    cut_end(&left, (struct piece){ file.at + from, file.n - from }) && cut_end(&left, piece_of(" (")))
			return left;
	}
	return name;
}
