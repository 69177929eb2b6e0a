/* SPDX-License-Identifier: MIT */
/* report_gpu.h - prints the section about GPUs. Private to reports. */
#ifndef PROBING_REPORT_REPORT_GPU_H
#define PROBING_REPORT_REPORT_GPU_H

#include "base/json.h"
#include "src/report/report.h"

void print_gpu(const struct report_gpu *gpu, const struct report_options *options, FILE *out);
/* As a key "gpu" of an object. */
void print_json_gpu(struct json *json, const struct report_gpu *gpu);

#endif
