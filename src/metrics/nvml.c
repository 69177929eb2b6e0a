/* SPDX-License-Identifier: MIT */
/* nvml.c - reads GPUs by NVIDIA's management library; see gpu.h.
 *
 * The library comes with the driver, its header does not, so this file declares what it uses: functions with plain types or
 * small structures. A function that a driver lacks leaves its numbers unknown.
 * Source: NVML API Reference Guide, vR580 (docs.nvidia.com/deploy/nvml-api).
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/metrics/gpu.h"

/* nvmlReturn_t. */
enum { NVML_SUCCESS = 0, NVML_DRIVER_NOT_LOADED = 9, NVML_LIBRARY_NOT_FOUND = 12 };

/* nvmlTemperatureSensors_t, nvmlClockType_t, nvmlPcieUtilCounter_t. */
enum {
	NVML_TEMPERATURE_GPU = 0,
	NVML_CLOCK_SM = 1,
	NVML_CLOCK_MEM = 2,
	NVML_PCIE_TX_BYTES = 0,
	NVML_PCIE_RX_BYTES = 1
};

typedef void *nvml_device; /* nvmlDevice_t, opaque */

struct nvml_utilization { /* nvmlUtilization_t */
	unsigned gpu, memory;
};
struct nvml_memory { /* nvmlMemory_t, the first version */
	unsigned long long total, free, used;
};
struct nvml_memory_v2 { /* nvmlMemory_v2_t, since driver 510: what the driver keeps for itself is not "used", as in nvidia-smi */
	unsigned version;
	unsigned long long total, reserved, free, used;
};
/* NVML_STRUCT_VERSION(Memory, 2). */
#define NVML_MEMORY_V2 ((unsigned)sizeof(struct nvml_memory_v2) | 2u << 24)
struct nvml_process { /* nvmlProcessInfo_v2_t, which nvmlDeviceGetComputeRunningProcesses_v3 takes */
	unsigned pid;
	unsigned long long memory_used; /* all bits set: not available */
	unsigned gpu_instance, compute_instance;
};
struct nvml_process_sample { /* nvmlProcessUtilizationSample_t */
	unsigned pid;
	unsigned long long time_us;
	unsigned sm, memory, encoder, decoder; /* percent */
};

