/* SPDX-License-Identifier: MIT */
/* intern.c - see intern.h. */
#include "src/pipeline/intern.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"

/* All maps that find the number of a frame or a stack. */
#define MAPS_OF(intern)                                                                                                \
	{                                                                                                              \
		&(intern)->native, &(intern)->kernel, &(intern)->programs, &(intern)->positions,                       \
			&(intern)->expressions, &(intern)->instructions, &(intern)->tasks, &(intern)->objects,         \
			&(intern)->stacks, &(intern)->totals                                                           \
	}

void intern_renew(struct intern *intern)
{
	struct id_map *const maps[] = MAPS_OF(intern);

	for (size_t i = 0; i < N_ELEMENTS(maps); i++)
		id_map_done(maps[i]);
	for (size_t i = 0; i < intern->n_anonymous; i++)
		id_map_done(&intern->anonymous[i]);
	interner_done(&intern->task_names);
	free(TAKE(intern->anonymous));
	intern->n_anonymous = intern->anonymous_allocated = 0;
	intern->unsampled = 0;
}

void intern_done(struct intern *intern)
{
	intern_renew(intern);
	interner_done(&intern->object_names);
	free(intern->module_is_known);
	memset(intern, 0, sizeof *intern);
}

size_t intern_bytes(const struct intern *intern)
{
	const struct id_map *const maps[] = MAPS_OF(intern);
	size_t n_slots = 0;

	for (size_t i = 0; i < N_ELEMENTS(maps); i++)
		n_slots += maps[i]->n_slots;
	for (size_t i = 0; i < intern->n_anonymous; i++)
		n_slots += intern->anonymous[i].n_slots;
	return n_slots * sizeof(struct id_slot);
}

void intern_flushed(struct intern *intern)
{
	id_map_clear(&intern->totals);
}

static struct new_frame *add_frame(struct intern *intern, struct batch *batch, struct id_map *map, uint64_t key)
{
	struct new_frame *row = BATCH_ADD(batch, frames);

	if (!row)
		return NULL;
	if (id_map_add(map, key, intern->n_frames + 1) < 0) {
		batch->n_frames--; /* the rows before it are still written */
		return NULL;
	}
	row->id = ++intern->n_frames;
	return row;
}

bool intern_knows_module(const struct intern *intern, unsigned module)
{
	return module < intern->n_modules && intern->module_is_known[module];
}

static int know_module(struct intern *intern, struct batch *batch, struct module *module)
{
	struct new_module *row;

	if (module->id >= intern->n_modules) {
		size_t n = MAX((size_t)module->id + 1, 2 * intern->n_modules);
		uint8_t *moved = realloc(intern->module_is_known, n);

		if (!moved)
			return -ENOMEM;
		memset(moved + intern->n_modules, 0, n - intern->n_modules);
		intern->module_is_known = moved;
		intern->n_modules = n;
	}
	if (intern_knows_module(intern, module->id))
		return 0;
	row = BATCH_ADD(batch, modules);
	if (!row)
		return -ENOMEM;
	*row = (struct new_module){ .id = (int64_t)module->id + 1, .module = module };
	(void)module_build_id(module, &row->build_id); /* without a build-id, only the path identifies it */
	intern->module_is_known[module->id] = 1;
	return 0;
}

static uint64_t anonymous_key(uint64_t address, enum anonymous_role role)
{
	_Static_assert(ANONYMOUS_N_ROLES < 4, "two bits, and no key is 0");
	return address << 2 | ((uint64_t)role + 1);
}

/* The addresses of a program; NULL: none yet. */
static struct id_map *find_places(const struct intern *intern, uint32_t program)
{
	const struct id_slot *slot = id_map_find(&intern->programs, (uint64_t)program + 1);

	return slot ? &intern->anonymous[slot->id] : NULL;
}

static int places_of(struct intern *intern, uint32_t program, struct id_map **ret)
{
	int r;

	*ret = find_places(intern, program);
	if (*ret)
		return 0;
	r = grow(&intern->anonymous, intern->n_anonymous, &intern->anonymous_allocated, sizeof *intern->anonymous);
	if (r >= 0)
		r = id_map_add(&intern->programs, (uint64_t)program + 1, (uint32_t)intern->n_anonymous);
	if (r < 0)
		return r;
	*ret = &intern->anonymous[intern->n_anonymous++];
	**ret = (struct id_map){ 0 };
	return 0;
}

