/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "src/config/config.h"

static bool is_valid(const char *text)
{
	static const char *const words[] = { "on", "off", "1", "0" };

	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (strcmp(text, words[i]) == 0)
			return true;
	return text[0] == '/' && strlen(text) < 500;
}

const struct config_key config_crash = {
	.name = "probing.crash",
	.variable = "PROBING_CRASH",
	.type = CONFIG_TEXT,
	.allowed = "on or off, or an absolute path of a folder for reports",
	.is_valid = is_valid,
	.by_default = "off",
	.module = "_crash",
	.doc = "Write a report on a fatal signal or an uncaught exception; probing crash shows it.",
};
