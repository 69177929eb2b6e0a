/* SPDX-License-Identifier: MIT */
/* fuzz_config.c - what somebody wants to set in the agent: whatever it is, what is taken is formatted as what gives the same. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void check(const struct config *config, unsigned key)
{
	char value[CONFIG_MAX_TEXT], assignment[CONFIG_MAX_TEXT + 64], again[CONFIG_MAX_TEXT], why[CONFIG_MAX_WHY];
	struct config other = { 0 };

	config_format(config, key, value);
	snprintf(assignment, sizeof assignment, "%s=%s", config_keys[key]->name, value);
	if (config_assign(&other, assignment, why) < 0)
		abort();
	config_format(&other, key, again);
	if (strcmp(value, again) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	struct config config = { 0 };
	char text[CONFIG_MAX_TEXT + 128], why[CONFIG_MAX_WHY] = "";

	if (n_bytes >= sizeof text)
		return 0;
	memcpy(text, data, n_bytes);
	text[n_bytes] = '\0';
	if (config_assign(&config, text, why) < 0) {
		if (!why[0] || strnlen(why, sizeof why) == sizeof why)
			abort();
		return 0;
	}
	for (unsigned i = 0; i < n_config_keys; i++)
		check(&config, i);
	return 0;
}