/* A slot of a forgotten address holds no frame. */
static int intern_anonymous(struct intern *intern, struct batch *batch, const struct frame *frame,
			    const struct stack_origin *origin, enum anonymous_role role, uint32_t *ret)
{
	uint64_t key = anonymous_key(frame->native.address, role);
	struct new_frame *row;
	struct id_map *places;
	struct id_slot *slot;
	int r;

	r = places_of(intern, origin->program, &places);
	if (r < 0)
		return r;
	slot = id_map_find(places, key);
	if (slot && slot->id != 0) {
		*ret = slot->id;
		return 0;
	}
	row = BATCH_ADD(batch, frames);
	if (!row)
		return -ENOMEM;
	*row = (struct new_frame){
		.id = ++intern->n_frames,
		.kind = FRAME_NATIVE,
		.is_eval = frame->is_evaluation,
		.without_cfi = frame->without_cfi,
		.address = frame->native.address,
		.program = origin->program,
		.time_ns = origin->time_ns,
		.role = role,
	};
	*ret = row->id;
	if (!slot)
		return id_map_add(places, key, row->id);
	slot->id = row->id;
	return 0;
}

void intern_forget(struct intern *intern, uint32_t program, uint64_t address)
{
	const struct id_map *places = find_places(intern, program);

	for (int role = 0; places && role < ANONYMOUS_N_ROLES; role++) {
		struct id_slot *slot = id_map_find(places, anonymous_key(address, (enum anonymous_role)role));

		if (slot)
			slot->id = 0;
	}
}

/* Module number, address and the entry-frame flag in 64 bits: addresses have 47. */
static uint64_t native_key(const struct frame *frame)
{
	return ((uint64_t)frame->native.module->id + 1) << 48 | frame->native.address << 1 | frame->is_evaluation;
}

static int intern_native(struct intern *intern, struct batch *batch, const struct frame *frame, uint32_t *ret)
{
	struct module *module = frame->native.module;
	uint64_t key = native_key(frame);
	const struct id_slot *slot = id_map_find(&intern->native, key);
	struct new_frame *row;

	if (slot) {
		*ret = slot->id;
		return 0;
	}
	if (know_module(intern, batch, module) < 0)
		return -ENOMEM;
	row = add_frame(intern, batch, &intern->native, key);
	if (!row)
		return -ENOMEM;
	row->kind = FRAME_NATIVE;
	row->is_eval = frame->is_evaluation;
	row->without_cfi = frame->without_cfi;
	row->module = module;
	row->module_id = (int64_t)module->id + 1;
	row->address = frame->native.address;
	*ret = row->id;
	return 0;
}

static uint32_t code_number(struct intern *intern, struct py_code *code)
{
	if (!code->user)
		code->user = (void *)(uintptr_t)++intern->n_codes;
	return (uint32_t)(uintptr_t)code->user;
}

/*
 * A position in 64 bits: line 24, number of lines 8, and two columns plus one of 16 each. Larger positions lose their
 * columns; real source has none.
 */
static uint64_t pack_position(struct py_position *position)
{
	uint32_t n_lines = (uint32_t)position->end_line - (uint32_t)position->line;

	if ((uint32_t)position->line >= 1u << 24 || n_lines > UINT8_MAX || position->column >= UINT16_MAX ||
	    position->end_column >= UINT16_MAX) {
		position->line &= (1 << 24) - 1;
		position->end_line = position->line;
		position->column = position->end_column = -1;
		n_lines = 0;
	}
	return (uint64_t)position->line << 40 | (uint64_t)n_lines << 32 | (uint64_t)(position->column + 1) << 16 |
	       (uint64_t)(position->end_column + 1);
}

static int position_number(struct intern *intern, struct py_position *position, uint32_t *ret)
{
	uint64_t key = pack_position(position) + 1; /* unknown lines and columns are zero */
	const struct id_slot *slot = id_map_find(&intern->positions, key);

	if (slot) {
		*ret = slot->id;
		return 0;
	}
	*ret = ++intern->n_positions;
	return id_map_add(&intern->positions, key, *ret);
}

