/* SPDX-License-Identifier: MIT */
/* tables.h - the descriptors, each in its table's own file. Private. */
#ifndef PROBING_LIVE_TABLES_H
#define PROBING_LIVE_TABLES_H

#include "src/live/live.h"

extern const struct live_table live_python_backtrace, live_python_gil, live_system_process, live_process_envs,
	live_process_maps, live_process_fds, live_memory_usage, live_cpu_tasks, live_cpu_utilization,
	live_process_usage, live_machine_usage, live_cgroup_usage, live_pressure, live_disk_usage, live_network_usage,
	live_gpu_metrics, live_gpu_devices, live_gpu_process_usage, live_python_function_time,
	live_python_function_call, live_python_variables, live_python_rings;

#endif
