/* SPDX-License-Identifier: MIT */
/* resymbolize_files.h - finds the files of a recording's modules, possibly on another machine. Private. */
#ifndef PROBING_PIPELINE_RESYMBOLIZE_FILES_H
#define PROBING_PIPELINE_RESYMBOLIZE_FILES_H

#include "src/pipeline/pipeline.h"
#include "symbolize/symbolize.h"

struct resymbolize_files;

/* @options, @result: borrowed; sets the results of the modules. -ENOMEM. */
int resymbolize_files_new(const struct resymbolize_options *options, struct resymbolize_result *result,
			  struct resymbolize_files **ret);
void resymbolize_files_free(struct resymbolize_files *files);

/* For a struct symbol_finder; @data is the struct resymbolize_files. */
int resymbolize_files_open(void *data, int64_t module_id, struct symbol_module **ret);

/* The current work, for keep_going, which is called while a server answers. */
void resymbolize_files_progress(struct resymbolize_files *files, const struct resymbolize_progress *progress);

/* The error of a server; 0: none. */
int resymbolize_files_server_error(const struct resymbolize_files *files);

/* The row of a module; NULL: none. */
struct resymbolize_module *resymbolize_find_module(struct resymbolize_result *result, int64_t id);

#endif
