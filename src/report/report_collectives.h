/* SPDX-License-Identifier: MIT */
/* report_collectives.h - prints the section about collectives. Private to reports. */
#ifndef PROBING_REPORT_REPORT_COLLECTIVES_H
#define PROBING_REPORT_REPORT_COLLECTIVES_H

#include "base/json.h"
#include "src/report/report.h"

/* 0, -ENOMEM. */
int print_collectives(const struct report_collectives *collectives, FILE *out);
/* As a key "collectives" of an object. */
void print_json_collectives(struct json *json, const struct report_collectives *collectives);

#endif
