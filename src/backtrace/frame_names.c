/* SPDX-License-Identifier: MIT */
/* frame_names.c - see frame_names.h.
 *
 * Names go into a profile of one stack at a time, so that the same frames are folded as in
 * flame graphs and reports (profile_path()).
 */
#include "src/backtrace/frame_names.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/backtrace/session.h"
#include "src/profile/profile.h"
#include "symbolize/symbolize.h"

/* Each begun module has a thread of its own; frames beyond hardly name other modules. */
enum { MAX_STARTED = 4, MAX_START_FRAMES = 512 };

struct frame_names {
	unsigned n_started, n_start_frames;
	struct backtrace_session *session;
	struct target *target;
	struct generated_code *generated; /* NULL: not opened yet */
	const struct mapping **code;      /* the process's executable module mappings, borrowed */
	size_t n_code;
	char **texts; /* names created here */
	size_t n_texts, texts_allocated;
	/* The current stack's frames, in the order of a stack's parents. */
	struct profile profile;
	size_t *origins; /* profile frame -> index in the stack */
	size_t origin, origins_allocated;
	const struct frame *stack; /* the stack being named, innermost first; borrowed */
	size_t frames_allocated, stacks_allocated;
	bool has_python;
};

/*
 * Collect code mappings once: they are few, but every thread's stack is a mapping, too. From here on the maps are not
 * read again.
 */
static int find_code(struct frame_names *names)
{
	const struct mapping *mapping;
	size_t n_allocated = 0;

	for (size_t i = 0; (mapping = address_space_nth(names->target->space, i)) != NULL; i++) {
		int r;

		if (!mapping->module || !mapping->executable)
			continue;
		r = grow(&names->code, names->n_code, &n_allocated, sizeof *names->code);
		if (r < 0)
			return r;
		names->code[names->n_code++] = mapping;
	}
	return 0;
}

int frame_names_new(struct backtrace_session *session, struct target *target, struct frame_names **ret)
{
	struct frame_names *names = calloc(1, sizeof *names);
	int r;

	if (!names)
		return -ENOMEM;
	names->session = session;
	names->target = target;
	r = find_code(names);
	if (r < 0) { /* on error, the caller keeps the target */
		free(names->code);
		free(names);
		return r;
	}
	*ret = names;
	return 0;
}

void frame_names_free(struct frame_names *names)
{
	if (!names)
		return;
	generated_code_free(names->generated);
	for (size_t i = 0; i < names->n_texts; i++)
		free(names->texts[i]);
	free(names->texts);
	free(names->code);
	free(names->origins);
	free(names->profile.frames);
	free(names->profile.stacks);
	target_free(names->target);
	free(names);
}

void frame_names_freep(struct frame_names **names)
{
	frame_names_free(*names);
}

static int add_frame(struct frame_names *names, const struct profile_frame *frame)
{
	struct profile *profile = &names->profile;
	int r;

	r = grow(&profile->frames, profile->n_frames, &names->frames_allocated, sizeof *profile->frames);
	if (r >= 0)
		r = grow(&names->origins, profile->n_frames, &names->origins_allocated, sizeof *names->origins);
	if (r < 0)
		return r;
	names->origins[profile->n_frames] = names->origin;
	profile->frames[profile->n_frames++] = *frame;
	return 0;
}

/* "libx.so+0x12a0", for modules without known functions. */
static int place_name(struct frame_names *names, const struct frame *frame, const char **ret)
{
	char *text;
	int r;

	r = grow(&names->texts, names->n_texts, &names->texts_allocated, sizeof *names->texts);
	if (r < 0)
		return r;
	if (asprintf(&text, "%s+0x%" PRIx64, module_name(frame->native.module), frame->native.address) < 0)
		return -ENOMEM;
	names->texts[names->n_texts++] = text;
	*ret = text;
	return 0;
}

static enum frame_role role_of(enum symbol_role role)
{
	return role == SYMBOL_BUILTIN ? ROLE_BUILTIN : role == SYMBOL_INTERNAL ? ROLE_INTERNAL : ROLE_NONE;
}

/*
 * Frames that will be hidden as interpreter-internal need no lines or inlined functions: reading debug information may
 * take longer than all the rest.
 */
static int look_up(struct symbol_module *symbols, const struct frame *frame, bool show_interpreter,
		   struct symbol found[SYMBOL_MAX_INLINED])
{
	int r = show_interpreter ? 0 : symbol_lookup_internal(symbols, frame->native.address, found);

