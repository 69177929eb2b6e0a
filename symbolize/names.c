/* SPDX-License-Identifier: MIT */
/* names.c - names for display: demangled, shortened, stored once.
 *
 * Flame graphs need names that fit a box and that are equal for all places of
 * a function: parameters, return types and the compiler's clone numbers are removed;
 * template arguments remain until the whole becomes too long.
 *
 * Invariants of struct names: an open-addressing table, a power of two, never
 * more than half full; keys and values never move or change once handed out.
 */
#include "symbolize/names.h"

#include <ctype.h>
#include <errno.h>
#include <libiberty/demangle.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

enum {
	LONG_NAME = 120, /* drop the template arguments of longer names */
};

static const char *const appendices[] = { "cold", "part", "constprop", "isra", "lto_priv", "localalias", "llvm" };

static bool is_appendix(const char *dot)
{
	for (size_t i = 0; i < N_ELEMENTS(appendices); i++) {
		size_t n = strlen(appendices[i]);

		if (strncmp(dot + 1, appendices[i], n) == 0 && (dot[1 + n] == '\0' || dot[1 + n] == '.'))
			return true;
	}
	return false;
}

size_t name_base_length(const char *linkage)
{
	for (const char *dot = strchr(linkage, '.'); dot; dot = strchr(dot + 1, '.'))
		if (dot != linkage && is_appendix(dot))
			return (size_t)(dot - linkage);
	return strcspn(linkage, "@");
}

