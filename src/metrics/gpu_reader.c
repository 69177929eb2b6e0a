/* SPDX-License-Identifier: MIT */
/* gpu_reader.c - the process that calls NVML or ROCm SMI, and the questions to it; see gpu.h.
 *
 * A byte asks for a look. The answer is one packet: a gpu_look without the unused ends of its two arrays.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/confined.h"
#include "base/util.h"
#include "src/metrics/gpu.h"

enum {
	MAX_PAUSES = 10, /* at the end: 100 ms */
	SLOW_S = 10,     /* seconds without an answer that are worth a sentence */
	HEAD_BYTES = offsetof(struct gpu_look, devices),
};

struct gpu_reader {
	int socket; /* -1: the process has ended */
	pid_t pid;
	bool is_asked;
	uint64_t asked_ns;
	struct gpu_look look;
	uint8_t packet[sizeof(struct gpu_look)];
	char why[GPU_WHY_BYTES]; /* why there are no more looks; "": there are */
	bool is_absent;
};

/* ---- The process ---- */

static int send_look(int socket, const struct gpu_look *look)
{
	struct iovec parts[] = {
		{ (void *)look, HEAD_BYTES },
		{ (void *)look->devices, look->n_devices * sizeof *look->devices },
		{ (void *)look->processes, look->n_processes * sizeof *look->processes },
	};
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = N_ELEMENTS(parts) };

	return sendmsg(socket, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* One of them is not NULL. */
struct libraries {
	struct nvml *nvml;
	struct rocm_smi *rocm;
};

/* NVIDIA's library, else AMD's. @why: without both, the reason that NVIDIA's gave. */
static int open_library(struct libraries *libraries, char why[GPU_WHY_BYTES])
{
	char of_rocm[GPU_WHY_BYTES];
	int r = nvml_open(&libraries->nvml, why);

	if (r != -ENOENT || rocm_smi_open(&libraries->rocm, of_rocm) < 0)
		return r;
	why[0] = '\0';
	return 0;
}

static void serve(int socket, int filter_error)
{
	static struct gpu_look look; /* too large for a stack */
	struct libraries libraries = { 0 };
	char asked;
	int r;

	(void)filter_error; /* an old kernel, or a container: the process has no capability nevertheless */
	while (recv(socket, &asked, 1, 0) == 1) {
		r = libraries.nvml || libraries.rocm ? 0 : open_library(&libraries, look.why);
		if (r < 0)
			look.is_absent = r == -ENOENT;
		else if (libraries.nvml)
			nvml_look(libraries.nvml, &look);
		else
			rocm_smi_look(libraries.rocm, &look);
		if (send_look(socket, &look) < 0 || r < 0)
			break;
	}
	/* The driver releases what the process has. nvmlShutdown() could hang unnoticed. */
}

/* ---- Questions ---- */

/*
 * NVML may start nvidia-modprobe(1), which makes missing device files. That fails, as it does for an ordinary user without the
 * program, and NVML goes on without.
 */
static const struct call_rule refused[] = {
	{ __NR_execve, CALL_NOT_THERE, CALL_ALWAYS, 0, 0 },
	{ __NR_execveat, CALL_NOT_THERE, CALL_ALWAYS, 0, 0 },
};

int gpu_reader_start(struct gpu_reader **ret)
{
	/* The driver's calls are its own matter; none starts a program, or changes the user. */
	const struct call_table tables[] = { { refused, N_ELEMENTS(refused) }, calls_fatal };
	const struct confinement confinement = {
		.name = "probing-gpu",
		.socket_type = SOCK_SEQPACKET,
		.tables = tables,
		.n_tables = N_ELEMENTS(tables),
		.otherwise = CALL_ALLOWED,
		.run = serve,
	};
	struct gpu_reader *reader = calloc(1, sizeof *reader);
	int r;

	if (!reader)
		return -ENOMEM;
	r = confined_start(&confinement, &reader->socket, &reader->pid);
	if (r < 0) {
		free(reader);
		return r;
	}
	(void)gpu_reader_ask(reader, monotonic_ns());
	*ret = reader;
	return 0;
}

/* A process that hangs in the driver does not die before the driver returns: do not wait long for it. */
static void end(struct gpu_reader *reader)
{
	const struct timespec pause = { 0, 10000000 };

	closep(&reader->socket);
	reader->socket = -1;
	if (reader->pid > 0)
		kill(reader->pid, SIGKILL);
	for (int i = 0; i < MAX_PAUSES && reader->pid > 0; i++) {
		if (waitpid(reader->pid, NULL, WNOHANG) != 0)
			reader->pid = 0;
		else
			nanosleep(&pause, NULL);
	}
	reader->pid = 0;
}

void gpu_reader_free(struct gpu_reader *reader)
{
	if (!reader)
		return;
	end(reader);
	free(reader);
}

void gpu_reader_freep(struct gpu_reader **reader)
{
	gpu_reader_free(*reader);
}

bool gpu_reader_ask(struct gpu_reader *reader, uint64_t now_ns)
{
	if (reader->socket < 0 || reader->is_asked)
		return false;
	/* If it has died, gpu_reader_take() finds out. */
	(void)send(reader->socket, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	reader->is_asked = true;
	reader->asked_ns = now_ns;
	return true;
}

/* The arrays of a packet follow each other without a gap; put them in their places. */
bool gpu_look_unpack(const uint8_t *packet, size_t n_bytes, struct gpu_look *look)
{
	size_t devices, processes;

	if (n_bytes < HEAD_BYTES)
		return false;
	memcpy(look, packet, HEAD_BYTES);
	look->why[GPU_WHY_BYTES - 1] = look->driver[GPU_TEXT_BYTES - 1] = '\0';
	if (look->n_devices > GPU_MAX_DEVICES || look->n_processes > GPU_MAX_PROCESSES)
		return false;
	devices = look->n_devices * sizeof *look->devices;
	processes = look->n_processes * sizeof *look->processes;
	if (n_bytes != HEAD_BYTES + devices + processes)
		return false;
	memcpy(look->devices, packet + HEAD_BYTES, devices);
	memcpy(look->processes, packet + HEAD_BYTES + devices, processes);
	for (size_t i = 0; i < look->n_devices; i++)
		look->devices[i].name[GPU_TEXT_BYTES - 1] = look->devices[i].uuid[GPU_TEXT_BYTES - 1] = '\0';
	return true;
}

static int give_up(struct gpu_reader *reader, const char *why, bool is_absent)
{
	snprintf(reader->why, sizeof reader->why, "%s", why);
	reader->is_absent = is_absent;
	end(reader);
	return -ENODATA;
}

static bool wait_for(int socket, int patience_ms)
{
	struct pollfd wait = { .fd = socket, .events = POLLIN };

	return poll(&wait, 1, patience_ms) > 0;
}

int gpu_reader_take(struct gpu_reader *reader, int patience_ms, const struct gpu_look **ret)
{
	ssize_t n;

	if (reader->socket < 0)
		return -ENODATA;
	if (!reader->is_asked || (patience_ms > 0 && !wait_for(reader->socket, patience_ms)))
		return -EAGAIN;
	n = recv(reader->socket, reader->packet, sizeof reader->packet, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return -EAGAIN;
	if (n <= 0)
		return give_up(reader, "NVML ended the process that called it", false);
	if (!gpu_look_unpack(reader->packet, (size_t)n, &reader->look))
		return give_up(reader, "the process that calls NVML sent a damaged answer", false);
	reader->is_asked = false;
	if (reader->look.why[0])
		return give_up(reader, reader->look.why, reader->look.is_absent);
	*ret = &reader->look;
	return 0;
}

const char *gpu_reader_why(struct gpu_reader *reader, uint64_t now_ns, bool *ret_is_absent)
{
	uint64_t since_s = (now_ns - MIN(reader->asked_ns, now_ns)) / 1000000000u;

	*ret_is_absent = reader->is_absent;
	if (reader->socket < 0)
		return reader->why;
	if (!reader->is_asked || since_s < SLOW_S)
		return NULL;
	snprintf(reader->why, sizeof reader->why, "NVML has not answered for %llu s", (unsigned long long)since_s);
	return reader->why;
}
