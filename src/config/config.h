/* SPDX-License-Identifier: MIT */
/* config.h - configuration of the agent of a process: keys, their types, ranges and documentation.
 *
 * A key is a const descriptor in key_<name>.c and one word in meson.build. The agent, the program and its help read
 * the same descriptors. A key is here only if it has an effect. Loaded into other processes: libc only.
 * docs/extending.md.
 */
#ifndef PROBING_CONFIG_H
#define PROBING_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

enum config_type { CONFIG_SWITCH /* on, off */, CONFIG_NUMBER, CONFIG_TEXT };

struct config_key {
	const char *name;     /* "probing.eval"; users may write "eval" */
	const char *also;     /* another name, of the older probing; NULL: none */
	const char *variable; /* of the environment, which sets it at the start of a program; NULL: none does */
	enum config_type type;
	double low, high;    /* of a number */
	const char *unit;    /* of a number: "s" */
	const char *allowed; /* of a text, in words: "on or off, or a rate" */
	bool (*is_valid)(const char *text);
	const char *by_default; /* behaviour if it is not set, in words; for a switch "on" or "off" */
	bool off_is_final;      /* off cannot be turned on again in this process */
	const char *doc;        /* one sentence */
	/*
	 * Name of the module in python/probing whose configure(key, text) applies it in the process: key is the name
	 * without "probing.", and text is empty if the key is unset. NULL: C code reads it. docs/extending.md.
	 */
	const char *module;
};

extern const struct config_key *const config_keys[]; /* ends with NULL */
extern const unsigned n_config_keys;

enum { CONFIG_MAX_KEYS = 24, CONFIG_MAX_TEXT = 512, CONFIG_MAX_WHY = 1024, CONFIG_MAX_NAME = 255 };

/* Values, indexed as config_keys. */
struct config {
	struct config_value {
		bool is_set;
		double number; /* of a switch 1 or 0 */
		char text[CONFIG_MAX_TEXT];
	} values[CONFIG_MAX_KEYS];
};

/* Index of a key in config_keys, by its name with or without "probing."; -1: none. */
int config_find(const char *name, size_t n_name);

/*
 * config_assign - KEY=VALUE; "default" unsets.
 * @why: on failure a sentence with the allowed values.
 * Errors: -EINVAL another form, no such key or value; -EPERM the value is final.
 */
int config_assign(struct config *config, const char *assignment, char why[CONFIG_MAX_WHY]);

/* The value as it is assigned; "default": it is not set. */
void config_format(const struct config *config, unsigned key, char to[CONFIG_MAX_TEXT]);

/* Whether a switch is on. */
bool config_is_on(const struct config *config, const struct config_key *key);

/* The number, if it is set. */
bool config_number(const struct config *config, const struct config_key *key, double *ret);

/* The text; NULL: it is not set. Borrowed. */
const char *config_text(const struct config *config, const struct config_key *key);

/* The allowed values of a key: "on, off", "0.00005 to 10 s". */
void config_allowed(const struct config_key *key, char to[CONFIG_MAX_TEXT]);

/* A number of digits and at most one point: no sign, exponent or locale, at most 15 digits. False: the text is none. */
bool config_parse_number(const char *text, double *ret);

/* Words of letters, digits and _, joined by dots, up to CONFIG_MAX_NAME bytes. Letters beyond ASCII pass: Python decides. */
bool config_is_dotted_name(const char *text, size_t n);

/* VARIABLE@FUNCTION. */
bool config_is_variable(const char *text, size_t n);

/* Names with commas between them, at least one, each of which @is_one accepts. */
bool config_is_list(const char *text, bool (*is_one)(const char *text, size_t n));

/* Keys that code uses by name. */
extern const struct config_key config_eval, config_follow_forks, config_sample_rate, config_retention_days,
	config_trace, config_watch_vars, config_crash;

#endif
