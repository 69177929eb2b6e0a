/* SPDX-License-Identifier: MIT */
/* lookup.c - resolves an address of a module to a name; see symbolize.h.
 *
 * A look-up uses, in this order: the symbol table and the unwind information
 * for the function and its start; the debug information for inlined functions,
 * files and lines; the Python method tables for its name in Python; the
 * table of internal functions for its role. Go's own table replaces missing debug information; the names
 * in tracebacks replace the symbols of Cython's functions.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "symbolize/module.h"
#include "symbolize/parts.h"
#include "symbolize/search.h"

/* An address according to symbol table and unwind information. */
struct place {
	uint64_t start;       /* 0: unknown */
	const char *linkage;  /* NULL: unknown */
	const char *named_by; /* the display symbol if it differs: a part's function */
	uint64_t body_of;     /* Argument Clinic's wrapper that calls this function; 0: none */
	bool is_interface;    /* part of Python's C API: keep its own name */
};

/* The function of which the symbol is a part or copy: "f" of "f.cold"; NULL: none. */
static const struct symtab_entry *find_parent(const struct symbol_module *module, const struct symtab_entry *part)
{
	const struct symtab_entry *parent = part->parent ? symtab_find(module->symtab, part->parent) : NULL;

	return parent && parent->address == part->parent ? parent : NULL;
}

static bool is_interface_name(const struct symtab_entry *entry)
{
	return entry->exported && (strncmp(entry->name, "Py", 2) == 0 || strncmp(entry->name, "_Py", 3) == 0);
}

/* Use unwind information for an address without symbol: a part is named like its function. */
static struct place find_without_symbol(const struct symbol_module *module, uint64_t start, uint64_t end)
{
	const struct symtab_entry *entry;
	struct place place = { .start = start };

	if (!part_find_function(module->elf, start, end, &place.start))
		return place;
	entry = symtab_find(module->symtab, place.start);
	if (entry && entry->address == place.start) {
		place.linkage = entry->name;
		place.is_interface = is_interface_name(entry);
	}
	return place;
}

static struct place find_place(const struct symbol_module *module, uint64_t address)
{
	const struct symtab_entry *entry = symtab_find(module->symtab, address);
	const struct symtab_entry *parent;
	uint64_t start, end;
	bool has_entry = !module->is_debug_file && elf_file_function(module->elf, address, &start, &end) == 0;

	/* A symbol without size may have ended long before. */
	if (entry && entry->size == 0 && has_entry && start > entry->address)
		entry = NULL;
	if (!entry && has_entry)
		return find_without_symbol(module, start, end);
	if (!entry)
		return (struct place){ .start = 0 };
	parent = find_parent(module, entry);
	return (struct place){
		.start = parent ? parent->address : entry->address,
		.linkage = entry->name,
		.named_by = parent ? parent->name : NULL,
		.body_of = entry->body_of,
		.is_interface = is_interface_name(entry),
	};
}

static bool is_plumbing(const struct symbol_module *module, const char *name)
{
	if (module->python.is_interpreter)
		return symbol_is_internal(name);
	/* A python executable that only starts the interpreter of a library. */
	return module->python.is_launcher && strncmp(module->base_name, "python", 6) == 0 &&
	       (strcmp(name, "main") == 0 || strcmp(name, "_start") == 0);
}

/* If gc_collect_main exists, _PyGC_Collect only calls it. */
static bool is_collector(const struct symbol_module *module, const char *name)
{
	if (!module->python.is_interpreter || !symbol_is_collector(name))
		return false;
	return name[0] != '_' || !module->symtab->has_gc_main;
}

/* Find the Python name of a function; *ret is NULL if it has none. -ENOMEM. */
static int find_method(struct symbol_module *module, const struct place *place, const struct method **ret)
{
	const struct method *method;
	int r;

	*ret = NULL;
	if (place->start == 0)
		return 0;
	r = module_open_methods(module);
	if (r < 0 || !module->methods)
		return r;
	method = method_tables_find(module->methods, place->start);
	if (!method && place->body_of != 0)
		method = method_tables_find(module->methods, place->body_of);
	if (method && (!place->is_interface || method->is_body))
		*ret = method;
	return 0;
}

