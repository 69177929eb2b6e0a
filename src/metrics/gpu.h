/* SPDX-License-Identifier: MIT */
/* gpu.h - GPUs of the machine and their processes, by NVIDIA's management library (NVML); without NVIDIA's driver, by AMD's (ROCm SMI).
 *
 * The library belongs to the driver. Its calls enter the driver, may take seconds, and may never return. It is therefore
 * loaded in a process of its own, "probing-gpu", which has no capability and none of our files. That process starts before
 * the recorder drops its privileges, and is asked for one look at a time; nobody waits for the answer.
 */
#ifndef PROBING_METRICS_GPU_H
#define PROBING_METRICS_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/store/store.h"

enum {
	GPU_MAX_DEVICES = 64,
	GPU_MAX_PROCESSES = 512, /* of all devices together */
	GPU_TEXT_BYTES = 96,     /* NVML_DEVICE_NAME_V2_BUFFER_SIZE and NVML_DEVICE_UUID_V2_BUFFER_SIZE of nvml.h */
	GPU_WHY_BYTES = 256,
};

/* Numbers that the device or the driver does not have are METRIC_UNKNOWN. */
struct gpu_device {
	char name[GPU_TEXT_BYTES], uuid[GPU_TEXT_BYTES];
	int64_t minor;                               /* of /dev/nvidiaN; AMD: of /dev/dri/renderDN */
	int64_t gpu_percent, memory_percent;         /* time in which a kernel ran, in which memory was accessed */
	int64_t memory_used, memory_total;           /* bytes */
	int64_t temperature_c;                       /* of the chip */
	int64_t power_mw, power_limit_mw, energy_mj; /* energy: since the driver was loaded */
	int64_t sm_mhz, memory_mhz;
	int64_t reasons;                        /* bits: gpu_throttle_names() */
	int64_t received_bytes_s, sent_bytes_s; /* by PCIe, over 20 ms */
};

struct gpu_process {
	int64_t device, pid; /* as the driver reports it: in a container it may be the host's number */
	int64_t memory_used; /* bytes */
	int64_t sm_percent;  /* time in which its kernels ran, since the last look */
};

/* One look. */
struct gpu_look {
	char why[GPU_WHY_BYTES]; /* a sentence without a full stop if there is no data and never will be; else "" */
	int32_t is_absent;       /* because the machine has no driver */
	uint32_t n_devices, n_processes;
	char driver[GPU_TEXT_BYTES];
	struct gpu_device devices[GPU_MAX_DEVICES];
	struct gpu_process processes[GPU_MAX_PROCESSES];
};

/* ---- The process that looks ---- */

struct gpu_reader;

/*
 * gpu_reader_start - start it, and ask for the first look. Call it before there are threads, and while processes can be started.
 * @ret: ended with gpu_reader_free(), which kills the process and waits at most 100 ms for its end.
 * Errors: -ENOMEM; those of socketpair(2) and fork(2).
 */
int gpu_reader_start(struct gpu_reader **ret);
void gpu_reader_free(struct gpu_reader *reader);
void gpu_reader_freep(struct gpu_reader **reader);

/* gpu_reader_ask - ask for a look. False: one is under way, or the process has ended. @now_ns: CLOCK_MONOTONIC. */
bool gpu_reader_ask(struct gpu_reader *reader, uint64_t now_ns);

/*
 * gpu_reader_take - the look that was asked for.
 * @patience_ms: how long to wait for it; 0: not at all.
 * @ret: borrowed, until the next call.
 * Errors: -EAGAIN there is none yet; -ENODATA there is none, and never will be: gpu_reader_why().
 */
int gpu_reader_take(struct gpu_reader *reader, int patience_ms, const struct gpu_look **ret);

/*
 * gpu_reader_why - a sentence without a full stop: why there are no more looks, or none for 10 seconds; NULL: there are.
 * Borrowed, until the next call. @now_ns: CLOCK_MONOTONIC. @ret_is_absent: the machine has no GPU driver.
 */
const char *gpu_reader_why(struct gpu_reader *reader, uint64_t now_ns, bool *ret_is_absent);

/* gpu_look_unpack - the packet of that process. False: it is no look, and @ret has anything. */
bool gpu_look_unpack(const uint8_t *packet, size_t n_bytes, struct gpu_look *ret);

/* ---- Rows ---- */

/* gpu_put_* - the rows of a look in these tables. @seconds: their timestamp. Errors: those of the sink. */
struct metric_sink;
int gpu_put_metrics(const struct gpu_look *look, double seconds, const char *host, const struct metric_sink *sink);
int gpu_put_devices(const struct gpu_look *look, const char *host, const struct metric_sink *sink);
int gpu_put_processes(const struct gpu_look *look, double seconds, const char *host, const struct metric_sink *sink);

/* gpu_throttle_names - the reasons of a clock below its maximum: "power_cap,thermal". Returns whether one of them slows work. */
bool gpu_throttle_names(uint64_t reasons, char to[GPU_WHY_BYTES]);

/* ---- The library, in this process: for that process, and for tests ---- */

struct nvml;

/*
 * nvml_open - load the library, and find the devices.
 * @why: on failure a sentence.
 * Errors: -ENOENT the machine has no driver; -EIO the library or the driver refuses.
 */
int nvml_open(struct nvml **ret, char why[GPU_WHY_BYTES]);
void nvml_close(struct nvml *nvml);
/* @ret: sets all but its why and is_absent. */
void nvml_look(struct nvml *nvml, struct gpu_look *ret);

struct rocm_smi;

/* The same of AMD's; -ENOENT also where it finds no GPU. */
int rocm_smi_open(struct rocm_smi **ret, char why[GPU_WHY_BYTES]);
void rocm_smi_close(struct rocm_smi *rocm);
void rocm_smi_look(struct rocm_smi *rocm, struct gpu_look *ret);

#endif
