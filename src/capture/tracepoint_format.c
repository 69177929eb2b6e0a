/* SPDX-License-Identifier: MIT */
/* tracepoint_format.c - the fields of a tracepoint, with libtraceevent; see tracefs.h.
 *
 * The library parses the kernel's description; decoding is ours (tracepoint.c), so that a
 * record costs no look-up and is read within bounds. Fields that all tracepoints have
 * ("common_pid" and so on) are dropped: a sample has the same values.
 */
#include <errno.h>
#include <string.h>
#include <traceevent/event-parse.h>

#include "base/util.h"
#include "src/capture/tracefs.h"

DEFINE_CLEANUP(struct tep_handle *, tep_free)

static bool is_integer_size(unsigned n)
{
	return n == 1 || n == 2 || n == 4 || n == 8;
}

/* Whether the type holds characters rather than bytes; the library does not distinguish them. */
static bool is_characters(const char *type)
{
	return strstr(type, "char") && !strstr(type, "unsigned");
}

/* Element size of a dynamic array, from its type's name: the description has nothing else. 0: unknown. */
static unsigned dynamic_element(const char *type)
{
	static const struct {
		const char *word;
		unsigned n_bytes;
	} words[] = {
		{ "64", 8 },    { "long", sizeof(long) },
		{ "32", 4 },    { "16", 2 },
		{ "short", 2 }, { "8", 1 },
		{ "char", 1 },  { "int", 4 },
		{ "pid_t", 4 },
	};

	for (size_t i = 0; i < N_ELEMENTS(words); i++)
		if (strstr(type, words[i].word))
			return words[i].n_bytes;
	return 0;
}

static enum tracepoint_type type_of(const struct tep_format_field *from, unsigned element_bytes)
{
	if (from->flags & TEP_FIELD_IS_ARRAY) {
		if ((from->flags & TEP_FIELD_IS_STRING) && is_characters(from->type))
			return TRACEPOINT_TEXT;
		return element_bytes > 1 && is_integer_size(element_bytes) ? TRACEPOINT_NUMBERS : TRACEPOINT_BYTES;
	}
	return is_integer_size((unsigned)from->size) ? TRACEPOINT_INTEGER : TRACEPOINT_BYTES;
}

static int take_field(const struct tep_format_field *from, struct tracepoint_field *ret)
{
	struct tracepoint_field field = { .is_signed = from->flags & TEP_FIELD_IS_SIGNED };

	if (from->offset < 0 || from->size < 0 || strlen(from->name) >= sizeof field.name)
		return -EBADMSG;
	strcpy(field.name, from->name);
	field.offset = (uint32_t)from->offset;
	field.n_bytes = (uint32_t)from->size;
	field.is_dynamic = from->flags & TEP_FIELD_IS_DYNAMIC;
	field.is_relative = from->flags & TEP_FIELD_IS_RELATIVE;
	field.element_bytes = field.is_dynamic ? dynamic_element(from->type) : from->elementsize;
	field.type = type_of(from, field.element_bytes);
	*ret = field;
	return 0;
}

static int take_fields(const struct tep_event *event, struct tracepoint *tracepoint)
{
	const struct tep_format_field *from = event->format.fields;
	size_t allocated = 0;
	int r = 0;

	for (; from && tracepoint->n_fields < TRACEPOINT_MAX_FIELDS && r >= 0; from = from->next) {
		r = grow(&tracepoint->fields, tracepoint->n_fields, &allocated, sizeof *tracepoint->fields);
		if (r >= 0)
			r = take_field(from, &tracepoint->fields[tracepoint->n_fields]);
		tracepoint->n_fields += r >= 0;
	}
	return r;
}

/* These tracepoints give only a system call number: add the name. */
static int add_syscall_name(struct tracepoint *tracepoint)
{
	struct tracepoint_field *fields, field;
	size_t i;

	for (i = 0; i < tracepoint->n_fields && strcmp(tracepoint->fields[i].name, "id") != 0; i++)
		;
	if (strncmp(tracepoint->name, "raw_syscalls:", strlen("raw_syscalls:")) != 0 || i == tracepoint->n_fields)
		return 0;
	fields = reallocarray(tracepoint->fields, tracepoint->n_fields + 1, sizeof *fields);
	if (!fields)
		return -ENOMEM;
	tracepoint->fields = fields;
	field = fields[i];
	field.type = TRACEPOINT_SYSCALL;
	strcpy(field.name, "syscall");
	fields[tracepoint->n_fields++] = field;
	return 0;
}

/* The print format may fail to parse; only the fields matter. */
static const struct tep_event *parse(struct tep_handle *tep, const char *name, const char *text, size_t n_bytes)
{
	CLEANUP(freep) char *group = strndup(name, strcspn(name, ":"));

	if (!group)
		return NULL;
	(void)tep_parse_event(tep, text, n_bytes, group);
	return tep_find_event_by_name(tep, group, strchr(name, ':') + 1);
}

int tracepoint_describe(const char *name, const char *text, size_t n_bytes, struct tracepoint **ret)
{
	CLEANUP(tracepoint_freep) struct tracepoint *tracepoint = NULL;
	CLEANUP(tep_freep) struct tep_handle *tep = NULL;
	const struct tep_event *event;
	int r;

	tep_set_loglevel(TEP_LOG_NONE); /* libraries do not print */
	tep = tep_alloc();
	tracepoint = calloc(1, sizeof *tracepoint);
	if (!tep || !tracepoint)
		return -ENOMEM;
	tep_set_long_size(tep, sizeof(long));
	strncpy(tracepoint->name, name, sizeof tracepoint->name - 1);
	event = parse(tep, name, text, n_bytes);
	if (!event)
		return -EBADMSG;
	r = take_fields(event, tracepoint);
	if (r >= 0)
		r = add_syscall_name(tracepoint);
	if (r < 0)
		return r;
	*ret = TAKE(tracepoint);
	return 0;
}
