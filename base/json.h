/* SPDX-License-Identifier: MIT */
/* json.h - a JSON writer, value by value, through yajl: written at once, or buffered until the document is complete.
 *
 * Errors are kept until to_json_finish(); values after an error are dropped. Text may be any bytes; it becomes valid
 * UTF-8, with U+FFFD for invalid bytes.
 */
#ifndef PROBING_BASE_JSON_H
#define PROBING_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <yajl/yajl_gen.h>

struct json {
	yajl_gen generator;
	int32_t (*next)(const char **at); /* replaces or keeps each character of a text */
	char *text;                       /* the one being made clean */
	size_t text_allocated;
	int error;
	bool is_kept;
};

/* Writes to @out at once; a text becomes one line (text_next()). -ENOMEM. */
int to_json_open(FILE *out, struct json *ret);
/* Buffers until to_json_finish(), which writes all or nothing. @indent: per level, one value a line; NULL: none.
 * -ENOMEM. */
int to_json_keep(const char *indent, struct json *ret);
void to_json_done(struct json *json);

void to_json_object(struct json *json);
void to_json_object_end(struct json *json);
void to_json_array(struct json *json);
void to_json_array_end(struct json *json);

/* A member's name; its value comes next. */
void to_json_key(struct json *json, const char *name);
void to_json_string(struct json *json, const char *text); /* NULL: null */
void to_json_integer(struct json *json, int64_t value);
void to_json_number(struct json *json, double value); /* null where it is not finite */
void to_json_bool(struct json *json, bool value);
void to_json_null(struct json *json);
/* In units of 10^-@decimals. */
void to_json_fixed(struct json *json, uint64_t value, unsigned decimals);
/* A number in its written form, such as "-1.50". */
void to_json_digits(struct json *json, const char *digits);

/* Whole members. */
void to_json_put_string(struct json *json, const char *name, const char *text);
void to_json_put_text(struct json *json, const char *name, const char *text); /* null where there is none, "" too */
void to_json_put_integer(struct json *json, const char *name, int64_t value);
void to_json_put_known(struct json *json, const char *name, int64_t value, bool is_known); /* null where it is not */
void to_json_put_number(struct json *json, const char *name, double value);
void to_json_put_bool(struct json *json, const char *name, bool value);
void to_json_put_null(struct json *json, const char *name);
void to_json_put_fixed(struct json *json, const char *name, uint64_t value, unsigned decimals);
/* Begin one that is an object, or an array. */
void to_json_put_object(struct json *json, const char *name);
void to_json_put_array(struct json *json, const char *name);

/* A text as JSON on one line, in its quotes; free(3) ends it. NULL: no memory. */
char *to_json_quote(const char *text);

/* Ends the document with a line end. Returns 0, or the first error, including errors of writing. */
int to_json_finish(struct json *json, FILE *out);

#endif
