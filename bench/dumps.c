/* SPDX-License-Identifier: MIT */
/* dumps.c - see dumps.h. */
#include "bench/dumps.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/util.h"
#include "src/capture/capture.h"

enum { MAX_DUMPS = 1 << 16, MAX_DUMP_BYTES = 512 << 20 };

void dumps_done(struct dumps *dumps)
{
	free(dumps->samples);
	if (dumps->bytes)
		munmap(dumps->bytes, MAX_DUMP_BYTES);
}

int dumps_init(struct dumps *dumps)
{
	void *bytes;

	dumps->samples = calloc(MAX_DUMPS, sizeof *dumps->samples);
	if (!dumps->samples)
		return -ENOMEM;
	bytes = mmap(NULL, MAX_DUMP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (bytes == MAP_FAILED)
		return -errno;
	/* A ring of a few megabytes stays in the TLB; use huge pages, so that its substitute does, too. */
	(void)madvise(bytes, MAX_DUMP_BYTES, MADV_HUGEPAGE);
	dumps->bytes = bytes;
	return 0;
}

static void keep(struct dumps *dumps, const struct sample *sample)
{
	struct sample *kept = &dumps->samples[dumps->n];

	if (!sample->has_user || dumps->n == MAX_DUMPS || MAX_DUMP_BYTES - dumps->n_bytes < sample->stack_bytes)
		return;
	*kept = *sample;
	kept->kernel_ips = NULL;
	kept->n_kernel_ips = 0;
	kept->stack = memcpy(dumps->bytes + dumps->n_bytes, sample->stack, sample->stack_bytes);
	dumps->n_bytes += sample->stack_bytes;
	dumps->n++;
}

static int drain(struct capture *capture, pid_t pid, struct dumps *dumps)
{
	struct capture_event event;
	int r;

	while ((r = capture_next(capture, &event)) > 0)
		if (event.type == CAPTURE_SAMPLE && event.pid == pid)
			keep(dumps, &event.sample);
	return r;
}

int dumps_record(const struct dump_options *options, struct dumps *dumps)
{
	struct capture_options wanted = {
		.hz = options->hz,
		.stack_bytes = options->stack_bytes,
		.no_kernel = true,
		.no_wakeup = true,
	};
	CLEANUP(capture_freep) struct capture *capture = NULL;
	struct capture_counts counts;
	uint64_t end;
	int r;

	r = capture_attach(&wanted, options->pid, &capture);
	if (r < 0)
		return r;
	end = monotonic_ns() + (uint64_t)(options->seconds * 1e9);
	while (r >= 0 && monotonic_ns() < end) {
		poll(NULL, 0, 10);
		r = drain(capture, options->pid, dumps);
	}
	capture_stop(capture);
	if (r >= 0)
		r = drain(capture, options->pid, dumps);
	capture_read_counts(capture, &counts);
	dumps->n_lost = counts.lost;
	return r;
}
