/* SPDX-License-Identifier: MIT */
/* generated_names.c - see generated_names.h.
 *
 * A forked child began with its parent's code: addresses that its own files do not name
 * are looked up in the parent's, as of the fork.
 */
#include "src/pipeline/generated_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/id_map.h"
#include "base/util.h"

/* Longest chain of forks that is followed. */
enum { MAX_GENERATIONS = 8 };

struct kept_frame {
	struct new_frame frame;
	bool is_named;
};

struct program_names {
	struct new_program program;
	struct generated_code *code;
	struct kept_frame *frames;
	size_t n_frames, frames_allocated;
	bool has_grown; /* at the last refresh */
};

struct generated_names {
	struct program_names *programs;
	size_t n, allocated;
	struct id_map by_id; /* -> index + 1 */
	bool is_open;
};

int stale_places_move(struct stale_places *from, struct stale_places *to)
{
	for (size_t i = 0; i < from->n; i++) {
		int r = grow(&to->places, to->n, &to->allocated, sizeof *to->places);

		if (r < 0)
			return r;
		to->places[to->n++] = from->places[i];
	}
	from->n = 0;
	return 0;
}

int generated_names_new(struct generated_names **ret)
{
	struct generated_names *names = calloc(1, sizeof *names);

	if (!names)
		return -ENOMEM;
	*ret = names;
	return 0;
}

void generated_names_free(struct generated_names *names)
{
	if (!names)
		return;
	for (size_t i = 0; i < names->n; i++) {
		generated_code_free(names->programs[i].code);
		free(names->programs[i].frames);
	}
	free(names->programs);
	id_map_done(&names->by_id);
	free(names);
}

static struct program_names *find(const struct generated_names *names, uint32_t id)
{
	const struct id_slot *slot = id == 0 ? NULL : id_map_find(&names->by_id, id);

	return slot ? &names->programs[slot->id] : NULL;
}

static int put_program(struct generated_names *names, const struct new_program *program)
{
	struct program_names *added;
	int r;

	r = grow(&names->programs, names->n, &names->allocated, sizeof *names->programs);
	if (r < 0)
		return r;
	added = &names->programs[names->n];
	*added = (struct program_names){ .program = *program };
	r = generated_code_new(&program->owner, &added->code);
	if (r < 0)
		return r;
	names->is_open = true;
	return id_map_add(&names->by_id, program->id, (uint32_t)names->n++);
}

/* A file that is no jitdump, or is unreadable, names nothing. */
static int put_dump(struct generated_names *names, struct new_dump *dump)
{
	struct program_names *program = find(names, dump->program);

	if (!program)
		return 0;
	return generated_code_add_dump(program->code, TAKE_FD(dump->fd)) == -ENOMEM ? -ENOMEM : 0;
}

int generated_names_put(struct generated_names *names, const struct new_program *programs, size_t n_programs,
			struct new_dump *dumps, size_t n_dumps)
{
	int r = 0;

	for (size_t i = 0; i < n_programs && r >= 0; i++)
		r = put_program(names, &programs[i]);
	for (size_t i = 0; i < n_dumps && r >= 0; i++)
		r = put_dump(names, &dumps[i]);
	return r;
}

void generated_names_feed(struct generated_names *names, uint32_t program, int map_fd, bool is_gone)
{
	CLEANUP(closep) int taken = map_fd;
	struct program_names *fed = find(names, program);

	if (fed)
		generated_code_feed(fed->code, TAKE_FD(taken), is_gone);
}

bool generated_names_is_open(const struct generated_names *names)
{
	return names->is_open;
}

static int look_up(struct generated_names *names, const struct program_names *program, uint64_t address,
		   uint64_t time_ns, struct generated_symbol *ret)
{
	int r = 0;

	for (unsigned i = 0; program && i < MAX_GENERATIONS && r == 0; i++) {
		r = generated_code_lookup(program->code, address, time_ns, ret);
		time_ns = MIN(time_ns, program->program.forked_ns);
		program = find(names, program->program.parent);
	}
	return r;
}

int generated_names_look_up(struct generated_names *names, const struct new_frame *frame, struct generated_symbol *ret)
{
	struct program_names *program = find(names, frame->program);
	int r, found;

	if (!program)
		return 0;
	found = look_up(names, program, frame->address, frame->time_ns, ret);
	if (found < 0)
		return found;
	r = grow(&program->frames, program->n_frames, &program->frames_allocated, sizeof *program->frames);
	if (r < 0)
		return r;
	program->frames[program->n_frames++] = (struct kept_frame){ .frame = *frame, .is_named = found > 0 };
	return found;
}

/* ---- Growing files ---- */

static int read_all(struct generated_names *names)
{
	names->is_open = false;
	for (size_t i = 0; i < names->n; i++) {
		struct program_names *program = &names->programs[i];
		int r = generated_code_refresh(program->code);

		if (r < 0)
			return r;
		program->has_grown = r > 0;
		names->is_open |= !generated_code_is_final(program->code);
	}
	return 0;
}

static bool has_grown(const struct generated_names *names, const struct program_names *program)
{
	for (unsigned i = 0; program && i < MAX_GENERATIONS; i++) {
		if (program->has_grown)
			return true;
		program = find(names, program->program.parent);
	}
	return false;
}

static int add_stale(struct stale_places *stale, const struct new_frame *frame)
{
	int r;

	r = grow(&stale->places, stale->n, &stale->allocated, sizeof *stale->places);
	if (r < 0)
		return r;
	stale->places[stale->n++] = (struct stale_place){ .program = frame->program, .address = frame->address };
	return 0;
}

/* Returns 1 if the address holds other code now. */
static int check_frame(struct generated_names *names, const struct program_names *program, struct kept_frame *kept,
		       generated_name_again again, void *data)
{
	const struct new_frame *frame = &kept->frame;
	struct generated_symbol then, now;
	int r;

	r = look_up(names, program, frame->address, frame->time_ns, &then);
	if (r <= 0)
		return r;
	if (!kept->is_named) {
		r = again(frame, &then, data);
		if (r < 0)
			return r;
		kept->is_named = true;
	}
	r = look_up(names, program, frame->address, GENERATED_NOW, &now);
	return r < 0 ? r : r == 0 || strcmp(then.entry, now.entry) != 0;
}

/* A frame whose code was replaced keeps its name and is not checked again. */
static int check_frames(struct generated_names *names, struct program_names *program, generated_name_again again,
			void *data, struct stale_places *stale)
{
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; i < program->n_frames; i++) {
		struct kept_frame *kept = &program->frames[i];

		r = check_frame(names, program, kept, again, data);
		if (r > 0)
			r = add_stale(stale, &kept->frame);
		else if (r == 0)
			program->frames[n++] = *kept;
		if (r < 0)
			return r;
	}
	program->n_frames = n;
	return 0;
}

int generated_names_refresh(struct generated_names *names, generated_name_again again, void *data,
			    struct stale_places *stale)
{
	int r;

	r = read_all(names);
	for (size_t i = 0; i < names->n && r >= 0; i++)
		if (has_grown(names, &names->programs[i]))
			r = check_frames(names, &names->programs[i], again, data, stale);
	return r;
}
