/* SPDX-License-Identifier: MIT */
/* hot_intern.c - ids for stacks that have been met before, and for some that have not. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "bench/hot.h"
#include "src/pipeline/intern.h"
#include "unwind/cpython/layout.h"

enum { N_STACKS = 200, MAX_DEPTH = 60, N_CODES = 40, BYTECODE_BYTES = 400, TABLE_LINES = 100, N_SAMPLES = 1000 };

struct interning {
	struct intern intern;
	struct batch *batch;
	struct module module;
	struct py_code codes[N_CODES];
	uint8_t line_table[2 * TABLE_LINES];
	struct frame frames[N_STACKS][MAX_DEPTH];
	size_t depths[N_STACKS];
	uint64_t seed;
};

static uint64_t noise(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005 + 1442695040888963407;
	return *seed >> 33;
}

static void done(void *data)
{
	struct interning *self = data;

	intern_done(&self->intern);
	batch_free(self->batch);
	free(self);
}

/* Two instructions per line, without columns; CPython, Objects/locations.md. */
static void make_codes(struct interning *self)
{
	enum { NO_COLUMNS = 0x80 | 13 << 3, UNITS_LESS_1 = 1, ONE_LINE_ON = 1 << 1 };

	for (size_t i = 0; i < TABLE_LINES; i++) {
		self->line_table[2 * i] = NO_COLUMNS | UNITS_LESS_1;
		self->line_table[2 * i + 1] = ONE_LINE_ON;
	}
	for (size_t i = 0; i < N_CODES; i++)
		self->codes[i] = (struct py_code){
			.qualname = "f",
			.file = "f.py",
			.first_line = 10,
			.bytecode_bytes = BYTECODE_BYTES,
			.line_table = self->line_table,
			.line_table_bytes = sizeof self->line_table,
			.line_kind = LINES_LOCATIONS,
		};
}

/* Many stacks share outer frames, as in real programs: outer depths have few callers. */
static struct frame make_frame(struct interning *self, size_t from_outside)
{
	uint64_t choice = noise(&self->seed) % (1 + from_outside / 4);
	struct frame frame = { 0 };

	if (from_outside % 3 == 0) {
		frame.kind = FRAME_NATIVE;
		frame.native.module = &self->module;
		frame.native.address = 0x1000 * from_outside + 16 * choice;
	} else {
		frame.kind = FRAME_PYTHON;
		frame.python.code = &self->codes[(from_outside + choice) % N_CODES];
		frame.python.instruction = (int32_t)(2 * (choice * 7 % (BYTECODE_BYTES / 2)));
	}
	return frame;
}

static int prepare(const char *root, void **ret)
{
	struct interning *self = calloc(1, sizeof *self);

	(void)root;
	if (!self)
		return -ENOMEM;
	if (batch_new(&self->batch) < 0) {
		free(self);
		return -ENOMEM;
	}
	self->seed = 7;
	make_codes(self);
	for (size_t i = 0; i < N_STACKS; i++) {
		size_t depth = 5 + noise(&self->seed) % (MAX_DEPTH - 5);

		for (size_t k = 0; k < depth; k++)
			self->frames[i][k] = make_frame(self, depth - 1 - k);
		self->depths[i] = depth;
	}
	*ret = self;
	return 0;
}

static int run(void *data)
{
	struct interning *self = data;
	const struct stack_origin origin = { 0 };
	uint64_t seed = 3;
	int r = 0;

	intern_renew(&self->intern);
	for (size_t i = 0; i < N_SAMPLES && r >= 0; i++) {
		size_t number = noise(&seed) % N_STACKS;
		struct stack stack = { .frames = self->frames[number], .n_frames = self->depths[number] };
		uint32_t id;

		r = intern_stack(&self->intern, self->batch, &stack, &origin, &id);
	}
	batch_clear(self->batch);
	intern_flushed(&self->intern);
	return r;
}

const struct hot hot_intern = { "intern", 20, prepare, run, done };
