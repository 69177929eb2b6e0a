/* SPDX-License-Identifier: MIT */
/*
 * path.c - the displayed form of a stack.
 *
 * A stack of places becomes a path of functions: each place expands to the
 * functions inlined there, outermost first, and interpreter-internal functions are
 * folded. Exactly these are internal:
 *
 * 1. evaluation frames, and functions of role internal;
 * 2. functions without a name in the evaluation's own module, on the way
 *    from an evaluation to a builtin of that module, if only such functions
 *    and internal ones are in between. (A function without a name may itself be an
 *    unrecognised builtin; between two evaluations it therefore remains.)
 * 3. at the outer end of a stack with an evaluation: libc's functions that
 *    start a process or thread, and behind them the nameless functions of an
 *    interpreter's own file. A purely native thread keeps its start;
 * 4. the kernel's functions between a waiting function and the frame of its wait: only stacks
 *    taken as the thread left the CPU have them, and one wait must be one stack. A wait of
 *    unknown kind keeps them as its only explanation.
 *
 * A stack that folding would empty keeps its innermost function. A label remains whatever is below it.
 *
 * The caller can filter the rest: from a certain function on, or
 * Python alone, with its waits. That may leave nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/util.h"
#include "src/profile/profile.h"

/*
 * libc's functions that start a process or a thread. Their names are reserved, so they count in any module (a static
 * program contains them).
 */
static const char *const start_names[] = {
	"_start", "start_thread", "clone", "clone3", "__clone", "__clone3",
};

/* Prefix of several names: __libc_start_main_impl, __libc_start_main_alias_1 ... */
static const char start_prefix[] = "__libc_start_";

/* Names of libc's and the interpreter's files. */
static const char *const libc_prefixes[] = { "libc.so", "libc-", "libpthread", "ld-musl", "libc.musl" };
static const char *const interpreter_prefixes[] = { "python", "libpython" };

/* Deeper stacks use the heap. */
enum { SCRATCH_PLACES = 512 };

struct place {
	int32_t frame;
	bool is_eval; /* the frame, or the one it is inlined into, is an entry frame */
	bool hidden;
};

/* ---- Kinds of frames ---- */

