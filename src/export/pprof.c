/* SPDX-License-Identifier: MIT */
/* pprof.c - see pprof.h. */
#include "src/export/pprof.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

typedef Perftools__Profiles__Mapping mapping_message;
typedef Perftools__Profiles__Location location_message;
typedef Perftools__Profiles__Function function_message;
typedef Perftools__Profiles__Line line_message;

enum { MAX_LINES = 64 }; /* bits of locations_written; deeper inlining means a damaged recording */

int pprof_put(struct pprof *pprof, const pprof_piece *piece)
{
	int r = packer_pack(&pprof->packer, &piece->base);

	if (r < 0)
		return r;
	fwrite(pprof->packer.bytes, 1, pprof->packer.n, pprof->out);
	return 0;
}

/* ---- Strings ---- */

int pprof_string(struct pprof *pprof, const char *text, int64_t *ret)
{
	size_t n_before = pprof->strings.n;
	uint32_t number;
	char *string;
	int r;

	r = names_add(&pprof->strings, text, &number);
	if (r < 0)
		return r;
	*ret = number;
	if (pprof->strings.n == n_before)
		return 0;
	string = (char *)pprof->strings.texts[number];
	return pprof_put(pprof, &PPROF_PIECE(.n_string_table = 1, .string_table = &string));
}

/* ---- Mappings ---- */

