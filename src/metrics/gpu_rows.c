/* SPDX-License-Identifier: MIT */
/* gpu_rows.c - looks at GPUs as rows of gpu_metrics, gpu_device and gpu_process_usage; see gpu.h. */
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "src/metrics/gpu.h"
#include "src/metrics/metrics.h"

enum { BYTES_PER_MB = 1 << 20 };

/* nvmlClocksEventReasons; the text is ours. Source: NVML API Reference Guide, vR580. */
static const struct {
	uint64_t bit;
	const char *name;
	bool slows; /* work on the device, against its will */
} reasons[] = {
	{ 0x1, "idle", false },       { 0x2, "clock_setting", false }, { 0x4, "power_cap", true },
	{ 0x8, "hw_slowdown", true }, { 0x10, "sync_boost", false },   { 0x20, "thermal", true },
	{ 0x40, "hw_thermal", true }, { 0x80, "power_brake", true },   { 0x100, "display_clock", false },
};

bool gpu_throttle_names(uint64_t bits, char to[GPU_WHY_BYTES])
{
	bool slows = false;

	to[0] = '\0';
	for (size_t i = 0; i < N_ELEMENTS(reasons); i++) {
		if (!(bits & reasons[i].bit))
			continue;
		snprintf(to + strlen(to), GPU_WHY_BYTES - strlen(to), "%s%s", to[0] ? "," : "", reasons[i].name);
		slows |= reasons[i].slows;
	}
	return slows;
}

int gpu_put_metrics(const struct gpu_look *look, double seconds, const char *host, const struct metric_sink *sink)
{
	int r = 0;

	for (uint32_t i = 0; i < look->n_devices && r >= 0; i++) {
		const struct gpu_device *device = &look->devices[i];
		bool is_known = device->reasons != METRIC_UNKNOWN;
		char names[GPU_WHY_BYTES];
		bool slows = gpu_throttle_names(is_known ? (uint64_t)device->reasons : 0, names);
		const struct metric_value row[] = {
			metric_real(seconds),
			metric_integer(i),
			metric_integer(device->gpu_percent),
			metric_integer(device->memory_percent),
			metric_ratio(device->memory_used, BYTES_PER_MB),
			metric_ratio(device->memory_total, BYTES_PER_MB),
			metric_integer(device->temperature_c),
			metric_ratio(device->power_mw, 1000),
			metric_ratio(device->power_limit_mw, 1000),
			metric_ratio(device->energy_mj, 1000),
			metric_integer(device->sm_mhz),
			metric_integer(device->memory_mhz),
			metric_integer(is_known ? slows : METRIC_UNKNOWN),
			metric_text(is_known ? names : NULL),
			metric_ratio(device->received_bytes_s, BYTES_PER_MB),
			metric_ratio(device->sent_bytes_s, BYTES_PER_MB),
			metric_text(host),
		};

		r = sink->put(sink->data, "gpu_metrics", row, N_ELEMENTS(row));
	}
	return r;
}

int gpu_put_devices(const struct gpu_look *look, const char *host, const struct metric_sink *sink)
{
	int r = 0;

	for (uint32_t i = 0; i < look->n_devices && r >= 0; i++) {
		const struct gpu_device *device = &look->devices[i];
		const struct metric_value row[] = {
			metric_integer(i),
			metric_text(device->name[0] ? device->name : NULL),
			metric_text(device->uuid[0] ? device->uuid : NULL),
			metric_text(look->driver[0] ? look->driver : NULL),
			metric_ratio(device->memory_total, BYTES_PER_MB),
			metric_integer(device->minor),
			metric_text(host),
		};

		r = sink->put(sink->data, "gpu_device", row, N_ELEMENTS(row));
	}
	return r;
}

int gpu_put_processes(const struct gpu_look *look, double seconds, const char *host, const struct metric_sink *sink)
{
	int r = 0;

	for (uint32_t i = 0; i < look->n_processes && r >= 0; i++) {
		const struct gpu_process *process = &look->processes[i];
		const struct metric_value row[] = {
			metric_real(seconds),
			metric_integer(process->device),
			metric_integer(process->pid),
			metric_ratio(process->memory_used, BYTES_PER_MB),
			metric_integer(process->sm_percent),
			metric_text(host),
		};

		r = sink->put(sink->data, "gpu_process_usage", row, N_ELEMENTS(row));
	}
	return r;
}
