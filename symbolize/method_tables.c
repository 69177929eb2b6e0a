/* SPDX-License-Identifier: MIT */
/* method_tables.c - C functions that Python code can call, by address.
 *
 * A function can be in several tables. If they agree on its name
 * there is one; else methods are preferred to slots, slots to attributes, and
 * the result has is_shared set.
 *
 * Invariants: methods are sorted by address and distinct; their strings lie in
 * the file and are not copied.
 */
#include "symbolize/method_tables.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "symbolize/effort.h"
#include "symbolize/method_scan.h"

enum { STEPS_OF_TARGET = 16 };

struct method_tables {
	struct method_list list;
};

static bool same_string(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static int compare_strings(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) : (a != NULL) - (b != NULL);
}

static int compare_methods(const void *a, const void *b)
{
	const struct method *x = a, *y = b;
	int order;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	order = compare_strings(x->owner, y->owner);
	return order ? order : compare_strings(x->member, y->member);
}

/* Whether the name is a normal method name, not one like "__trunc__", through which operators find a method. */
static bool is_plain(const struct method *method)
{
	return method->member && (strncmp(method->member, "__", 2) != 0 || strcmp(method->member, "__enter__") == 0 ||
				  strcmp(method->member, "__exit__") == 0);
}

/* Whether two names of one owner are synonyms, such as acquire, acquire_lock, __enter__. */
static bool are_aliases(const struct method *a, const struct method *b)
{
	return a->kind == METHOD_SLOT || (a->kind == METHOD_DEFINED && is_plain(a) && is_plain(b));
}

static bool is_better_alias(const struct method *than, const struct method *method)
{
	if (method->kind != METHOD_DEFINED || (than->member[0] == '_') != (method->member[0] == '_'))
		return method->kind == METHOD_DEFINED && than->member[0] == '_';
	return strlen(method->member) < strlen(than->member);
}

/* Choose the best method at an address, and note whether the others of its kind agree. */
static struct method resolve(const struct method *methods, size_t n_methods)
{
	struct method result = methods[0];

	for (size_t i = 1; i < n_methods && methods[i].kind == methods[0].kind; i++) {
		bool is_shared = result.is_shared || methods[i].is_shared ||
				 !same_string(methods[i].owner, result.owner);

		if (!same_string(methods[i].member, result.member)) {
			if (is_shared || !are_aliases(&result, &methods[i]))
				result.is_ambiguous = true;
			else if (is_better_alias(&result, &methods[i]))
				result = methods[i];
		}
		result.is_shared = is_shared;
	}
	result.is_shared |= result.is_ambiguous;
	return result;
}

static void sort_unique(struct method_list *list)
{
	size_t n = 0;

	if (list->n_methods == 0)
		return;
	qsort(list->methods, list->n_methods, sizeof *list->methods, compare_methods);
	for (size_t i = 0, end; i < list->n_methods; i = end) {
		for (end = i + 1; end < list->n_methods; end++)
			if (list->methods[end].address != list->methods[i].address)
				break;
		list->methods[n++] = resolve(&list->methods[i], end - i);
	}
	list->n_methods = n;
}

static int add_method(struct method_list *list, const struct method *method)
{
	int r;

	r = effort_grow(&list->methods, list->n_methods, &list->allocated, sizeof *list->methods);
	if (r < 0)
		return r;
	list->methods[list->n_methods++] = *method;
	return 0;
}

/*
 * A method may only jump to the function that does the work (unicode_join to PyUnicode_Join): the stack shows only that
 * function.
 */
static int collect_jump_targets(const struct image *image, const struct method_tables *tables,
				struct method_list *found)
{
	const struct method *known;

	for (size_t i = 0; (known = method_tables_nth(tables, i)) != NULL; i++) {
		struct method method = *known;
		int r;

		if (method.kind != METHOD_DEFINED || method.is_shared)
			continue;
		if (!effort_go_on(STEPS_OF_TARGET))
			return -ETIME;
		method.address = image_jump_target(image, method.address);
		method.is_body = true;
		if (method.address == 0 || method_tables_find(tables, method.address))
			continue;
		r = add_method(found, &method);
		if (r < 0)
			return r;
	}
	return 0;
}

static int add_jump_targets(const struct image *image, struct method_tables *tables)
{
	struct method_list found = { 0 };
	int r;

	r = collect_jump_targets(image, tables, &found);
	for (size_t i = 0; i < found.n_methods && r >= 0; i++)
		r = add_method(&tables->list, &found.methods[i]);
	free(found.methods);
	sort_unique(&tables->list);
	return r;
}

int method_tables_new(const struct image *image, const struct python_module *python, const struct method_file *file,
		      struct method_tables **ret)
{
	CLEANUP(method_tables_freep) struct method_tables *tables = NULL;
	int r;

	tables = calloc(1, sizeof *tables);
	if (!tables)
		return -ENOMEM;
	r = method_scan(image, python, file, &tables->list);
	if (r < 0)
		return r;
	sort_unique(&tables->list);
	r = add_jump_targets(image, tables);
	if (r < 0)
		return r;

	*ret = TAKE(tables);
	return 0;
}

int method_tables_restore(const struct cache_method *methods, size_t n, const char *strings, size_t n_strings,
			  struct method_tables **ret)
{
	CLEANUP(method_tables_freep) struct method_tables *tables = calloc(1, sizeof *tables);
	int r;

	if (!tables)
		return -ENOMEM;
	r = effort_take(n * sizeof *tables->list.methods, true);
	if (r < 0)
		return r;
	tables->list.methods = calloc(n + 1, sizeof *tables->list.methods);
	if (!tables->list.methods)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct cache_method *from = &methods[i];

		if (from->owner >= n_strings || from->member >= n_strings || from->kind > METHOD_GLUE ||
		    (i > 0 && from->address <= from[-1].address))
			return -EBADMSG;
		tables->list.methods[i] = (struct method){
			.address = from->address,
			.owner = from->owner ? strings + from->owner : NULL,
			.member = from->member ? strings + from->member : NULL,
			.kind = from->kind,
			.is_body = from->is_body != 0,
			.is_shared = from->is_shared != 0,
			.is_ambiguous = from->is_ambiguous != 0,
		};
	}
	tables->list.n_methods = n;
	*ret = TAKE(tables);
	return 0;
}

void method_tables_free(struct method_tables *tables)
{
	if (!tables)
		return;
	free(tables->list.methods);
	free(tables);
}

void method_tables_freep(struct method_tables **tables)
{
	method_tables_free(*tables);
}

const struct method *method_tables_find(const struct method_tables *tables, uint64_t address)
{
	size_t low = 0, high = tables->list.n_methods;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (tables->list.methods[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < tables->list.n_methods && tables->list.methods[low].address == address ? &tables->list.methods[low]
											    : NULL;
}

const struct method *method_tables_nth(const struct method_tables *tables, size_t n)
{
	return n < tables->list.n_methods ? &tables->list.methods[n] : NULL;
}

int method_format(const struct method *method, char **ret)
{
	bool is_common = method->is_shared && !method->is_ambiguous && method->member;
	const char *owner = is_common ? NULL : method->owner;
	const char *member = method->member ? method->member : "";
	const char *separator = owner && member[0] != '\0' && member[0] != ' ' ? "." : "";
	char *text;

	if (method->kind == METHOD_GLUE && method->member)
		separator = " ";
	if (!owner)
		member += member[0] == ' ';
	if (asprintf(&text, "%s%s%s", owner ? owner : "", separator, member) < 0)
		return -ENOMEM;
	*ret = text;
	return 0;
}
