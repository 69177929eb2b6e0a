/* SPDX-License-Identifier: MIT */
/* values.c - values of foreign JSON: see values.h. */
#include "src/cluster/values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/cluster/cluster.h"

void value_decrefp(json_t **value)
{
	json_decref(*value);
}

const char *value_text(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

int value_copy_text(const json_t *object, const char *key, char **ret)
{
	const char *text = value_text(object, key);
	char *copied = text ? strndup(text, CLUSTER_MAX_TEXT) : NULL;

	if (text && !copied)
		return -ENOMEM;
	free(*ret);
	*ret = copied;
	return 0;
}

int64_t value_number(const json_t *object, const char *key, int64_t low, int64_t high, int64_t otherwise)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_integer(value) || json_integer_value(value) < low || json_integer_value(value) > high)
		return otherwise;
	return json_integer_value(value);
}

int value_array(const json_t *object, const char *key, size_t max, const json_t **ret)
{
	const json_t *value = json_object_get(object, key);

	if (value && !json_is_null(value) && !json_is_array(value))
		return -EBADMSG;
	if (json_array_size(value) > max)
		return -E2BIG;
	*ret = value;
	return 0;
}

int value_load(const char *text, size_t n_bytes, json_t **ret)
{
	json_error_t error;

	if (n_bytes > CLUSTER_MAX_BYTES)
		return -E2BIG;
	*ret = json_loadb(text, n_bytes, 0, &error);
	if (*ret)
		return 0;
	return json_error_code(&error) == json_error_out_of_memory ? -ENOMEM : -EBADMSG;
}