static int put_mappings(struct pprof *pprof)
{
	for (size_t i = 0; i < pprof->mappings.n; i++) {
		const struct image *it = &pprof->mappings.items[i];
		mapping_message mapping = PERFTOOLS__PROFILES__MAPPING__INIT, *mappings = &mapping;
		int r;

		mapping.id = i + 1;
		mapping.memory_limit = it->end;
		mapping.has_functions = mapping.has_filenames = mapping.has_line_numbers = mapping.has_inline_frames =
			true;
		r = pprof_string(pprof, it->path, &mapping.filename);
		if (r == 0)
			r = pprof_string(pprof, it->build_id, &mapping.build_id);
		if (r == 0)
			r = pprof_put(pprof, &PPROF_PIECE(.n_mapping = 1, .mapping = &mappings));
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- Functions and locations ---- */

static int compare_functions(const void *a, const void *b, void *data)
{
	const struct profile_frame *frames = data;
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	if (frames[left].function != frames[right].function)
		return frames[left].function < frames[right].function ? -1 : 1;
	return left < right ? -1 : left > right;
}

/* Addresses without a known function are distinct. */
static int find_functions(struct pprof *pprof)
{
	const struct profile *profile = pprof->profile;
	CLEANUP(freep) uint32_t *sorted = calloc(profile->n_frames + 1, sizeof *sorted);

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_frames; i++)
		sorted[i] = (uint32_t)i;
	qsort_r(sorted, profile->n_frames, sizeof *sorted, compare_functions, profile->frames);
	for (size_t i = 0; i < profile->n_frames; i++) {
		int64_t function = profile->frames[sorted[i]].function;
		bool is_same = i > 0 && function > 0 && function == profile->frames[sorted[i - 1]].function;

		pprof->function_of_frame[sorted[i]] = is_same ? pprof->function_of_frame[sorted[i - 1]] : sorted[i] + 1;
	}
	return 0;
}

/*
 * pprof demangles a function whose two names are equal, and simplifies what looks like C++: <module> becomes empty. It
 * keeps the name if the other one differs or is empty.
 * Source: github.com/google/pprof, internal/symbolizer/symbolizer.go, demangleSingleFunction().
 */
static const char *system_name(const char *name, const char *symbol)
{
	return symbol && strcmp(symbol, name) != 0 ? symbol : "";
}

static int put_function(struct pprof *pprof, const char *name, const char *symbol, const char *file, int first_line,
			uint64_t id)
{
	function_message function = PERFTOOLS__PROFILES__FUNCTION__INIT, *functions = &function;
	int r;

	function.id = id;
	function.start_line = first_line;
	r = pprof_string(pprof, name, &function.name);
	if (r == 0)
		r = pprof_string(pprof, system_name(name, symbol), &function.system_name);
	if (r == 0)
		r = pprof_string(pprof, file, &function.filename);
	return r < 0 ? r : pprof_put(pprof, &PPROF_PIECE(.n_function = 1, .function = &functions));
}

static int add_function(struct pprof *pprof, int32_t frame, uint64_t *ret)
{
	const struct profile_frame *it = &pprof->profile->frames[frame];
	const char *place = profile_frame_place(it);
	CLEANUP(freep) char *name = NULL;
	uint32_t id = pprof->function_of_frame[frame];

	*ret = id;
	if (pprof->functions_written[id])
		return 0;
	pprof->functions_written[id] = true;
	/* pprof merges functions by name alone, whatever the file. */
	if (asprintf(&name, place ? "%s (%s)" : "%s%s", it->name, place ? place : "") < 0) {
		name = NULL;
		return -ENOMEM;
	}
	return put_function(pprof, name, it->symbol, it->file, it->first_line, id);
}

static int put_location(struct pprof *pprof, int32_t frame, unsigned n, uint64_t id)
{
	line_message lines[MAX_LINES], *line_list[MAX_LINES];
	location_message location = PERFTOOLS__PROFILES__LOCATION__INIT, *locations = &location;
	int64_t at = frame;

	for (unsigned i = 0; i < n && at >= 0; i++, at = pprof->profile->frames[at].inlined_into) {
		int r;

		lines[i] = (line_message)PERFTOOLS__PROFILES__LINE__INIT;
		lines[i].line = pprof->profile->frames[at].line;
		line_list[i] = &lines[i];
		location.n_line = i + 1;
		r = add_function(pprof, (int32_t)at, &lines[i].function_id);
		if (r < 0)
			return r;
	}
	location.id = id;
	location.line = line_list;
	location.mapping_id = pprof->mappings.of_frame[frame];
	if (pprof->profile->frames[frame].has_address)
		location.address = pprof->profile->frames[frame].address;
	return pprof_put(pprof, &PPROF_PIECE(.n_location = 1, .location = &locations));
}

int pprof_location(struct pprof *pprof, int32_t frame, unsigned n, uint64_t *ret)
{
	uint64_t bit;

	n = MIN(n, (unsigned)MAX_LINES);
	bit = (uint64_t)1 << (n - 1);
	*ret = ((uint64_t)frame + 1) * MAX_LINES + n - 1;
	if (pprof->locations_written[frame] & bit)
		return 0;
	pprof->locations_written[frame] |= bit;
	return put_location(pprof, frame, n, *ret);
}

/* Uses ids below those of frames. */
int pprof_nowhere(struct pprof *pprof, const char *name, unsigned which, uint64_t *ret)
{
	line_message line = PERFTOOLS__PROFILES__LINE__INIT, *lines = &line;
	location_message location = PERFTOOLS__PROFILES__LOCATION__INIT, *locations = &location;
	size_t id = pprof->profile->n_frames + 1 + which;
	int r;

	location.id = *ret = which + 1;
	if (pprof->functions_written[id])
		return 0;
	pprof->functions_written[id] = true;
	line.function_id = id;
	location.n_line = 1;
	location.line = &lines;
	r = put_function(pprof, name, NULL, NULL, 0, id);
	return r < 0 ? r : pprof_put(pprof, &PPROF_PIECE(.n_location = 1, .location = &locations));
}

/* ---- Open and finish ---- */

int pprof_open(const struct profile *profile, FILE *out, struct pprof *ret)
{
	struct pprof pprof = { .out = out, .profile = profile };
	int64_t empty;
	int r;

	pprof.function_of_frame = calloc(profile->n_frames + 1, sizeof *pprof.function_of_frame);
	pprof.locations_written = calloc(profile->n_frames + 1, sizeof *pprof.locations_written);
	pprof.functions_written = calloc(profile->n_frames + 1 + PPROF_MAX_NOWHERE, sizeof *pprof.functions_written);
	r = pprof.function_of_frame && pprof.locations_written && pprof.functions_written ? 0 : -ENOMEM;
	if (r == 0)
		r = pprof_string(&pprof, "", &empty); /* the first string must be empty */
	if (r == 0)
		r = find_functions(&pprof);
	if (r == 0)
		r = images_init(profile, &pprof.mappings);
	if (r == 0)
		r = put_mappings(&pprof);
	if (r < 0)
		pprof_done(&pprof);
	else
		*ret = pprof;
	return r;
}

void pprof_done(struct pprof *pprof)
{
	names_done(&pprof->strings);
	packer_done(&pprof->packer);
	images_done(&pprof->mappings);
	free(pprof->function_of_frame);
	free(pprof->locations_written);
	free(pprof->functions_written);
	*pprof = (struct pprof){ 0 };
}