static int keep_method_name(struct symbol_module *module, const struct method *method, const char **ret)
{
	CLEANUP(freep) char *name = NULL;
	int r;

	r = method_format(method, &name);
	if (r < 0)
		return r;
	return names_keep(module->kept, name, ret);
}

static int keep_offset_name(struct symbol_module *module, uint64_t offset, const char **ret)
{
	CLEANUP(freep) char *name = NULL;

	if (asprintf(&name, "%s+0x%llx", module->base_name, (unsigned long long)offset) < 0)
		return -ENOMEM;
	return names_keep(module->kept, name, ret);
}

/* Name a function from a symbol table or debug information. */
static int name_by_linkage(struct symbol_module *module, const struct place *place, struct symbol *symbol)
{
	int r;

	r = names_readable(module->readable, place->named_by ?: place->linkage, &symbol->name);
	if (r < 0)
		return r;
	if (is_collector(module, symbol->name))
		symbol->name = SYMBOL_COLLECTOR;
	symbol->linkage = strcmp(symbol->name, place->linkage) == 0 ? NULL : place->linkage;
	if (is_plumbing(module, symbol->name) || symbol_is_pybind11(symbol->name, false))
		symbol->role = SYMBOL_INTERNAL;
	return 0;
}

static int name_by_method(struct symbol_module *module, const struct place *place, const struct method *method,
			  struct symbol *symbol)
{
	int r;

	symbol->role = method->kind == METHOD_GLUE ? SYMBOL_INTERNAL : SYMBOL_BUILTIN;
	/* If types share a function, its own name says more than one type's name. */
	if (place->linkage && (method->is_shared || method->kind == METHOD_GLUE))
		return 0;
	r = keep_method_name(module, method, &symbol->name);
	if (r < 0)
		return r;
	symbol->linkage = place->linkage;
	if (is_plumbing(module, symbol->name))
		symbol->role = SYMBOL_INTERNAL;
	return 0;
}

static int name_by_offset(struct symbol_module *module, const struct place *place, uint64_t address,
			  struct symbol *symbol)
{
	int r;

	r = module_is_nameless_internal(module, place->start);
	if (r < 0)
		return r;
	if (r > 0)
		symbol->role = SYMBOL_INTERNAL;
	symbol->is_offset = true;
	return keep_offset_name(module, place->start ? place->start : address, &symbol->name);
}

/* Cython's symbols combine several names; tracebacks use the name in the source. -ENOMEM; errors of effort.h. */
static int find_cython(struct symbol_module *module, const struct place *place, const struct cython_function **ret)
{
	static const char prefix[] = "__pyx_";
	int r;

	*ret = NULL;
	if (place->start == 0 || (place->linkage && strncmp(place->linkage, prefix, sizeof prefix - 1) != 0))
		return 0;
	r = module_open_cython(module);
	if (r >= 0 && module->cython)
		*ret = cython_names_find(module->cython, place->start);
	return r;
}

static int name_by_traceback(struct symbol_module *module, const struct place *place,
			     const struct cython_function *function, struct symbol *symbol)
{
	symbol->linkage = place->linkage;
	if (!symbol->file)
		symbol->file = function->file;
	return names_keep(module->kept, function->name, &symbol->name);
}

static int name_function(struct symbol_module *module, const struct place *place, uint64_t address,
			 struct symbol *symbol)
{
	const struct cython_function *cython;
	const struct method *method;
	int r;

	symbol->start = place->start;
	if (place->linkage) {
		r = name_by_linkage(module, place, symbol);
		if (r < 0 || symbol->role == SYMBOL_INTERNAL)
			return r;
	}
	r = find_method(module, place, &method);
	if (r < 0)
		return r;
	if (method)
		r = name_by_method(module, place, method, symbol);
	if (r >= 0)
		r = find_cython(module, place, &cython);
	if (r >= 0 && method && cython && strstr(cython->name, ".__pyx_"))
		return 0; /* no name of the source */
	if (r < 0 || cython)
		return r < 0 ? r : name_by_traceback(module, place, cython, symbol);
	return place->linkage || method ? 0 : name_by_offset(module, place, address, symbol);
}