/* X(required, member, exported name, older name or NULL, types of the arguments); all return nvmlReturn_t. */
#define FUNCTIONS(X)                                                                                                   \
	X(true, init, "nvmlInit_v2", "nvmlInit", (void))                                                               \
	X(true, count, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount", (unsigned *))                                    \
	X(true, device, "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex", (unsigned, nvml_device *))      \
	X(false, shutdown, "nvmlShutdown", NULL, (void))                                                               \
	X(false, driver, "nvmlSystemGetDriverVersion", NULL, (char *, unsigned))                                       \
	X(false, name, "nvmlDeviceGetName", NULL, (nvml_device, char *, unsigned))                                     \
	X(false, uuid, "nvmlDeviceGetUUID", NULL, (nvml_device, char *, unsigned))                                     \
	X(false, minor, "nvmlDeviceGetMinorNumber", NULL, (nvml_device, unsigned *))                                   \
	X(false, utilization, "nvmlDeviceGetUtilizationRates", NULL, (nvml_device, struct nvml_utilization *))         \
	X(false, memory, "nvmlDeviceGetMemoryInfo", NULL, (nvml_device, struct nvml_memory *))                         \
	X(false, memory_v2, "nvmlDeviceGetMemoryInfo_v2", NULL, (nvml_device, struct nvml_memory_v2 *))                \
	X(false, temperature, "nvmlDeviceGetTemperature", NULL, (nvml_device, int, unsigned *))                        \
	X(false, power, "nvmlDeviceGetPowerUsage", NULL, (nvml_device, unsigned *))                                    \
	X(false, power_limit, "nvmlDeviceGetEnforcedPowerLimit", NULL, (nvml_device, unsigned *))                      \
	X(false, energy, "nvmlDeviceGetTotalEnergyConsumption", NULL, (nvml_device, unsigned long long *))             \
	X(false, clock, "nvmlDeviceGetClockInfo", NULL, (nvml_device, int, unsigned *))                                \
	X(false, reasons, "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons",       \
	  (nvml_device, unsigned long long *))                                                                         \
	X(false, pcie, "nvmlDeviceGetPcieThroughput", NULL, (nvml_device, int, unsigned *))                            \
	X(false, processes, "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2",      \
	  (nvml_device, unsigned *, struct nvml_process *))                                                            \
	X(false, samples, "nvmlDeviceGetProcessUtilization", NULL,                                                     \
	  (nvml_device, struct nvml_process_sample *, unsigned *, unsigned long long))

struct nvml {
	void *library;
#define X(required, member, exported, older, types) int(*member) types;
	FUNCTIONS(X)
#undef X
	const char *(*error_text)(int code); /* nvmlErrorString; NULL: the library lacks it */
	nvml_device devices[GPU_MAX_DEVICES];
	unsigned n_devices;
	unsigned long long sampled_us[GPU_MAX_DEVICES]; /* the newest sample of processes that was read */
};

/* ---- The library ---- */

/* The loader's own search comes first; the others are folders of container runtimes, of WSL and of NixOS. */
static const char *const paths[] = {
	"libnvidia-ml.so.1",
	"/usr/local/nvidia/lib64/libnvidia-ml.so.1",
	"/usr/lib64/libnvidia-ml.so.1",
	"/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
	"/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1",
	"/usr/lib/wsl/lib/libnvidia-ml.so.1",
	"/run/opengl-driver/lib/libnvidia-ml.so.1",
	"/home/kubernetes/bin/nvidia/lib64/libnvidia-ml.so.1",
};

static int load(struct nvml *nvml, char why[GPU_WHY_BYTES])
{
	for (size_t i = 0; i < N_ELEMENTS(paths) && !nvml->library; i++)
		nvml->library = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL);
	if (nvml->library)
		return 0;
	snprintf(why, GPU_WHY_BYTES, "there is no NVIDIA driver here: libnvidia-ml.so.1 cannot be loaded");
	return -ENOENT;
}

static void *find(struct nvml *nvml, const char *name, const char *older)
{
	void *found = dlsym(nvml->library, name);

	return found || !older ? found : dlsym(nvml->library, older);
}

static int resolve(struct nvml *nvml, char why[GPU_WHY_BYTES])
{
	const char *missing = NULL;

	/* POSIX guarantees that a function's address survives in a void *. */
#define X(required, member, exported, older, types)                                                                    \
	*(void **)&nvml->member = find(nvml, exported, older);                                                         \
	if (required && !nvml->member)                                                                                 \
		missing = exported;
	FUNCTIONS(X)
#undef X
	*(void **)&nvml->error_text = dlsym(nvml->library, "nvmlErrorString");
	if (!missing)
		return 0;
	snprintf(why, GPU_WHY_BYTES, "libnvidia-ml.so.1 has no function %s", missing);
	return -EIO;
}

static int refuse(const struct nvml *nvml, const char *call, int code, char why[GPU_WHY_BYTES])
{
	const char *text = nvml->error_text ? nvml->error_text(code) : NULL;

	if (text)
		snprintf(why, GPU_WHY_BYTES, "NVML fails in %s: %.120s", call, text);
	else
		snprintf(why, GPU_WHY_BYTES, "NVML fails in %s: error %d", call, code);
	return code == NVML_DRIVER_NOT_LOADED || code == NVML_LIBRARY_NOT_FOUND ? -ENOENT : -EIO;
}

static int find_devices(struct nvml *nvml, char why[GPU_WHY_BYTES])
{
	unsigned n = 0;
	int code;

	code = nvml->init();
	if (code != NVML_SUCCESS)
		return refuse(nvml, "nvmlInit", code, why);
	code = nvml->count(&n);
	if (code != NVML_SUCCESS)
		return refuse(nvml, "nvmlDeviceGetCount", code, why);
	nvml->n_devices = MIN(n, (unsigned)GPU_MAX_DEVICES);
	/* A device without a handle keeps its number, and has no data: a lost one must not rename the others. */
	for (unsigned i = 0; i < nvml->n_devices; i++)
		if (nvml->device(i, &nvml->devices[i]) != NVML_SUCCESS)
			nvml->devices[i] = NULL;
	return 0;
}