/* Length of an operator's symbol with angle brackets: "operator<<" has no template arguments. */
static size_t operator_length(const char *at, const char *name)
{
	static const char *const operators[] = { "<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "<", ">" };
	static const char word[] = "operator";
	size_t n_word = sizeof word - 1;

	if (strncmp(at, word, n_word) != 0 || (at > name && (isalnum((unsigned char)at[-1]) || at[-1] == '_')))
		return 0;
	for (size_t i = 0; i < N_ELEMENTS(operators); i++)
		if (strncmp(at + n_word, operators[i], strlen(operators[i])) == 0)
			return n_word + strlen(operators[i]);
	return 0;
}

struct text {
	char *bytes;
	size_t n_bytes, max_bytes;
};

static bool append(struct text *text, const char *bytes, size_t n_bytes)
{
	if (n_bytes > text->max_bytes - text->n_bytes)
		return false;
	memcpy(text->bytes + text->n_bytes, bytes, n_bytes);
	text->n_bytes += n_bytes;
	return true;
}

/* Copy a name with each outermost <...> replaced by "<...>". False: not shorter, or unbalanced. */
static bool copy_without_arguments(const char *name, struct text *to)
{
	size_t depth = 0;

	for (const char *at = name; *at;) {
		size_t n_operator = operator_length(at, name);
		size_t n = MAX(n_operator, (size_t)1);

		if (n_operator == 0 && *at == '<' && depth++ == 0 && !append(to, "<...>", 5))
			return false;
		if (n_operator == 0 && *at == '>' && !(at > name && at[-1] == '-')) {
			if (depth == 0)
				return false;
			depth--;
		} else if (depth == 0 && !append(to, at, n)) {
			return false;
		}
		at += n;
	}
	return depth == 0;
}

static void cut_template_arguments(char *name)
{
	CLEANUP(freep) char *shorter = NULL;
	size_t n_name = strlen(name);
	struct text text;

	shorter = malloc(n_name);
	if (!shorter)
		return; /* keep the long name */
	text = (struct text){ .bytes = shorter, .max_bytes = n_name - 1 };
	if (!copy_without_arguments(name, &text))
		return;
	memcpy(name, shorter, text.n_bytes);
	name[text.n_bytes] = '\0';
}

/* Length of glibc's prefix: "__GI_" of "__GI_strtod_l_internal" (see symtab.c). */
static size_t internal_length(const char *linkage)
{
	static const char mark[] = "__GI_";
	const size_t n = sizeof mark - 1;

	return strncmp(linkage, mark, n) == 0 && (isalpha((unsigned char)linkage[n]) || linkage[n] == '_') ? n : 0;
}

int name_readable(const char *linkage, char **ret)
{
	char *name = NULL;

	linkage += internal_length(linkage);
	if (linkage[0] == '_' && strlen(linkage) < NAME_MAX_BYTES)
		name = cplus_demangle(linkage, DMGL_AUTO);
	if (!name)
		name = strndup(linkage, name_base_length(linkage));
	if (!name)
		return -ENOMEM;
	if (strlen(name) > LONG_NAME)
		cut_template_arguments(name);

	*ret = name;
	return 0;
}

struct entry {
	char *key, *value; /* value NULL: same as key */
};

struct names {
	struct entry *slots;
	size_t n_slots, n_used;
};

int names_new(struct names **ret)
{
	CLEANUP(names_freep) struct names *names = NULL;

	names = calloc(1, sizeof *names);
	if (!names)
		return -ENOMEM;
	names->n_slots = 64;
	names->slots = calloc(names->n_slots, sizeof *names->slots);
	if (!names->slots)
		return -ENOMEM;

	*ret = TAKE(names);
	return 0;
}

void names_free(struct names *names)
{
	if (!names)
		return;
	for (size_t i = 0; names->slots && i < names->n_slots; i++) {
		free(names->slots[i].key);
		free(names->slots[i].value);
	}
	free(names->slots);
	free(names);
}

void names_freep(struct names **names)
{
	names_free(*names);
}

static uint64_t hash_string(const char *string)
{
	uint64_t hash = 0;

	for (; *string; string++)
		hash = hash * 31 + (uint8_t)*string;
	return mix64(hash);
}

/* The slot of a key, or the free slot for it. */
static struct entry *find_slot(struct entry *slots, size_t n_slots, const char *key)
{
	size_t at = hash_string(key) & (n_slots - 1);

	while (slots[at].key && strcmp(slots[at].key, key) != 0)
		at = (at + 1) & (n_slots - 1);
	return &slots[at];
}

static int make_room(struct names *names)
{
	struct entry *slots;
	size_t n_slots = names->n_slots * 2;

	if (names->n_used * 2 < names->n_slots)
		return 0;
	slots = calloc(n_slots, sizeof *slots);
	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < names->n_slots; i++)
		if (names->slots[i].key)
			*find_slot(slots, n_slots, names->slots[i].key) = names->slots[i];
	free(names->slots);
	names->slots = slots;
	names->n_slots = n_slots;
	return 0;
}

static int names_add(struct names *names, const char *key, char *value, const char **ret)
{
	struct entry *slot;
	int r;

	r = make_room(names);
	if (r < 0)
		return r;
	slot = find_slot(names->slots, names->n_slots, key);
	slot->key = strdup(key);
	if (!slot->key)
		return -ENOMEM;
	slot->value = value;
	names->n_used++;

	*ret = value ? value : slot->key;
	return 0;
}

static const char *names_find(const struct names *names, const char *key)
{
	const struct entry *slot = find_slot(names->slots, names->n_slots, key);

	if (!slot->key)
		return NULL;
	return slot->value ? slot->value : slot->key;
}

int names_keep(struct names *names, const char *string, const char **ret)
{
	const char *known = names_find(names, string);

	if (!known)
		return names_add(names, string, NULL, ret);
	*ret = known;
	return 0;
}

int names_readable(struct names *names, const char *linkage, const char **ret)
{
	CLEANUP(freep) char *readable = NULL;
	const char *known = names_find(names, linkage);
	int r;

	if (known) {
		*ret = known;
		return 0;
	}
	r = name_readable(linkage, &readable);
	if (r < 0)
		return r;
	r = names_add(names, linkage, readable, ret);
	if (r < 0)
		return r;
	TAKE(readable);
	return 0;
}
