/* SPDX-License-Identifier: MIT */
/* symbol_writer.c - see symbol_writer.h.
 *
 * A function is its kind, module, name, file and first line. A finder locates a module's
 * file: the recorder's own, or that of resymbolize.c for existing recordings.
 * Ids of inlined frames begin beyond those that
 * the capturing thread can ever assign.
 */
#include "src/pipeline/symbol_writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/interner.h"
#include "base/util.h"
#include "src/pipeline/name_client.h"
#include "src/pipeline/name_wire.h"
#include "src/pipeline/page_trim.h"
#include "symbolize/symbolize.h"

#define FIRST_INLINED_FRAME (1LL << 32)

/* Total time the recorder waits for debuginfod servers. */
enum { SERVER_PATIENCE_S = 30 };

enum { NAMES_BETWEEN_TRIMS = 16 };

struct named_module {
	int64_t id;
	const struct module *module; /* NULL: not mapped in this run */
	struct build_id build_id;
	struct symbol_module *symbols; /* opened at the first lookup */
	bool tried;
};

/* Functions with an id. */
struct function_set {
	struct interner texts; /* names and files */
	struct interner keys;  /* struct function_key */
	uint32_t *ids;         /* indexed by key */
	size_t allocated;
};

struct symbol_writer {
	struct store *store;
	struct symbol_finder finder;
	struct symbol_search *search; /* for the recorder's own finder */
	bool without_files;
	struct named_module *modules;
	size_t n_modules, modules_allocated;
	struct id_map module_index; /* id -> index */
	struct function_set functions;
	uint32_t n_functions;
	uint32_t n_known;   /* number of functions from an existing file, whose rows may be less complete */
	uint8_t *refreshed; /* indexed by function id, n_known + 1 entries */
	int64_t n_inlined;
	struct new_frame *waiting;
	size_t first_waiting, n_waiting, waiting_allocated;
	struct kernel_symbols *kernel;
	bool kernel_tried;
	struct generated_names *generated;
	struct stale_places stale;
	bool refresh_generated; /* programs may have written new names */
	struct page_trim trim;
	struct name_client *client; /* resolves names in another process; NULL: in this one */
};

/* ---- Functions ---- */

/* What identifies a function; without padding. */
struct function_key {
	int64_t module;
	uint32_t kind, first_line;
	uint32_t name, file; /* text numbers plus 1; 0: none */
};

static void function_set_done(struct function_set *set)
{
	interner_done(&set->texts);
	interner_done(&set->keys);
	free(set->ids);
}

static int number_of_text(struct function_set *set, const char *text, uint32_t *ret)
{
	int r = text ? interner_add(&set->texts, text, strlen(text), ret) : 0;

	*ret = text && r >= 0 ? *ret + 1 : 0;
	return r;
}

/* *ret points to the function's id, 0 until it has one; valid until the next call. */
static int find_function(struct function_set *set, const struct function_row *row, uint32_t **ret)
{
	struct function_key key = { .module = row->module, .kind = row->kind, .first_line = (uint32_t)row->first_line };
	uint32_t index;
	int r;

	r = number_of_text(set, row->name, &key.name);
	/*
	 * The file of a native function may be a header and vary by line, so compare it only if the first line is
	 * known.
	 */
	if (r >= 0 && (row->kind == FRAME_PYTHON || row->first_line > 0))
		r = number_of_text(set, row->file, &key.file);
	if (r >= 0)
		r = grow(&set->ids, set->keys.n, &set->allocated, sizeof *set->ids);
	if (r >= 0)
		r = interner_add(&set->keys, &key, sizeof key, &index);
	if (r < 0)
		return r;
	if (r > 0)
		set->ids[index] = 0;
	*ret = &set->ids[index];
	return 0;
}

static int copy_text(const struct function_set *from, struct function_set *to, uint32_t *number)
{
	const void *text;
	uint32_t n_bytes;
	int r;

	if (*number == 0)
		return 0;
	text = interner_get(&from->texts, *number - 1, &n_bytes);
	r = interner_add(&to->texts, text, n_bytes, number);
	*number += r >= 0;
	return r;
}