static int intern_expression(struct intern *intern, struct batch *batch, const struct frame *frame, uint32_t code,
			     uint32_t *ret)
{
	const struct id_slot *slot;
	struct py_position position;
	struct new_frame *row;
	uint32_t number;
	uint64_t key;
	int r;

	py_code_position(frame->python.code, frame->python.instruction, &position);
	r = position_number(intern, &position, &number);
	if (r < 0)
		return r;
	key = (uint64_t)code << 32 | number;
	slot = id_map_find(&intern->expressions, key);
	if (slot) {
		*ret = slot->id;
		return 0;
	}
	row = add_frame(intern, batch, &intern->expressions, key);
	if (!row)
		return -ENOMEM;
	row->kind = FRAME_PYTHON;
	row->code = frame->python.code;
	row->position = position;
	*ret = row->id;
	return 0;
}

static int intern_python(struct intern *intern, struct batch *batch, const struct frame *frame, uint32_t *ret)
{
	uint32_t number = code_number(intern, frame->python.code);
	uint64_t key = (uint64_t)number << 32 | (uint32_t)(frame->python.instruction + 1);
	const struct id_slot *slot = id_map_find(&intern->instructions, key);
	int r;

	if (slot) {
		*ret = slot->id;
		return 0;
	}
	r = intern_expression(intern, batch, frame, number, ret);
	if (r < 0)
		return r;
	return id_map_add(&intern->instructions, key, *ret);
}

static int intern_kernel(struct intern *intern, struct batch *batch, const struct frame *frame, uint32_t *ret)
{
	const struct id_slot *slot = id_map_find(&intern->kernel, frame->kernel.ip);
	struct new_frame *row;

	if (slot) {
		*ret = slot->id;
		return 0;
	}
	row = add_frame(intern, batch, &intern->kernel, frame->kernel.ip);
	if (!row)
		return -ENOMEM;
	row->kind = FRAME_KERNEL;
	row->address = frame->kernel.ip;
	*ret = row->id;
	return 0;
}

static int intern_task(struct intern *intern, struct batch *batch, const struct frame *frame, uint32_t *ret)
{
	CLEANUP(freep) char *copy = NULL;
	const struct id_slot *slot;
	struct new_frame *row;
	uint32_t name;
	int r;

	r = interner_add(&intern->task_names, frame->task.name, strlen(frame->task.name), &name);
	if (r < 0)
		return r;
	slot = id_map_find(&intern->tasks, (uint64_t)name + 1);
	if (slot) {
		*ret = slot->id;
		return 0;
	}
	copy = strdup(frame->task.name);
	row = copy ? add_frame(intern, batch, &intern->tasks, (uint64_t)name + 1) : NULL;
	if (!row)
		return -ENOMEM;
	row->kind = FRAME_TASK;
	row->name = TAKE(copy);
	*ret = row->id;
	return 0;
}

static int intern_frame(struct intern *intern, struct batch *batch, const struct frame *frame,
			const struct stack_origin *origin, enum anonymous_role role, uint32_t *ret)
{
	switch (frame->kind) {
	case FRAME_PYTHON:
		return intern_python(intern, batch, frame, ret);
	case FRAME_KERNEL:
		return intern_kernel(intern, batch, frame, ret);
	case FRAME_TASK:
		return intern_task(intern, batch, frame, ret);
	default:
		if (!frame->native.module)
			return intern_anonymous(intern, batch, frame, origin, role, ret);
		return intern_native(intern, batch, frame, ret);
	}
}

static bool has_python(const struct stack *stack)
{
	for (size_t i = 0; i < stack->n_frames; i++)
		if (stack->frames[i].kind == FRAME_PYTHON)
			return true;
	return false;
}

/*
 * The stack that adds a frame to its parent. Inlined into the loop over a sample's frames, which saves a fifth of its
 * time.
 */
static inline __attribute__((always_inline)) int add_stack(struct intern *intern, struct batch *batch, uint32_t parent,
							   uint32_t frame, unsigned depth, uint32_t *ret)
{
	uint64_t key = (uint64_t)parent << 32 | frame;
	const struct id_slot *slot = id_map_find(&intern->stacks, key);
	struct stack_row *row;

	if (slot) {
		*ret = slot->id;
		return 0;
	}
	row = BATCH_ADD(batch, stacks);
	if (!row || id_map_add(&intern->stacks, key, intern->n_stacks + 1) < 0)
		return -ENOMEM;
	*row = (struct stack_row){ ++intern->n_stacks, parent, frame, depth };
	*ret = intern->n_stacks;
	return 0;
}

