/* SPDX-License-Identifier: MIT */
/* hot_unwind.c - native frames of recorded stacks whose places are known by then: fixtures/stacks. */
#include <errno.h>
#include <stdlib.h>

#include "bench/hot.h"
#include "tests/unit/stacks_home.h"

/* Skip the frames that libdwfl found, after registers and stack. */
static bool skip_frames(struct stacks_file *file)
{
	uint64_t n = stacks_get(file);

	for (uint64_t i = 0; i < 2 * n && !file->failed; i++)
		stacks_get(file);
	stacks_get(file);
	return !file->failed;
}

static void done(void *data)
{
	stacks_home_close(data);
	free(data);
}

static int prepare(const char *root, void **ret)
{
	struct stacks_home *home = calloc(1, sizeof *home);
	struct stacks_file file;
	char path[4096];
	bool is_sound;

	if (!home)
		return -ENOMEM;
	snprintf(path, sizeof path, "%s/fixtures/stacks/torch.stacks", root);
	is_sound = stacks_open(&file, path, "rb") && stacks_home_open(&file, home);
	for (size_t i = 0; i < home->n_samples && is_sound; i++)
		is_sound = stacks_home_sample(&file, &home->samples[i]) && skip_frames(&file);
	if (!stacks_close(&file) || !is_sound || home->n_samples == 0) {
		done(home);
		return -EBADMSG;
	}
	*ret = home;
	return 0;
}

static int run(void *data)
{
	struct stacks_home *home = data;
	int r = 0;

	for (size_t i = 0; i < home->n_samples && r >= 0; i++)
		r = native_unwind(home->process, &home->samples[i], NULL, &home->stack);
	return r;
}

const struct hot hot_unwind = { "unwind", 1000, prepare, run, done };
