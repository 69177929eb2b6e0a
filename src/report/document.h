/* document.h - one JSON object, put together key by key. Private to reports.
 *
 * A key of NULL is for what stands in a list, and for the object itself. What fails shows in document_print().
 */
#ifndef PROBING_REPORT_DOCUMENT_H
#define PROBING_REPORT_DOCUMENT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct document;

int document_new(struct document **ret); /* -ENOMEM */
void document_freep(struct document **json);

void document_open(struct document *json, const char *key); /* an object */
void document_close(struct document *json);
void document_open_list(struct document *json, const char *key);
void document_close_list(struct document *json);

void document_integer(struct document *json, const char *key, int64_t value);
void document_real(struct document *json, const char *key, double value); /* three digits behind the point */
void document_bool(struct document *json, const char *key, bool value);
/* A text of any bytes: what is not UTF-8 becomes U+FFFD. NULL: null. -ENOMEM. */
int document_text(struct document *json, const char *key, const char *text);

/* All of it, and a newline. -ENOMEM, -EINVAL what was put is no object. What writing reports shows in @out. */
int document_print(struct document *json, FILE *out);

#endif