int intern_stack(struct intern *intern, struct batch *batch, const struct stack *stack,
		 const struct stack_origin *origin, uint32_t *ret)
{
	enum anonymous_role beside = has_python(stack) ? ANONYMOUS_BESIDE_PYTHON : ANONYMOUS_ALONE;
	uint32_t parent = 0;
	unsigned depth = 0;

	for (size_t i = stack->n_frames; i-- > 0; depth++) {
		bool enters = beside != ANONYMOUS_ALONE && i > 0 && stack->frames[i - 1].is_evaluation;
		uint32_t frame;
		int r;

		r = intern_frame(intern, batch, &stack->frames[i], origin, enters ? ANONYMOUS_ENTERS_PYTHON : beside,
				 &frame);
		if (r >= 0)
			r = add_stack(intern, batch, parent, frame, depth, &parent);
		if (r < 0)
			return r;
	}
	*ret = parent;
	return 0;
}

int intern_wait(struct intern *intern, struct batch *batch, uint32_t parent, unsigned depth, enum thread_state state,
		uint32_t *ret)
{
	struct new_frame *row;

	if (intern->waits[state] == 0) {
		row = BATCH_ADD(batch, frames);
		if (!row)
			return -ENOMEM;
		row->id = intern->waits[state] = ++intern->n_frames;
		row->kind = FRAME_WAIT;
		row->state = state;
	}
	return add_stack(intern, batch, parent, intern->waits[state], depth, ret);
}

int intern_object_name(struct intern *intern, const char *name, uint32_t *ret)
{
	struct interner *names = &intern->object_names;
	uint32_t number = 0, n_bytes = (uint32_t)strlen(name) + 1; /* with its end */
	int r = 0;

	*ret = 0;
	if (name[0] == '\0' || (names->n >= INTERN_MAX_OBJECTS && !interner_find(names, name, n_bytes, &number)))
		return 0;
	r = interner_add(names, name, n_bytes, &number);
	if (r >= 0)
		*ret = number + 1;
	return MIN(r, 0);
}

static int intern_object_frame(struct intern *intern, struct batch *batch, uint32_t object, uint32_t *ret)
{
	const struct id_slot *slot = id_map_find(&intern->objects, object);
	CLEANUP(freep) char *name = NULL;
	struct new_frame *row;
	uint32_t n_bytes;

	if (slot) {
		*ret = slot->id;
		return 0;
	}
	name = strdup(interner_get(&intern->object_names, object - 1, &n_bytes));
	row = name ? add_frame(intern, batch, &intern->objects, object) : NULL;
	if (!row)
		return -ENOMEM;
	row->kind = FRAME_WAIT;
	row->name = TAKE(name);
	*ret = row->id;
	return 0;
}

int intern_object(struct intern *intern, struct batch *batch, uint32_t parent, unsigned depth, uint32_t object,
		  uint32_t *ret)
{
	uint32_t frame = 0;
	int r;

	r = intern_object_frame(intern, batch, object, &frame);
	return r < 0 ? r : add_stack(intern, batch, parent, frame, depth, ret);
}

int intern_unsampled(struct intern *intern, struct batch *batch, uint32_t *ret)
{
	struct new_frame *row;

	if (intern->unsampled == 0) {
		row = BATCH_ADD(batch, frames);
		if (!row)
			return -ENOMEM;
		row->id = intern->unsampled = ++intern->n_frames;
		row->kind = FRAME_UNSAMPLED;
	}
	return add_stack(intern, batch, 0, intern->unsampled, 0, ret);
}

int intern_total(struct intern *intern, struct batch *batch, uint32_t thread, const struct sample_row *row)
{
	uint64_t key = ((uint64_t)thread + 1) << 32 | (uint32_t)row->stack;
	const struct id_slot *slot = id_map_find(&intern->totals, key);
	struct total_row *total;

	if (slot) {
		total = &batch->totals[slot->id - 1];
	} else {
		total = BATCH_ADD(batch, totals);
		if (!total || id_map_add(&intern->totals, key, (uint32_t)batch->n_totals) < 0)
			return -ENOMEM;
		*total = (struct total_row){ .pid = row->pid, .tid = row->tid, .stack = row->stack };
	}
	total->samples++;
	total->weight += row->weight;
	return 0;
}
