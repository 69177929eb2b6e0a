/* SPDX-License-Identifier: MIT */
#include "src/config/config.h"

/* python/probing/_torch.py parses it, and refuses what it does not understand. */
static bool is_valid(const char *text)
{
	return text[0] != '\0';
}

const struct config_key config_torch_profiling = {
	.name = "probing.torch.profiling",
	.variable = "PROBING_TORCH_PROFILING",
	.type = CONFIG_TEXT,
	.allowed =
		"on, off, RATE[:LAYER_RATE], ordered:RATE or random:RATE, then ,backward=off ,sync=on ,memory=on|off|RATE "
		",comm=on|off ,exprs=VARIABLE@FUNCTION",
	.is_valid = is_valid,
	.by_default = "off",
	.module = "_torch",
	.doc = "Steps of which torch's modules, optimizers and data loaders become rows of torch_trace.",
};