int nvml_open(struct nvml **ret, char why[GPU_WHY_BYTES])
{
	struct nvml *nvml = calloc(1, sizeof *nvml);
	int r;

	if (!nvml) {
		snprintf(why, GPU_WHY_BYTES, "not enough memory");
		return -ENOMEM;
	}
	r = load(nvml, why);
	if (r >= 0)
		r = resolve(nvml, why);
	if (r >= 0)
		r = find_devices(nvml, why);
	if (r < 0) {
		nvml_close(nvml);
		return r;
	}
	*ret = nvml;
	return 0;
}

void nvml_close(struct nvml *nvml)
{
	if (!nvml)
		return;
	if (nvml->shutdown)
		(void)nvml->shutdown();
	if (nvml->library)
		dlclose(nvml->library);
	free(nvml);
}

/* ---- A look ---- */

static int64_t bytes_of(unsigned long long number)
{
	return number > INT64_MAX ? METRIC_UNKNOWN : (int64_t)number; /* NVML_VALUE_NOT_AVAILABLE has all bits set */
}

static int64_t number_of(int (*ask)(nvml_device, unsigned *), nvml_device device)
{
	unsigned number;

	return ask && ask(device, &number) == NVML_SUCCESS ? (int64_t)number : METRIC_UNKNOWN;
}

static int64_t long_of(int (*ask)(nvml_device, unsigned long long *), nvml_device device)
{
	unsigned long long number;

	return ask && ask(device, &number) == NVML_SUCCESS ? bytes_of(number) : METRIC_UNKNOWN;
}

/* Of functions that take what they measure. */
static int64_t kind_of(int (*ask)(nvml_device, int, unsigned *), nvml_device device, int kind)
{
	unsigned number;

	return ask && ask(device, kind, &number) == NVML_SUCCESS ? (int64_t)number : METRIC_UNKNOWN;
}

static int64_t pcie_bytes_s(const struct nvml *nvml, nvml_device device, int direction)
{
	int64_t kilobytes = kind_of(nvml->pcie, device, direction);

	return kilobytes == METRIC_UNKNOWN ? METRIC_UNKNOWN : kilobytes * 1024;
}

static void take_text(int (*ask)(nvml_device, char *, unsigned), nvml_device device, char to[GPU_TEXT_BYTES])
{
	if (!ask || ask(device, to, GPU_TEXT_BYTES) != NVML_SUCCESS)
		to[0] = '\0';
	to[GPU_TEXT_BYTES - 1] = '\0';
}

static void look_at_memory(const struct nvml *nvml, nvml_device device, struct gpu_device *ret)
{
	struct nvml_memory_v2 newer = { .version = NVML_MEMORY_V2 };
	struct nvml_memory older;

	ret->memory_used = ret->memory_total = METRIC_UNKNOWN;
	if (nvml->memory_v2 && nvml->memory_v2(device, &newer) == NVML_SUCCESS) {
		ret->memory_used = bytes_of(newer.used);
		ret->memory_total = bytes_of(newer.total);
	} else if (nvml->memory && nvml->memory(device, &older) == NVML_SUCCESS) {
		ret->memory_used = bytes_of(older.used);
		ret->memory_total = bytes_of(older.total);
	}
}

static void look_at_device(const struct nvml *nvml, nvml_device device, struct gpu_device *ret)
{
	struct nvml_utilization busy;

	take_text(nvml->name, device, ret->name);
	take_text(nvml->uuid, device, ret->uuid);
	ret->minor = number_of(nvml->minor, device);
	ret->gpu_percent = ret->memory_percent = METRIC_UNKNOWN;
	if (nvml->utilization && nvml->utilization(device, &busy) == NVML_SUCCESS) {
		ret->gpu_percent = busy.gpu;
		ret->memory_percent = busy.memory;
	}
	look_at_memory(nvml, device, ret);
	ret->temperature_c = kind_of(nvml->temperature, device, NVML_TEMPERATURE_GPU);
	ret->power_mw = number_of(nvml->power, device);
	ret->power_limit_mw = number_of(nvml->power_limit, device);
	ret->energy_mj = long_of(nvml->energy, device);
	ret->sm_mhz = kind_of(nvml->clock, device, NVML_CLOCK_SM);
	ret->memory_mhz = kind_of(nvml->clock, device, NVML_CLOCK_MEM);
	ret->reasons = long_of(nvml->reasons, device);
	ret->received_bytes_s = pcie_bytes_s(nvml, device, NVML_PCIE_RX_BYTES);
	ret->sent_bytes_s = pcie_bytes_s(nvml, device, NVML_PCIE_TX_BYTES);
}

