/* SPDX-License-Identifier: MIT */
/* made_profile.h - profiles made by hand, for tests of what reads them. */
#ifndef PROBING_TESTS_MADE_PROFILE_H
#define PROBING_TESTS_MADE_PROFILE_H

#include <assert.h>
#include <stdlib.h>

#include "base/util.h"
#include "src/profile/profile.h"

struct made_profile {
	struct profile profile;
	size_t frames_allocated, stacks_allocated, totals_allocated, threads_allocated, samples_allocated;
};

#define MADE_ADD(made, array, ...)                                                                                     \
	({                                                                                                             \
		struct profile *profile_ = &(made)->profile;                                                           \
		int r_ = grow(&profile_->array, profile_->n_##array, &(made)->array##_allocated,                       \
			      sizeof *profile_->array);                                                                \
		assert(r_ == 0);                                                                                       \
		(void)r_;                                                                                              \
		profile_->array[profile_->n_##array] = (__typeof__(*profile_->array))__VA_ARGS__;                      \
		(int32_t) profile_->n_##array++;                                                                       \
	})

/* Each returns the index of its new item. */
static inline int32_t made_frame(struct made_profile *made, struct profile_frame frame)
{
	frame.inlined_into = -1;
	return MADE_ADD(made, frames, frame);
}

static inline int32_t made_stack(struct made_profile *made, int32_t parent, int32_t frame)
{
	return MADE_ADD(made, stacks, { .parent = parent, .frame = frame });
}

/* Samples of 10 ms each. */
static inline void made_total(struct made_profile *made, int32_t pid, int32_t tid, int32_t stack, uint64_t samples)
{
	MADE_ADD(made, totals,
		 { .pid = pid, .tid = tid, .stack = stack, .samples = samples, .weight = samples * 10000000 });
}

static inline void made_thread(struct made_profile *made, int32_t pid, int32_t tid, const char *name,
			       const char *process)
{
	MADE_ADD(made, threads, { .pid = pid, .tid = tid, .name = name, .process = process });
}

static inline void made_sample(struct made_profile *made, struct profile_sample sample)
{
	MADE_ADD(made, samples, sample);
}

/*
 * Samples for the existing totals and their threads: each total's samples in a row, 10 ms each, the second thread
 * beside the first. The third sample of a thread waits.
 */
static inline void made_samples(struct made_profile *made)
{
	uint64_t time_ns[8] = { 0 };

	made->profile.run = (struct profile_run){ .started_ns = 1700000000000000000,
						  .ended_ns = 1700000002000000000,
						  .pid = 100,
						  .command = "python3 train.py",
						  .mode = "wall",
						  .hz = 100 };
	for (size_t i = 0; i < made->profile.n_totals; i++) {
		const struct profile_total *total = &made->profile.totals[i];
		int32_t thread = 0;

		while (made->profile.threads[thread].tid != total->tid)
			thread++;
		for (uint64_t k = 0; k < total->samples; k++) {
			uint64_t at = time_ns[thread]++;
			bool waits = at == 2;

			made_sample(made, (struct profile_sample){ .time_ns = made->profile.run.started_ns +
									      (at + !waits) * 10000000,
								   .weight = 10000000,
								   .thread = thread,
								   .stack = total->stack,
								   .verdict = VERDICT_VERIFIED,
								   .state = waits ? STATE_SLEEP : STATE_RUNNING,
								   .gil = ANSWER_YES });
		}
	}
}

static inline void made_done(struct made_profile *made)
{
	free(made->profile.frames);
	free(made->profile.stacks);
	free(made->profile.totals);
	free(made->profile.threads);
	free(made->profile.samples);
}

/* Names for its files, as loading a recording gives them. */
static inline void made_labels(struct made_profile *made)
{
	int r = profile_label_files(&made->profile);

	assert(r == 0);
	(void)r;
}

/*
 * A small training program, with every kind of frame: Python, a builtin, native
 * code with and without a name, the kernel, two functions of the same name in
 * two modules, recursion, and samples without a stack.
 */
static inline void made_training(struct made_profile *made)
{
	enum { PID = 100, WORKER = 101 };
	static const char script[] = "/home/anna/train.py", torch[] = "/usr/lib/libtorch_cpu.so";
	int32_t module, train, walk, walk_deeper, builtin, gemm, other_gemm, unnamed, kernel;
	int32_t in_train, in_walk, in_gemm;

	module = made_frame(
		made, (struct profile_frame){
			      .kind = FRAME_PYTHON, .name = "<module>", .file = script, .line = 40, .function = 1 });
	train = made_frame(
		made,
		(struct profile_frame){
			.kind = FRAME_PYTHON, .name = "Trainer.train", .file = script, .line = 12, .function = 2 });
	walk = made_frame(made,
			  (struct profile_frame){
				  .kind = FRAME_PYTHON, .name = "walk", .file = script, .line = 21, .function = 3 });
	walk_deeper = made_frame(
		made, (struct profile_frame){
			      .kind = FRAME_PYTHON, .name = "walk", .file = script, .line = 23, .function = 3 });
	builtin = made_frame(made, (struct profile_frame){ .kind = FRAME_NATIVE,
							   .role = ROLE_BUILTIN,
							   .name = "sorted",
							   .module = "/usr/bin/python3",
							   .function = 4 });
	gemm = made_frame(made, (struct profile_frame){ .kind = FRAME_NATIVE,
							.name = "at::gemm<float>(int)",
							.module = torch,
							.file = "/src/gemm.cpp",
							.line = 7,
							.function = 5 });
	other_gemm = made_frame(made, (struct profile_frame){ .kind = FRAME_NATIVE,
							      .name = "at::gemm<float>(int)",
							      .module = "/usr/lib/libother.so",
							      .function = 6 });
	unnamed = made_frame(made, (struct profile_frame){
					   .kind = FRAME_NATIVE, .name = "libtorch_cpu.so+0x12a0", .module = torch });
	kernel = made_frame(made,
			    (struct profile_frame){ .kind = FRAME_KERNEL, .name = "do_syscall_64", .function = 7 });
	in_train = made_stack(made, made_stack(made, -1, module), train);
	in_walk = made_stack(made, made_stack(made, made_stack(made, in_train, walk_deeper), walk_deeper), walk);
	in_gemm = made_stack(made, in_train, gemm);
	made_total(made, PID, PID, in_train, 10);
	made_total(made, PID, PID, in_walk, 15);
	made_total(made, PID, PID, made_stack(made, in_walk, builtin), 5);
	made_total(made, PID, PID, in_gemm, 40);
	made_total(made, PID, PID, made_stack(made, in_gemm, unnamed), 8);
	made_total(made, PID, PID, made_stack(made, in_train, other_gemm), 2);
	made_total(made, PID, WORKER, in_gemm, 10);
	made_total(made, PID, WORKER, made_stack(made, in_gemm, kernel), 7);
	made_total(made, PID, WORKER, -1, 3);
	made_thread(made, PID, PID, "python3", "python3");
	made_thread(made, PID, WORKER, "pt_worker", "python3");
	made_labels(made);
}

#endif
