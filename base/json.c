/* SPDX-License-Identifier: MIT */
/* json.c - see json.h.
 *
 * Invariants: bytes and out contain whole tokens only; after an error nothing more is written. A value in an object
 * needs a name before it, and a document has one value, so that the output of a call out of order is an error, never
 * wrong JSON.
 * Source: RFC 8259.
 */
#include "base/json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/util.h"

int to_json_open(FILE *out, struct json *ret)
{
	*ret = (struct json){ .out = out, .next = text_next };
	return 0;
}

int to_json_keep(const char *indent, struct json *ret)
{
	*ret = (struct json){ .indent = indent, .next = text_decode };
	return 0;
}

void to_json_done(struct json *json)
{
	free(json->bytes);
	*json = (struct json){ 0 };
}

static void fail(struct json *json, int error)
{
	if (json->error == 0)
		json->error = error;
}

/* ---- Bytes ---- */

static void put(struct json *json, const char *bytes, size_t n)
{
	if (json->error < 0 || n == 0)
		return;
	if (json->out) {
		fwrite_unlocked(bytes, 1, n, json->out); /* no other thread uses the stream */
		return;
	}
	if (grow(&json->bytes, json->n_bytes + n - 1, &json->allocated, 1) < 0) {
		fail(json, -ENOMEM);
		return;
	}
	memcpy(json->bytes + json->n_bytes, bytes, n);
	json->n_bytes += n;
}

static void put_line(struct json *json)
{
	size_t n_indent;

	if (!json->indent)
		return;
	n_indent = strlen(json->indent);
	put(json, "\n", 1);
	for (unsigned i = 0; i < json->depth; i++)
		put(json, json->indent, n_indent);
}

static void put_escape(struct json *json, unsigned char c)
{
	static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
	const char *found = c ? strchr(from, c) : NULL;
	char escape[7];
	int n = found ? snprintf(escape, sizeof escape, "\\%c", to[found - from])
		      : snprintf(escape, sizeof escape, "\\u%04X", c);

	put(json, escape, (size_t)n);
}

static void put_escaped(struct json *json, const char *bytes, size_t n)
{
	size_t start = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)bytes[i];

		if (c >= 0x20 && c != '"' && c != '\\')
			continue;
		put(json, bytes + start, i - start);
		put_escape(json, c);
		start = i + 1;
	}
	if (n > start)
		put(json, bytes + start, n - start);
}

/* Number of leading ASCII characters that need no escape. */
static size_t n_plain(const char *text)
{
	size_t n = 0;

	while ((unsigned char)text[n] >= 0x20 && (unsigned char)text[n] < 0x7f && text[n] != '"' && text[n] != '\\')
		n++;
	return n;
}

static void put_text(struct json *json, const char *text)
{
	char character[4];

	for (;;) {
		size_t n = n_plain(text);
		int32_t c;

		put(json, text, n);
		text += n;
		c = json->next(&text);
		if (c == 0)
			return;
		put_escaped(json, character, text_encode(c, character));
	}
}

/* ---- Structure ---- */

static void begin_item(struct json *json)
{
	if (json->levels[json->depth - 1].has_items)
		put(json, ",", 1);
	json->levels[json->depth - 1].has_items = true;
	put_line(json);
}

static bool begin_value(struct json *json)
{
	bool is_member = json->depth > 0 && json->levels[json->depth - 1].is_object;

	if (json->is_complete || is_member != json->has_key)
		fail(json, -EINVAL);
	if (json->error < 0)
		return false;
	if (json->depth > 0 && !is_member)
		begin_item(json);
	json->has_key = false;
	json->is_complete = json->depth == 0;
	return true;
}

static void put_value(struct json *json, const char *bytes, size_t n)
{
	if (begin_value(json))
		put(json, bytes, n);
}

static void open_level(struct json *json, bool is_object)
{
	if (!begin_value(json))
		return;
	if (json->depth == JSON_MAX_DEPTH) {
		fail(json, -EINVAL);
		return;
	}
	json->is_complete = false;
	json->levels[json->depth].is_object = is_object;
	json->levels[json->depth++].has_items = false;
	put(json, is_object ? "{" : "[", 1);
}

static void close_level(struct json *json, bool is_object)
{
	bool has_items;

	if (json->depth == 0 || json->has_key || json->levels[json->depth - 1].is_object != is_object)
		fail(json, -EINVAL);
	if (json->error < 0)
		return;
	has_items = json->levels[--json->depth].has_items;
	if (has_items)
		put_line(json);
	put(json, is_object ? "}" : "]", 1);
	json->is_complete = json->depth == 0;
}

void to_json_object(struct json *json)
{
	open_level(json, true);
}

void to_json_object_end(struct json *json)
{
	close_level(json, true);
}

void to_json_array(struct json *json)
{
	open_level(json, false);
}

void to_json_array_end(struct json *json)
{
	close_level(json, false);
}

