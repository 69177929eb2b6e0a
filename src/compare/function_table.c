/* SPDX-License-Identifier: MIT */
/*
 * function_table.c - equality of functions; see function_table.h.
 *
 * A function is identified by its kind, its qualified name, and the last part of its file's or module's path: a project
 * in another folder is the same one, and its line does not matter. The part of a module's name after
 * the first dot is ignored, since it has versions ("libc.so.6", "_json.cpython-311-x86_64-linux-gnu.so").
 */
#include "src/compare/function_table.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/id_map.h"
#include "base/path.h"
#include "base/text.h"
#include "base/util.h"

enum { REPLACEMENT = 0xfffd };

struct function_table {
	struct id_map functions; /* text hash -> first function with that hash, plus 1 */
	struct id_map nodes;     /* parent and function -> node */
	struct identity {
		char *text;
		uint32_t next; /* next function with the same hash, plus 1; 0: none */
	} * identities;
	size_t n, allocated;
	char **paths; /* by function: path in the recording being added */
	size_t paths_allocated;
};

int function_table_new(struct function_table **ret)
{
	struct function_table *table = calloc(1, sizeof *table);

	if (!table)
		return -ENOMEM;
	*ret = table;
	return 0;
}

void function_table_free(struct function_table *table)
{
	if (!table)
		return;
	for (size_t i = 0; i < table->n; i++) {
		free(table->identities[i].text);
		free(table->paths[i]);
	}
	free(table->identities);
	free(table->paths);
	id_map_done(&table->functions);
	id_map_done(&table->nodes);
	free(table);
}

/* ---- Foreign names ---- */

char *name_clean(const char *name)
{
	char *clean = malloc(strlen(name) * 3 + 1); /* a bad byte becomes three */
	size_t n = 0;

	if (!clean)
		return NULL;
	for (int32_t c; (c = text_next_shown(&name)) != 0;)
		n += text_encode(c == 0xfffe || c == 0xffff ? REPLACEMENT : c, clean + n); /* not in XML */
	clean[n] = '\0';
	return clean;
}

/* Whether the name is an offset in a module, such as "libx.so+0x12a0". */
static bool is_offset(const char *name)
{
	const char *plus = strrchr(name, '+');

	return plus && plus[1] == '0' && plus[2] == 'x' && plus[3] &&
	       strspn(plus + 3, "0123456789abcdef") == strlen(plus + 3);
}

/* Python functions have a file, others a module. */
static const char *path_of(const struct profile_frame *frame)
{
	const char *path = frame->kind == FRAME_PYTHON || frame->kind == FRAME_TASK ? frame->file : frame->module;

	return path ? path : "";
}

/* For free(3). */
static char *place_of(const struct profile_frame *frame)
{
	char *place = name_clean(path_base_name(path_of(frame)));

	if (place && frame->kind != FRAME_PYTHON && place[0]) {
		char *dot = strchr(place + 1, '.');

		if (dot)
			*dot = '\0';
	}
	return place;
}

static char *name_of(const struct profile_frame *frame)
{
	if (frame->kind != FRAME_PYTHON && is_offset(frame->name))
		return strdup("[no name]");
	return name_clean(frame->name[0] ? frame->name : "[unnamed]");
}

/* ---- Functions ---- */

static uint64_t hash_text(const char *text)
{
	uint64_t hash = 1;

	while (*text)
		hash = mix64(hash ^ (uint8_t)*text++);
	return hash ? hash : 1;
}

static bool find(const struct function_table *table, uint64_t hash, const char *text, uint32_t *ret)
{
	const struct id_slot *slot = id_map_find(&table->functions, hash);

	for (uint32_t at = slot ? slot->id : 0; at != 0; at = table->identities[at - 1].next) {
		if (strcmp(table->identities[at - 1].text, text) != 0)
			continue;
		*ret = at - 1;
		return true;
	}
	return false;
}

static int link_identity(struct function_table *table, uint64_t hash, uint32_t function)
{
	struct id_slot *slot = id_map_find(&table->functions, hash);

	if (!slot)
		return id_map_add(&table->functions, hash, function + 1);
	table->identities[function].next = slot->id;
	slot->id = function + 1;
	return 0;
}

