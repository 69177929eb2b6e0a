/* SPDX-License-Identifier: MIT */
/* rocm_smi.c - reads AMD's GPUs by ROCm's management library; see gpu.h.
 *
 * The library comes with ROCm, and with distributions. This file declares what it uses: functions with plain types, which are the same
 * in ROCm 5, 6 and 7. Clocks and processes come in structures that differ between them, and PCIe traffic takes a second of sleep:
 * these stay unknown. A function that a library lacks leaves its numbers unknown.
 * Source: rocm_smi.h of ROCm 5.2 (Debian's librocm-smi-dev).
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/metrics/gpu.h"

/* rsmi_status_t, rsmi_memory_type_t, rsmi_temperature_type_t, rsmi_temperature_metric_t, rsmi_sw_component_t. */
enum { RSMI_SUCCESS = 0, RSMI_VRAM = 0, RSMI_EDGE = 0, RSMI_CURRENT = 0, RSMI_DRIVER = 0 };

/* X(required, member, exported name, types of the arguments); all return rsmi_status_t. Devices are numbers from 0 on. */
#define FUNCTIONS(X)                                                                                                   \
	X(true, init, "rsmi_init", (uint64_t))                                                                         \
	X(true, count, "rsmi_num_monitor_devices", (uint32_t *))                                                       \
	X(false, shut_down, "rsmi_shut_down", (void))                                                                  \
	X(false, version, "rsmi_version_str_get", (int, char *, uint32_t))                                             \
	X(false, name, "rsmi_dev_name_get", (uint32_t, char *, size_t))                                                \
	X(false, unique_id, "rsmi_dev_unique_id_get", (uint32_t, uint64_t *))                                          \
	X(false, minor, "rsmi_dev_drm_render_minor_get", (uint32_t, uint32_t *))                                       \
	X(false, busy, "rsmi_dev_busy_percent_get", (uint32_t, uint32_t *))                                            \
	X(false, memory_busy, "rsmi_dev_memory_busy_percent_get", (uint32_t, uint32_t *))                              \
	X(false, memory_total, "rsmi_dev_memory_total_get", (uint32_t, int, uint64_t *))                               \
	X(false, memory_used, "rsmi_dev_memory_usage_get", (uint32_t, int, uint64_t *))                                \
	X(false, temperature, "rsmi_dev_temp_metric_get", (uint32_t, uint32_t, int, int64_t *))                        \
	X(false, power, "rsmi_dev_power_ave_get", (uint32_t, uint32_t, uint64_t *))                                    \
	X(false, power_limit, "rsmi_dev_power_cap_get", (uint32_t, uint32_t, uint64_t *))                              \
	X(false, energy, "rsmi_dev_energy_count_get", (uint32_t, uint64_t *, float *, uint64_t *))

struct rocm_smi {
	void *library;
#define X(required, member, exported, types) int(*member) types;
	FUNCTIONS(X)
#undef X
	uint32_t n_devices;
};

static int load(struct rocm_smi *rocm, char why[GPU_WHY_BYTES])
{
	/* The loader's own search; then where ROCm installs itself. */
	static const char *const paths[] = {
		"librocm_smi64.so.7",
		"librocm_smi64.so.6",
		"librocm_smi64.so.5",
		"librocm_smi64.so.1",
		"/opt/rocm/lib/librocm_smi64.so",
	};

	for (size_t i = 0; i < N_ELEMENTS(paths) && !rocm->library; i++)
		rocm->library = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL);
	if (rocm->library)
		return 0;
	snprintf(why, GPU_WHY_BYTES, "there is no ROCm here: librocm_smi64.so cannot be loaded");
	return -ENOENT;
}

static int resolve(struct rocm_smi *rocm, char why[GPU_WHY_BYTES])
{
	const char *missing = NULL;

	/* POSIX guarantees that a function's address survives in a void *. */
#define X(required, member, exported, types)                                                                           \
	*(void **)&rocm->member = dlsym(rocm->library, exported);                                                      \
	if (required && !rocm->member)                                                                                 \
		missing = exported;
	FUNCTIONS(X)
#undef X
	if (!missing)
		return 0;
	snprintf(why, GPU_WHY_BYTES, "librocm_smi64.so has no function %s", missing);
	return -EIO;
}

/* Without the driver amdgpu, or without a device, it fails: the library may be there for other reasons. */
static int find_devices(struct rocm_smi *rocm, char why[GPU_WHY_BYTES])
{
	int code = rocm->init(0);

	if (code == RSMI_SUCCESS)
		code = rocm->count(&rocm->n_devices);
	rocm->n_devices = MIN(rocm->n_devices, (uint32_t)GPU_MAX_DEVICES);
	if (code == RSMI_SUCCESS && rocm->n_devices > 0)
		return 0;
	snprintf(why, GPU_WHY_BYTES, "ROCm finds no AMD GPU (status %d)", code);
	return -ENOENT;
}

