/* json.h - values of JSON as a comparison has them. Texts are UTF-8: names of others have been cleaned (roster.h). */
#ifndef PROBING_COMPARE_JSON_H
#define PROBING_COMPARE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <yajl/yajl_gen.h>

#include "base/util.h"

DEFINE_CLEANUP(yajl_gen, yajl_gen_free)

/* NULL: no memory. */
yajl_gen json_new(void);
void json_put_string(yajl_gen json, const char *text);
/* With a key before: a text, null where it is empty or NULL; a number, null where it is none. */
void json_put_text(yajl_gen json, const char *key, const char *text);
void json_put_number(yajl_gen json, const char *key, double value);
void json_put_integer(yajl_gen json, const char *key, uint64_t value);
void json_put_bool(yajl_gen json, const char *key, bool value);
/* Write what there is. 0, -ENOMEM, -EIO. */
int json_finish(yajl_gen json, FILE *out);

#endif
