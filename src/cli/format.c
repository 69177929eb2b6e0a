/* SPDX-License-Identifier: MIT */
/* format.c - see format.h. */
#include "src/cli/format.h"

#include <stdio.h>
#include <string.h>

#include "base/util.h"

void format_bytes(uint64_t n, char to[16])
{
	static const char *const units[] = { "bytes", "KB", "MB", "GB", "TB" };
	double value = (double)n;
	unsigned unit = 0;

	while (value >= 1000 && unit + 1 < N_ELEMENTS(units)) {
		value /= 1000;
		unit++;
	}
	snprintf(to, 16, value >= 10 || unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
}

void format_count(uint64_t n, char to[32])
{
	char digits[24];
	size_t n_digits = (size_t)snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);

	for (size_t i = 0; i < n_digits; i++) {
		if (i > 0 && (n_digits - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = '\0';
}