static int copy_function(const struct function_set *from, struct function_set *to, uint32_t index)
{
	struct function_key key;
	uint32_t n_bytes, copy;
	int r;

	memcpy(&key, interner_get(&from->keys, index, &n_bytes), sizeof key);
	r = copy_text(from, to, &key.name);
	if (r >= 0)
		r = copy_text(from, to, &key.file);
	if (r >= 0)
		r = grow(&to->ids, to->keys.n, &to->allocated, sizeof *to->ids);
	if (r >= 0)
		r = interner_add(&to->keys, &key, sizeof key, &copy);
	if (r >= 0)
		to->ids[copy] = from->ids[index];
	return r;
}

/* Open a module's symbols for the recorder. */
static int open_recorded(void *data, int64_t module_id, struct symbol_module **ret)
{
	struct symbol_writer *names = data;
	const struct named_module *named = &names->modules[id_map_find(&names->module_index, (uint64_t)module_id)->id];

	if (!named->module)
		return -ENOENT;
	return symbol_module_open_mapped(named->module, &named->build_id, names->search, ret);
}

static int make_search(struct symbol_search **ret)
{
	const char *urls = getenv("DEBUGINFOD_URLS"), *folder = getenv("TMPDIR");
	const struct symbol_search_options options = {
		.scratch_folder = folder && folder[0] ? folder : "/var/tmp",
		.debuginfod = urls && urls[0] != '\0',
		.patience_s = SERVER_PATIENCE_S,
	};

	return symbol_search_new(&options, ret);
}

int symbol_writer_new(struct store *store, const struct symbol_finder *finder, struct symbol_writer **ret)
{
	struct symbol_writer *names = calloc(1, sizeof *names);
	int r;

	if (!names)
		return -ENOMEM;
	names->store = store;
	page_trim_init(&names->trim, 16 << 20, 24 << 20); /* rings need about 8 MiB */
	names->finder = finder ? *finder : (struct symbol_finder){ .open = open_recorded, .data = names };
	r = generated_names_new(&names->generated);
	if (r >= 0 && !finder)
		r = make_search(&names->search);
	if (r < 0) {
		symbol_writer_free(names);
		return r;
	}
	*ret = names;
	return 0;
}

void symbol_writer_without_files(struct symbol_writer *names)
{
	names->without_files = true;
}

void symbol_writer_confine(struct symbol_writer *names, struct name_client *client)
{
	names->client = client;
}

void symbol_writer_troubles(const struct symbol_writer *names, struct pipeline_name_troubles *ret)
{
	*ret = (struct pipeline_name_troubles){ 0 };
	if (names->client)
		name_client_troubles(names->client, ret);
}

void symbol_writer_free(struct symbol_writer *names)
{
	if (!names)
		return;
	name_client_free(names->client);
	page_trim_done(&names->trim);
	for (size_t i = 0; i < names->n_modules; i++)
		symbol_module_free(names->modules[i].symbols);
	free(names->modules);
	id_map_done(&names->module_index);
	function_set_done(&names->functions);
	free(names->waiting);
	free(names->refreshed);
	symbol_search_free(names->search);
	kernel_symbols_free(names->kernel);
	generated_names_free(names->generated);
	free(names->stale.places);
	free(names);
}

bool symbol_writer_is_waiting(const struct symbol_writer *names)
{
	return names->n_waiting > names->first_waiting || names->refresh_generated;
}

int symbol_writer_take_stale(struct symbol_writer *names, struct stale_places *to)
{
	return stale_places_move(&names->stale, to);
}

static int add_module(struct symbol_writer *names, const struct named_module *module)
{
	int r;

	r = grow(&names->modules, names->n_modules, &names->modules_allocated, sizeof *names->modules);
	if (r >= 0)
		r = id_map_add(&names->module_index, (uint64_t)module->id, (uint32_t)names->n_modules);
	if (r < 0)
		return r;
	names->modules[names->n_modules++] = *module;
	return 0;
}

