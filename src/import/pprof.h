/* SPDX-License-Identifier: MIT */
/* pprof.h - declarations for reading pprof's profiles. Private to import_pprof.c and pprof_places.c. */
#ifndef PROBING_IMPORT_PPROF_H
#define PROBING_IMPORT_PPROF_H

#include "base/id_map.h"
#include "src/import/wire.h"

enum {
	PPROF_MAX_VALUES = 64,
	/* Of each table; two bytes of a file can make an entry. */
	PPROF_MAX_ENTRIES = 1 << 24,
	PPROF_MAX_LOCATIONS = 1 << 16, /* of a sample */
	PPROF_MAX_LINES = 1 << 12,     /* of a location: functions that are inlined into each other */
};

struct pprof_function {
	uint64_t name, file, first_line; /* name and file: strings */
};
struct pprof_mapping {
	uint64_t start, offset, file, build_id;
};

struct pprof {
	struct sink *sink;
	struct piece *strings;
	size_t n_strings, strings_allocated;
	struct pprof_function *functions;
	size_t n_functions, functions_allocated;
	struct pprof_mapping *mappings;
	size_t n_mappings, mappings_allocated;
	int64_t *frames; /* of locations */
	size_t n_frames, frames_allocated;
	struct id_map function_ids, mapping_ids, location_ids;
	struct {
		uint64_t type, unit;
	} types[PPROF_MAX_VALUES];
	size_t n_types, shown, counted; /* counted: of samples; n_types: none */
	uint64_t default_type;
	double unit; /* nanoseconds of a value; 0: it is no time */
};

static inline struct piece pprof_string(const struct pprof *pprof, uint64_t index)
{
	return index < pprof->n_strings ? pprof->strings[index] : (struct piece){ 0 };
}

/* An entry more of a table of the file; -EBADMSG, explained: it has too many. */
static inline int pprof_grow(struct pprof *pprof, void *array, size_t n, size_t *allocated, size_t size)
{
	if (n >= PPROF_MAX_ENTRIES)
		return sink_explain(pprof->sink, -EBADMSG,
				    "it has more than %d strings, functions, mappings or locations", PPROF_MAX_ENTRIES);
	return grow(array, n, allocated, size);
}

/* Numbers of a message, by their fields up to n; others are left. false: it is damaged. */
static inline bool pprof_numbers(struct piece message, uint64_t *numbers, size_t n)
{
	struct cursor in = wire_within(message);
	struct wire_field field;

	memset(numbers, 0, n * sizeof *numbers);
	while (wire_next(&in, &field))
		if (field.number < n && !field.bytes.at)
			numbers[field.number] = field.value;
	return !in.failed;
}

/* pprof_places.c: one message each; a location after all functions and mappings. -EBADMSG, -ENOMEM. */
int pprof_read_function(struct pprof *pprof, struct piece message);
int pprof_read_mapping(struct pprof *pprof, struct piece message);
int pprof_read_location(struct pprof *pprof, struct piece message);

#endif
