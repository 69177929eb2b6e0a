/* SPDX-License-Identifier: MIT */
/* frames.c - frames, each once, and what their files say about them. */
#include <errno.h>
#include <string.h>

#include "base/path.h"
#include "base/text.h"
#include "base/util.h"
#include "src/cluster/private.h"

/* All that tells two frames apart, one part behind the other. */
static char *key_of(const struct cluster_frame *frame, size_t *ret_bytes)
{
	char *key = NULL;
	FILE *out = open_memstream(&key, ret_bytes);

	if (!out)
		return NULL;
	fprintf(out, "%d %d %d%c%s%c%s%c%s", (int)frame->kind, frame->is_builtin, frame->line, '\0', frame->function,
		'\0', frame->file ? frame->file : "\1", '\0', frame->module ? frame->module : "\1");
	if (fclose(out) != 0) {
		free(key);
		return NULL;
	}
	return key;
}

static int copy_frame(const struct cluster_frame *from, struct cluster_frame *to)
{
	*to = *from;
	to->function = strdup(from->function);
	to->file = from->file ? strdup(from->file) : NULL;
	to->module = from->module ? strdup(from->module) : NULL;
	return to->function && !to->file == !from->file && !to->module == !from->module ? 0 : -ENOMEM;
}

int cluster_add_frame(struct cluster *cluster, const struct cluster_frame *frame, uint32_t *ret)
{
	CLEANUP(freep) char *key = NULL;
	size_t n_bytes = 0;
	int r;

	/* Room first: a key without its frame would stay. */
	r = grow(&cluster->frames, cluster->n_frames, &cluster->frames_allocated, sizeof *cluster->frames);
	if (r < 0)
		return r;
	key = key_of(frame, &n_bytes);
	r = key ? interner_add(&cluster->frame_keys, key, n_bytes, ret) : -ENOMEM;
	if (r <= 0)
		return r;
	return copy_frame(frame, &cluster->frames[cluster->n_frames++]);
}

static bool ends_in(const char *text, const char *end)
{
	size_t n = strlen(text), n_end = strlen(end);

	return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

/* Modules of the agent, which stand between a program and the functions that they wrap: src/agent/package.py, python/probing. */
static bool is_hook(const char *file)
{
	static const char *const modules[] = { "/probing/_comm.py", "/probing/_torch.py" };

	for (size_t i = 0; i < N_ELEMENTS(modules); i++)
		if (ends_in(file, modules[i]))
			return true;
	return strncmp(file, "<probing>", strlen("<probing>")) == 0;
}

bool frame_is_library(const struct cluster_frame *frame)
{
	const char *file = frame->file;

	return !file || strncmp(file, "<frozen", strlen("<frozen")) == 0 || is_hook(file) ||
	       strstr(file, "/site-packages/") || strstr(file, "/dist-packages/") || strstr(file, "/lib/python") ||
	       strstr(file, "/lib64/python");
}

bool frame_is_start(const struct cluster_frame *frame)
{
	static const char *const files[] = { "runpy.py",
					     "multiprocessing/spawn.py",
					     "multiprocessing/process.py",
					     "multiprocessing/popen_fork.py",
					     "multiprocessing/popen_spawn_posix.py",
					     "multiprocessing/context.py",
					     "<frozen runpy>" };

	if (frame->kind != FRAME_PYTHON)
		return true;
	if (!frame->file || !frame_is_library(frame))
		return false;
	for (size_t i = 0; i < N_ELEMENTS(files); i++)
		if (ends_in(frame->file, files[i]))
			return true;
	return false;
}

bool frame_is_collective(const struct cluster_frame *frame)
{
	static const char *const folders[] = { "/torch/distributed/", "/horovod/", "/mpi4py/", "/deepspeed/comm/" };

	for (size_t i = 0; frame->kind == FRAME_PYTHON && frame->file && i < N_ELEMENTS(folders); i++)
		if (strstr(frame->file, folders[i]))
			return true;
	return false;
}

static void put_shown(FILE *out, const char *text)
{
	int32_t c;

	while ((c = text_next_shown(&text)) != 0)
		text_put(out, c);
}

void frame_put(FILE *out, const struct cluster_frame *frame)
{
	put_shown(out, frame->function[0] ? frame->function : "[unnamed]");
	if (frame->kind != FRAME_PYTHON && frame->module) {
		fputs("  [", out);
		put_shown(out, path_base_name(frame->module));
		fputc(']', out);
	}
	if (!frame->file || !frame->file[0])
		return;
	fputs("  (", out);
	put_shown(out, path_base_name(frame->file));
	if (frame->line > 0)
		fprintf(out, ":%d", frame->line);
	fputc(')', out);
}