void to_json_key(struct json *json, const char *name)
{
	if (json->depth == 0 || json->has_key || !json->levels[json->depth - 1].is_object)
		fail(json, -EINVAL);
	if (json->error < 0)
		return;
	begin_item(json);
	put(json, "\"", 1);
	put_escaped(json, name, strlen(name));
	put(json, json->indent ? "\": " : "\":", json->indent ? 3 : 2);
	json->has_key = true;
}

/* ---- Values ---- */

void to_json_string(struct json *json, const char *text)
{
	if (!text) {
		to_json_null(json);
		return;
	}
	if (!begin_value(json))
		return;
	put(json, "\"", 1);
	put_text(json, text);
	put(json, "\"", 1);
}

void to_json_bytes(struct json *json, const char *bytes, size_t n)
{
	if (!begin_value(json))
		return;
	put(json, "\"", 1);
	put_escaped(json, bytes, n);
	put(json, "\"", 1);
}

void to_json_integer(struct json *json, int64_t value)
{
	char digits[24], *const end = digits + sizeof digits, *at = end;
	uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;

	do
		*--at = (char)('0' + rest % 10);
	while ((rest /= 10) > 0);
	if (value < 0)
		*--at = '-';
	put_value(json, at, (size_t)(end - at));
}

/* NaN and infinity become null: a change from nothing has no size. */
void to_json_number(struct json *json, double value)
{
	enum { ENOUGH = 17 }; /* digits that distinguish all doubles */
	char digits[40];
	int n = 0;

	if (!isfinite(value)) {
		to_json_null(json);
		return;
	}
	for (int precision = 15; precision <= ENOUGH; precision++) {
		n = snprintf(digits, sizeof digits, "%.*g", precision, value);
		if (strtod(digits, NULL) == value)
			break;
	}
	/* Readers would parse it as an integer. */
	if (strspn(digits, "-0123456789") == (size_t)n)
		n += snprintf(digits + n, sizeof digits - (size_t)n, ".0");
	put_value(json, digits, (size_t)n);
}

void to_json_bool(struct json *json, bool value)
{
	put_value(json, value ? "true" : "false", value ? 4 : 5);
}

void to_json_null(struct json *json)
{
	put_value(json, "null", 4);
}

void to_json_fixed(struct json *json, uint64_t value, unsigned decimals)
{
	char digits[TEXT_FIXED_BYTES];

	put_value(json, digits, text_fixed(value, decimals, digits));
}

void to_json_digits(struct json *json, const char *digits, size_t n)
{
	put_value(json, digits, n);
}

void to_json_raw(struct json *json, const char *text, size_t n)
{
	put_value(json, text, n);
}

void to_json_put_string(struct json *json, const char *name, const char *text)
{
	to_json_key(json, name);
	to_json_string(json, text);
}

void to_json_put_text(struct json *json, const char *name, const char *text)
{
	to_json_put_string(json, name, text && text[0] ? text : NULL);
}

void to_json_put_integer(struct json *json, const char *name, int64_t value)
{
	to_json_key(json, name);
	to_json_integer(json, value);
}

void to_json_put_known(struct json *json, const char *name, int64_t value, bool is_known)
{
	if (is_known)
		to_json_put_integer(json, name, value);
	else
		to_json_put_null(json, name);
}

void to_json_put_number(struct json *json, const char *name, double value)
{
	to_json_key(json, name);
	to_json_number(json, value);
}

void to_json_put_bool(struct json *json, const char *name, bool value)
{
	to_json_key(json, name);
	to_json_bool(json, value);
}

void to_json_put_null(struct json *json, const char *name)
{
	to_json_key(json, name);
	to_json_null(json);
}

void to_json_put_fixed(struct json *json, const char *name, uint64_t value, unsigned decimals)
{
	to_json_key(json, name);
	to_json_fixed(json, value, decimals);
}

void to_json_put_object(struct json *json, const char *name)
{
	to_json_key(json, name);
	to_json_object(json);
}

void to_json_put_array(struct json *json, const char *name)
{
	to_json_key(json, name);
	to_json_array(json);
}

char *to_json_quote(const char *text)
{
	CLEANUP(to_json_done) struct json json = { .next = text_next };

	to_json_string(&json, text);
	return json.error < 0 ? NULL : strndup(json.bytes, json.n_bytes);
}

int to_json_next(struct json *json, FILE *out)
{
	if (json->error == 0 && !json->is_complete)
		json->error = -EINVAL;
	if (json->error < 0)
		return json->error;
	fwrite(json->bytes, 1, json->n_bytes, out);
	json->n_bytes = 0;
	json->is_complete = false;
	return 0;
}

int to_json_finish(struct json *json, FILE *out)
{
	int r = 0;

	if (!json->out)
		r = to_json_next(json, out);
	else if (json->error < 0 || !json->is_complete)
		r = json->error < 0 ? json->error : -EINVAL;
	if (r < 0)
		return r;
	fputc('\n', out);
	return text_finish(out);
}