static int name_inlined(struct symbol_module *module, const struct debug_frame *frame, struct symbol *symbol)
{
	struct place place = { .linkage = frame->linkage ? frame->linkage : frame->name };
	int r;

	if (!place.linkage)
		place.linkage = "(inlined)";
	r = name_by_linkage(module, &place, symbol);
	if (r >= 0 && symbol_is_pybind11(symbol->name, true))
		symbol->role = SYMBOL_INTERNAL;
	return r;
}

/* Fill one symbol from a frame; the last frame is not inlined. */
static int fill_symbol(struct symbol_module *module, const struct debug_frame *frame, bool is_inlined, uint64_t address,
		       struct symbol *symbol)
{
	struct place place;

	*symbol = (struct symbol){ .file = frame->file, .line = frame->line };
	if (is_inlined)
		return name_inlined(module, frame, symbol);
	place = find_place(module, address);
	if (!place.linkage) {
		place.linkage = frame->linkage ? frame->linkage : frame->name;
		if (frame->start)
			place.start = frame->start;
	}
	return name_function(module, &place, address, symbol);
}

/* ---- Lookup within limits ---- */

typedef int looking_up(struct symbol_module *module, uint64_t address, struct symbol *symbols, size_t max);

static int look_up_plumbing(struct symbol_module *module, uint64_t address, struct symbol *symbols, size_t max)
{
	static const struct debug_frame nothing;
	struct place place;
	int r;

	(void)max;
	r = module_make_ready(module);
	if (r < 0)
		return r;
	place = find_place(module, address);
	if (!place.linkage || (!module->python.is_interpreter && !module->python.is_launcher))
		return 0;
	r = fill_symbol(module, &nothing, false, address, symbols);
	return r < 0 ? r : symbols->role == SYMBOL_INTERNAL;
}

static const char *linkage_of(const struct debug_frame *frame)
{
	const char *linkage = frame->linkage ? frame->linkage : frame->name;

	return linkage ? linkage : "";
}

/*
 * Argument Clinic splits a method: select_select parses the arguments, select_select_impl does the work and is mostly
 * inlined. Show one function, at the line of the work. Returns the number of remaining frames.
 */
static size_t join_bodies(const struct symbol_module *module, struct debug_frame *frames, size_t n)
{
	size_t n_joined = 0;

	for (size_t i = 0; i < n; i++) {
		const char *body = linkage_of(&frames[i]), *function = i + 1 < n ? linkage_of(&frames[i + 1]) : "";
		const size_t n_function = strlen(function);

		if (module->python.uses_python && n_function > 0 && strncmp(body, function, n_function) == 0 &&
		    strcmp(body + n_function, "_impl") == 0 && frames[i].file) {
			frames[i + 1].file = frames[i].file;
			frames[i + 1].line = frames[i].line;
			continue;
		}
		frames[n_joined++] = frames[i];
	}
	return n_joined;
}

static int find_in_go(struct symbol_module *module, uint64_t address, struct debug_frame *frames, size_t max)
{
	int r = module_open_go(module);

	return r >= 0 && module->go ? go_table_find(module->go, address, frames, max) : r;
}

static int look_up(struct symbol_module *module, uint64_t address, struct symbol *symbols, size_t max)
{
	struct debug_frame frames[SYMBOL_MAX_INLINED] = { 0 };
	size_t n_frames, n_symbols;
	int r;

	r = module_make_ready(module);
	if (r >= 0)
		r = module_start_lines(module);
	if (r >= 0 && module->unpacking)
		r = module_open_methods(module); /* name_function() needs them, too, and reads other files meanwhile */
	if (r >= 0)
		r = module_open_lines(module);
	if (r < 0)
		return r;
	r = module->lines ? debug_lines_find(module->lines, address, frames, N_ELEMENTS(frames)) : 0;
	if (r == 0)
		r = find_in_go(module, address, frames, N_ELEMENTS(frames));
	if (r < 0)
		return r;
	n_frames = join_bodies(module, frames, (size_t)MAX(r, 1));
	n_symbols = MIN(n_frames, max);
	for (size_t i = 0; i < n_symbols; i++) {
		/* If there are too many, keep the innermost ones and the real function. */
		size_t from = i + 1 == n_symbols ? n_frames - 1 : i;

		r = fill_symbol(module, &frames[from], from + 1 < n_frames, address, &symbols[i]);
		if (r < 0)
			return r;
	}
	return (int)n_symbols;
}

