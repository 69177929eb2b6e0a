/* SPDX-License-Identifier: MIT */
/* generated_names.h - names of frames in generated code, as its programs write them. Private,
 * used by the writing thread alone.
 *
 * A JIT writes its names while the recording runs, sometimes after the
 * code has run, and replaces code at an address by other code. So frames are
 * kept and resolved again when their program's files have grown.
 */
#ifndef PROBING_GENERATED_NAMES_H
#define PROBING_GENERATED_NAMES_H

#include "src/pipeline/batch.h"

/* Address whose code was replaced after its frame got a name. */
struct stale_place {
	uint32_t program;
	uint64_t address;
};

struct stale_places {
	struct stale_place *places;
	size_t n, allocated;
};

/* Append all; from is empty afterwards, its memory kept. -ENOMEM. */
int stale_places_move(struct stale_places *from, struct stale_places *to);

struct generated_names;
int generated_names_new(struct generated_names **ret);
void generated_names_free(struct generated_names *names);

/* Takes ownership of the descriptors of dumps. -ENOMEM. */
int generated_names_put(struct generated_names *names, const struct new_program *programs, size_t n_programs,
			struct new_dump *dumps, size_t n_dumps);

/* See generated_code_feed(). */
void generated_names_feed(struct generated_names *names, uint32_t program, int map_fd, bool is_gone);

/* Some program may still write. */
bool generated_names_is_open(const struct generated_names *names);

/*
 * generated_names_look_up - the name of a frame in anonymous memory, by the time of its first sample.
 * The frame is remembered. @ret: strings live as long as names. Returns 1, 0 unknown, or -ENOMEM.
 */
int generated_names_look_up(struct generated_names *names, const struct new_frame *frame, struct generated_symbol *ret);

/* A frame that had no name has one now. Returns 0 or negative errno. */
typedef int (*generated_name_again)(const struct new_frame *frame, const struct generated_symbol *symbol, void *data);

/*
 * generated_names_refresh - read the programs' new output.
 * @stale: places whose code was replaced, so that their frames have an old name,
 *         are appended, once each.
 * Errors: -ENOMEM, and those of @again.
 */
int generated_names_refresh(struct generated_names *names, generated_name_again again, void *data,
			    struct stale_places *stale);

#endif
