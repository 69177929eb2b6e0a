/* SPDX-License-Identifier: MIT */
/* fuzz_python_record.c - what the BPF program reads and writes, where memory lies.
 *
 * The first byte says what the rest is.
 * 0: an image of an interpreter's memory (tests/unit/memory_image.h); the program itself
 *    runs on it, and what it records is read.
 * else: a record as it comes out of a ring, 16 bits of its length before it, and then an
 *    image: it is read by that interpreter's layout, and over its memory.
 */
#include "src/capture/decode.h"
#include "tests/unit/bpf_here.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

enum { MAX_ANCHORS = 256 };

static void read_record(struct py_runtime *runtime, pid_t tid, const struct python_record *record)
{
	static struct py_anchor anchors[MAX_ANCHORS];
	struct py_frames frames = { 0 };
	uint64_t end, outer;
	int n;

	py_begin_sample(runtime);
	py_take_record(runtime, record);
	n = py_live_anchors(runtime, tid, true, anchors, MAX_ANCHORS);
	for (int i = 0; i < n; i++) {
		(void)py_is_outermost(runtime, &anchors[i]);
		if (py_walk(runtime, anchors[i].top, &frames, &end, &outer) == 0)
			for (size_t k = 0; k < frames.n; k++)
				if (!frames.frames[k].code || !frames.frames[k].code->qualname)
					abort();
	}
	py_frames_done(&frames);
	(void)py_record_sufficed(runtime);
	py_begin_sample(runtime);
}

static void run_on_image(const uint8_t *data, size_t n_bytes)
{
	static struct memory_image image;
	struct py_runtime *runtime;
	char version[32];

	image_parse(&image, data, n_bytes);
	if (image_open(&image, &image.base, version, &runtime) < 0)
		return;
	if (bpf_here_watch(&image, runtime))
		for (size_t i = 0; i < 2 * IMAGE_N_THREADS; i++) { /* each one twice: the second time it is known */
			const struct python_record *record = bpf_here_run(image.threads[i / 2]);

			if (record)
				read_record(runtime, image.threads[i / 2], record);
		}
	py_runtime_free(runtime);
}

/* Decode the ring's contents in memory of exact size. False: rejected. */
static bool decode(const uint8_t *data, size_t n_bytes, struct python_record *ret)
{
	struct perf_event_header header = { .type = PERF_RECORD_SAMPLE };
	uint8_t *copy;
	int r;

	n_bytes = MIN(n_bytes, (size_t)UINT16_MAX - sizeof header);
	header.size = (uint16_t)(sizeof header + n_bytes);
	copy = malloc(header.size);
	if (!copy)
		abort();
	memcpy(copy, &header, sizeof header);
	memcpy(copy + sizeof header, data, n_bytes);
	r = record_decode_python((const struct perf_event_header *)copy, ret);
	free(copy);
	return r == 0;
}

static void read_over_image(const uint8_t *data, size_t n_bytes)
{
	static _Alignas(8) uint8_t record[PYTHON_RECORD_BYTES];
	static struct memory_image image;
	struct py_runtime *runtime;
	char version[32];
	uint16_t n_record;

	if (n_bytes < sizeof n_record)
		return;
	memcpy(&n_record, data, sizeof n_record);
	data += sizeof n_record;
	n_bytes -= sizeof n_record;
	if (n_record > n_bytes || !decode(data, n_record, (struct python_record *)record))
		return;
	image_parse(&image, data + n_record, n_bytes - n_record);
	if (image_open(&image, &image.base, version, &runtime) < 0)
		return;
	read_record(runtime, image.threads[0], (const struct python_record *)record);
	py_runtime_free(runtime);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	if (n_bytes == 0)
		return 0;
	if (data[0] == 0)
		run_on_image(data + 1, n_bytes - 1);
	else
		read_over_image(data + 1, n_bytes - 1);
	return 0;
}