static bool has_prefix(const char *module, const char *const *prefixes, size_t n)
{
	const char *name;

	if (!module)
		return false;
	name = path_base_name(module);
	for (size_t i = 0; i < n; i++)
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

bool profile_frame_is_libc(const struct profile_frame *frame)
{
	return has_prefix(frame->module, libc_prefixes, N_ELEMENTS(libc_prefixes));
}

/* Whether the name is an address in a module, such as "libx.so+0x12a0". */
static bool is_nameless(const struct profile_frame *frame)
{
	const char *name;
	size_t n;

	if (frame->kind != FRAME_NATIVE || !frame->module)
		return false;
	name = path_base_name(frame->module);
	n = strlen(name);
	return strncmp(frame->name, name, n) == 0 && strncmp(frame->name + n, "+0x", 3) == 0;
}

static bool is_in(const struct profile_frame *frame, const char *module)
{
	if (!frame->module || !module)
		return false;
	return frame->module == module || strcmp(frame->module, module) == 0;
}

static bool starts_thread(const struct profile_frame *frame)
{
	if (frame->kind != FRAME_NATIVE)
		return false;
	if (is_nameless(frame))
		return profile_frame_is_libc(frame);
	if (strncmp(frame->name, start_prefix, strlen(start_prefix)) == 0)
		return true;
	for (size_t i = 0; i < N_ELEMENTS(start_names); i++)
		if (strcmp(frame->name, start_names[i]) == 0)
			return frame->name[0] == '_' || profile_frame_is_libc(frame);
	return false;
}

/* ---- Fold ---- */

static const struct profile_frame *frame_of(const struct profile *profile, const struct place *place)
{
	return &profile->frames[place->frame];
}

/* Rule 1; returns the first entry frame, or n. */
static size_t hide_glue(const struct profile *profile, struct place *places, size_t n)
{
	size_t first_eval = n;

	for (size_t i = 0; i < n; i++) {
		places[i].hidden = places[i].is_eval || frame_of(profile, &places[i])->role == ROLE_INTERNAL;
		if (places[i].is_eval && first_eval == n)
			first_eval = i;
	}
	return first_eval;
}

/* Rule 2. */
static void hide_calls_of_builtins(const struct profile *profile, struct place *places, size_t n)
{
	const char *module = NULL; /* module of the entry frame before this run */
	size_t start = 0;

	for (size_t i = 0; i < n; i++) {
		const struct profile_frame *frame = frame_of(profile, &places[i]);

		if (places[i].is_eval) {
			module = frame->module;
			start = i + 1;
			continue;
		}
		if (frame->role == ROLE_INTERNAL || (is_nameless(frame) && is_in(frame, module)))
			continue;
		if (frame->role == ROLE_BUILTIN && is_in(frame, module))
			while (start < i)
				places[start++].hidden = true;
		module = NULL;
	}
}

/* Rule 3. */
static void hide_start(const struct profile *profile, struct place *places, size_t first_eval)
{
	const char *module = frame_of(profile, &places[first_eval])->module;
	bool is_interpreter = has_prefix(module, interpreter_prefixes, N_ELEMENTS(interpreter_prefixes));
	bool started = false;

	for (size_t i = 0; i < first_eval; i++) {
		const struct profile_frame *frame = frame_of(profile, &places[i]);

		if (starts_thread(frame)) {
			started = true;
		} else if (frame->role != ROLE_INTERNAL) {
			if (!is_interpreter || !is_nameless(frame) || !is_in(frame, module))
				return;
			/* Before any frame of libc, this is _start or the stack was cut. */
			if (!started && !starts_thread(frame_of(profile, &places[i + 1])))
				return;
		}
		places[i].hidden = true;
	}
}

/* Rule 4. */
static void hide_kernel_of_wait(const struct profile *profile, struct place *places, size_t n)
{
	const struct profile_frame *leaf;
	size_t first;

	if (n > 1 && frame_of(profile, &places[n - 2])->kind == FRAME_WAIT) /* beside it the object of the wait */
		n--;
	leaf = frame_of(profile, &places[n - 1]);
	first = n - 1;
	if (leaf->kind != FRAME_WAIT || strcmp(leaf->name, "[blocked]") == 0)
		return;
	while (first > 0 && frame_of(profile, &places[first - 1])->kind == FRAME_KERNEL)
		first--;
	for (size_t i = first; first > 0 && i < n - 1; i++)
		places[i].hidden = true;
}

static void fold(const struct profile *profile, struct place *places, size_t n)
{
	size_t first_eval;

	first_eval = hide_glue(profile, places, n);
	if (first_eval < n) {
		hide_calls_of_builtins(profile, places, n);
		hide_start(profile, places, first_eval);
	}
	hide_kernel_of_wait(profile, places, n);
	for (size_t i = 0; i < n; i++)
		if (!places[i].hidden)
			return;
	places[n - 1].hidden = false;
}

/* ---- Filters of the view ---- */

static void begin_at_root(const struct profile *profile, struct place *places, size_t n)
{
	size_t root = 0;

	while (root < n && (places[root].hidden || !profile->is_root[places[root].frame]))
		root++;
	/* A hidden frame counts, too. */
	for (size_t i = 0; root == n && i < n; i++)
		if (profile->is_root[places[i].frame])
			root = i;
	for (size_t i = 0; root < n && i < root; i++)
		places[i].hidden = true;
}

static void choose(const struct profile *profile, struct place *places, size_t n)
{
	if (profile->is_root)
		begin_at_root(profile, places, n);
	for (size_t i = 0; profile->python_only && i < n; i++) {
		enum frame_kind kind = frame_of(profile, &places[i])->kind;

		places[i].hidden |= kind != FRAME_PYTHON && kind != FRAME_TASK && kind != FRAME_WAIT &&
				    kind != FRAME_UNSAMPLED;
	}
}

/* ---- From tree to list ---- */

static size_t count_places(const struct profile *profile, int32_t stack)
{
	size_t n = 0;

	for (; stack >= 0; stack = profile->stacks[stack].parent)
		for (int64_t frame = profile->stacks[stack].frame; frame >= 0;
		     frame = profile->frames[frame].inlined_into)
			n++;
	return n;
}

/* List the stack's n frames, outermost first; drop those beyond room. */
static void expand(const struct profile *profile, int32_t stack, struct place *places, size_t n, size_t room)
{
	for (; stack >= 0; stack = profile->stacks[stack].parent) {
		int64_t frame = profile->stacks[stack].frame;
		bool is_eval = profile->frames[frame].is_eval;

		for (; frame >= 0; frame = profile->frames[frame].inlined_into)
			if (--n < room)
				places[n] = (struct place){ .frame = (int32_t)frame, .is_eval = is_eval };
	}
}

size_t profile_path(const struct profile *profile, int32_t stack, bool show_interpreter, int32_t *path, size_t max)
{
	struct place scratch[SCRATCH_PLACES], *places = scratch;
	CLEANUP(freep) struct place *heap = NULL;
	size_t n, n_path = 0, label, room = N_ELEMENTS(scratch);

	if (stack < 0 || (size_t)stack >= profile->n_stacks)
		return 0;
	n = count_places(profile, stack);
	if (n > room) {
		heap = reallocarray(NULL, n, sizeof *heap);
		/* Out of memory: cut the stack, like one that is too long for path. */
		if (heap) {
			places = heap;
			room = n;
		}
	}
	expand(profile, stack, places, n, room);
	n = MIN(n, room);
	label = n > 0 && frame_of(profile, &places[0])->is_label;
	if (!show_interpreter)
		fold(profile, places + label, n - label);
	choose(profile, places + label, n - label);
	for (size_t i = 0; i < n && n_path < max; i++)
		if (!places[i].hidden)
			path[n_path++] = places[i].frame;
	if (label && n_path == 1 && max > 1)
		path[n_path++] = profile->nothing - 1;
	return n_path;
}
