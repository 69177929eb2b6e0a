/* naming.c - see naming.h.
 *
 * Functions are told apart by a 64-bit hash of kind, module, name, file and
 * first line. Ids of frames that inlining adds begin where those given out by
 * the capturing thread can never reach.
 */
#include "src/pipeline/naming.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/id_map.h"
#include "base/util.h"
#include "symbolize/symbolize.h"

#define FIRST_INLINED_FRAME (1LL << 32)

struct named_module {
	int64_t id;
	const struct module *module;
	struct symbol_module *symbols; /* opened at the first look-up */
	bool tried;
};

struct naming {
	struct store *store;
	struct named_module *modules;
	size_t n_modules, modules_allocated;
	struct id_map module_index; /* id -> index */
	struct id_map functions;    /* hash -> function id */
	uint32_t n_functions;
	int64_t n_inlined;
	struct new_frame *waiting;
	size_t first_waiting, n_waiting, waiting_allocated;
	struct kernel_symbols *kernel;
	bool kernel_tried;
	struct generated_names *generated;
	struct stale_places stale;
	bool refresh_generated; /* programs may have written since */
};

int naming_new(struct store *store, struct naming **ret)
{
	struct naming *names = calloc(1, sizeof *names);
	int r;

	if (!names)
		return -ENOMEM;
	names->store = store;
	r = generated_names_new(&names->generated);
	if (r < 0) {
		free(names);
		return r;
	}
	*ret = names;
	return 0;
}

void naming_free(struct naming *names)
{
	if (!names)
		return;
	for (size_t i = 0; i < names->n_modules; i++)
		symbol_module_free(names->modules[i].symbols);
	free(names->modules);
	id_map_done(&names->module_index);
	id_map_done(&names->functions);
	free(names->waiting);
	kernel_symbols_free(names->kernel);
	generated_names_free(names->generated);
	free(names->stale.places);
	free(names);
}

bool naming_is_waiting(const struct naming *names)
{
	return names->n_waiting > names->first_waiting || names->refresh_generated;
}

int naming_take_stale(struct naming *names, struct stale_places *to)
{
	return stale_places_move(&names->stale, to);
}

int naming_put_modules(struct naming *names, const struct new_module *modules, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char build_id[2 * BUILD_ID_MAX + 1] = "";
		const struct module *module = modules[i].module;
		struct module_row row = { .module = modules[i].id, .path = module->path };
		int r;

		if (module->elf)
			build_id_format(elf_file_build_id(module->elf), build_id);
		row.build_id = build_id[0] ? build_id : NULL;
		r = store_put_module(names->store, &row);
		if (r >= 0)
			r = grow(&names->modules, names->n_modules, &names->modules_allocated,
				 sizeof *names->modules);
		if (r >= 0)
			r = id_map_add(&names->module_index, (uint64_t)modules[i].id,
				       (uint32_t)names->n_modules);
		if (r < 0)
			return r;
		names->modules[names->n_modules++] =
			(struct named_module){ .id = modules[i].id, .module = module };
	}
	return 0;
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
	for (; text && *text; text++)
		hash = (hash ^ (uint8_t)*text) * 0x100000001b3ULL;
	return mix64(hash + 1);
}

/* The id of a function, its row put where it is new. */
static int put_function(struct naming *names, struct function_row *row, int64_t *ret)
{
	uint64_t hash = mix64((uint64_t)row->kind << 32 | (uint32_t)row->first_line) ^ (uint64_t)row->module;
	const struct id_slot *slot;
	int r;

	hash = hash_text(hash, row->name);
	/* Of native ones the file may be a header, line by line; not of those that name their start. */
	if (row->kind == FRAME_PYTHON || row->first_line > 0)
		hash = hash_text(hash, row->file);
	hash |= 1;
	slot = id_map_find(&names->functions, hash);
	if (slot) {
		*ret = slot->id;
		return 0;
	}
	row->function = names->n_functions + 1;
	r = store_put_function(names->store, row);
	if (r >= 0)
		r = id_map_add(&names->functions, hash, names->n_functions + 1);
	if (r < 0)
		return r;
	*ret = ++names->n_functions;
	return 0;
}

static int put_python(struct naming *names, const struct new_frame *frame)
{
	struct function_row function = {
		.kind = FRAME_PYTHON,
		.name = frame->code->qualname,
		.file = frame->code->file,
		.first_line = frame->code->first_line,
	};
	struct frame_row row = { .frame = frame->id, .kind = FRAME_PYTHON, .line = frame->line };
	int r;

	r = put_function(names, &function, &row.function);
	if (r < 0)
		return r;
	return store_put_frame(names->store, &row);
}

static int put_unnamed(struct naming *names, const struct new_frame *frame)
{
	struct frame_row row = {
		.frame = frame->id,
		.kind = frame->kind,
		.module = frame->module_id,
		.has_address = frame->module || frame->kind == FRAME_KERNEL,
		.address = frame->address,
		.is_eval = frame->is_eval,
	};
	int r;

	r = store_put_frame(names->store, &row);
	if (r >= 0)
		r = grow(&names->waiting, names->n_waiting, &names->waiting_allocated,
			 sizeof *names->waiting);
	if (r < 0)
		return r;
	names->waiting[names->n_waiting++] = *frame;
	return 0;
}

int naming_put_frames(struct naming *names, const struct new_frame *frames, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && r >= 0; i++)
		r = frames[i].kind == FRAME_PYTHON ? put_python(names, &frames[i])
						   : put_unnamed(names, &frames[i]);
	return r;
}

