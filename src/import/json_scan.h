/* SPDX-License-Identifier: MIT */
/* json_scan.h - walks a large JSON text and hands out its values as text, so that each can be parsed alone. */
#ifndef PROBING_IMPORT_JSON_SCAN_H
#define PROBING_IMPORT_JSON_SCAN_H

#include "src/import/sink.h"

struct json_scan {
	const char *at, *end;
};

void json_scan_blanks(struct json_scan *scan);

/* json_scan_sign - pass over that character, after blanks; false: another one is there. */
bool json_scan_sign(struct json_scan *scan, char sign);

/*
 * json_scan_value - the text of the next value, which is passed over: balanced brackets outside of strings. It may
 * still be no JSON: its parser says so. false: the text ends within it, or there is none.
 */
bool json_scan_value(struct json_scan *scan, struct piece *ret);

#endif
