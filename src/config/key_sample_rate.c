/* SPDX-License-Identifier: MIT */
#include "src/config/config.h"

const struct config_key config_sample_rate = {
	.name = "probing.sample_rate",
	.variable = "PROBING_SAMPLE_RATE",
	.type = CONFIG_NUMBER,
	.low = 0.00005,
	.high = 10,
	.unit = "s",
	.by_default = "0.0101, which is 99 Hz",
	.doc = "Time between two samples of each thread, in seconds of CPU time, where record of this process has no --frequency.",
};
