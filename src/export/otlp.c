/* SPDX-License-Identifier: MIT */
/* otlp.c - see otlp.h. */
#include "src/export/otlp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

typedef Probing__Otlp__AnyValue any_value;
typedef Probing__Otlp__Attribute attribute_message;
typedef Probing__Otlp__Function function_message;
typedef Probing__Otlp__Line line_message;
typedef Probing__Otlp__Link link_message;
typedef Probing__Otlp__Location location_message;
typedef Probing__Otlp__Mapping mapping_message;

enum { TRACE_ID_BYTES = 16, SPAN_ID_BYTES = 8 };

int otlp_add(struct otlp *otlp, enum otlp_table table, const ProtobufCMessage *message, int32_t *ret)
{
	uint32_t index;
	int r;

	r = packer_pack(&otlp->packer, message);
	if (r == 0)
		r = interner_add(&otlp->tables[table], otlp->packer.bytes, otlp->packer.n, &index);
	if (r < 0)
		return r;
	if (index > INT32_MAX)
		return -EOVERFLOW;
	*ret = (int32_t)index;
	return 0;
}

static int name_number(struct names *names, const char *text, int32_t *ret)
{
	uint32_t number;
	int r;

	r = names_add(names, text, &number);
	if (r == 0 && number > INT32_MAX)
		r = -EOVERFLOW;
	if (r == 0)
		*ret = (int32_t)number;
	return r;
}

int otlp_string(struct otlp *otlp, const char *text, int32_t *ret)
{
	return name_number(&otlp->strings, text, ret);
}

int otlp_text(struct otlp *otlp, const char *text, char **ret)
{
	int32_t number;
	int r;

	r = name_number(&otlp->texts, text, &number);
	if (r == 0)
		*ret = (char *)otlp->texts.texts[number];
	return r;
}

/* ---- Attributes ---- */

static void add_attribute(struct otlp_attributes *attributes, const char *key, any_value *value)
{
	attribute_message attribute = PROBING__OTLP__ATTRIBUTE__INIT;
	int r = attributes->error;

	attribute.value = value;
	if (r == 0)
		r = otlp_string(attributes->otlp, key, &attribute.key_strindex);
	if (r == 0)
		r = otlp_add(attributes->otlp, OTLP_ATTRIBUTES, &attribute.base, &attributes->items[attributes->n]);
	if (r < 0)
		attributes->error = r;
	else
		attributes->n++;
}

void otlp_attribute_text(struct otlp_attributes *attributes, const char *key, const char *text)
{
	any_value value = PROBING__OTLP__ANY_VALUE__INIT;
	int r;

	if (!text || !*text)
		return;
	value.value_case = PROBING__OTLP__ANY_VALUE__VALUE_TEXT;
	r = otlp_text(attributes->otlp, text, &value.text);
	if (r < 0)
		attributes->error = r;
	add_attribute(attributes, key, &value);
}

void otlp_attribute_number(struct otlp_attributes *attributes, const char *key, int64_t number)
{
	any_value value = PROBING__OTLP__ANY_VALUE__INIT;

	value.value_case = PROBING__OTLP__ANY_VALUE__VALUE_NUMBER;
	value.number = number;
	add_attribute(attributes, key, &value);
}

void otlp_attribute_flag(struct otlp_attributes *attributes, const char *key, bool flag)
{
	any_value value = PROBING__OTLP__ANY_VALUE__INIT;

	value.value_case = PROBING__OTLP__ANY_VALUE__VALUE_FLAG;
	value.flag = flag;
	add_attribute(attributes, key, &value);
}

/* ---- Places ---- */

/* @image: index + 1; 0: none. */
static int add_mapping(struct otlp *otlp, uint32_t image, int32_t *ret)
{
	struct otlp_attributes attributes = { .otlp = otlp };
	mapping_message mapping = PROBING__OTLP__MAPPING__INIT;
	const struct image *it;
	int r;

	if (image == 0) {
		*ret = 0;
		return 0;
	}
	it = &otlp->images.items[image - 1];
	mapping.memory_limit = it->end;
	r = otlp_string(otlp, it->path, &mapping.filename_strindex);
	if (r < 0)
		return r;
	otlp_attribute_text(&attributes, "process.executable.build_id.gnu", it->build_id);
	if (attributes.error < 0)
		return attributes.error;
	mapping.attribute_indices = attributes.items;
	mapping.n_attribute_indices = attributes.n;
	return otlp_add(otlp, OTLP_MAPPINGS, &mapping.base, ret);
}

static int add_function(struct otlp *otlp, const struct profile_frame *frame, int32_t *ret)
{
	function_message function = PROBING__OTLP__FUNCTION__INIT;
	bool has_symbol = frame->symbol && strcmp(frame->symbol, frame->name) != 0;
	int r;

	function.start_line = frame->first_line;
	r = otlp_string(otlp, frame->name, &function.name_strindex);
	if (r == 0)
		r = otlp_string(otlp, has_symbol ? frame->symbol : NULL, &function.system_name_strindex);
	if (r == 0)
		r = otlp_string(otlp, frame->file, &function.filename_strindex);
	return r < 0 ? r : otlp_add(otlp, OTLP_FUNCTIONS, &function.base, ret);
}

/* Value of profile.frame.type; NULL: no code, such as an asyncio task or the reason of a wait. */
static const char *frame_type(enum frame_kind kind)
{
	static const char *const types[FRAME_N_KINDS] = {
		[FRAME_PYTHON] = "cpython",
		[FRAME_NATIVE] = "native",
		[FRAME_KERNEL] = "kernel",
	};

	return types[kind];
}

