/* SPDX-License-Identifier: MIT */
/* print.h - JSON output that all reports share. Private to reports. */
#ifndef PROBING_REPORT_PRINT_H
#define PROBING_REPORT_PRINT_H

#include "base/json.h"
#include "src/report/paths.h"

/*
 * print_json_begin - a JSON object that begins with samples, weight, and unit: of its values, "ns", "samples"
 * or the event's name. Later errors appear in to_json_finish(). -ENOMEM.
 */
int print_json_begin(const struct whole *whole, struct json *ret);
/* name, kind, builtin, file, line and module of a frame; unknown ones are null. */
void print_json_frame(struct json *json, const struct profile_frame *frame, const char *name);
/* With three decimals. */
void print_json_percent(struct json *json, const char *key, double value);
/* KEY and KEY_share, in percent of the whole. */
void print_json_time(struct json *json, const struct whole *whole, const char *key, uint64_t value);

#endif