static int keep_text(struct symbol_module *module, const char **text)
{
	return *text ? names_keep(module->kept, *text, text) : 0;
}

/* Copy the strings: files may be truncated and memory freed while the caller uses them. */
static int keep_texts(struct symbol_module *module, struct symbol *symbols, int n)
{
	for (int i = 0; i < n; i++) {
		int r = keep_text(module, &symbols[i].linkage);

		if (r >= 0)
			r = keep_text(module, &symbols[i].file);
		if (r < 0)
			return r;
	}
	return n;
}

static enum symbol_limit limit_of(int result, bool is_cut)
{
	return is_cut             ? SYMBOL_LIMIT_CUT
	       : result == -ETIME ? SYMBOL_LIMIT_TIME
	       : result == -E2BIG ? SYMBOL_LIMIT_MEMORY
				  : SYMBOL_LIMIT_NONE;
}

/* Returns the result of look, or -ENODATA if the module exceeds its limits. */
static int within_limits(struct symbol_module *module, uint64_t address, struct symbol *symbols, size_t max,
			 looking_up *look)
{
	enum symbol_limit limit;
	struct file_guard guard;
	bool is_cut;
	int r;

	if (module->limit > SYMBOL_LIMIT_PACKED)
		return -ENODATA;
	effort_allow_one(&module->effort);
	effort_begin(&module->effort);
	file_guard_enter(&guard);
	r = look(module, address, symbols, max);
	if (r > 0)
		r = keep_texts(module, symbols, r);
	is_cut = file_guard_leave(&guard);
	effort_end(&module->effort);
	limit = limit_of(r, is_cut || elf_file_is_cut(module->elf));
	if (limit == SYMBOL_LIMIT_NONE)
		return r;
	module_give_up(module, limit);
	return -ENODATA;
}

int symbol_lookup_internal(struct symbol_module *module, uint64_t address, struct symbol *ret)
{
	int r = within_limits(module, address, ret, 1, look_up_plumbing);

	return r == -ENODATA ? 0 : r;
}

static int start_lines(struct symbol_module *module, uint64_t address, struct symbol *symbols, size_t max)
{
	int r = module_make_ready(module);

	(void)address;
	(void)symbols;
	(void)max;
	return r < 0 ? r : module_start_lines(module);
}

int symbol_start(struct symbol_module *module)
{
	bool had_begun = module->unpacking != NULL;
	int r = within_limits(module, 0, NULL, 0, start_lines);

	return r < 0 && r != -ENODATA ? r : module->unpacking && !had_begun;
}

/* Unwind information is cheap: a binary search in the mapped file. */
static int name_without(struct symbol_module *module, uint64_t address, struct symbol *symbol)
{
	uint64_t start, end;
	int r;

	*symbol = (struct symbol){ .is_offset = true };
	if (!module->is_debug_file && elf_file_function(module->elf, address, &start, &end) == 0)
		symbol->start = start;
	r = keep_offset_name(module, symbol->start ? symbol->start : address, &symbol->name);
	return r < 0 ? r : 1;
}

int symbol_lookup(struct symbol_module *module, uint64_t address, struct symbol *symbols, size_t max)
{
	int r = within_limits(module, address, symbols, max, look_up);

	if (r == -ENODATA)
		r = name_without(module, address, &symbols[0]);
	if (r > 0 && module->limit != SYMBOL_LIMIT_NONE && symbols[r - 1].is_offset)
		search_count_limited(module->search, module->path, module->limit, module->n_limited++ == 0);
	return r;
}

const char *symbol_limit_text(enum symbol_limit limit)
{
	switch (limit) {
	case SYMBOL_LIMIT_PACKED:
		return "its packed symbols or debug information unpack to too much";
	case SYMBOL_LIMIT_TIME:
		return "its symbols or debug information take too long to read";
	case SYMBOL_LIMIT_MEMORY:
		return "its symbols or debug information take too much memory";
	case SYMBOL_LIMIT_CUT:
		return "it, or its debug file, was truncated during reading";
	case SYMBOL_LIMIT_NONE:
		break;
	}
	return NULL;
}
