/* json.c - see json.h. */
#include "src/report/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_gen.h>

#include "base/util.h"
#include "src/report/cell.h"

struct json {
	yajl_gen gen;
};

int json_new(struct json **ret)
{
	struct json *json = calloc(1, sizeof *json);

	if (!json)
		return -ENOMEM;
	json->gen = yajl_gen_alloc(NULL);
	if (!json->gen) {
		free(json);
		return -ENOMEM;
	}
	yajl_gen_config(json->gen, yajl_gen_beautify, 1);
	yajl_gen_config(json->gen, yajl_gen_indent_string, " ");
	*ret = json;
	return 0;
}

void json_freep(struct json **json)
{
	if (!*json)
		return;
	yajl_gen_free((*json)->gen);
	free(*json);
	*json = NULL;
}

static void put_key(struct json *json, const char *key)
{
	if (key)
		yajl_gen_string(json->gen, (const unsigned char *)key, strlen(key));
}

void json_open(struct json *json, const char *key)
{
	put_key(json, key);
	yajl_gen_map_open(json->gen);
}

void json_close(struct json *json)
{
	yajl_gen_map_close(json->gen);
}

void json_open_list(struct json *json, const char *key)
{
	put_key(json, key);
	yajl_gen_array_open(json->gen);
}

void json_close_list(struct json *json)
{
	yajl_gen_array_close(json->gen);
}

void json_integer(struct json *json, const char *key, int64_t value)
{
	put_key(json, key);
	yajl_gen_integer(json->gen, value);
}

/* yajl would write all digits that a double has; integers keep the locale's point out of it. */
void json_real(struct json *json, const char *key, double value)
{
	int64_t thousandths = (int64_t)(value * 1000 + (value < 0 ? -0.5 : 0.5));
	int64_t size = thousandths < 0 ? -thousandths : thousandths;
	char text[48];
	int n;

	n = snprintf(text, sizeof text, "%s%jd.%03jd", thousandths < 0 ? "-" : "", (intmax_t)(size / 1000),
		     (intmax_t)(size % 1000));
	put_key(json, key);
	yajl_gen_number(json->gen, text, (size_t)n);
}

void json_bool(struct json *json, const char *key, bool value)
{
	put_key(json, key);
	yajl_gen_bool(json->gen, value);
}

int json_text(struct json *json, const char *key, const char *text)
{
	CLEANUP(freep) char *clean = NULL;

	put_key(json, key);
	if (!text) {
		yajl_gen_null(json->gen);
		return 0;
	}
	clean = cell_utf8(text);
	if (!clean)
		return -ENOMEM;
	yajl_gen_string(json->gen, (const unsigned char *)clean, strlen(clean));
	return 0;
}

int json_print(struct json *json, FILE *out)
{
	const unsigned char *text;
	size_t n;

	if (yajl_gen_get_buf(json->gen, &text, &n) != yajl_gen_status_ok)
		return -EINVAL;
	fwrite(text, 1, n, out);
	if (n == 0 || text[n - 1] != '\n')
		fputc('\n', out);
	return 0;
}
