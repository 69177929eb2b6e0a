/* json.h - JSON written as it is made, value by value, through yajl.
 *
 * Errors are kept until to_json_finish(): what is put after one is dropped. Text may be any bytes; it becomes
 * valid UTF-8 on one line (text_next()).
 */
#ifndef PROBING_EXPORT_JSON_H
#define PROBING_EXPORT_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <yajl/yajl_gen.h>

struct json {
	yajl_gen generator;
	char *text; /* the one being made clean */
	size_t text_allocated;
	int error;
};

int to_json_open(FILE *out, struct json *ret); /* -ENOMEM */
void to_json_done(struct json *json);

void to_json_object(struct json *json);
void to_json_object_end(struct json *json);
void to_json_array(struct json *json);
void to_json_array_end(struct json *json);

/* A member's name; its value comes next. */
void to_json_key(struct json *json, const char *name);
void to_json_string(struct json *json, const char *text);
void to_json_integer(struct json *json, int64_t value);
void to_json_bool(struct json *json, bool value);
void to_json_null(struct json *json);
/* In units of 10^-@decimals. */
void to_json_fixed(struct json *json, uint64_t value, unsigned decimals);

/* Whole members. */
void to_json_put_string(struct json *json, const char *name, const char *text);
void to_json_put_integer(struct json *json, const char *name, int64_t value);
void to_json_put_bool(struct json *json, const char *name, bool value);
void to_json_put_fixed(struct json *json, const char *name, uint64_t value, unsigned decimals);

/* A text as JSON, in its quotes; free(3) ends it. NULL: no memory. */
char *to_json_quote(const char *text);

/* The end of the document with a line end; 0, or the first thing that went wrong, on the way to out, too. */
int to_json_finish(struct json *json, FILE *out);

#endif
