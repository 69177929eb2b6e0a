/* rename_files.h - the files of a recording's modules, on whatever machine this is. Private. */
#ifndef PROBING_RENAME_FILES_H
#define PROBING_RENAME_FILES_H

#include "src/pipeline/pipeline.h"
#include "symbolize/symbolize.h"

struct rename_files;

/* @options, @result: borrowed; the result's modules are told what became of them. -ENOMEM. */
int rename_files_new(const struct rename_options *options, struct rename_result *result,
		     struct rename_files **ret);
void rename_files_free(struct rename_files *files);

/* For a struct naming_finder; @data is the struct rename_files. */
int rename_files_open(void *data, int64_t module_id, struct symbol_module **ret);

/* What is at work, for keep_going, which is asked while a server is waited for. */
void rename_files_progress(struct rename_files *files, const struct rename_progress *progress);

/* Why a server could not be asked; 0: nothing of the kind. */
int rename_files_server_error(const struct rename_files *files);

/* The row of a module; NULL: none. */
struct rename_module *rename_find_module(struct rename_result *result, int64_t id);

#endif
