/* SPDX-License-Identifier: MIT */
/* diff_format.h - texts of a box that both pictures of a comparison, SVG and HTML, share. Private. */
#ifndef PROBING_EXPORT_DIFF_FORMAT_H
#define PROBING_EXPORT_DIFF_FORMAT_H

#include "src/export/export.h"

enum { DIFF_SHADES = 5, DIFF_SMALLEST_SHARE = 20000 };

/* Of the colour: 0 as before, to DIFF_SHADES much more, to -DIFF_SHADES much less. */
int diff_shade(const struct diff_box *box);

/* Whether there is a box: none if head has nothing, or next to nothing, of it. */
bool diff_is_drawn(const struct diff_picture *picture, uint32_t box);

/* "0.12 % · 36.6 ms, was 30.1 ms: +21.6 %, which may be chance" */
void diff_write_change(const struct diff_picture *picture, const struct diff_box *box, FILE *out);

/* " · 12 ms of before is gone", or nothing. */
void diff_write_removed(const struct diff_picture *picture, FILE *out);

#endif
