/* SPDX-License-Identifier: MIT */
/* anchor_locations.c - learns where evaluations keep the words that identify their frames. */
#include "unwind/stitch/anchor_locations.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

enum {
	SETTLED_VOTES = 3,
	ENOUGH_TRIES = 4,
	ENOUGH_HITS = 3, /* enough for a location that always holds the value */
	SETTLED_HITS = 200,
	MAX_TRIES = 16384, /* then the locations stay as learnt */
};

void places_done(struct places *places)
{
	for (size_t i = 0; i < places->n; i++)
		free(places->places[i]);
	free(places->places);
	memset(places, 0, sizeof *places);
}

struct place *places_find(struct places *places, unsigned module, uint64_t address)
{
	for (size_t i = 0; i < places->n; i++) {
		struct place *place = places->places[i];

		if (place->module == module && address >= place->start && address < place->end)
			return place;
	}
	return NULL;
}

static void forget_best(struct location_votes *votes)
{
	for (unsigned rank = 0; rank < LOCATION_N_BEST; rank++)
		votes->best[rank] = LOCATION_NONE;
}

void place_init(struct place *place)
{
	memset(place, 0, sizeof *place);
	for (unsigned view = 0; view < N_VIEWS; view++) {
		forget_best(&place->bytecode[view]);
		forget_best(&place->next[view]);
		forget_best(&place->frame[view]);
	}
}

int places_learn(struct places *places, const struct module *module, uint64_t address, struct place **ret)
{
	struct place *place = places_find(places, module->id, address);
	uint64_t start, end;
	int r;

	if (place) {
		*ret = place;
		return 0;
	}
	if (!module->elf)
		return -ENOENT;
	r = elf_file_function(module->elf, address, &start, &end);
	if (r < 0)
		return -ENOENT;
	r = grow(&places->places, places->n, &places->allocated, sizeof *places->places);
	if (r < 0)
		return r;
	place = malloc(sizeof *place);
	if (!place)
		return -ENOMEM;
	places->places[places->n++] = place;
	place_init(place);
	place->module = module->id;
	place->start = start;
	place->end = end;
	*ret = place;
	return 0;
}

void place_vote_anchor(struct place *place, uint64_t distance)
{
	if (place->anchor_votes > 0 && place->anchor_distance != distance) {
		place->anchor_votes--;
		return;
	}
	place->anchor_distance = distance;
	if (place->anchor_votes < MAX_TRIES)
		place->anchor_votes++;
}

void place_settle(struct place *place)
{
	place->anchor_votes = MAX_TRIES;
}

bool place_is_settled(const struct place *place)
{
	return place->anchor_votes >= SETTLED_VOTES;
}

int location_value(struct native_stack *stack, size_t frame, int location, uint64_t *ret)
{
	const struct native_frame *native = &stack->frames[frame];
	uint64_t address;

	if (location < LOCATION_N_REGISTERS)
		return native_register(stack, frame, (unsigned)location, ret);
	address = native->cfa - (uint64_t)(location - LOCATION_N_REGISTERS + 1) * sizeof *ret;
	if (native->cfa == 0 || address < native->sp)
		return -ENODATA;
	return native_stack_read(stack, address, ret, sizeof *ret);
}

/* For pointers into bytecode: whether a location holds one about as often as the best. */
static bool holds_always(const struct location_votes *votes, int location, uint32_t most)
{
	return most > 0 && votes->points[location] >= most - most / 8;
}

static void choose(struct location_votes *votes)
{
	uint32_t most = 0;

	forget_best(votes);
	for (int i = 0; i < LOCATION_N; i++)
		most = MAX(most, votes->points[i]);
	for (int i = 0; i < LOCATION_N; i++) {
		int candidate = i;

		if (votes->hits[i] * 3 < votes->tries &&
		    !(holds_always(votes, i, most) && votes->hits[i] >= ENOUGH_HITS))
			continue;
		for (unsigned rank = 0; rank < LOCATION_N_BEST; rank++) {
			int held = votes->best[rank];

			if (held != LOCATION_NONE && votes->hits[held] >= votes->hits[candidate])
				continue;
			votes->best[rank] = candidate;
			candidate = held;
			if (candidate == LOCATION_NONE)
				break;
		}
	}
}

bool location_is_settled(const struct location_votes *votes)
{
	return votes->tries >= MAX_TRIES ||
	       (votes->best[0] != LOCATION_NONE && votes->hits[votes->best[0]] >= SETTLED_HITS);
}

void location_vote(struct location_votes *votes, struct native_stack *stack, size_t frame, uint64_t low, uint64_t high,
		   struct py_runtime *codes)
{
	if (location_is_settled(votes))
		return;
	votes->tries++;
	for (int i = 0; i < LOCATION_N; i++) {
		uint64_t value;

		if (i == MACHINE_REG_SP || i == MACHINE_REG_PC)
			continue;
		if (location_value(stack, frame, i, &value) < 0)
			continue;
		if (value >= low && value < high)
			votes->hits[i]++;
		if (codes && py_code_at(codes, value))
			votes->points[i]++;
	}
	if (votes->tries >= ENOUGH_TRIES)
		choose(votes);
}

int location_read(const struct location_votes *votes, unsigned rank, struct native_stack *stack, size_t frame,
		  uint64_t *ret)
{
	if (rank >= LOCATION_N_BEST || votes->best[rank] == LOCATION_NONE)
		return -ENODATA;
	return location_value(stack, frame, votes->best[rank], ret) < 0 ? -EFAULT : 0;
}

/* The best location of a variable. */
static bool best_location(const struct location_votes *votes, struct stitch_place *ret)
{
	int best = votes->best[0];

	if (best == LOCATION_NONE)
		return false;
	if (best < LOCATION_N_REGISTERS)
		ret->reg = (unsigned)best;
	else
		ret->below_cfa = (uint64_t)(best - LOCATION_N_REGISTERS + 1) * sizeof(uint64_t);
	ret->agreed = votes->hits[best];
	ret->tries = votes->tries;
	return true;
}

bool place_variable(const struct place *place, unsigned variable, struct stitch_place *ret)
{
	static const char *const names[] = { "bytecode", "next", "frame" };
	const struct location_votes *const votes[] = { place->bytecode, place->next, place->frame };
	unsigned view = (variable - 1) % N_VIEWS, which = (variable - 1) / N_VIEWS;

	*ret = (struct stitch_place){ .module = place->module, .address = place->start, .holds = "anchor" };
	if (variable == 0) {
		ret->below_cfa = place->anchor_distance;
		ret->agreed = ret->tries = place->anchor_votes;
		return place->anchor_distance > 0 && place_is_settled(place);
	}
	ret->holds = names[which];
	ret->is_leaf = view == VIEW_LEAF;
	return best_location(&votes[which][view], ret);
}
