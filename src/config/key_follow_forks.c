/* SPDX-License-Identifier: MIT */
#include "src/config/config.h"

const struct config_key config_follow_forks = {
	.name = "probing.follow_forks",
	.type = CONFIG_SWITCH,
	.by_default = "off",
	.doc = "Give children that the process forks from now on an agent of their own.",
};
