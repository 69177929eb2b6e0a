/* SPDX-License-Identifier: MIT */
/* metrics.c - what one look at each table of metrics takes, and at all of them together: record --metrics.
 *
 * Usage: bench_metrics [PID...]. Medians of CPU time in microseconds, and the share of a processor that one look a second is.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/util.h"
#include "src/metrics/metrics.h"

enum { N_LOOKS = 2001, N_GPU_LOOKS = 20, MAX_PIDS = 1024 };

static size_t n_rows;

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int count_row(void *data, const char *table, const struct metric_value *values, size_t n)
{
	(void)data;
	(void)table;
	(void)values;
	(void)n;
	n_rows++;
	return 0;
}

/* @table: NULL: all. */
static double median_us(struct metrics *metrics, const char *table, const struct metrics_moment *moment)
{
	static uint64_t took_ns[N_LOOKS];
	const struct metric_sink sink = { count_row, NULL };

	for (size_t i = 0; i < N_LOOKS; i++) {
		uint64_t began_ns = thread_cpu_ns();
		int r;

		n_rows = 0;
		r = metrics_put(metrics, table, moment, &sink);
		if (r < 0) {
			fprintf(stderr, "bench_metrics: look %zu: error %d\n", i, -r);
			exit(1);
		}
		took_ns[i] = thread_cpu_ns() - began_ns;
	}
	qsort(took_ns, N_LOOKS, sizeof *took_ns, compare);
	return (double)took_ns[N_LOOKS / 2] / 1e3;
}

/* In this process; a recorder does it in another one. PCIe traffic alone takes 20 ms each way, asleep. */
static void print_gpus(void)
{
	static struct gpu_look look;
	char why[GPU_WHY_BYTES];
	struct nvml *nvml;
	uint64_t began_ns, cpu_ns;

	if (nvml_open(&nvml, why) < 0) {
		printf("%-14s %s\n", "GPUs", why);
		return;
	}
	nvml_look(nvml, &look); /* the first one opens more */
	began_ns = monotonic_ns();
	cpu_ns = thread_cpu_ns();
	for (int i = 0; i < N_GPU_LOOKS; i++)
		nvml_look(nvml, &look);
	printf("%-14s %3u rows %7.1f us of CPU time in %.1f ms\n", "GPUs", look.n_devices + look.n_processes,
	       (double)(thread_cpu_ns() - cpu_ns) / N_GPU_LOOKS / 1e3,
	       (double)(monotonic_ns() - began_ns) / N_GPU_LOOKS / 1e6);
	nvml_close(nvml);
}

int main(int argc, char **argv)
{
	static const char *const tables[] = {
		"process_usage", "machine_usage", "cgroup_usage", "pressure", "disk_usage", "network_usage", NULL
	};
	pid_t pids[MAX_PIDS] = { getpid() };
	struct metrics_moment moment = { .seconds = 1, .pids = pids, .n_pids = argc > 1 ? 0 : 1 };
	struct metrics *metrics;

	for (int i = 1; i < argc && moment.n_pids < MAX_PIDS; i++)
		pids[moment.n_pids++] = atoi(argv[i]);
	if (metrics_new(&metrics) < 0)
		return 1;
	for (size_t i = 0; i < N_ELEMENTS(tables); i++) {
		double us = median_us(metrics, tables[i], &moment);

		printf("%-14s %3zu rows %7.1f us  %.4f %%\n", tables[i] ? tables[i] : "all", n_rows, us, us / 1e4);
	}
	metrics_free(metrics);
	print_gpus();
	return 0;
}
