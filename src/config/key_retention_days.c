/* SPDX-License-Identifier: MIT */
#include "src/config/config.h"

const struct config_key config_retention_days = {
	.name = "probing.retention_days",
	.variable = "PROBING_RETENTION_DAYS",
	.type = CONFIG_NUMBER,
	.low = 0.00001,
	.high = 10000,
	.unit = "days",
	.by_default = "keep all",
	.doc = "Age at which record of this process drops samples, where it has no --retention.",
};
