/* SPDX-License-Identifier: MIT */
/* exercise_tasks.h - everything that is asked about an event loop's tasks, of an image. */
#ifndef PROBING_FUZZ_EXERCISE_TASKS_H
#define PROBING_FUZZ_EXERCISE_TASKS_H

#include "fuzz/exercise.h"

static inline uint64_t exercise_text(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = exercise_mix(hash, (uint8_t)*text);
	return hash;
}

static inline uint64_t exercise_coroutines(uint64_t hash, const struct py_frame *frames, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		hash = exercise_text(hash, frames[i].code->qualname);
		hash = exercise_mix(hash, (uint64_t)py_code_line(frames[i].code, frames[i].instruction));
	}
	return hash;
}

static inline uint64_t exercise_all_tasks(struct py_runtime *runtime, pid_t tid, uint64_t hash)
{
	struct py_tasks tasks;

	py_begin_sample(runtime);
	hash = exercise_mix(hash, (uint64_t)(int64_t)py_tasks_of(runtime, tid, &tasks));
	for (size_t i = 0; i < tasks.n; i++) {
		const struct py_task *task = &tasks.tasks[i];

		if (task->first_frame + task->n_frames > tasks.frames.n)
			abort();
		hash = exercise_text(exercise_mix(hash, task->is_running), task->name);
		if (task->n_frames > 0)
			hash = exercise_coroutines(hash, tasks.frames.frames + task->first_frame, task->n_frames);
	}
	for (size_t i = 0; i < tasks.n_awaiters; i++) {
		if (tasks.awaiters[i].task >= tasks.n || tasks.awaiters[i].awaiter >= tasks.n)
			abort();
		hash = exercise_mix(hash, tasks.awaiters[i].task * tasks.n + tasks.awaiters[i].awaiter);
	}
	py_tasks_done(&tasks);
	return hash;
}

static inline uint64_t exercise_running_task(struct py_runtime *runtime, pid_t tid, uint64_t hash)
{
	struct py_task_link links[PY_MAX_LINKS];
	int n;

	py_begin_sample(runtime);
	n = py_running_task(runtime, tid, links);
	hash = exercise_mix(hash, (uint64_t)(int64_t)n);
	for (int i = 0; i < n; i++)
		hash = exercise_coroutines(exercise_text(hash, links[i].name), links[i].frames, links[i].n_frames);
	return hash;
}

static inline uint64_t exercise_tasks(const struct memory_image *image, struct py_runtime *runtime)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < IMAGE_N_THREADS; i++) {
		pid_t tid = image->threads[i];

		if (tid == 0)
			continue;
		hash = exercise_all_tasks(runtime, tid, hash);
		hash = exercise_running_task(runtime, tid, hash);
		hash = exercise_mix(hash, py_waits_for_gil(runtime, tid, image->symbols.data_start));
	}
	return hash;
}

#endif
