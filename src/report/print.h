/* print.h - what all reports end with, and say in JSON alike. Private to reports. */
#ifndef PROBING_REPORT_PRINT_H
#define PROBING_REPORT_PRINT_H

#include "src/report/document.h"
#include "src/report/paths.h"

/* Write what is buffered. Errors: what writing reports. */
int print_finish(FILE *out);

/*
 * print_json_begin - a JSON object that begins with samples, weight, and unit: what values in it count, "ns", "samples"
 * or the events' name. -ENOMEM.
 */
int print_json_begin(const struct whole *whole, struct document **ret);
/* name, kind, builtin, file, line and module of a frame; what is not known is null. */
int print_json_frame(struct document *json, const struct profile_frame *frame, const char *name);
/* KEY and KEY_share, in percent of the whole. */
void print_json_time(struct document *json, const struct whole *whole, const char *key, uint64_t value);

#endif
