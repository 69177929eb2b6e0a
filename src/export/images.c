/* SPDX-License-Identifier: MIT */
/* images.c - see images.h. */
#include "src/export/images.h"

#include <errno.h>
#include <stdlib.h>

#include "base/util.h"

static int add_image(struct images *images, const struct profile_frame *frame, uint32_t *ret)
{
	struct image *image = NULL;
	size_t i;
	int r;

	for (i = 0; i < images->n; i++)
		if (images->items[i].path == frame->module && images->items[i].build_id == frame->build_id)
			break;
	if (i == images->n) {
		r = grow(&images->items, i, &images->allocated, sizeof *images->items);
		if (r < 0)
			return r;
		images->items[images->n++] = (struct image){ .path = frame->module, .build_id = frame->build_id };
	}
	image = &images->items[i];
	if (frame->has_address)
		image->end = MAX(image->end, frame->address + 1);
	*ret = (uint32_t)i + 1;
	return 0;
}

int images_init(const struct profile *profile, struct images *ret)
{
	struct images images = { .of_frame = calloc(profile->n_frames + 1, sizeof *images.of_frame) };
	int r = images.of_frame ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < profile->n_frames; i++)
		if (profile->frames[i].kind == FRAME_NATIVE && profile->frames[i].module)
			r = add_image(&images, &profile->frames[i], &images.of_frame[i]);
	if (r < 0)
		images_done(&images);
	else
		*ret = images;
	return r;
}

void images_done(struct images *images)
{
	free(images->items);
	free(images->of_frame);
	*images = (struct images){ 0 };
}
