/* SPDX-License-Identifier: MIT */
/* sections.h - the sections of a report about collectives and GPUs. Private to reports. */
#ifndef PROBING_REPORT_SECTIONS_H
#define PROBING_REPORT_SECTIONS_H

#include "base/json.h"
#include "src/report/report.h"

/* ---- collectives.c ---- */

/* 0, -ENOMEM. */
int print_collectives(const struct report_collectives *collectives, FILE *out);
/* As a key "collectives" of an object. */
void print_json_collectives(struct json *json, const struct report_collectives *collectives);

/* ---- gpu.c ---- */

void print_gpu(const struct report_gpu *gpu, const struct report_options *options, FILE *out);
/* As a key "gpu" of an object. */
void print_json_gpu(struct json *json, const struct report_gpu *gpu);

#endif
