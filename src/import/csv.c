/* SPDX-License-Identifier: MIT */
/* csv.c - see csv.h. Source: RFC 4180, without values of several lines. */
#include "src/import/csv.h"

#include <string.h>

#include "src/import/lines.h"

/* Length up to the closing quote; the opening one precedes rest. */
static size_t quoted_bytes(struct piece rest)
{
	for (size_t i = 0; i < rest.n; i++) {
		if (rest.at[i] != '"')
			continue;
		if (i + 1 < rest.n && rest.at[i + 1] == '"')
			i++;
		else
			return i;
	}
	return rest.n;
}

static struct piece next_field(struct piece *rest)
{
	struct piece field;

	if (rest->at[0] != '"')
		return piece_trim(piece_split(rest, ','));
	rest->at++, rest->n--;
	field = (struct piece){ rest->at, quoted_bytes(*rest) };
	rest->at += MIN(field.n + 1, rest->n);
	rest->n -= MIN(field.n + 1, rest->n);
	piece_split(rest, ',');
	return field;
}

size_t csv_split(struct piece line, struct piece fields[CSV_MAX_FIELDS])
{
	bool ends_open = line.n > 0 && line.at[line.n - 1] == ',';
	size_t n = 0;

	while (line.n > 0 && n < CSV_MAX_FIELDS)
		fields[n++] = next_field(&line);
	if (ends_open && n < CSV_MAX_FIELDS)
		fields[n++] = (struct piece){ line.at, 0 };
	return n;
}
