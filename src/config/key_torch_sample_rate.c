/* SPDX-License-Identifier: MIT */
#include "src/config/config.h"

const struct config_key config_torch_sample_rate = {
	.name = "probing.torch.sample_rate",
	.type = CONFIG_NUMBER,
	.low = 0,
	.high = 1,
	.unit = "of the steps",
	.by_default = "as probing.torch.profiling has it",
	.module = "_torch",
	.doc = "Share of the steps of a training that probing.torch.profiling traces; alone it turns that on.",
};
