/* SPDX-License-Identifier: MIT */
/* resymbolize.c - completes the names of an existing recording; see pipeline.h.
 *
 * The places are read first, then looked up module by module, so that only one
 * module's symbols are in memory; the code is that of naming
 * while recording.
 *
 * Invariants: one transaction contains all changes. A less informative name never replaces
 * another. Places in the kernel are valid for the same kernel only; absolute
 * addresses, which older recordings have, until its next boot.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "base/util.h"
#include "src/pipeline/symbol_writer.h"
#include "src/pipeline/resymbolize_files.h"
#include "symbolize/symbolize.h"

enum { PLACES_AT_ONCE = 64 };

struct place {
	struct new_frame frame;
	enum symbol_quality quality;
};

struct resymbolize {
	struct store *store;
	const struct resymbolize_options *options;
	struct resymbolize_result *result;
	struct resymbolize_files *files;
	struct symbol_writer *names;
	struct place *places; /* grouped by module */
	size_t n_places, places_allocated;
	bool kernel_is_ours, boot_is_ours;
};

void resymbolize_result_done(struct resymbolize_result *result)
{
	for (size_t i = 0; i < result->n_modules; i++) {
		struct resymbolize_module *module = &result->modules[i];

		free(module->path);
		free(module->build_id);
		free(module->other_build_id);
		free(module->file);
		free(module->debug_file);
	}
	free(result->modules);
	*result = (struct resymbolize_result){ 0 };
}

/* ---- Read the file ---- */

static int take_module(void *data, const struct module_row *row)
{
	struct resymbolize_result *result = ((struct resymbolize *)data)->result;
	struct resymbolize_module *module;
	int r;

	r = grow(&result->modules, result->n_modules, &result->n_allocated, sizeof *result->modules);
	if (r < 0)
		return r;
	module = &result->modules[result->n_modules++];
	*module = (struct resymbolize_module){ .id = row->module, .path = strdup(row->path) };
	if (row->build_id)
		module->build_id = strdup(row->build_id);
	return module->path && (module->build_id || !row->build_id) ? 0 : -ENOMEM;
}

static enum symbol_quality quality_of(const struct place_row *row)
{
	if (row->function == 0)
		return UNNAMED;
	return row->line > 0 ? NAMED_WITH_LINE : row->is_offset ? NAMED_BY_OFFSET : NAMED;
}

static int take_place(void *data, const struct place_row *row)
{
	struct resymbolize *resymbolize = data;
	struct place *place;
	int r;

	if (row->kind == FRAME_NATIVE && row->module == 0) {
		resymbolize->result->n_anonymous += row->function == 0;
		return 0; /* its symbol files ended with its process */
	}
	if (!row->has_address)
		return 0;
	r = grow(&resymbolize->places, resymbolize->n_places, &resymbolize->places_allocated,
		 sizeof *resymbolize->places);
	if (r < 0)
		return r;
	place = &resymbolize->places[resymbolize->n_places++];
	*place = (struct place){
		.frame = {
			.id = (uint32_t)row->frame,
			.kind = row->kind,
			.module_id = row->module,
			.address = row->address,
			.is_eval = row->is_eval,
		},
		.quality = quality_of(row),
	};
	return 0;
}

static int take_function(void *data, const struct function_row *row)
{
	return symbol_writer_know_function(((struct resymbolize *)data)->names, row);
}

static int read_file_rows(struct resymbolize *resymbolize)
{
	int64_t last_frame, last_function;
	int r;

	r = store_each_module(resymbolize->store, take_module, resymbolize);
	if (r >= 0)
		r = store_each_place(resymbolize->store, take_place, resymbolize);
	if (r >= 0)
		r = store_last_ids(resymbolize->store, &last_frame, &last_function);
	if (r >= 0)
		r = symbol_writer_know_ids(resymbolize->names, last_frame, last_function);
	if (r >= 0)
		r = store_each_function(resymbolize->store, take_function, resymbolize);
	return r;
}

/* ---- The kernel ---- */

static double booted(void)
{
	struct timespec up;

	if (clock_gettime(CLOCK_BOOTTIME, &up) < 0)
		return 0;
	return (double)realtime_ns() / 1e9 - ((double)up.tv_sec + (double)up.tv_nsec / 1e9);
}

static int check_kernel(struct resymbolize *resymbolize)
{
	struct resymbolize_result *result = resymbolize->result;
	struct run_names run;
	struct utsname here;
	int r;

	r = store_read_run(resymbolize->store, &run);
	if (r < 0)
		return r;
	uname(&here);
	memcpy(result->recorded_host, run.host, sizeof run.host);
	memcpy(result->recorded_kernel, run.kernel, sizeof run.kernel);
	resymbolize->kernel_is_ours = resymbolize->options->force ||
				      (strcmp(run.host, here.nodename) == 0 && strcmp(run.kernel, here.release) == 0);
	resymbolize->boot_is_ours = resymbolize->options->force || run.started > booted();
	return 0;
}

/* ---- Look up symbols ---- */

/* Whether this machine's symbols match the recording. */
static bool is_of_ours(const struct resymbolize *resymbolize, const struct place *place)
{
	return resymbolize->kernel_is_ours &&
	       (resymbolize->boot_is_ours || !kernel_place_is_absolute(place->frame.address));
}

/* False: keep the name. */
static bool is_wanted(const struct resymbolize *resymbolize, const struct place *place)
{
	bool is_kernel = place->frame.kind == FRAME_KERNEL;

	if (is_kernel && !is_of_ours(resymbolize, place))
		return false;
	return resymbolize->options->redo || place->quality < (is_kernel ? NAMED : NAMED_WITH_LINE);
}

