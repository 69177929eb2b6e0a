/* SPDX-License-Identifier: MIT */
/* pprof.h - the tables of a pprof file: strings, mappings, functions, locations. Private to export_pprof.c.
 *
 * Each entry of a table is packed and written separately (packer.h).
 * Source of the schema: profile.proto of github.com/google/pprof.
 */
#ifndef PROBING_EXPORT_PPROF_H
#define PROBING_EXPORT_PPROF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <profile.pb-c.h> /* generated from pprof's schema */

#include "src/export/images.h"
#include "src/export/names.h"
#include "src/export/packer.h"
#include "src/profile/profile.h"

typedef Perftools__Profiles__Profile pprof_piece;
#define PPROF_PIECE(...)                                                                                               \
	((pprof_piece){ PROTOBUF_C_MESSAGE_INIT(&perftools__profiles__profile__descriptor), __VA_ARGS__ })

struct pprof {
	FILE *out;
	const struct profile *profile;
	struct packer packer; /* the current piece */
	struct names strings;
	struct images mappings;      /* their ids are index + 1 */
	uint32_t *function_of_frame; /* ids: 1 + the first frame of that function */
	uint64_t *locations_written; /* by frame: bit n - 1: with n of its functions */
	bool *functions_written;     /* by function's id */
};

/*
 * pprof_open - begin: collects a profile's mappings and functions, and writes the mappings.
 * @ret: ended with pprof_done(). Errors of all: -ENOMEM; errors of writing stay in out.
 */
int pprof_open(const struct profile *profile, FILE *out, struct pprof *ret);
void pprof_done(struct pprof *pprof);

/* Write one piece. */
int pprof_put(struct pprof *pprof, const pprof_piece *piece);

/* pprof_string - a text's index in the string table; writes a new one. NULL is "". */
int pprof_string(struct pprof *pprof, const char *text, int64_t *ret);

/*
 * pprof_location - the id of a place; writes a new one.
 * @frame: the innermost of the n functions that are inlined into each other there.
 */
int pprof_location(struct pprof *pprof, int32_t frame, unsigned n, uint64_t *ret);

/* pprof_nowhere - the id of a place that is no code, and has a name only: "[no stack]". */
int pprof_nowhere(struct pprof *pprof, const char *name, unsigned which, uint64_t *ret);
enum { PPROF_MAX_NOWHERE = 2 };

#endif