static void look_at_nothing(struct gpu_device *ret)
{
	*ret = (struct gpu_device){ .minor = METRIC_UNKNOWN,
				    .gpu_percent = METRIC_UNKNOWN,
				    .memory_percent = METRIC_UNKNOWN,
				    .memory_used = METRIC_UNKNOWN,
				    .memory_total = METRIC_UNKNOWN,
				    .temperature_c = METRIC_UNKNOWN,
				    .power_mw = METRIC_UNKNOWN,
				    .power_limit_mw = METRIC_UNKNOWN,
				    .energy_mj = METRIC_UNKNOWN,
				    .sm_mhz = METRIC_UNKNOWN,
				    .memory_mhz = METRIC_UNKNOWN,
				    .reasons = METRIC_UNKNOWN,
				    .received_bytes_s = METRIC_UNKNOWN,
				    .sent_bytes_s = METRIC_UNKNOWN };
}

/* The driver samples each process some times a second; a process without a sample ran no kernel. */
static void look_at_samples(struct nvml *nvml, unsigned n, struct gpu_process *processes, size_t n_processes)
{
	struct nvml_process_sample samples[GPU_MAX_PROCESSES];
	unsigned n_samples = GPU_MAX_PROCESSES;
	unsigned long long newest = nvml->sampled_us[n];

	if (!nvml->samples || nvml->samples(nvml->devices[n], samples, &n_samples, nvml->sampled_us[n]) != NVML_SUCCESS)
		return;
	n_samples = MIN(n_samples, (unsigned)GPU_MAX_PROCESSES);
	for (size_t i = 0; i < n_processes; i++) {
		unsigned sum = 0, n_own = 0;

		for (unsigned k = 0; k < n_samples; k++)
			if (samples[k].pid == processes[i].pid) {
				sum += samples[k].sm;
				n_own++;
			}
		processes[i].sm_percent = n_own > 0 ? sum / n_own : METRIC_UNKNOWN;
	}
	for (unsigned k = 0; k < n_samples; k++)
		newest = MAX(newest, samples[k].time_us);
	nvml->sampled_us[n] = newest;
}

static void look_at_processes(struct nvml *nvml, unsigned n, struct gpu_look *ret)
{
	struct nvml_process found[GPU_MAX_PROCESSES];
	unsigned n_found = GPU_MAX_PROCESSES, first = ret->n_processes;

	if (!nvml->processes || nvml->processes(nvml->devices[n], &n_found, found) != NVML_SUCCESS)
		return;
	n_found = MIN(n_found, (unsigned)GPU_MAX_PROCESSES - ret->n_processes);
	for (unsigned i = 0; i < n_found; i++)
		ret->processes[ret->n_processes++] = (struct gpu_process){
			.device = n,
			.pid = found[i].pid,
			.memory_used = bytes_of(found[i].memory_used),
			.sm_percent = METRIC_UNKNOWN,
		};
	look_at_samples(nvml, n, ret->processes + first, ret->n_processes - first);
}

void nvml_look(struct nvml *nvml, struct gpu_look *ret)
{
	ret->n_devices = nvml->n_devices;
	ret->n_processes = 0;
	if (!nvml->driver || nvml->driver(ret->driver, GPU_TEXT_BYTES) != NVML_SUCCESS)
		ret->driver[0] = '\0';
	ret->driver[GPU_TEXT_BYTES - 1] = '\0';
	for (unsigned i = 0; i < nvml->n_devices; i++) {
		look_at_nothing(&ret->devices[i]);
		if (!nvml->devices[i])
			continue;
		look_at_device(nvml, nvml->devices[i], &ret->devices[i]);
		look_at_processes(nvml, i, ret);
	}
}
