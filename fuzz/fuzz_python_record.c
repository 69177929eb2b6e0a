/* fuzz_python_record.c - what the program in the kernel reads and writes, where memory lies.
 *
 * The first byte says what the rest is.
 * 0: an image of an interpreter's memory (tests/unit/memory_image.h); the program itself
 *    runs on it, and what it records is read.
 * else: a record as it comes out of a ring, read over an empty memory by the layout of
 *    another release each.
 */
#include "src/record/decode.h"
#include "tests/unit/bpf_here.h"
#include "unwind/cpython/reader.h"

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
		for (size_t i = 0; i < 2 * IMAGE_N_THREADS; i++) { /* each twice: it is known then */
			const struct python_record *record = bpf_here_run(image.threads[i / 2]);

			if (record)
				read_record(runtime, image.threads[i / 2], record);
		}
	py_runtime_free(runtime);
}

/* A runtime that nothing is known of but its release: the n-th that there is. */
static struct py_runtime *make_runtime(struct memory_image *image, unsigned n)
{
	struct py_runtime *runtime = calloc(1, sizeof *runtime);
	unsigned major, minor;

	if (!runtime)
		abort();
	image_init(image);
	runtime->remote = runtime->window.remote = &image->base;
	runtime->pthread_tid = ABSENT;
	if (!layout_releases(n, &major, &minor) ||
	    layout_of(major << 24 | minor << 16 | 0xf0, false, &runtime->layout) < 0) {
		free(runtime);
		return NULL;
	}
	py_begin_sample(runtime);
	return runtime;
}

static void read_bytes_as_record(unsigned release, const uint8_t *data, size_t n_bytes)
{
	static _Alignas(8) uint8_t record[PYTHON_RECORD_BYTES];
	static struct memory_image image;
	struct perf_event_header header = { .type = PERF_RECORD_SAMPLE };
	struct py_runtime *runtime;
	uint8_t *copy;

	n_bytes = MIN(n_bytes, (size_t)UINT16_MAX - sizeof header);
	header.size = (uint16_t)(sizeof header + n_bytes);
	copy = malloc(header.size); /* of its own size: the sanitizer sees every step beyond */
	if (!copy)
		abort();
	memcpy(copy, &header, sizeof header);
	memcpy(copy + sizeof header, data, n_bytes);
	if (record_decode_python((const struct perf_event_header *)copy, (struct python_record *)record) == 0) {
		runtime = make_runtime(&image, release);
		if (runtime)
			read_record(runtime, 1, (const struct python_record *)record);
		py_runtime_free(runtime);
	}
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	if (n_bytes == 0)
		return 0;
	if (data[0] == 0)
		run_on_image(data + 1, n_bytes - 1);
	else
		read_bytes_as_record(data[0] - 1u, data + 1, n_bytes - 1);
	return 0;
}