static struct symbol_module *symbols_of(struct naming *names, int64_t module_id)
{
	const struct id_slot *slot = id_map_find(&names->module_index, (uint64_t)module_id);
	struct named_module *named;
	const struct module *module;

	if (!slot)
		return NULL;
	named = &names->modules[slot->id];
	module = named->module;
	if (named->tried)
		return named->symbols;
	named->tried = true;
	/* A file that could not be opened as the process sees it is not guessed at. */
	if (module->image)
		symbol_module_open_memory(module->path, module->image,
					  module->n_image_bytes, &named->symbols);
	else if (module->elf)
		symbol_module_open(module->path, elf_file_fd(module->elf), &named->symbols);
	return named->symbols;
}

static const char *role_name(enum symbol_role role)
{
	return role == SYMBOL_BUILTIN ? "builtin" : role == SYMBOL_GLUE ? "glue" : NULL;
}

static int put_symbol(struct naming *names, const struct new_frame *frame, const struct symbol *symbol,
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

/* Functions that were inlined become frames of their own: outermost first, each into the one before. */
static int name_native(struct naming *names, const struct new_frame *frame)
{
	struct symbol_module *symbols = symbols_of(names, frame->module_id);
	struct symbol found[SYMBOL_MAX_INLINED];
	int64_t function, into = 0;
	int n, r;

	n = symbols ? symbol_lookup(symbols, frame->address, found, N_ELEMENTS(found)) : 0;
	if (n == -ENOMEM)
		return n;
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
	if (n <= 0)
		return 0;
	r = put_symbol(names, frame, &found[0], &function);
	if (r < 0)
		return r;
	return store_name_frame(names->store, frame->id, function, found[0].line, into);
}

/*
 * A trampoline of CPython's only leads to the evaluation of its function. Where
 * the interpreter's own frames are in the stack that is plumbing; where they could
 * not be read, it is all that tells of the function, and stands for it.
 */
static int put_generated(struct naming *names, const struct new_frame *frame,
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
		function.role = role_name(SYMBOL_GLUE);
	} else if (symbol->is_python) {
		function.kind = FRAME_PYTHON;
		r = store_set_frame_kind(names->store, frame->id, FRAME_PYTHON);
	}
	if (r >= 0)
		r = put_function(names, &function, &id);
	return r < 0 ? r : store_name_frame(names->store, frame->id, id, symbol->line, 0);
}

/*
 * What calls an evaluation from anonymous memory is such a trampoline, also before its name has
 * been written down: CPython buffers its jitdump.
 */
static int put_nameless(struct naming *names, const struct new_frame *frame)
{
	struct function_row function = { .kind = FRAME_NATIVE, .name = "[anonymous code]" };
	int64_t id;
	int r;

	if (frame->role == ANONYMOUS_ENTERS_PYTHON) {
		function.name = "[Python trampoline]";
		function.role = role_name(SYMBOL_GLUE);
	}
	r = put_function(names, &function, &id);
	return r < 0 ? r : store_name_frame(names->store, frame->id, id, 0, 0);
}

static int name_generated(struct naming *names, const struct new_frame *frame)
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

int naming_put_programs(struct naming *names, struct batch *batch)
{
	int r;

	r = generated_names_put(names->generated, batch->programs, batch->n_programs, batch->dumps,
				batch->n_dumps);
	names->refresh_generated = generated_names_is_open(names->generated);
	return r;
}

static int name_kernel(struct naming *names, const struct new_frame *frame)
{
	struct function_row function = { .kind = FRAME_KERNEL };
	int64_t id;
	int r;

	if (!names->kernel_tried) {
		names->kernel_tried = true;
		(void)kernel_symbols_open(&names->kernel); /* hidden: frames stay "[kernel]" */
	}
	if (names->kernel)
		function.name = kernel_symbol_lookup(names->kernel, frame->address, &function.symbol);
	function.symbol = NULL;
	if (!function.name)
		return 0;
	r = put_function(names, &function, &id);
	if (r < 0)
		return r;
	return store_name_frame(names->store, frame->id, id, 0, 0);
}

int naming_look_up(struct naming *names, size_t max)
{
	int r = 0;

	if (names->refresh_generated) {
		names->refresh_generated = false;
		r = generated_names_refresh(names->generated, name_again, names, &names->stale);
	}
	while (max-- > 0 && names->first_waiting < names->n_waiting && r >= 0) {
		const struct new_frame *frame = &names->waiting[names->first_waiting];

		if (frame->kind == FRAME_KERNEL)
			r = name_kernel(names, frame);
		else
			r = frame->module ? name_native(names, frame) : name_generated(names, frame);
		names->first_waiting++;
	}
	if (names->first_waiting == names->n_waiting)
		names->first_waiting = names->n_waiting = 0;
	return r;
}

/* Pages of mapped files in our memory, in bytes. Source: proc(5), /proc/pid/statm. */
static uint64_t mapped_file_bytes(void)
{
	CLEANUP(freep) char *text = NULL;
	unsigned long long total, resident, shared;

	if (read_file("/proc/self/statm", 256, &text, NULL) < 0 ||
	    sscanf(text, "%llu %llu %llu", &total, &resident, &shared) != 3)
		return 0;
	return shared * (uint64_t)getpagesize();
}

void naming_trim(struct naming *names)
{
	enum { ENOUGH_BYTES = 16 << 20 };

	if (mapped_file_bytes() < ENOUGH_BYTES)
		return;
	for (size_t i = 0; i < names->n_modules; i++)
		if (names->modules[i].symbols)
			symbol_module_trim(names->modules[i].symbols);
	malloc_trim(0);
}