	return r != 0 ? r : symbol_lookup(symbols, frame->native.address, found, SYMBOL_MAX_INLINED);
}

static int start_frame(struct frame_names *names, const struct frame *frame, bool show_interpreter)
{
	struct symbol_module *symbols = NULL;
	struct symbol found;
	int r;

	r = session_symbols(names->session, frame->native.module, &symbols);
	if (r < 0 || !symbols)
		return r;
	r = show_interpreter ? 0 : symbol_lookup_internal(symbols, frame->native.address, &found);
	return r != 0 ? MIN(r, 0) : symbol_start(symbols);
}

int frame_names_start(struct frame_names *names, const struct backtrace_options *options, const struct frame *frames,
		      size_t n_frames)
{
	const struct module *last = NULL; /* neighbours are often of one module */

	if (options->no_native)
		return 0;
	for (size_t i = 0; i < n_frames && names->n_started < MAX_STARTED; i++) {
		const struct module *module = frames[i].kind == FRAME_NATIVE ? frames[i].native.module : NULL;
		int r;

		if (!module || module == last)
			continue;
		if (names->n_start_frames++ == MAX_START_FRAMES)
			return 0;
		r = start_frame(names, &frames[i], options->show_interpreter);
		if (r == -ENOMEM)
			return r;
		last = r > 0 ? module : NULL;
		names->n_started += r > 0;
	}
	return 0;
}

/* Add a frame for the address and for each function inlined there. */
static int put_native(struct frame_names *names, const struct frame *frame, bool show_interpreter)
{
	struct profile_frame row = {
		.kind = FRAME_NATIVE,
		.is_eval = frame->is_evaluation,
		.module = frame->native.module->path,
		.inlined_into = -1,
	};
	struct symbol found[SYMBOL_MAX_INLINED];
	struct symbol_module *symbols = NULL;
	int n = 0, r;

	r = session_symbols(names->session, frame->native.module, &symbols);
	if (r >= 0 && symbols)
		r = n = look_up(symbols, frame, show_interpreter, found);
	if (r == -ENOMEM)
		return r;
	if (n <= 0) {
		r = place_name(names, frame, &row.name);
		return r < 0 ? r : add_frame(names, &row);
	}
	for (int i = 0; i < n; i++) {
		row.name = found[i].name;
		row.file = found[i].file;
		row.line = found[i].line;
		row.role = role_of(found[i].role);
		row.inlined_into = i + 1 < n ? (int64_t)names->profile.n_frames + 1 : -1;
		r = add_frame(names, &row);
		if (r < 0)
			return r;
	}
	return 0;
}

static int put_python(struct frame_names *names, const struct frame *frame)
{
	const struct py_code *code = frame->python.code;
	const struct profile_frame row = {
		.kind = FRAME_PYTHON,
		.name = code->qualname,
		.file = code->file,
		.role = symbol_is_import_file(code->file) ? ROLE_INTERNAL : ROLE_NONE,
		.line = py_code_line(code, frame->python.instruction),
		.inlined_into = -1,
	};

	return add_frame(names, &row);
}

/* A dump that cannot be opened names nothing. -ENOMEM. */
static int add_dumps(struct frame_names *names)
{
	const struct mapping *mapping;

	for (size_t i = 0; (mapping = address_space_nth(names->target->space, i)) != NULL; i++) {
		int fd, r;

		if (!mapping->executable || !mapping->module || !generated_is_dump_name(mapping->module->path))
			continue;
		r = module_open_file(mapping->module, &fd);
		if (r >= 0)
			r = generated_code_add_dump(names->generated, fd);
		if (r == -ENOMEM)
			return r;
	}
	return 0;
}

static int open_generated(struct frame_names *names)
{
	struct generated_owner owner = { .pid = names->target->pid };
	int r;

	if (names->generated)
		return 0;
	generated_owner_read(names->target->pid, &owner);
	r = generated_code_new(&owner, &names->generated);
	if (r >= 0)
		r = add_dumps(names);
	return r < 0 ? r : generated_code_refresh(names->generated);
}

/*
 * Code in no file. A CPython trampoline only calls the evaluation of its function: it is internal, unless the Python
 * frames could not be read.
 */