int rocm_smi_open(struct rocm_smi **ret, char why[GPU_WHY_BYTES])
{
	struct rocm_smi *rocm = calloc(1, sizeof *rocm);
	int r;

	if (!rocm) {
		snprintf(why, GPU_WHY_BYTES, "not enough memory");
		return -ENOMEM;
	}
	r = load(rocm, why);
	if (r >= 0)
		r = resolve(rocm, why);
	if (r >= 0)
		r = find_devices(rocm, why);
	if (r < 0) {
		rocm_smi_close(rocm);
		return r;
	}
	*ret = rocm;
	return 0;
}

void rocm_smi_close(struct rocm_smi *rocm)
{
	if (!rocm)
		return;
	if (rocm->shut_down)
		(void)rocm->shut_down();
	if (rocm->library)
		dlclose(rocm->library);
	free(rocm);
}

/* ---- A look ---- */

static int64_t number_of(int (*ask)(uint32_t, uint32_t *), uint32_t device)
{
	uint32_t number;

	return ask && ask(device, &number) == RSMI_SUCCESS ? (int64_t)number : METRIC_UNKNOWN;
}

static int64_t memory_of(int (*ask)(uint32_t, int, uint64_t *), uint32_t device)
{
	uint64_t bytes;

	return ask && ask(device, RSMI_VRAM, &bytes) == RSMI_SUCCESS && bytes <= INT64_MAX ? (int64_t)bytes
											   : METRIC_UNKNOWN;
}

/* The library has microwatts. */
static int64_t milliwatts_of(int (*ask)(uint32_t, uint32_t, uint64_t *), uint32_t device)
{
	uint64_t power;

	return ask && ask(device, 0, &power) == RSMI_SUCCESS && power <= INT64_MAX ? (int64_t)(power / 1000)
										   : METRIC_UNKNOWN;
}

static int64_t millijoules_of(const struct rocm_smi *rocm, uint32_t device)
{
	uint64_t counter, timestamp;
	float resolution_uj;
	double mj;

	if (!rocm->energy || rocm->energy(device, &counter, &resolution_uj, &timestamp) != RSMI_SUCCESS)
		return METRIC_UNKNOWN;
	mj = (double)counter * (double)resolution_uj / 1e3;
	return mj >= 0 && mj < 0x1p62 ? (int64_t)mj : METRIC_UNKNOWN;
}

static void look_at_device(const struct rocm_smi *rocm, uint32_t device, struct gpu_device *ret)
{
	int64_t millidegrees;
	uint64_t id;

	*ret = (struct gpu_device){
		.minor = number_of(rocm->minor, device),
		.gpu_percent = number_of(rocm->busy, device),
		.memory_percent = number_of(rocm->memory_busy, device),
		.memory_used = memory_of(rocm->memory_used, device),
		.memory_total = memory_of(rocm->memory_total, device),
		.temperature_c = METRIC_UNKNOWN,
		.power_mw = milliwatts_of(rocm->power, device),
		.power_limit_mw = milliwatts_of(rocm->power_limit, device),
		.energy_mj = millijoules_of(rocm, device),
		.sm_mhz = METRIC_UNKNOWN,
		.memory_mhz = METRIC_UNKNOWN,
		.reasons = METRIC_UNKNOWN,
		.received_bytes_s = METRIC_UNKNOWN,
		.sent_bytes_s = METRIC_UNKNOWN,
	};
	if (rocm->temperature && rocm->temperature(device, RSMI_EDGE, RSMI_CURRENT, &millidegrees) == RSMI_SUCCESS)
		ret->temperature_c = millidegrees / 1000;
	if (!rocm->name || rocm->name(device, ret->name, GPU_TEXT_BYTES) != RSMI_SUCCESS)
		ret->name[0] = '\0';
	ret->name[GPU_TEXT_BYTES - 1] = '\0';
	if (rocm->unique_id && rocm->unique_id(device, &id) == RSMI_SUCCESS)
		snprintf(ret->uuid, GPU_TEXT_BYTES, "GPU-%016llx",
			 (unsigned long long)id); /* as rocm-smi and HIP have it */
}

void rocm_smi_look(struct rocm_smi *rocm, struct gpu_look *ret)
{
	ret->n_devices = rocm->n_devices;
	ret->n_processes = 0;
	if (!rocm->version || rocm->version(RSMI_DRIVER, ret->driver, GPU_TEXT_BYTES) != RSMI_SUCCESS)
		ret->driver[0] = '\0';
	ret->driver[GPU_TEXT_BYTES - 1] = '\0';
	for (uint32_t i = 0; i < rocm->n_devices; i++)
		look_at_device(rocm, i, &ret->devices[i]);
}
