/* SPDX-License-Identifier: MIT */
/* none.c - in place of the bundle where it could not be made. */
extern const char html_script[], html_style[], html_licences[];
const char html_script[] = "", html_style[] = "", html_licences[] = "";
