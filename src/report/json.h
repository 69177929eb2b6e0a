/* json.h - one JSON object, put together key by key. Private to reports.
 *
 * A key of NULL is for what stands in a list, and for the object itself. What fails shows in json_print().
 */
#ifndef PROBING_REPORT_JSON_H
#define PROBING_REPORT_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json;

int json_new(struct json **ret); /* -ENOMEM */
void json_freep(struct json **json);

void json_open(struct json *json, const char *key); /* an object */
void json_close(struct json *json);
void json_open_list(struct json *json, const char *key);
void json_close_list(struct json *json);

void json_integer(struct json *json, const char *key, int64_t value);
void json_real(struct json *json, const char *key, double value); /* three digits behind the point */
void json_bool(struct json *json, const char *key, bool value);
/* A text of any bytes: what is not UTF-8 becomes U+FFFD. NULL: null. -ENOMEM. */
int json_text(struct json *json, const char *key, const char *text);

/* All of it, and a newline. -ENOMEM, -EINVAL what was put is no object. What writing reports shows in @out. */
int json_print(struct json *json, FILE *out);

#endif
