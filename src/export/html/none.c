/* SPDX-License-Identifier: MIT */
/* none.c - replaces the bundle if it could not be built. */
extern const char html_script[], html_style[], html_licences[];
const char html_script[] = "", html_style[] = "", html_licences[] = "";
