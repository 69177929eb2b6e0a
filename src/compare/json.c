/* json.c - values of JSON; see json.h. */
#include "src/compare/json.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/util.h"

yajl_gen json_new(void)
{
	yajl_gen json = yajl_gen_alloc(NULL);

	if (json)
		yajl_gen_config(json, yajl_gen_beautify, 1);
	return json;
}

void json_put_string(yajl_gen json, const char *text)
{
	yajl_gen_string(json, (const unsigned char *)text, strlen(text));
}

void json_put_text(yajl_gen json, const char *key, const char *text)
{
	json_put_string(json, key);
	if (text && text[0])
		json_put_string(json, text);
	else
		yajl_gen_null(json);
}

/* What is no number is null: a change of what was not there has no size. */
void json_put_number(yajl_gen json, const char *key, double value)
{
	json_put_string(json, key);
	if (isfinite(value))
		yajl_gen_double(json, value);
	else
		yajl_gen_null(json);
}

void json_put_integer(yajl_gen json, const char *key, uint64_t value)
{
	json_put_string(json, key);
	yajl_gen_integer(json, (long long)value);
}

void json_put_bool(yajl_gen json, const char *key, bool value)
{
	json_put_string(json, key);
	yajl_gen_bool(json, value);
}

int json_finish(yajl_gen json, FILE *out)
{
	const unsigned char *text;
	size_t n_bytes;

	if (yajl_gen_get_buf(json, &text, &n_bytes) != yajl_gen_status_ok)
		return -ENOMEM;
	fwrite(text, 1, n_bytes, out);
	return ferror(out) ? -EIO : 0;
}
