/* SPDX-License-Identifier: MIT */
/* fuzz_metrics.c - files of /proc about processes, whose names are their own choice, about the machine, and of cgroups.
 *
 * The text is cut at each '\x1f' into the files of one call. Numbers come out as they are, or unknown: never negative.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/metrics/sources.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

enum { N_FILES = 7 };

static void check(const int64_t *numbers, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (numbers[i] < 0 && numbers[i] != METRIC_UNKNOWN)
			abort();
}

static void check_lines(char *const *files)
{
	struct pressure_row pressure;
	struct disk_row disk;
	struct network_row network;

	for (size_t i = 0; i < N_FILES && files[i]; i++) {
		(void)pressure_parse(files[i], "some", &pressure);
		check(&pressure.ns, 1);
		if (disk_parse(files[i], &disk))
			check(&disk.reads, (sizeof disk - offsetof(struct disk_row, reads)) / sizeof disk.reads);
		if (network_parse(files[i], &network))
			check(&network.received_bytes, (sizeof network - offsetof(struct network_row, received_bytes)) /
							       sizeof network.sent_bytes);
	}
}

/* Each file as all of a group's files, and as the lists of mounts and groups. */
static void check_cgroups(char *const *files)
{
	struct metrics metrics = { .look = 1 };

	for (size_t i = 0; i < N_FILES && files[i]; i++) {
		const char *text = files[i];
		struct cgroup_files group = { i % 2 == 0, text, text, text, text, text, text, text,
					      text,       text, text, text, text, text, text };
		struct cgroup_row row;

		cgroup_parse(&group, 10000000, &row);
		check(&row.cpu_ns, sizeof row / sizeof row.cpu_ns);
	}
	for (size_t i = 0; i < N_FILES && files[i]; i++)
		if ((i % 2 == 0 ? cgroup_parse_mounts(&metrics, files[i]) : cgroup_add(&metrics, files[i])) < 0)
			break;
	cgroup_done(&metrics);
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
	check_lines(files);
	check_cgroups(files);
	free(text);
	return 0;
}
