/* SPDX-License-Identifier: MIT */
/* resymbolize_files.h - the files of a recording's modules, on whatever machine this is. Private. */
#ifndef PROBING_PIPELINE_RESYMBOLIZE_FILES_H
#define PROBING_PIPELINE_RESYMBOLIZE_FILES_H

#include "src/pipeline/pipeline.h"
#include "symbolize/symbolize.h"

struct resymbolize_files;

/* @options, @result: borrowed; the result's modules are told what became of them. -ENOMEM. */
int resymbolize_files_new(const struct resymbolize_options *options, struct resymbolize_result *result,
			  struct resymbolize_files **ret);
void resymbolize_files_free(struct resymbolize_files *files);

/* For a struct symbol_finder; @data is the struct resymbolize_files. */
int resymbolize_files_open(void *data, int64_t module_id, struct symbol_module **ret);

/* What is at work, for keep_going, which is asked while a server is waited for. */
void resymbolize_files_progress(struct resymbolize_files *files, const struct rename_progress *progress);

/* Why a server could not be asked; 0: nothing of the kind. */
int resymbolize_files_server_error(const struct resymbolize_files *files);

/* The row of a module; NULL: none. */
struct rename_module *rename_find_module(struct resymbolize_result *result, int64_t id);

#endif
