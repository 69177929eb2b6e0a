/* SPDX-License-Identifier: MIT */
/* config.c - see config.h. No number is read or written by the locale of the process, which may have a comma in it. */
#include "src/config/config.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const char unset[] = "default";
enum { PREFIX_BYTES = sizeof "probing." - 1 };

static bool is_name(const char *full, const char *name, size_t n_name)
{
	const char *plain = full + PREFIX_BYTES;

	return (strlen(full) == n_name && memcmp(full, name, n_name) == 0) ||
	       (strlen(plain) == n_name && memcmp(plain, name, n_name) == 0);
}

static bool is_called(const struct config_key *key, const char *name, size_t n_name)
{
	return is_name(key->name, name, n_name) || (key->also && is_name(key->also, name, n_name));
}

int config_find(const char *name, size_t n_name)
{
	for (unsigned i = 0; i < n_config_keys; i++)
		if (is_called(config_keys[i], name, n_name))
			return (int)i;
	return -1;
}

/* ---- Numbers: digits with an optional fraction ---- */

bool config_parse_number(const char *text, double *ret)
{
	double value = 0, unit = 1;
	unsigned n_digits = 0, n_points = 0;

	for (; *text; text++) {
		if (*text == '.' && n_points++ == 0)
			continue;
		if (*text < '0' || *text > '9' || ++n_digits > 15)
			return false;
		value = value * 10 + (*text - '0');
		unit *= n_points > 0 ? 10 : 1;
	}
	*ret = value / unit;
	return n_digits > 0;
}

/* Up to 6 decimals, without trailing zeros. */
static void format_number(double value, char to[CONFIG_MAX_TEXT])
{
	uint64_t millionths = (uint64_t)(value * 1e6 + 0.5);
	char *end;

	snprintf(to, CONFIG_MAX_TEXT, "%llu.%06llu", (unsigned long long)(millionths / 1000000),
		 (unsigned long long)(millionths % 1000000));
	end = to + strlen(to);
	while (end[-1] == '0')
		*--end = '\0';
	if (end[-1] == '.')
		end[-1] = '\0';
}

void config_allowed(const struct config_key *key, char to[CONFIG_MAX_TEXT])
{
	char low[CONFIG_MAX_TEXT], high[CONFIG_MAX_TEXT];

	if (key->type != CONFIG_NUMBER) {
		snprintf(to, CONFIG_MAX_TEXT, "%s", key->type == CONFIG_SWITCH ? "on or off" : key->allowed);
		return;
	}
	format_number(key->low, low);
	format_number(key->high, high);
	snprintf(to, CONFIG_MAX_TEXT, "%.20s to %.20s %s", low, high, key->unit);
}

/* ---- Assignments ---- */

static bool parse_switch(const char *text, double *ret)
{
	static const struct {
		const char *word;
		int value;
	} words[] = { { "on", 1 }, { "off", 0 }, { "1", 1 }, { "0", 0 }, { "true", 1 }, { "false", 0 } };

	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (strcmp(text, words[i].word) == 0) {
			*ret = words[i].value;
			return true;
		}
	return false;
}

/* ---- Texts ---- */

bool config_is_dotted_name(const char *text, size_t n)
{
	bool begins = true;

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];
		bool is_digit = c >= '0' && c <= '9';

		if (c == '.' && !begins) {
			begins = true;
			continue;
		}
		if (c < 0x80 && c != '_' && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
		    !(is_digit && !begins))
			return false;
		begins = false;
	}
	return n > 0 && n <= CONFIG_MAX_NAME && !begins;
}

bool config_is_variable(const char *text, size_t n)
{
	const char *at = memchr(text, '@', n);
	size_t n_name = at ? (size_t)(at - text) : 0;

	return at && config_is_dotted_name(text, n_name) && !memchr(text, '.', n_name) &&
	       config_is_dotted_name(at + 1, n - n_name - 1);
}

bool config_is_list(const char *text, bool (*is_one)(const char *text, size_t n))
{
	for (;;) {
		size_t n = strcspn(text, ",");

		if (!is_one(text, n))
			return false;
		if (text[n] == '\0')
			return true;
		text += n + 1;
	}
}

