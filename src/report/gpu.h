/* SPDX-License-Identifier: MIT */
/* gpu.h - imported GPU activity in a report: how long GPUs worked, with what, and what they waited for. */
#ifndef PROBING_REPORT_GPU_H
#define PROBING_REPORT_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { REPORT_GPU_ROWS = 10 };

/* Times are nanoseconds; strings are owned. */
struct report_gpu_device {
	char *name;
	int64_t busy_ns; /* at least one stream worked */
	int64_t idle_ns; /* none did; -1: unknown */
	int64_t n_kernels, n_copies;
};
struct report_gpu_row {
	char *name;   /* a kernel or copy; what the host did, NULL: nothing that was traced */
	char *python; /* of idle time: the Python function around it; NULL: unknown */
	int64_t ns, n;
	bool launched; /* of idle time: the next work was launched before it */
};
struct report_gpu_rows {
	struct report_gpu_row items[REPORT_GPU_ROWS];
	size_t n, n_more;
	int64_t all_ns; /* of all rows, also of those that were left out */
};
struct report_gpu {
	struct report_gpu_device *devices;
	size_t n_devices, devices_allocated;
	struct report_gpu_rows work, idle;
	int64_t n_launches; /* kernels whose launch is known */
	int64_t median_ns, ninety_ns, longest_ns;
	char *longest; /* the kernel with the longest time between launch and start */
};

void report_gpu_done(struct report_gpu *gpu);

#endif
