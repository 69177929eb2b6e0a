/* SPDX-License-Identifier: MIT */
/* metrics.c - what one look at the machine, and at one process, takes: record --metrics.
 *
 * Usage: bench_metrics [PID]. Medians of CPU time in microseconds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/util.h"
#include "src/metrics/metrics.h"

enum { N_LOOKS = 2001 };

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static double median_us(pid_t pid)
{
	static uint64_t took_ns[N_LOOKS];
	struct process_usage_row process;
	struct machine_usage_row machine;

	for (size_t i = 0; i < N_LOOKS; i++) {
		uint64_t began_ns = thread_cpu_ns();
		int r = pid ? metrics_read_process(pid, &process) : metrics_read_machine(&machine);

		if (r < 0) {
			fprintf(stderr, "bench_metrics: look %zu: error %d\n", i, -r);
			exit(1);
		}
		took_ns[i] = thread_cpu_ns() - began_ns;
	}
	qsort(took_ns, N_LOOKS, sizeof *took_ns, compare);
	return (double)took_ns[N_LOOKS / 2] / 1e3;
}

int main(int argc, char **argv)
{
	pid_t pid = argc > 1 ? atoi(argv[1]) : getpid();

	printf("machine %.1f us, process %d %.1f us\n", median_us(0), (int)pid, median_us(pid));
	return 0;
}
