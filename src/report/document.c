/* document.c - see document.h. */
#include "src/report/document.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_gen.h>

#include "base/util.h"
#include "src/report/cell.h"

struct document {
	yajl_gen gen;
};

int document_new(struct document **ret)
{
	struct document *json = calloc(1, sizeof *json);

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

void document_freep(struct document **json)
{
	if (!*json)
		return;
	yajl_gen_free((*json)->gen);
	free(*json);
	*json = NULL;
}

static void put_key(struct document *json, const char *key)
{
	if (key)
		yajl_gen_string(json->gen, (const unsigned char *)key, strlen(key));
}

void document_open(struct document *json, const char *key)
{
	put_key(json, key);
	yajl_gen_map_open(json->gen);
}

void document_close(struct document *json)
{
	yajl_gen_map_close(json->gen);
}

void document_open_list(struct document *json, const char *key)
{
	put_key(json, key);
	yajl_gen_array_open(json->gen);
}

void document_close_list(struct document *json)
{
	yajl_gen_array_close(json->gen);
}

void document_integer(struct document *json, const char *key, int64_t value)
{
	put_key(json, key);
	yajl_gen_integer(json->gen, value);
}

/* yajl would write all digits that a double has; integers keep the locale's point out of it. */
void document_real(struct document *json, const char *key, double value)
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

void document_bool(struct document *json, const char *key, bool value)
{
	put_key(json, key);
	yajl_gen_bool(json->gen, value);
}

int document_text(struct document *json, const char *key, const char *text)
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

int document_print(struct document *json, FILE *out)
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
