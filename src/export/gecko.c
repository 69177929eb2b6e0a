/* SPDX-License-Identifier: MIT */
/* gecko.c - see gecko.h. */
#include "src/export/gecko.h"

#include <errno.h>
#include <stdlib.h>

#include "base/path.h"
#include "base/text.h"
#include "base/util.h"

enum { LIBRARY = 1 }; /* resourceTable.type */

/* ---- Numbers of strings ---- */

static int add_optional(struct names *names, const char *text, int64_t *ret)
{
	uint32_t number;
	int r;

	*ret = GECKO_NONE;
	if (!text)
		return 0;
	r = names_add(names, text, &number);
	if (r == 0)
		*ret = number;
	return r;
}

static int number_functions(struct gecko *gecko)
{
	const struct labels *labels = &gecko->timeline->tree->labels;
	int r = 0;

	gecko->functions = calloc(labels->n_items + 1, sizeof *gecko->functions);
	if (!gecko->functions)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < labels->n_items; i++) {
		struct gecko_function *function = &gecko->functions[i];

		r = names_add(&gecko->strings, labels->items[i].text, &function->name);
		if (r == 0)
			r = add_optional(&gecko->sources, labels->items[i].file, &function->source);
		if (r == 0)
			r = add_optional(&gecko->libraries, labels->items[i].module, &function->library);
	}
	return r;
}

static int number_stacks(struct gecko *gecko)
{
	const struct call_tree *tree = gecko->timeline->tree;
	uint32_t n = 0;

	if (tree->min_share <= 0)
		return 0; /* with millions of nodes, the numbers need most of the memory */
	gecko->stacks = calloc(tree->n_nodes, sizeof *gecko->stacks);
	if (!gecko->stacks)
		return -ENOMEM;
	for (size_t i = 1; i < tree->n_nodes; i++)
		if (!call_tree_is_small(tree, (uint32_t)i))
			gecko->stacks[i] = n++;
	return 0;
}

uint32_t gecko_stack(const struct gecko *gecko, uint32_t node)
{
	return gecko->stacks ? gecko->stacks[node] : node - 1;
}

int gecko_number(struct gecko *gecko)
{
	int r = number_functions(gecko);

	return r < 0 ? r : number_stacks(gecko);
}

void gecko_done(struct gecko *gecko)
{
	to_json_done(&gecko->json);
	names_done(&gecko->strings);
	names_done(&gecko->sources);
	names_done(&gecko->libraries);
	free(gecko->functions);
	free(gecko->stacks);
}

/* ---- Columns ---- */

/* Put the same number, or null, n times. */
void gecko_put_same(struct json *json, const char *name, size_t n, int64_t value)
{
	to_json_key(json, name);
	to_json_array(json);
	for (size_t i = 0; i < n; i++)
		if (value == GECKO_NONE)
			to_json_null(json);
		else
			to_json_integer(json, value);
	to_json_array_end(json);
}

static void put_false(struct json *json, const char *name, size_t n)
{
	to_json_key(json, name);
	to_json_array(json);
	for (size_t i = 0; i < n; i++)
		to_json_bool(json, false);
	to_json_array_end(json);
}

void gecko_put_empty(struct json *json, const char *name)
{
	gecko_put_same(json, name, 0, 0);
}

/* ---- Tables shared by all threads ---- */

static void put_strings(struct json *json, const char *key, const struct names *names)
{
	to_json_key(json, key);
	to_json_array(json);
	for (size_t i = 0; i < names->n; i++)
		to_json_string(json, names->texts[i]);
	to_json_array_end(json);
}

/* A column of string numbers for another table's texts. */
static int put_text_numbers(struct gecko *gecko, const char *key, const struct names *names, bool base_names)
{
	int r = 0;

	to_json_key(&gecko->json, key);
	to_json_array(&gecko->json);
	for (size_t i = 0; r == 0 && i < names->n; i++) {
		uint32_t number;

		r = names_add(&gecko->strings, base_names ? path_base_name(names->texts[i]) : names->texts[i], &number);
		if (r == 0)
			to_json_integer(&gecko->json, number);
	}
	to_json_array_end(&gecko->json);
	return r;
}

static void put_stack_table(struct gecko *gecko)
{
	const struct call_tree *tree = gecko->timeline->tree;
	struct json *json = &gecko->json;
	size_t n = 0;

	to_json_key(json, "stackTable");
	to_json_object(json);
	to_json_key(json, "frame");
	to_json_array(json);
	for (uint32_t i = 1; i < tree->n_nodes; i++)
		if (!call_tree_is_small(tree, i)) {
			to_json_integer(json, tree->nodes[i].label);
			n++;
		}
	to_json_array_end(json);
	to_json_key(json, "prefix");
	to_json_array(json);
	for (uint32_t i = 1; i < tree->n_nodes; i++) {
		if (call_tree_is_small(tree, i))
			continue;
		if (tree->nodes[i].parent == 0)
			to_json_null(json);
		else
			to_json_integer(json, gecko_stack(gecko, tree->nodes[i].parent));
	}
	to_json_array_end(json);
	to_json_put_integer(json, "length", (int64_t)n);
	to_json_object_end(json);
}

