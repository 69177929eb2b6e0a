/* SPDX-License-Identifier: MIT */
/* fuzz_metrics.c - files of /proc about processes, whose names are their own choice, and about the machine.
 *
 * The text is cut at each '\x1f' into the files of one call. Numbers come out as they are, or unknown: never negative.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/metrics/metrics.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

enum { N_FILES = 7 };

static void check(const int64_t *numbers, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (numbers[i] < 0 && numbers[i] != METRIC_UNKNOWN)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	struct process_usage_row process = { 0 };
	struct machine_usage_row machine = { 0 };
	char *text = malloc(n_bytes + 1), *rest = text, *files[N_FILES] = { 0 };

	if (!text)
		return 0;
	memcpy(text, data, n_bytes);
	text[n_bytes] = '\0';
	for (size_t i = 0; i < N_FILES && rest; i++)
		files[i] = strsep(&rest, "\x1f");
	(void)metrics_parse_process(&(struct process_files){ files[0], files[1], files[2] }, 10000000, &process);
	check(&process.rss, (sizeof process - offsetof(struct process_usage_row, rss)) / sizeof process.rss);
	(void)metrics_parse_machine(
		&(struct machine_files){ files[0], files[1], files[2], files[3], files[4], files[5], files[6] },
		10000000, &machine);
	check(&machine.user_ns,
	      (sizeof machine - offsetof(struct machine_usage_row, user_ns)) / sizeof machine.user_ns);
	free(text);
	return 0;
}
