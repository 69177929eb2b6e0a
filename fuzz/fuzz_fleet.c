/* SPDX-License-Identifier: MIT */
/* fuzz_fleet.c - what a server of a fleet answers: its version, a row of a shipment, and a text as an expression of SQL. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/fleet/fleet.h"
#include "src/fleet/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

/* Whatever the text, the expression is hexadecimal digits between its quotes. */
static void check_text(const char *text)
{
	char sql[256];
	size_t n;

	if (fleet_text(text, sql, sizeof sql) < 0)
		return;
	n = strlen(sql);
	if (n < 9 || strncmp(sql, "unhex('", 7) != 0 || strcmp(sql + n - 2, "')") != 0 ||
	    strspn(sql + 7, "0123456789ABCDEF") != n - 9)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	char *text = malloc(n_bytes + 1);
	enum fleet_dialect dialect;
	struct shipment shipment;

	if (!text)
		abort();
	memcpy(text, data, n_bytes);
	text[n_bytes] = '\0';
	if (fleet_parse_version(text, &dialect) == 0 && dialect != FLEET_OLD && dialect != FLEET_NEW)
		abort();
	if (plan_parse(text, &shipment) == 0 && (shipment.block == 0 || shipment.last < shipment.first))
		abort();
	if (fleet_is_name(text) && strpbrk(text, "'`\"; \\"))
		abort();
	check_text(text);
	free(text);
	return 0;
}