int symbol_writer_put_modules(struct symbol_writer *names, const struct new_module *modules, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char build_id[2 * BUILD_ID_MAX + 1];
		const struct module *module = modules[i].module;
		struct module_row row = { .module = modules[i].id, .path = module->path };
		int r;

		build_id_format(&modules[i].build_id, build_id);
		row.build_id = build_id[0] ? build_id : NULL;
		r = store_put_module(names->store, &row);
		if (r >= 0)
			r = add_module(names, &(struct named_module){ .id = modules[i].id,
								      .module = module,
								      .build_id = modules[i].build_id });
		if (r >= 0 && names->client)
			r = name_client_put_module(names->client, &modules[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

/* A function's row in the file may come from less debug information than is available now. */
static int refresh_function(struct symbol_writer *names, uint32_t id, const struct function_row *row)
{
	if (id > names->n_known || names->refreshed[id])
		return 0;
	names->refreshed[id] = 1;
	return store_refresh_function(names->store, id, row);
}

/* Return the id of a function; put its row if it is new. */
static int put_function(struct symbol_writer *names, struct function_row *row, int64_t *ret)
{
	uint32_t *id;
	int r;

	r = find_function(&names->functions, row, &id);
	if (r < 0)
		return r;
	if (*id != 0) {
		*ret = *id;
		return refresh_function(names, *id, row);
	}
	row->function = names->n_functions + 1;
	r = store_put_function(names->store, row);
	if (r < 0)
		return r;
	*ret = *id = ++names->n_functions;
	return 0;
}

int symbol_writer_know_ids(struct symbol_writer *names, int64_t last_frame, int64_t last_function)
{
	names->refreshed = calloc((size_t)last_function + 1, 1);
	if (!names->refreshed)
		return -ENOMEM;
	names->n_known = names->n_functions = (uint32_t)last_function;
	names->n_inlined = MAX(last_frame - FIRST_INLINED_FRAME + 1, 0LL);
	return 0;
}

int symbol_writer_know_function(struct symbol_writer *names, const struct function_row *row)
{
	uint32_t *id;
	int r;

	r = find_function(&names->functions, row, &id);
	if (r >= 0 && *id == 0)
		*id = (uint32_t)row->function;
	return r;
}

static const char *role_name(enum symbol_role role)
{
	return role == SYMBOL_BUILTIN ? "builtin" : role == SYMBOL_INTERNAL ? "internal" : NULL;
}

static int put_python(struct symbol_writer *names, const struct new_frame *frame)
{
	struct function_row function = {
		.kind = FRAME_PYTHON,
		.name = frame->code->qualname,
		.file = frame->code->file,
		.role = symbol_is_import_file(frame->code->file) ? role_name(SYMBOL_INTERNAL) : NULL,
		.first_line = frame->code->first_line,
	};
	struct frame_row row = {
		.frame = frame->id,
		.kind = FRAME_PYTHON,
		.line = frame->position.line,
		.column = frame->position.column + 1,
		.end_line = frame->position.end_line,
		.end_column = MAX(frame->position.end_column, 0),
	};
	int r;

	r = put_function(names, &function, &row.function);
	if (r < 0)
		return r;
	return store_put_frame(names->store, &row);
}

/* A task's only identity is its name. */
static int put_task(struct symbol_writer *names, const struct new_frame *frame)
{
	CLEANUP(freep) char *name = NULL;
	struct function_row function = { .kind = FRAME_TASK };
	struct frame_row row = { .frame = frame->id, .kind = FRAME_TASK };
	int r;

	if (asprintf(&name, "task %s", frame->name) < 0)
		return -ENOMEM;
	function.name = name;
	r = put_function(names, &function, &row.function);
	return r < 0 ? r : store_put_frame(names->store, &row);
}

static int put_wait(struct symbol_writer *names, const struct new_frame *frame)
{
	struct function_row function = { .kind = FRAME_WAIT };
	struct frame_row row = { .frame = frame->id, .kind = FRAME_WAIT };
	char state[32];
	int r;

	snprintf(state, sizeof state, "[%s]", thread_state_name(frame->state) ?: "");
	function.name = frame->name ?: state;
	r = put_function(names, &function, &row.function);
	return r < 0 ? r : store_put_frame(names->store, &row);
}

static int put_unsampled(struct symbol_writer *names, const struct new_frame *frame)
{
	struct function_row function = { .kind = FRAME_UNSAMPLED, .name = "[not sampled]" };
	struct frame_row row = { .frame = frame->id, .kind = FRAME_UNSAMPLED };
	int r;

	r = put_function(names, &function, &row.function);
	return r < 0 ? r : store_put_frame(names->store, &row);
}

static void open_kernel(struct symbol_writer *names)
{
	if (names->kernel_tried)
		return;
	names->kernel_tried = true;
	(void)kernel_symbols_open(names->finder.kallsyms, &names->kernel); /* on error, frames stay "[kernel]" */
}

/* A file must not reveal the kernel's base address: drop an address that has no position-independent form. */
static bool find_kernel_place(struct symbol_writer *names, struct new_frame *frame)
{
	open_kernel(names);
	return names->kernel && kernel_symbols_place(names->kernel, frame->address, &frame->address) >= 0;
}

static int wait_for_name(struct symbol_writer *names, const struct new_frame *frame)
{
	int r;

	/* Symbols of anonymous code disappear with its process, so resolve them now. */
	if (names->without_files && (frame->module_id || frame->kind == FRAME_KERNEL))
		return 0;
	r = grow(&names->waiting, names->n_waiting, &names->waiting_allocated, sizeof *names->waiting);
	if (r >= 0)
		names->waiting[names->n_waiting++] = *frame;
	return r;
}

static int put_unnamed(struct symbol_writer *names, const struct new_frame *from)
{
	struct new_frame frame = *from;
	bool is_kernel = frame.kind == FRAME_KERNEL, has_place = !is_kernel || find_kernel_place(names, &frame);
	const struct frame_row row = {
		.frame = frame.id,
		.kind = frame.kind,
		.module = frame.module_id,
		.has_address = has_place && (frame.module || is_kernel),
		.address = has_place ? frame.address : 0,
		.is_eval = frame.is_eval,
		.without_cfi = frame.without_cfi,
	};
	int r;

	r = store_put_frame(names->store, &row);
	return r < 0 || !has_place ? r : wait_for_name(names, &frame);
}

int symbol_writer_put_frames(struct symbol_writer *names, const struct new_frame *frames, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && r >= 0; i++) {
		if (frames[i].kind == FRAME_PYTHON)
			r = put_python(names, &frames[i]);
		else if (frames[i].kind == FRAME_TASK)
			r = put_task(names, &frames[i]);
		else if (frames[i].kind == FRAME_WAIT)
			r = put_wait(names, &frames[i]);
		else if (frames[i].kind == FRAME_UNSAMPLED)
			r = put_unsampled(names, &frames[i]);
		else
			r = put_unnamed(names, &frames[i]);
	}
	return r;
}

/* *ret is NULL if there are none. */
static int symbols_of(struct symbol_writer *names, int64_t module_id, struct symbol_module **ret)
{
	const struct id_slot *slot = id_map_find(&names->module_index, (uint64_t)module_id);
	struct named_module *named;
	int r;

	if (!slot) {
		r = add_module(names, &(struct named_module){ .id = module_id });
		if (r < 0)
			return r;
		slot = id_map_find(&names->module_index, (uint64_t)module_id);
	}
	named = &names->modules[slot->id];
	if (!named->tried) {
		named->tried = true;
		r = names->finder.open(names->finder.data, module_id, &named->symbols);
		if (r == -ENOMEM)
			return r;
	}
	*ret = named->symbols;
	return 0;
}

bool symbol_writer_sources(const struct symbol_writer *names, int64_t module_id, struct symbol_sources *ret)
{
	const struct id_slot *slot = id_map_find(&names->module_index, (uint64_t)module_id);

	if (!slot || !names->modules[slot->id].symbols)
		return false;
	symbol_module_sources(names->modules[slot->id].symbols, ret);
	return true;
}

void symbol_writer_limited(const struct symbol_writer *names, struct symbol_limited *ret)
{
	*ret = (struct symbol_limited){ 0 };
	if (names->client)
		name_client_limited(names->client, ret);
	else if (names->search)
		symbol_search_limited(names->search, ret);
}

void symbol_writer_close_module(struct symbol_writer *names, int64_t module_id)
{
	const struct id_slot *slot = id_map_find(&names->module_index, (uint64_t)module_id);

	if (slot)
		symbol_module_free(TAKE(names->modules[slot->id].symbols));
}

static int put_symbol(struct symbol_writer *names, const struct new_frame *frame, const struct symbol *symbol,
		      int64_t *ret)
{
	struct function_row function = {
		.kind = FRAME_NATIVE,
		.name = symbol->name,
		.symbol = symbol->linkage,
		.role = role_name(symbol->role),
		.file = symbol->file,
		.module = frame->module_id,
	};

	return put_function(names, &function, ret);
}

/* The functions at an address, innermost first. Returns their number, 0 if unknown. */
static int look_up_native(struct symbol_writer *names, const struct new_frame *frame, struct symbol *found, size_t max)
{
	struct symbol_module *symbols = NULL;
	int r;

	r = symbols_of(names, frame->module_id, &symbols);
	if (r < 0 || !symbols)
		return r;
	r = symbol_lookup(symbols, frame->address, found, max);
	return r == -ENOMEM ? r : MAX(r, 0);
}

/* Each inlined function becomes a frame, outermost first, with a reference to the one it is inlined into. */
static int put_native(struct symbol_writer *names, const struct new_frame *frame, const struct symbol *found, int n)
{
	int64_t function, into = 0;
	int r;

	for (int i = n - 1; i > 0; i--) {
		struct frame_row row = {
			.frame = FIRST_INLINED_FRAME + names->n_inlined,
			.kind = FRAME_NATIVE,
			.module = frame->module_id,
			.line = found[i].line,
			.is_eval = false,
			.inlined_into = into,
		};

		r = put_symbol(names, frame, &found[i], &row.function);
		if (r >= 0)
			r = store_put_frame(names->store, &row);
		if (r < 0)
			return r;
		names->n_inlined++;
		into = row.frame;
	}
	r = put_symbol(names, frame, &found[0], &function);
	if (r < 0)
		return r;
	return store_name_frame(names->store, frame->id, function, found[0].line, into);
}

/*
 * A CPython trampoline only calls the evaluation of its function. If the stack has the Python frames, the trampoline is
 * internal. If they could not be read, the trampoline alone names the function and stands for it.
 */
static int put_generated(struct symbol_writer *names, const struct new_frame *frame,
			 const struct generated_symbol *symbol)
{
	struct function_row function = {
		.kind = FRAME_NATIVE,
		.name = symbol->name,
		.symbol = strcmp(symbol->name, symbol->entry) != 0 ? symbol->entry : NULL,
		.file = symbol->file,
		.first_line = symbol->first_line,
	};
	int64_t id;
	int r = 0;

	if (symbol->is_python && frame->role != ANONYMOUS_ALONE) {
		function.name = symbol->entry;
		function.symbol = function.file = NULL;
		function.role = role_name(SYMBOL_INTERNAL);
	} else if (symbol->is_python) {
		function.kind = FRAME_PYTHON;
		r = store_set_frame_kind(names->store, frame->id, FRAME_PYTHON);
	}
	if (r >= 0)
		r = put_function(names, &function, &id);
	return r < 0 ? r : store_name_frame(names->store, frame->id, id, symbol->line, 0);
}

/*
 * Anonymous code that calls an evaluation is such a trampoline, even before its name is written: CPython buffers its
 * jitdump.
 */
static int put_nameless(struct symbol_writer *names, const struct new_frame *frame)
{
	struct function_row function = { .kind = FRAME_NATIVE, .name = "[anonymous code]" };
	int64_t id;
	int r;

	if (frame->role == ANONYMOUS_ENTERS_PYTHON) {
		function.name = "[Python trampoline]";
		function.role = role_name(SYMBOL_INTERNAL);
	}
	r = put_function(names, &function, &id);
	return r < 0 ? r : store_name_frame(names->store, frame->id, id, 0, 0);
}

static int name_generated(struct symbol_writer *names, const struct new_frame *frame)
{
	struct generated_symbol symbol;
	int r;

	r = generated_names_look_up(names->generated, frame, &symbol);
	if (r < 0)
		return r;
	return r > 0 ? put_generated(names, frame, &symbol) : put_nameless(names, frame);
}

static int name_again(const struct new_frame *frame, const struct generated_symbol *symbol, void *data)
{
	return put_generated(data, frame, symbol);
}

int symbol_writer_put_programs(struct symbol_writer *names, struct batch *batch)
{
	int r;

	if (names->client) {
		r = name_client_put_programs(names->client, batch->programs, batch->n_programs, batch->dumps,
					     batch->n_dumps);
		names->refresh_generated = name_client_is_open(names->client);
		return r;
	}
	r = generated_names_put(names->generated, batch->programs, batch->n_programs, batch->dumps, batch->n_dumps);
	names->refresh_generated = generated_names_is_open(names->generated);
	return r;
}

static int name_native(struct symbol_writer *names, const struct new_frame *frame)
{
	struct symbol found[SYMBOL_MAX_INLINED];
	int n;

	n = look_up_native(names, frame, found, N_ELEMENTS(found));
	return n > 0 ? put_native(names, frame, found, n) : n;
}

/* The frame's address is a place (kernel_symbols_place()). Returns 1 if it was named. */
static int name_kernel(struct symbol_writer *names, const struct new_frame *frame)
{
	struct function_row function = { .kind = FRAME_KERNEL };
	uint64_t ip;
	int64_t id;
	int r;

	open_kernel(names);
	if (names->kernel && kernel_symbols_address(names->kernel, frame->address, &ip) >= 0)
		function.name = kernel_symbol_lookup(names->kernel, ip, NULL);
	if (!function.name)
		return 0;
	r = put_function(names, &function, &id);
	if (r >= 0)
		r = store_name_frame(names->store, frame->id, id, 0, 0);
	return r < 0 ? r : 1;
}

static enum symbol_quality quality_of(const struct symbol *innermost)
{
	return innermost->line > 0 ? NAMED_WITH_LINE : innermost->is_offset ? NAMED_BY_OFFSET : NAMED;
}

int symbol_writer_improve(struct symbol_writer *names, const struct new_frame *frame, enum symbol_quality least,
			  enum symbol_quality *ret)
{
	struct symbol found[SYMBOL_MAX_INLINED];
	int n, r;

	if (frame->kind == FRAME_KERNEL) {
		r = least > NAMED ? 0 : name_kernel(names, frame);
		if (r > 0)
			*ret = NAMED;
		return r;
	}
	n = look_up_native(names, frame, found, N_ELEMENTS(found));
	if (n <= 0 || quality_of(&found[0]) < least)
		return n < 0 ? n : 0;
	r = store_drop_inlined(names->store, frame->id);
	if (r >= 0)
		r = put_native(names, frame, found, n);
	if (r < 0)
		return r;
	*ret = quality_of(&found[0]);
	return 1;
}

int64_t symbol_writer_inlined(const struct symbol_writer *names)
{
	return names->n_inlined;
}

static void trim(struct symbol_writer *names)
{
	if (!page_trim_is_due(&names->trim))
		return;
	for (size_t i = 0; i < names->n_modules; i++)
		if (names->modules[i].symbols)
			symbol_module_trim(names->modules[i].symbols);
	page_trim_did(&names->trim);
}

static int look_up_here(struct symbol_writer *names, const struct new_frame *frames, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && r >= 0; i++) {
		if (frames[i].kind == FRAME_KERNEL)
			r = name_kernel(names, &frames[i]);
		else
			r = frames[i].module_id ? name_native(names, &frames[i]) : name_generated(names, &frames[i]);
		if (i % NAMES_BETWEEN_TRIMS == 0)
			trim(names);
	}
	trim(names);
	return MIN(r, 0);
}

static int take_native(void *data, const struct new_frame *frame, const struct symbol *symbols, int n)
{
	return put_native(data, frame, symbols, n);
}

static int take_generated(void *data, const struct new_frame *frame, const struct generated_symbol *symbol)
{
	return symbol ? put_generated(data, frame, symbol) : put_nameless(data, frame);
}

static int look_up_elsewhere(struct symbol_writer *names, const struct new_frame *frames, size_t n)
{
	const struct name_taker taker = { take_native, take_generated, names };
	int r = 0;

	for (size_t i = 0; i < n && r >= 0; i++)
		if (frames[i].kind == FRAME_KERNEL)
			r = name_kernel(names, &frames[i]);
	for (size_t i = 0; i < n && r >= 0; i += WIRE_MAX_PLACES)
		r = name_client_look_up(names->client, frames + i, MIN(n - i, (size_t)WIRE_MAX_PLACES), &taker);
	return MIN(r, 0);
}

static int refresh_generated(struct symbol_writer *names)
{
	const struct name_taker taker = { take_native, take_generated, names };

	if (names->client)
		return name_client_refresh(names->client, &taker, &names->stale);
	return generated_names_refresh(names->generated, name_again, names, &names->stale);
}

int symbol_writer_look_up(struct symbol_writer *names, size_t max)
{
	size_t n = MIN(max, names->n_waiting - names->first_waiting);
	const struct new_frame *frames = &names->waiting[names->first_waiting];
	int r = 0;

	if (names->refresh_generated) {
		names->refresh_generated = false;
		r = refresh_generated(names);
	}
	if (r >= 0 && n > 0)
		r = names->client ? look_up_elsewhere(names, frames, n) : look_up_here(names, frames, n);
	names->first_waiting += n;
	if (names->first_waiting == names->n_waiting)
		names->first_waiting = names->n_waiting = 0;
	return MIN(r, 0);
}

struct kept_functions {
	uint8_t *is_kept; /* indexed by function id */
	uint32_t n;
};

static void keep_function(void *data, int64_t function)
{
	struct kept_functions *kept = data;

	if (function > 0 && function <= kept->n)
		kept->is_kept[function] = 1;
}

static int keep_only(struct function_set *set, const struct kept_functions *kept)
{
	struct function_set left = { 0 };
	int r = 0;

	for (size_t i = 0; i < set->keys.n && r >= 0; i++)
		if (set->ids[i] != 0 && kept->is_kept[set->ids[i]])
			r = copy_function(set, &left, (uint32_t)i);
	if (r < 0) {
		function_set_done(&left);
		return r;
	}
	function_set_done(set);
	*set = left;
	return 0;
}

int symbol_writer_forget_dropped(struct symbol_writer *names)
{
	struct kept_functions kept = { .n = names->n_functions };
	int r;

	kept.is_kept = calloc((size_t)kept.n + 1, 1);
	if (!kept.is_kept)
		return -ENOMEM;
	r = store_each_function_id(names->store, keep_function, &kept);
	if (r >= 0)
		r = keep_only(&names->functions, &kept);
	free(kept.is_kept);
	return r;
}