static int put_location(struct otlp *otlp, int32_t frame, unsigned n, int32_t *ret)
{
	const struct profile_frame *frames = otlp->profile->frames;
	struct otlp_attributes attributes = { .otlp = otlp };
	line_message lines[PROFILE_MAX_INLINED], *list[PROFILE_MAX_INLINED];
	location_message location = PROBING__OTLP__LOCATION__INIT;
	int64_t at = frame;
	int r;

	for (unsigned i = 0; i < n && at >= 0; i++, at = frames[at].inlined_into) {
		lines[i] = (line_message)PROBING__OTLP__LINE__INIT;
		lines[i].line = frames[at].line;
		list[i] = &lines[i];
		location.n_lines = i + 1;
		r = add_function(otlp, &frames[at], &lines[i].function_index);
		if (r < 0)
			return r;
	}
	location.lines = list;
	location.address = frames[frame].has_address ? frames[frame].address : 0;
	r = add_mapping(otlp, otlp->images.of_frame[frame], &location.mapping_index);
	if (r < 0)
		return r;
	otlp_attribute_text(&attributes, "profile.frame.type", frame_type(frames[frame].kind));
	if (attributes.error < 0)
		return attributes.error;
	location.attribute_indices = attributes.items;
	location.n_attribute_indices = attributes.n;
	return otlp_add(otlp, OTLP_LOCATIONS, &location.base, ret);
}

int otlp_location(struct otlp *otlp, int32_t frame, unsigned n, int32_t *ret)
{
	struct otlp_place *place = &otlp->places[frame];
	int r;

	n = MIN(n, (unsigned)PROFILE_MAX_INLINED);
	if (place->n_inlined != n) {
		r = put_location(otlp, frame, n, &place->location);
		if (r < 0)
			return r;
		place->n_inlined = n;
	}
	*ret = place->location;
	return 0;
}

int otlp_nowhere(struct otlp *otlp, const char *name, int32_t *ret)
{
	const struct profile_frame frame = { .name = name };
	line_message line = PROBING__OTLP__LINE__INIT, *lines = &line;
	location_message location = PROBING__OTLP__LOCATION__INIT;
	int r;

	location.lines = &lines;
	location.n_lines = 1;
	r = add_function(otlp, &frame, &line.function_index);
	return r < 0 ? r : otlp_add(otlp, OTLP_LOCATIONS, &location.base, ret);
}

/* ---- Begin, write, end ---- */

/* A link of zeroes has ids of full length, for readers that insist on it. */
static int add_zero_values(struct otlp *otlp)
{
	uint8_t zeroes[TRACE_ID_BYTES] = { 0 };
	link_message link = PROBING__OTLP__LINK__INIT;
	int32_t index;
	uint32_t id;
	int r;

	link.trace_id = (ProtobufCBinaryData){ .len = TRACE_ID_BYTES, .data = zeroes };
	link.span_id = (ProtobufCBinaryData){ .len = SPAN_ID_BYTES, .data = zeroes };
	r = otlp_string(otlp, NULL, &index);
	for (unsigned i = OTLP_MAPPINGS; r >= 0 && i < OTLP_N_TABLES; i++)
		if (i != OTLP_STRINGS && i != OTLP_LINKS)
			r = interner_add(&otlp->tables[i], NULL, 0, &id);
	return r < 0 ? r : otlp_add(otlp, OTLP_LINKS, &link.base, &index);
}

int otlp_init(const struct profile *profile, struct otlp *ret)
{
	struct otlp otlp = { .profile = profile, .places = calloc(profile->n_frames + 1, sizeof *otlp.places) };
	int r = otlp.places ? 0 : -ENOMEM;

	if (r == 0)
		r = images_init(profile, &otlp.images);
	if (r == 0)
		r = add_zero_values(&otlp);
	if (r < 0)
		otlp_done(&otlp);
	else
		*ret = otlp;
	return r;
}

void otlp_done(struct otlp *otlp)
{
	packer_done(&otlp->packer);
	images_done(&otlp->images);
	names_done(&otlp->strings);
	names_done(&otlp->texts);
	for (unsigned i = 0; i < OTLP_N_TABLES; i++)
		interner_done(&otlp->tables[i]);
	free(otlp->places);
	*otlp = (struct otlp){ 0 };
}

/* Write the items, or only sum their bytes if @out is NULL. */
static uint64_t each_item(const struct otlp *otlp, FILE *out)
{
	uint64_t n_bytes = 0;

	for (unsigned table = OTLP_MAPPINGS; table < OTLP_N_TABLES; table++) {
		size_t n = table == OTLP_STRINGS ? otlp->strings.n : otlp->tables[table].n;

		for (size_t i = 0; i < n; i++) {
			uint32_t n_item = 0;
			const void *item = table == OTLP_STRINGS
						   ? otlp->strings.texts[i]
						   : interner_get(&otlp->tables[table], (uint32_t)i, &n_item);

			if (table == OTLP_STRINGS)
				n_item = (uint32_t)strlen(item);
			n_bytes += packer_field_bytes(table, n_item);
			if (!out)
				continue;
			packer_put_head(out, table, n_item);
			fwrite(item, 1, n_item, out);
		}
	}
	return n_bytes;
}

void otlp_put_dictionary(const struct otlp *otlp, unsigned field, FILE *out)
{
	packer_put_head(out, field, each_item(otlp, NULL));
	each_item(otlp, out);
}
