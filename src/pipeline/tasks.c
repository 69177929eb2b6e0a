/* SPDX-License-Identifier: MIT */
/* tasks.c - see tasks.h. */
#include "src/pipeline/tasks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "unwind/cpython/cpython.h"

void task_frames_done(struct task_frames *room)
{
	free(room->frames);
	memset(room, 0, sizeof *room);
}

static int put(struct task_frames *room, const struct frame *frame)
{
	int r;

	r = grow(&room->frames, room->n, &room->allocated, sizeof *room->frames);
	if (r >= 0)
		room->frames[room->n++] = *frame;
	return r;
}

static int put_some(struct task_frames *room, const struct frame *frames, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && r >= 0; i++)
		r = put(room, &frames[i]);
	return r;
}

/* Whether the name is a default like "Task-12", of which there may be very many. */
static bool is_counted(const char *name)
{
	static const char prefix[] = "Task-";

	if (strncmp(name, prefix, strlen(prefix)) != 0)
		return false;
	name += strlen(prefix);
	return *name && strspn(name, "0123456789") == strlen(name);
}

/* A task with a default name gets its coroutine's name. */
static int put_task(struct task_frames *room, const char *name, const struct py_code *coroutine)
{
	struct frame frame = { .kind = FRAME_TASK };

	frame.task.name = (!*name || is_counted(name)) && coroutine ? coroutine->qualname : name;
	return put(room, &frame);
}

int task_frames_put_waiting(struct task_frames *room, const struct py_task_link *link)
{
	const struct py_code *outermost = NULL;
	int r = 0;

	for (size_t i = 0; i < link->n_frames && r >= 0; i++) {
		struct frame frame = { .kind = FRAME_PYTHON };

		outermost = link->frames[i].code;
		frame.python.code = link->frames[i].code;
		frame.python.address = link->frames[i].address;
		frame.python.instruction = link->frames[i].instruction;
		r = put(room, &frame);
	}
	return r < 0 ? r : put_task(room, link->name, outermost);
}

/* Index of the running task's coroutine frame; n_frames: not found. */
static size_t find_coroutine(const struct stack *stack, uint64_t address)
{
	size_t i = 0;

	while (i < stack->n_frames &&
	       (stack->frames[i].kind != FRAME_PYTHON || stack->frames[i].python.address != address))
		i++;
	return i;
}

static bool has_python(const struct stack *stack)
{
	for (size_t i = 0; i < stack->n_frames; i++)
		if (stack->frames[i].kind == FRAME_PYTHON)
			return true;
	return false;
}

int task_frames_add(struct task_frames *room, struct py_runtime *runtime, pid_t tid, struct stack *stack)
{
	struct py_task_link links[PY_MAX_LINKS];
	size_t at;
	int n, r;

	if (!runtime || !has_python(stack))
		return 0;
	n = py_running_task(runtime, tid, links);
	if (n <= 0)
		return n;
	at = find_coroutine(stack, links[0].frame);
	if (at == stack->n_frames)
		return 0;
	room->n = 0;
	r = put_some(room, stack->frames, at + 1);
	if (r >= 0)
		r = put_task(room, links[0].name, stack->frames[at].python.code);
	for (int i = 1; i < n && r >= 0; i++)
		r = task_frames_put_waiting(room, &links[i]);
	if (r >= 0)
		r = put_some(room, stack->frames + at + 1, stack->n_frames - at - 1);
	if (r < 0)
		return r;
	stack->frames = room->frames;
	stack->n_frames = room->n;
	return 0;
}