/* Without control characters, which no key needs: it is printed in lists of lines. */
static bool take_text(const struct config_key *key, const char *text, struct config_value *ret)
{
	size_t n = strlen(text);

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return false;
	if (n == 0 || n >= CONFIG_MAX_TEXT || !key->is_valid(text))
		return false;
	memcpy(ret->text, text, n + 1);
	return true;
}

static int no_such_key(const char *name, size_t n_name, char why[CONFIG_MAX_WHY])
{
	size_t n = (size_t)snprintf(why, CONFIG_MAX_WHY, "there is no key %.*s: the keys are",
				    (int)(n_name < 64 ? n_name : 64), name);

	for (unsigned i = 0; i < n_config_keys && n < CONFIG_MAX_WHY; i++)
		n += (size_t)snprintf(why + n, CONFIG_MAX_WHY - n, "%s %s", i > 0 ? "," : "", config_keys[i]->name);
	return -EINVAL;
}

static int no_such_value(const struct config_key *key, const char *text, char why[CONFIG_MAX_WHY])
{
	char allowed[CONFIG_MAX_TEXT];

	config_allowed(key, allowed);
	snprintf(why, CONFIG_MAX_WHY, "%s cannot be '%.64s': it is %s, or default", key->name, text, allowed);
	return -EINVAL;
}

static bool take_value(const struct config_key *key, const char *text, struct config_value *ret)
{
	switch (key->type) {
	case CONFIG_SWITCH:
		return parse_switch(text, &ret->number);
	case CONFIG_NUMBER:
		return config_parse_number(text, &ret->number) && ret->number >= key->low && ret->number <= key->high;
	default:
		return take_text(key, text, ret);
	}
}

int config_assign(struct config *config, const char *assignment, char why[CONFIG_MAX_WHY])
{
	const char *is = strchr(assignment, '='), *text;
	size_t n_name = is ? (size_t)(is - assignment) : strlen(assignment);
	int at = config_find(assignment, n_name);
	struct config_value value = { .is_set = true };
	const struct config_key *key;

	if (at < 0)
		return no_such_key(assignment, n_name, why);
	if (!is) {
		snprintf(why, CONFIG_MAX_WHY, "%.64s has no value: write %.64s=VALUE", assignment, assignment);
		return -EINVAL;
	}
	key = config_keys[at];
	text = is + 1;
	if (strcmp(text, unset) == 0)
		value.is_set = false;
	else if (!take_value(key, text, &value))
		return no_such_value(key, text, why);
	if (key->off_is_final && !config_is_on(config, key) && (!value.is_set || value.number != 0)) {
		snprintf(why, CONFIG_MAX_WHY, "%s is off, and stays off until the process ends", key->name);
		return -EPERM;
	}
	config->values[at] = value;
	return 0;
}

/* ---- Values ---- */

static const struct config_value *value_of(const struct config *config, const struct config_key *key)
{
	int at = config_find(key->name, strlen(key->name));

	return &config->values[at];
}

void config_format(const struct config *config, unsigned key, char to[CONFIG_MAX_TEXT])
{
	const struct config_value *value = &config->values[key];

	if (!value->is_set)
		snprintf(to, CONFIG_MAX_TEXT, "%s", unset);
	else if (config_keys[key]->type == CONFIG_TEXT)
		snprintf(to, CONFIG_MAX_TEXT, "%s", value->text);
	else if (config_keys[key]->type == CONFIG_SWITCH)
		snprintf(to, CONFIG_MAX_TEXT, "%s", value->number != 0 ? "on" : "off");
	else
		format_number(value->number, to);
}

bool config_is_on(const struct config *config, const struct config_key *key)
{
	const struct config_value *value = value_of(config, key);

	return value->is_set ? value->number != 0 : strcmp(key->by_default, "on") == 0;
}

bool config_number(const struct config *config, const struct config_key *key, double *ret)
{
	const struct config_value *value = value_of(config, key);

	if (value->is_set)
		*ret = value->number;
	return value->is_set;
}

const char *config_text(const struct config *config, const struct config_key *key)
{
	const struct config_value *value = value_of(config, key);

	return value->is_set ? value->text : NULL;
}
