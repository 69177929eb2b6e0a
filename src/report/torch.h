/* SPDX-License-Identifier: MIT */
/* torch.h - time and memory by the modules of torch's models, from the rows of torch_trace (docs/torch.md).
 *
 * A pass that lies within another one of its thread is a part of it: its time is not self time of the other. So a module
 * that is traced without its parent belongs to the nearest one around it.
 */
#ifndef PROBING_REPORT_TORCH_H
#define PROBING_REPORT_TORCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* A row of torch_trace. Texts are borrowed during the call. */
struct torch_pass {
	int64_t process, step, thread;
	const char *module, *kind, *stage; /* stage: forward, backward, step, data */
	double begin_s, host_s;            /* by the host's clock: since the step's begin; how long */
	double duration_s;                 /* of the GPU, where it ran there */
	double peak_mb;                    /* of the GPU; negative: unknown, or on the CPU */
};

struct report_options;
struct torch_report;

/* torch_report_new - without passes. @ret: ended with torch_report_free(). -ENOMEM. */
int torch_report_new(struct torch_report **ret);
void torch_report_free(struct torch_report *report);

/*
 * torch_report_add - a pass. They come in the order of process, step, thread and begin; of two that begin at once, the outer
 * one comes first. Errors: -ENOMEM; -EOVERFLOW 2^32 modules.
 */
int torch_report_add(struct torch_report *report, const struct torch_pass *pass);

/*
 * torch_report_print - the tree of modules, then optimizers and data loaders; those with the most time of each parent first.
 * @options: max_rows, columns, colour and json hold. Once for each report. Errors: -ENOMEM; -EIO and others of writing.
 */
int torch_report_print(struct torch_report *report, const struct report_options *options, FILE *out);

#endif