/* Takes ownership of name, place and text, also on failure. */
static int add_function(struct compare *compare, uint64_t hash, enum frame_kind kind, char *name, char *place,
			char *text)
{
	CLEANUP(freep) char *owned_name = name, *owned_place = place, *owned_text = text;
	struct function_table *table = compare->table;
	int r;

	if (compare->n_functions >= UINT32_MAX - 1)
		return -EOVERFLOW;
	r = grow(&compare->functions, compare->n_functions, &compare->functions_allocated, sizeof *compare->functions);
	if (r >= 0)
		r = grow(&table->identities, table->n, &table->allocated, sizeof *table->identities);
	if (r >= 0)
		r = grow(&table->paths, table->n, &table->paths_allocated, sizeof *table->paths);
	if (r < 0)
		return r;
	table->identities[table->n] = (struct identity){ .text = TAKE(owned_text) };
	table->paths[table->n++] = NULL;
	compare->functions[compare->n_functions++] = (struct compare_function){ .kind = kind,
										.name = TAKE(owned_name),
										.place = TAKE(owned_place) };
	return link_identity(table, hash, (uint32_t)(compare->n_functions - 1));
}

/* If one recording has two files of this name, their functions look the same: note that. */
static int note_path(struct compare *compare, uint32_t function, const char *path)
{
	char **seen = &compare->table->paths[function];

	if (!*seen) {
		*seen = strdup(path);
		return *seen ? 0 : -ENOMEM;
	}
	if (strcmp(*seen, path) != 0)
		compare->functions[function].is_ambiguous = true;
	return 0;
}

void function_table_begin(struct function_table *table)
{
	for (size_t i = 0; i < table->n; i++) {
		free(table->paths[i]);
		table->paths[i] = NULL;
	}
}

int function_table_enter_frame(struct compare *compare, const struct profile_frame *frame, uint32_t *ret)
{
	CLEANUP(freep) char *name = name_of(frame);
	CLEANUP(freep) char *place = place_of(frame);
	CLEANUP(freep) char *text = NULL;
	uint64_t hash;
	uint32_t function = 0;
	int r = 0;

	if (!name || !place || asprintf(&text, "%d\n%s\n%s", (int)frame->kind, name, place) < 0)
		return -ENOMEM;
	hash = hash_text(text);
	if (!find(compare->table, hash, text, &function)) {
		function = (uint32_t)compare->n_functions;
		r = add_function(compare, hash, frame->kind, TAKE(name), TAKE(place), TAKE(text));
	}
	if (r >= 0)
		r = note_path(compare, function, path_of(frame));
	if (r < 0)
		return r;
	*ret = function;
	return 0;
}

/* ---- Nodes ---- */

int function_table_enter_node(struct compare *compare, uint32_t parent, uint32_t function, uint32_t *ret)
{
	uint64_t key = (uint64_t)parent << 32 | ((uint64_t)function + 1);
	const struct id_slot *slot = id_map_find(&compare->table->nodes, key);
	int r;

	if (slot) {
		*ret = slot->id;
		return 0;
	}
	if (compare->n_nodes >= UINT32_MAX - 1)
		return -EOVERFLOW;
	r = grow(&compare->nodes, compare->n_nodes, &compare->nodes_allocated, sizeof *compare->nodes);
	if (r >= 0)
		r = id_map_add(&compare->table->nodes, key, (uint32_t)compare->n_nodes);
	if (r < 0)
		return r;
	compare->nodes[compare->n_nodes] = (struct compare_node){ parent, function };
	*ret = (uint32_t)compare->n_nodes++;
	return 0;
}

int function_table_forget_nodes(struct compare *compare)
{
	int r;

	id_map_clear(&compare->table->nodes);
	compare->n_nodes = 0;
	r = grow(&compare->nodes, 0, &compare->nodes_allocated, sizeof *compare->nodes);
	if (r < 0)
		return r;
	compare->nodes[0] = (struct compare_node){ 0 };
	compare->n_nodes = 1;
	return 0;
}