static int put_generated(struct frame_names *names, const struct frame *frame, bool enters_python)
{
	struct profile_frame row = {
		.kind = FRAME_NATIVE,
		.is_eval = frame->is_evaluation,
		.name = "[anonymous code]",
		.inlined_into = -1,
	};
	struct generated_symbol symbol;
	int r = 0;

	/* For a core file, a process with a reused PID may have written the map. */
	if (!names->target->is_dumped) {
		r = open_generated(names);
		if (r >= 0)
			r = generated_code_lookup(names->generated, frame->native.address, GENERATED_NOW, &symbol);
	}
	if (r < 0)
		return r;
	if (r > 0 && symbol.is_python && names->has_python) {
		row.name = symbol.entry;
		row.role = ROLE_INTERNAL;
	} else if (r > 0) {
		row.kind = symbol.is_python ? FRAME_PYTHON : FRAME_NATIVE;
		row.name = symbol.name;
		row.file = symbol.file;
		row.line = symbol.line;
	} else if (enters_python) {
		row.name = "[Python trampoline]";
		row.role = ROLE_INTERNAL;
	}
	return add_frame(names, &row);
}

static int put_frame(struct frame_names *names, const struct frame *frame, const struct frame *inner,
		     bool show_interpreter)
{
	struct profile *profile = &names->profile;
	struct profile_stack node = { (int32_t)profile->n_stacks - 1, (int32_t)profile->n_frames };
	int r;

	if (frame->kind == FRAME_PYTHON)
		r = put_python(names, frame);
	else if (frame->native.module)
		r = put_native(names, frame, show_interpreter);
	else
		r = put_generated(names, frame, names->has_python && inner && inner->is_evaluation);
	if (r >= 0)
		r = grow(&profile->stacks, profile->n_stacks, &names->stacks_allocated, sizeof *profile->stacks);
	if (r < 0)
		return r;
	profile->stacks[profile->n_stacks++] = node;
	return 0;
}

/* The frame's address in the process. If the module is mapped twice, use the mapping in which the address is code. */
static uint64_t process_address(const struct frame_names *names, const struct frame *frame)
{
	if (frame->kind != FRAME_NATIVE)
		return 0;
	if (!frame->native.module)
		return frame->native.address;
	for (size_t i = 0; i < names->n_code; i++) {
		const struct mapping *mapping = names->code[i];
		uint64_t address = frame->native.address + (uint64_t)mapping->bias;

		if (mapping->module == frame->native.module && mapping->has_bias && address >= mapping->start &&
		    address < mapping->end)
			return address;
	}
	return 0;
}

/* The profile's only stack as it is shown, innermost first. */
static int show(const struct frame_names *names, const struct backtrace_options *options,
		const struct py_locals *locals, struct backtrace_frame **ret, size_t *ret_n)
{
	const struct profile *profile = &names->profile;
	CLEANUP(freep) int32_t *path = calloc(profile->n_frames + 1, sizeof *path);
	CLEANUP(freep) struct backtrace_frame *shown = calloc(profile->n_frames + 1, sizeof *shown);
	size_t n_path, n = 0;

	if (!path || !shown)
		return -ENOMEM;
	n_path = profile_path(profile, (int32_t)profile->n_stacks - 1, options->show_interpreter, path,
			      profile->n_frames);
	while (n_path-- > 0) {
		const struct profile_frame *frame = &profile->frames[path[n_path]];

		if (options->no_native && frame->kind != FRAME_PYTHON)
			continue;
		shown[n++] = (struct backtrace_frame){
			.kind = frame->kind,
			.is_builtin = frame->role == ROLE_BUILTIN,
			.name = frame->name,
			.file = frame->file,
			.module = frame->module,
			.line = frame->line,
			.address = process_address(names, &names->stack[names->origins[path[n_path]]]),
			.locals = locals && frame->kind == FRAME_PYTHON ? &locals[names->origins[path[n_path]]] : NULL,
		};
	}
	*ret = TAKE(shown);
	*ret_n = n;
	return 0;
}

int frame_names_put(struct frame_names *names, const struct backtrace_options *options, const struct frame *frames,
		    size_t n_frames, const struct py_locals *locals, struct backtrace_frame **ret, size_t *ret_n)
{
	names->profile.n_frames = names->profile.n_stacks = 0;
	names->has_python = false;
	names->stack = frames;
	for (size_t i = 0; i < n_frames; i++)
		names->has_python |= frames[i].kind == FRAME_PYTHON;
	for (size_t i = n_frames; i-- > 0;) {
		int r;

		if (options->no_native && frames[i].kind == FRAME_NATIVE && frames[i].native.module)
			continue;
		names->origin = i;
		r = put_frame(names, &frames[i], i > 0 ? &frames[i - 1] : NULL, options->show_interpreter);
		if (r < 0)
			return r;
	}
	return show(names, options, locals, ret, ret_n);
}
