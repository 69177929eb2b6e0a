/* json.c - see json.h. */
#include "src/export/json.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "src/export/text.h"

/* A token at a time; the stream is nobody else's. */
static void print(void *out, const char *text, size_t n_bytes)
{
	fwrite_unlocked(text, 1, n_bytes, out);
}

int to_json_open(FILE *out, struct json *ret)
{
	struct json json = { .generator = yajl_gen_alloc(NULL) };

	if (!json.generator)
		return -ENOMEM;
	yajl_gen_config(json.generator, yajl_gen_print_callback, print, out);
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
	for (int32_t c; (c = text_next(&text)) != 0;)
		n += text_encode(c, json->text + n);
	return n;
}

void to_json_string(struct json *json, const char *text)
{
	size_t n_bytes;

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

void to_json_put_string(struct json *json, const char *name, const char *text)
{
	to_json_key(json, name);
	to_json_string(json, text);
}

void to_json_put_integer(struct json *json, const char *name, int64_t value)
{
	to_json_key(json, name);
	to_json_integer(json, value);
}

void to_json_put_bool(struct json *json, const char *name, bool value)
{
	to_json_key(json, name);
	to_json_bool(json, value);
}

void to_json_put_fixed(struct json *json, const char *name, uint64_t value, unsigned decimals)
{
	to_json_key(json, name);
	to_json_fixed(json, value, decimals);
}

char *to_json_quote(const char *text)
{
	CLEANUP(to_json_done) struct json json = { .generator = yajl_gen_alloc(NULL) };
	const unsigned char *quoted;
	size_t n_bytes;

	if (!json.generator)
		return NULL;
	to_json_string(&json, text);
	if (json.error < 0 || yajl_gen_get_buf(json.generator, &quoted, &n_bytes) != yajl_gen_status_ok)
		return NULL;
	return strndup((const char *)quoted, n_bytes);
}

int to_json_finish(struct json *json, FILE *out)
{
	fputc('\n', out);
	return json->error < 0 ? json->error : text_finish(out);
}
