/* SPDX-License-Identifier: MIT */
/* json.h - a JSON writer, value by value: written at once, or buffered until the document is complete.
 *
 * Errors are kept until to_json_finish(); values after an error are dropped. Text may be any bytes; it becomes valid
 * UTF-8, with U+FFFD for invalid bytes.
 */
#ifndef PROBING_BASE_JSON_H
#define PROBING_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { JSON_MAX_DEPTH = 128 }; /* deeper nesting is -EINVAL */

struct json {
	FILE *out;   /* NULL: buffered in bytes */
	char *bytes; /* without a NUL */
	size_t n_bytes, allocated;
	const char *indent;               /* NULL: one line */
	int32_t (*next)(const char **at); /* replaces or keeps each character of a text */
	struct {
		bool is_object, has_items;
	} levels[JSON_MAX_DEPTH];
	unsigned depth;
	bool has_key;     /* a member's name is written, its value is not */
	bool is_complete; /* the document is */
	int error;
};

/* Writes to @out at once; a text becomes one line (text_next()). Both return 0. */
int to_json_open(FILE *out, struct json *ret);
/* Buffers until to_json_finish(), which writes all or nothing. @indent: per level, one value a line, borrowed; NULL: none. */
int to_json_keep(const char *indent, struct json *ret);
void to_json_done(struct json *json);

void to_json_object(struct json *json);
void to_json_object_end(struct json *json);
void to_json_array(struct json *json);
void to_json_array_end(struct json *json);

/* A member's name; its value comes next. */
void to_json_key(struct json *json, const char *name);
void to_json_string(struct json *json, const char *text); /* NULL: null */
/* A string of n bytes of UTF-8, which may contain NULs; written unchanged but for escapes. */
void to_json_bytes(struct json *json, const char *bytes, size_t n);
void to_json_integer(struct json *json, int64_t value);
void to_json_number(struct json *json,
		    double value); /* the shortest that reads back equal; null where it is not finite */
void to_json_bool(struct json *json, bool value);
void to_json_null(struct json *json);
/* In units of 10^-@decimals. */
void to_json_fixed(struct json *json, uint64_t value, unsigned decimals);
/* A number in its written form, such as "-1.50"; n bytes. */
void to_json_digits(struct json *json, const char *digits, size_t n);
/* A value that is JSON already, made by this program; n bytes. */
void to_json_raw(struct json *json, const char *text, size_t n);

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

/* Writes a buffered document without a line end, and begins another one. Returns 0, or the first error of making it. */
int to_json_next(struct json *json, FILE *out);

/* Ends the document with a line end. Returns 0, or the first error, including errors of writing. */
int to_json_finish(struct json *json, FILE *out);

#endif
