/* SPDX-License-Identifier: MIT */
/* symbol_writer.h - modules, functions and frames get their rows and names. Private;
 * used by one thread at a time: the writing thread, or resymbolize.c afterwards. */
#ifndef PROBING_PIPELINE_SYMBOL_WRITER_H
#define PROBING_PIPELINE_SYMBOL_WRITER_H

#include "src/pipeline/batch.h"
#include "src/pipeline/generated_names.h"
#include "src/pipeline/name_client.h"
#include "src/store/store.h"
#include "symbolize/symbolize.h"

struct symbol_writer;

/* Where a module's names come from. */
struct symbol_finder {
	/* Called once per module, at the first look-up in it. *ret is owned by the symbol writer on success.
	 * Errors: -ENOMEM ends everything; any other: the module has no symbols. */
	int (*open)(void *data, int64_t module_id, struct symbol_module **ret);
	void *data;
	const char *kallsyms; /* the kernel's symbols; NULL: those of /proc */
};

/*
 * @store:  borrowed.
 * @finder: NULL: the files as the recorded processes see them, from symbol_writer_put_modules().
 */
int symbol_writer_new(struct store *store, const struct symbol_finder *finder, struct symbol_writer **ret);
void symbol_writer_free(struct symbol_writer *names);

/* Read no file in this process: all names but those of the kernel come from @client; ownership passes. */
void symbol_writer_confine(struct symbol_writer *names, struct name_client *client);
/* Failures there; all zero: none, or symbols are resolved here. */
void symbol_writer_troubles(const struct symbol_writer *names, struct pipeline_name_troubles *ret);

/* Leave places in files and in the kernel without a name: nothing is opened but the kernel's symbols. */
void symbol_writer_without_files(struct symbol_writer *names);

/* Inside a transaction of the caller's: */
int symbol_writer_put_modules(struct symbol_writer *names, const struct new_module *modules, size_t n);
/* Python frames are named at once, others wait for symbol_writer_look_up. */
int symbol_writer_put_frames(struct symbol_writer *names, const struct new_frame *frames, size_t n);
/* The batch's programs and dumps; the next symbol_writer_look_up() reads the new output of all programs. */
int symbol_writer_put_programs(struct symbol_writer *names, struct batch *batch);
/* Frees the memory of mapped symbol files in between, if it is much. */
int symbol_writer_look_up(struct symbol_writer *names, size_t max);

/* Functions whose rows have been removed are new ones when they come again. Outside of transactions. */
int symbol_writer_forget_dropped(struct symbol_writer *names);

/* Whether symbol_writer_look_up has something to do. */
bool symbol_writer_is_waiting(const struct symbol_writer *names);

/* Places whose generated code was replaced since the last call; appended. -ENOMEM. */
int symbol_writer_take_stale(struct symbol_writer *names, struct stale_places *to);

/* ---- For a file that has rows already ---- */

/* The largest ids in the file (functions below 2^31), and their rows. -ENOMEM. */
int symbol_writer_know_ids(struct symbol_writer *names, int64_t last_frame, int64_t last_function);
int symbol_writer_know_function(struct symbol_writer *names, const struct function_row *row);

/* How much a name says; more is larger. */
enum symbol_quality { UNNAMED, NAMED_BY_OFFSET, NAMED, NAMED_WITH_LINE };

/*
 * symbol_writer_improve - resolve a place, and store the name if its quality is not below @least.
 * @frame: id, kind, module_id and address are used.
 * @ret:   the quality of its name now.
 * Returns 1 if it was stored, 0 if nothing has changed, -ENOMEM, or what the store reports.
 */
int symbol_writer_improve(struct symbol_writer *names, const struct new_frame *frame, enum symbol_quality least,
			  enum symbol_quality *ret);

/* The contents of a module's files, until it is closed; false: it has none. */
bool symbol_writer_sources(const struct symbol_writer *names, int64_t module_id, struct symbol_sources *ret);

/* Names missing because of limits in the recorder's own modules; zeroed if another process reads files. */
void symbol_writer_limited(const struct symbol_writer *names, struct symbol_limited *ret);

/* Close a module's files; it is not looked up again. */
void symbol_writer_close_module(struct symbol_writer *names, int64_t module_id);

/* Frames created for inlined functions so far, including those in the file. */
int64_t symbol_writer_inlined(const struct symbol_writer *names);

#endif
