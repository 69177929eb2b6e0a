/* SPDX-License-Identifier: MIT */
#include "src/config/config.h"

static bool is_valid(const char *text)
{
	return config_is_list(text, config_is_variable);
}

const struct config_key config_watch_vars = {
	.name = "probing.watch_vars",
	.also = "probing.torch.watch_vars",
	.variable = "PROBING_TORCH_WATCH_VARS",
	.type = CONFIG_TEXT,
	.allowed = "VARIABLE@FUNCTION with commas between them, as loss@train,acc1@train",
	.is_valid = is_valid,
	.by_default = "none",
	.module = "_watch",
	.doc = "Local variables of which each assignment becomes a row of python.variables.",
};
