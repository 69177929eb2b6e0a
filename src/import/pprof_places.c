/* SPDX-License-Identifier: MIT */
/* pprof_places.c - functions, files with code, and the places of pprof's profiles. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "src/import/name_place.h"
#include "src/import/pprof.h"

#define KERNEL_HALF UINT64_C(0xffff800000000000)

static int add_id(struct id_map *map, uint64_t id, size_t index)
{
	if (id == 0 || index > UINT32_MAX || id_map_find(map, id))
		return -EBADMSG;
	return id_map_add(map, id, (uint32_t)index);
}

int pprof_read_function(struct pprof *pprof, struct piece message)
{
	uint64_t of[6];
	int r;

	r = pprof_numbers(message, of, N_ELEMENTS(of)) ? add_id(&pprof->function_ids, of[1], pprof->n_functions)
						       : -EBADMSG;
	if (r >= 0)
		r = pprof_grow(pprof, &pprof->functions, pprof->n_functions, &pprof->functions_allocated,
			       sizeof *pprof->functions);
	if (r >= 0)
		pprof->functions[pprof->n_functions++] = (struct pprof_function){ of[2], of[4], of[5] };
	return r;
}

int pprof_read_mapping(struct pprof *pprof, struct piece message)
{
	uint64_t of[7];
	int r;

	r = pprof_numbers(message, of, N_ELEMENTS(of)) ? add_id(&pprof->mapping_ids, of[1], pprof->n_mappings)
						       : -EBADMSG;
	if (r >= 0)
		r = pprof_grow(pprof, &pprof->mappings, pprof->n_mappings, &pprof->mappings_allocated,
			       sizeof *pprof->mappings);
	if (r >= 0)
		pprof->mappings[pprof->n_mappings++] = (struct pprof_mapping){ of[2], of[4], of[5], of[6] };
	return r;
}

/* ---- Locations ---- */

static const struct pprof_mapping *mapping_of(const struct pprof *pprof, uint64_t id)
{
	const struct id_slot *slot = id != 0 ? id_map_find(&pprof->mapping_ids, id) : NULL;

	return slot ? &pprof->mappings[slot->id] : NULL;
}

/* Add a line of a location; the file's next line is the function it is inlined into. */
static int put_line(struct pprof *pprof, const struct pprof_mapping *mapping, struct piece message, int64_t *frame)
{
	struct sink_frame place = { .inlined_into = *frame };
	const struct pprof_function *function = NULL;
	const struct id_slot *slot;
	uint64_t of[4];

	if (!pprof_numbers(message, of, N_ELEMENTS(of)))
		return -EBADMSG;
	slot = of[1] != 0 ? id_map_find(&pprof->function_ids, of[1]) : NULL;
	function = slot ? &pprof->functions[slot->id] : NULL;
	place.name = function ? pprof_string(pprof, function->name) : (struct piece){ 0 };
	if (place.name.n == 0)
		place.name = piece_of("?");
	place.file = function ? pprof_string(pprof, function->file) : (struct piece){ 0 };
	place.module = mapping ? pprof_string(pprof, mapping->file) : (struct piece){ 0 };
	place.build_id = mapping ? pprof_string(pprof, mapping->build_id) : (struct piece){ 0 };
	place.name = name_without_place(place.name, place.file.n > 0 ? place.file : place.module);
	place.kind = kind_of_file(place.file);
	place.first_line = function && function->first_line < INT32_MAX ? (int)function->first_line : 0;
	place.line = of[2] < INT32_MAX ? (int)of[2] : 0;
	return sink_frame(pprof->sink, &place, frame);
}

/*
 * Name an unnamed location by its file and the offset in it. In the kernel, use the file alone, because the address
 * would reveal the kernel's base address.
 */
static int put_unnamed(struct pprof *pprof, const struct pprof_mapping *mapping, uint64_t address, int64_t *frame)
{
	struct piece file = mapping ? pprof_string(pprof, mapping->file) : (struct piece){ 0 };
	const char *slash = file.n > 0 ? memrchr(file.at, '/', file.n) : NULL;
	size_t n_folder = slash ? (size_t)(slash + 1 - file.at) : 0;
	uint64_t in_file = mapping ? address - mapping->start + mapping->offset : address;
	int n_name = (int)MIN(file.n - n_folder, (size_t)200), n;
	const char *at = file.n > 0 ? file.at + n_folder : "";
	char name[256];

	if (in_file >= KERNEL_HALF)
		n = snprintf(name, sizeof name, "%.*s", n_name > 0 ? n_name : 8, n_name > 0 ? at : "[kernel]");
	else
		n = snprintf(name, sizeof name, "%.*s+0x%" PRIx64, n_name, at, in_file);
	return sink_frame(pprof->sink,
			  &(struct sink_frame){ .kind = FRAME_NATIVE, .name = { name, (size_t)n }, .module = file },
			  frame);
}

int pprof_read_location(struct pprof *pprof, struct piece message)
{
	struct cursor in = wire_within(message);
	CLEANUP(freep) struct piece *lines = NULL;
	size_t n = 0, allocated = 0;
	struct wire_field field;
	int64_t frame = 0;
	uint64_t of[4];
	int r = pprof_numbers(message, of, N_ELEMENTS(of)) ? 0 : -EBADMSG;

	while (r >= 0 && wire_next(&in, &field)) {
		if (field.number != 4 || !field.bytes.at)
			continue;
		r = n == PPROF_MAX_LINES ? sink_explain(pprof->sink, -EBADMSG, "a location has more than %d functions",
							PPROF_MAX_LINES)
					 : grow(&lines, n, &allocated, sizeof *lines);
		if (r >= 0)
			lines[n++] = field.bytes;
	}
	for (size_t i = n; i > 0 && r >= 0; i--)
		r = put_line(pprof, mapping_of(pprof, of[2]), lines[i - 1], &frame);
	if (r >= 0 && n == 0)
		r = put_unnamed(pprof, mapping_of(pprof, of[2]), of[3], &frame);
	if (r >= 0)
		r = add_id(&pprof->location_ids, of[1], pprof->n_frames);
	if (r >= 0)
		r = pprof_grow(pprof, &pprof->frames, pprof->n_frames, &pprof->frames_allocated, sizeof *pprof->frames);
	if (r >= 0)
		pprof->frames[pprof->n_frames++] = frame;
	return r;
}