static void put_frame_table(struct gecko *gecko)
{
	const struct labels *labels = &gecko->timeline->tree->labels;
	struct json *json = &gecko->json;

	to_json_key(json, "frameTable");
	to_json_object(json);
	to_json_key(json, "address");
	to_json_array(json);
	for (size_t i = 0; i < labels->n_items; i++)
		to_json_integer(json, -1);
	to_json_array_end(json);
	gecko_put_same(json, "inlineDepth", labels->n_items, 0);
	to_json_key(json, "category");
	to_json_array(json);
	for (size_t i = 0; i < labels->n_items; i++)
		to_json_integer(json, labels->items[i].kind);
	to_json_array_end(json);
	gecko_put_same(json, "subcategory", labels->n_items, 0);
	to_json_key(json, "func");
	to_json_array(json);
	for (size_t i = 0; i < labels->n_items; i++)
		to_json_integer(json, (int64_t)i);
	to_json_array_end(json);
	gecko_put_same(json, "nativeSymbol", labels->n_items, GECKO_NONE);
	gecko_put_same(json, "innerWindowID", labels->n_items, 0);
	to_json_key(json, "line");
	to_json_array(json);
	for (size_t i = 0; i < labels->n_items; i++)
		if (gecko->options->lines && labels->items[i].first_line > 0)
			to_json_integer(json, labels->items[i].first_line);
		else
			to_json_null(json);
	to_json_array_end(json);
	gecko_put_same(json, "column", labels->n_items, GECKO_NONE);
	to_json_put_integer(json, "length", (int64_t)labels->n_items);
	to_json_object_end(json);
}

static void put_function_table(struct gecko *gecko)
{
	size_t n = gecko->timeline->tree->labels.n_items;
	struct json *json = &gecko->json;

	to_json_key(json, "funcTable");
	to_json_object(json);
	to_json_key(json, "name");
	to_json_array(json);
	for (size_t i = 0; i < n; i++)
		to_json_integer(json, gecko->functions[i].name);
	to_json_array_end(json);
	put_false(json, "isJS", n);
	put_false(json, "relevantForJS", n);
	to_json_key(json, "resource");
	to_json_array(json);
	for (size_t i = 0; i < n; i++)
		to_json_integer(json, gecko->functions[i].library);
	to_json_array_end(json);
	to_json_key(json, "source");
	to_json_array(json);
	for (size_t i = 0; i < n; i++)
		if (gecko->functions[i].source == GECKO_NONE)
			to_json_null(json);
		else
			to_json_integer(json, gecko->functions[i].source);
	to_json_array_end(json);
	gecko_put_same(json, "lineNumber", n, GECKO_NONE);
	gecko_put_same(json, "columnNumber", n, GECKO_NONE);
	to_json_put_integer(json, "length", (int64_t)n);
	to_json_object_end(json);
}

/* Each library is a resource of the same number. */
static int put_resource_table(struct gecko *gecko)
{
	size_t n = gecko->libraries.n;
	struct json *json = &gecko->json;
	int r;

	to_json_key(json, "resourceTable");
	to_json_object(json);
	to_json_put_integer(json, "length", (int64_t)n);
	to_json_key(json, "lib");
	to_json_array(json);
	for (size_t i = 0; i < n; i++)
		to_json_integer(json, (int64_t)i);
	to_json_array_end(json);
	r = put_text_numbers(gecko, "name", &gecko->libraries, true);
	gecko_put_same(json, "host", n, GECKO_NONE);
	gecko_put_same(json, "type", n, LIBRARY);
	to_json_object_end(json);
	return r;
}

static int put_source_table(struct gecko *gecko)
{
	struct json *json = &gecko->json;
	int r;

	to_json_key(json, "sources");
	to_json_object(json);
	to_json_put_integer(json, "length", (int64_t)gecko->sources.n);
	gecko_put_same(json, "id", gecko->sources.n, GECKO_NONE);
	r = put_text_numbers(gecko, "filename", &gecko->sources, false);
	to_json_object_end(json);
	return r;
}

static void put_no_symbols(struct json *json)
{
	to_json_key(json, "nativeSymbols");
	to_json_object(json);
	to_json_put_integer(json, "length", 0);
	gecko_put_empty(json, "address");
	gecko_put_empty(json, "functionSize");
	gecko_put_empty(json, "libIndex");
	gecko_put_empty(json, "name");
	to_json_object_end(json);
}

/* Strings come last, because the other tables add some. */
int gecko_put_shared(struct gecko *gecko)
{
	struct json *json = &gecko->json;
	int r;

	to_json_key(json, "shared");
	to_json_object(json);
	put_stack_table(gecko);
	put_frame_table(gecko);
	put_function_table(gecko);
	put_no_symbols(json);
	r = put_resource_table(gecko);
	if (r == 0)
		r = put_source_table(gecko);
	put_strings(json, "stringArray", &gecko->strings);
	to_json_object_end(json);
	return r;
}

void gecko_put_libraries(struct gecko *gecko)
{
	static const char *const same[] = { "path", "debugPath", NULL };
	struct json *json = &gecko->json;

	to_json_key(json, "libs");
	to_json_array(json);
	for (size_t i = 0; i < gecko->libraries.n; i++) {
		const char *path = gecko->libraries.texts[i];

		to_json_object(json);
		to_json_put_string(json, "arch", "");
		to_json_put_string(json, "name", path_base_name(path));
		to_json_put_string(json, "debugName", path_base_name(path));
		for (size_t k = 0; same[k]; k++)
			to_json_put_string(json, same[k], path);
		to_json_put_string(json, "breakpadId", "");
		to_json_key(json, "codeId");
		to_json_null(json);
		to_json_object_end(json);
	}
	to_json_array_end(json);
}
