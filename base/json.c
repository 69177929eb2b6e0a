/* SPDX-License-Identifier: MIT */
/* json.c - see json.h. */
#include "base/json.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "base/util.h"

/* A token at a time; the stream is nobody else's. */
static void print(void *out, const char *text, size_t n_bytes)
{
	fwrite_unlocked(text, 1, n_bytes, out);
}

int to_json_open(FILE *out, struct json *ret)
{
	struct json json = { .generator = yajl_gen_alloc(NULL), .next = text_next };

	if (!json.generator)
		return -ENOMEM;
	yajl_gen_config(json.generator, yajl_gen_print_callback, print, out);
	*ret = json;
	return 0;
}

int to_json_keep(const char *indent, struct json *ret)
{
	struct json json = { .generator = yajl_gen_alloc(NULL), .next = text_decode, .is_kept = true };

	if (!json.generator)
		return -ENOMEM;
	if (indent) {
		yajl_gen_config(json.generator, yajl_gen_beautify, 1);
		yajl_gen_config(json.generator, yajl_gen_indent_string, indent);
	}
	*ret = json;
	return 0;
}

void to_json_done(struct json *json)
{
	if (json->generator)
		yajl_gen_free(json->generator);
	free(json->text);
	*json = (struct json){ 0 };
}

/* All that yajl may refuse here is nesting deeper than it counts, and calls out of order. */
static void check(struct json *json, yajl_gen_status status)
{
	if (json->error == 0 && status != yajl_gen_status_ok && status != yajl_gen_generation_complete)
		json->error = -EINVAL;
}

void to_json_object(struct json *json)
{
	check(json, yajl_gen_map_open(json->generator));
}

void to_json_object_end(struct json *json)
{
	check(json, yajl_gen_map_close(json->generator));
}

void to_json_array(struct json *json)
{
	check(json, yajl_gen_array_open(json->generator));
}

void to_json_array_end(struct json *json)
{
	check(json, yajl_gen_array_close(json->generator));
}

static void put_text(struct json *json, const char *text, size_t n_bytes)
{
	check(json, yajl_gen_string(json->generator, (const unsigned char *)text, n_bytes));
}

void to_json_key(struct json *json, const char *name)
{
	put_text(json, name, strlen(name));
}

static bool is_plain(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || (unsigned char)*text >= 0x7f)
			return false;
	return true;
}

/* A character takes three bytes at most where a byte stood that is none. */
static size_t clean(struct json *json, const char *text)
{
	size_t n = 0;

	if (grow(&json->text, strlen(text) * 3 + 4, &json->text_allocated, 1) < 0)
		return 0;
	for (int32_t c; (c = json->next(&text)) != 0;)
		n += text_encode(c, json->text + n);
	return n;
}

void to_json_string(struct json *json, const char *text)
{
	size_t n_bytes;

	if (!text) {
		to_json_null(json);
		return;
	}
	if (is_plain(text)) {
		put_text(json, text, strlen(text));
		return;
	}
	n_bytes = clean(json, text);
	if (n_bytes == 0 && json->error == 0)
		json->error = -ENOMEM;
	put_text(json, n_bytes > 0 ? json->text : "", n_bytes);
}

void to_json_integer(struct json *json, int64_t value)
{
	check(json, yajl_gen_integer(json->generator, value));
}

/* What is no number is null: a change of what was not there has no size. */
void to_json_number(struct json *json, double value)
{
	if (isfinite(value))
		check(json, yajl_gen_double(json->generator, value));
	else
		to_json_null(json);
}

void to_json_bool(struct json *json, bool value)
{
	check(json, yajl_gen_bool(json->generator, value));
}

void to_json_null(struct json *json)
{
	check(json, yajl_gen_null(json->generator));
}

void to_json_fixed(struct json *json, uint64_t value, unsigned decimals)
{
	char digits[TEXT_FIXED_BYTES];

	check(json, yajl_gen_number(json->generator, digits, text_fixed(value, decimals, digits)));
}

void to_json_digits(struct json *json, const char *digits)
{
	check(json, yajl_gen_number(json->generator, digits, strlen(digits)));
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
	CLEANUP(to_json_done) struct json json = { .generator = yajl_gen_alloc(NULL), .next = text_next };
	const unsigned char *quoted;
	size_t n_bytes;

	if (!json.generator)
		return NULL;
	to_json_string(&json, text);
	if (json.error < 0 || yajl_gen_get_buf(json.generator, &quoted, &n_bytes) != yajl_gen_status_ok)
		return NULL;
	return strndup((const char *)quoted, n_bytes);
}

static int put_kept(struct json *json, FILE *out)
{
	const unsigned char *text;
	size_t n_bytes;

	if (yajl_gen_get_buf(json->generator, &text, &n_bytes) != yajl_gen_status_ok)
		return -EINVAL;
	fwrite(text, 1, n_bytes, out);
	if (n_bytes == 0 || text[n_bytes - 1] != '\n')
		fputc('\n', out);
	return text_finish(out);
}

int to_json_finish(struct json *json, FILE *out)
{
	if (json->is_kept)
		return json->error < 0 ? json->error : put_kept(json, out);
	fputc('\n', out);
	return json->error < 0 ? json->error : text_finish(out);
}
