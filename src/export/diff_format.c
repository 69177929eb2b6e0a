/* SPDX-License-Identifier: MIT */
/* diff_format.c - see diff_format.h. */
#include "src/export/diff_format.h"

#include <math.h>

enum { MAX_TEXT = 32 };

/* Smallest change of each shade. */
static const double shade_from[DIFF_SHADES] = { 0.005, 0.03, 0.1, 0.3, 1 };

int diff_shade(const struct diff_box *box)
{
	double change = box->change;
	int shade = 0;

	/* Use the ratio for decreases, so that half and double get the same shade. */
	if (change < 0)
		change = change > -1 ? 1 / (1 + change) - 1 : INFINITY;
	while (shade < DIFF_SHADES && change >= shade_from[shade])
		shade++;
	return box->head > box->base ? shade : -shade;
}

bool diff_is_drawn(const struct diff_picture *picture, uint32_t box)
{
	const struct diff_box *boxes = picture->boxes;

	return box == 0 || (boxes[box].head > 0 && boxes[box].head >= boxes[0].head / DIFF_SMALLEST_SHARE);
}

void diff_write_change(const struct diff_picture *picture, const struct diff_box *box, FILE *out)
{
	char base[MAX_TEXT], head[MAX_TEXT];

	picture->format(picture->data, box->base, base, sizeof base);
	picture->format(picture->data, box->head, head, sizeof head);
	fprintf(out,
		"%.2f %% · %s, was %s: ", picture->boxes[0].head > 0 ? 100 * box->head / picture->boxes[0].head : 0,
		head, base);
	if (isnan(box->change)) {
		fputs("all there is", out);
		return;
	}
	if (isinf(box->change))
		fputs("new", out);
	else
		fprintf(out, "%+.1f %%", 100 * box->change);
	if (!box->is_known)
		fputs(", not significant", out);
}

void diff_write_removed(const struct diff_picture *picture, FILE *out)
{
	char text[MAX_TEXT];
	double gone = 0;

	for (size_t i = 1; i < picture->n_boxes; i++)
		if (picture->boxes[i].head <= 0 && picture->boxes[picture->boxes[i].parent].head > 0)
			gone += picture->boxes[i].base;
	if (gone <= 0)
		return;
	picture->format(picture->data, gone, text, sizeof text);
	fprintf(out, " · %s of before is gone", text);
}
