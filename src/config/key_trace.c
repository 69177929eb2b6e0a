/* SPDX-License-Identifier: MIT */
#include "src/config/config.h"

static bool is_valid(const char *text)
{
	return config_is_list(text, config_is_dotted_name);
}

const struct config_key config_trace = {
	.name = "probing.trace",
	.variable = "PROBING_TRACE",
	.type = CONFIG_TEXT,
	.allowed = "names of functions with commas between them: MODULE.FUNCTION, MODULE.CLASS.METHOD",
	.is_valid = is_valid,
	.by_default = "none",
	.module = "_trace",
	.doc = "Functions of which each call becomes a row of profiling_data.",
};
