/* SPDX-License-Identifier: MIT */
/* hot_stitch.c - Python frames of an interpreter's threads, read twice and compared: fixtures/images. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/hot.h"
#include "tests/unit/memory_image.h"
#include "unwind/stitch/stitch.h"

enum { MAX_IMAGE_BYTES = 1 << 22 };

struct stitching {
	struct memory_image image;
	struct py_runtime *runtime;
	struct memory_stitcher *stitcher;
};

static void done(void *data)
{
	struct stitching *self = data;

	memory_stitcher_free(self->stitcher);
	py_runtime_free(self->runtime);
	free(self);
}

static int prepare(const char *root, void **ret)
{
	CLEANUP(freep) char *bytes = NULL;
	struct stitching *self = calloc(1, sizeof *self);
	char path[4096], version[32];
	size_t n_bytes;
	int r;

	if (!self)
		return -ENOMEM;
	snprintf(path, sizeof path, "%s/fixtures/images/3.14.4t.image", root);
	r = read_file(path, MAX_IMAGE_BYTES, &bytes, &n_bytes);
	if (r >= 0) {
		image_parse(&self->image, (const uint8_t *)bytes, n_bytes);
		r = image_open(&self->image, &self->image.base, version, &self->runtime);
	}
	if (r >= 0)
		r = memory_stitcher_new(&self->stitcher);
	if (r < 0) {
		done(self);
		return r;
	}
	*ret = self;
	return 0;
}

static int run(void *data)
{
	struct stitching *self = data;
	size_t n_frames = 0;
	int r = 0;

	for (size_t i = 0; i < IMAGE_N_THREADS && r >= 0; i++) {
		struct stack stack;

		if (self->image.threads[i] == 0)
			continue;
		py_begin_sample(self->runtime);
		r = stitch_memory(self->stitcher, self->runtime, self->image.threads[i], &stack);
		if (r >= 0)
			n_frames += stack.n_frames;
	}
	return r < 0 ? r : n_frames > 0 ? 0 : -EBADMSG;
}

const struct hot hot_stitch = { "stitch", 100, prepare, run, done };