static int improve(struct resymbolize *resymbolize, struct place *place)
{
	enum symbol_quality least = resymbolize->options->redo ? MAX(place->quality, NAMED_BY_OFFSET)
							       : place->quality + 1;
	int r;

	if (!is_wanted(resymbolize, place))
		return 0;
	r = symbol_writer_improve(resymbolize->names, &place->frame, least, &place->quality);
	if (r > 0)
		resymbolize->result->n_changed++;
	return r;
}

static void count(struct resymbolize *resymbolize, const struct place *place, bool before)
{
	struct resymbolize_result *result = resymbolize->result;
	struct resymbolize_module *module = resymbolize_find_module(result, place->frame.module_id);
	const size_t named = place->quality >= NAMED, line = place->quality == NAMED_WITH_LINE;

	if (before) {
		result->n_places++;
		result->n_kernel += place->frame.kind == FRAME_KERNEL;
	}
	*(before ? &result->n_named_before : &result->n_named) += named;
	*(before ? &result->n_lines_before : &result->n_lines) += line;
	if (!module)
		return;
	if (before)
		module->n_places++;
	*(before ? &module->n_named_before : &module->n_named) += named;
	*(before ? &module->n_lines_before : &module->n_lines) += line;
}

static int keep_going(struct resymbolize *resymbolize, const struct place *place, size_t n_done)
{
	const struct resymbolize_options *options = resymbolize->options;
	const struct resymbolize_module *module = resymbolize_find_module(resymbolize->result, place->frame.module_id);
	const struct resymbolize_progress progress = {
		.path = module ? module->path : "kernel",
		.n_done = n_done,
		.n_places = resymbolize->n_places,
	};

	resymbolize_files_progress(resymbolize->files, &progress);
	return !options->keep_going || options->keep_going(options->data, &progress) ? 0 : -ECANCELED;
}

/* Called after all places of a module. */
static int close_module(struct resymbolize *resymbolize, int64_t id)
{
	struct resymbolize_module *module = resymbolize_find_module(resymbolize->result, id);
	struct symbol_sources sources;

	if (!module || !symbol_writer_sources(resymbolize->names, id, &sources))
		return 0;
	module->is_debug_file = sources.is_debug_file;
	module->has_symbols = sources.has_symbols;
	module->has_lines = sources.has_lines;
	if (sources.debug_path) {
		module->debug_file = strdup(sources.debug_path);
		if (!module->debug_file)
			return -ENOMEM;
	}
	symbol_writer_close_module(resymbolize->names, id);
	return 0;
}

static int improve_all(struct resymbolize *resymbolize)
{
	int64_t module = 0;
	int r = 0;

	for (size_t i = 0; i < resymbolize->n_places && r >= 0; i++) {
		struct place *place = &resymbolize->places[i];

		count(resymbolize, place, true);
		if (place->frame.module_id != module || i % PLACES_AT_ONCE == 0) {
			r = keep_going(resymbolize, place, i);
			if (r >= 0 && place->frame.module_id != module)
				r = close_module(resymbolize, module);
			module = place->frame.module_id;
		}
		if (r >= 0)
			r = improve(resymbolize, place);
		count(resymbolize, place, false);
	}
	return r < 0 ? r : close_module(resymbolize, module);
}

static void judge_kernel(struct resymbolize *resymbolize)
{
	for (size_t i = 0; i < resymbolize->n_places; i++) {
		const struct place *place = &resymbolize->places[i];

		if (place->frame.kind != FRAME_KERNEL || place->quality != UNNAMED)
			continue;
		if (!is_of_ours(resymbolize, place))
			resymbolize->result->kernel = RESYMBOLIZE_KERNEL_OTHER;
		else if (resymbolize->result->kernel == RESYMBOLIZE_KERNEL_FINE)
			resymbolize->result->kernel = RESYMBOLIZE_KERNEL_HIDDEN;
	}
}

static int change(struct resymbolize *resymbolize)
{
	int64_t n_inlined;
	int r;

	r = read_file_rows(resymbolize);
	if (r >= 0)
		r = check_kernel(resymbolize);
	if (r < 0)
		return r;
	n_inlined = symbol_writer_inlined(resymbolize->names);
	r = improve_all(resymbolize);
	resymbolize->result->n_inlined = symbol_writer_inlined(resymbolize->names) - n_inlined;
	resymbolize->result->server_error = resymbolize_files_server_error(resymbolize->files);
	if (r >= 0 && resymbolize->result->server_error == -ECANCELED)
		r = -ECANCELED;
	if (r >= 0)
		r = store_drop_unused_functions(resymbolize->store);
	judge_kernel(resymbolize);
	return r;
}

static int resymbolize_in_transaction(struct resymbolize *resymbolize)
{
	int r;

	r = store_begin(resymbolize->store);
	if (r < 0)
		return r;
	r = change(resymbolize);
	if (r >= 0)
		return store_commit(resymbolize->store);
	store_rollback(resymbolize->store);
	return r;
}

int pipeline_resymbolize(struct store *store, const struct resymbolize_options *options, struct resymbolize_result *ret)
{
	struct resymbolize resymbolize = { .store = store, .options = options, .result = ret };
	struct symbol_finder finder = { .open = resymbolize_files_open, .kallsyms = options->kallsyms };
	int r;

	*ret = (struct resymbolize_result){ 0 };
	r = resymbolize_files_new(options, ret, &resymbolize.files);
	finder.data = resymbolize.files;
	if (r >= 0)
		r = symbol_writer_new(store, &finder, &resymbolize.names);
	if (r >= 0)
		r = resymbolize_in_transaction(&resymbolize);
	symbol_writer_free(resymbolize.names);
	resymbolize_files_free(resymbolize.files);
	free(resymbolize.places);
	return r;
}
