/* SPDX-License-Identifier: MIT */
#include "src/config/config.h"

const struct config_key config_eval = {
	.name = "probing.eval",
	.type = CONFIG_SWITCH,
	.by_default = "on",
	.off_is_final = true,
	.doc = "Run Python code for eval and repl. Off stays off until the process ends.",
};
