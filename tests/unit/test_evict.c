/* SPDX-License-Identifier: MIT */
/* test_evict.c - ended threads and processes leave the pipeline, and a tree that is too large is replaced by an empty one. */
#include "tests/unit/pipeline_fixture.h"

enum { N_THREADS = 40 };

static struct known_thread *know(struct pipeline *pipeline, pid_t pid, pid_t tid)
{
	uint32_t thread;

	assert_int_equal(pipeline_know_thread(pipeline, pid, tid, 1, &thread), 0);
	pipeline->threads[thread].is_new = false;
	return &pipeline->threads[thread];
}

/* Every third has ended; the row of one of these is still to be written. */
static void ended_threads_go_and_the_others_keep_their_numbers(void **state)
{
	const struct folder *folder = *state;
	struct pipeline *pipeline = new_pipeline(folder->file);
	pid_t unwritten = OTHER_PID + 3, tid;

	for (tid = OTHER_PID; tid < OTHER_PID + N_THREADS; tid++) {
		struct known_thread *thread = know(pipeline, getpid(), tid);

		thread->ended_ns = (tid - OTHER_PID) % 3 == 0;
		thread->is_new = tid == unwritten;
	}
	assert_int_equal(pipeline_evict_ended(pipeline), 0);
	assert_int_equal(pipeline->n_threads, N_THREADS - (N_THREADS + 2) / 3 + 1);
	for (tid = OTHER_PID; tid < OTHER_PID + N_THREADS; tid++) {
		const struct known_thread *thread = pipeline_find_thread(pipeline, tid);

		assert_int_equal(thread != NULL, (tid - OTHER_PID) % 3 != 0 || tid == unwritten);
		assert_true(!thread || thread->tid == tid);
	}
	pipeline->threads[0].is_new = pipeline_find_thread(pipeline, unwritten)->is_new = false;
	assert_int_equal(pipeline_evict_ended(pipeline), 0);
	assert_null(pipeline_find_thread(pipeline, unwritten));
	pipeline_free(pipeline);
}

/* The newer of two with one number is meant, also after the older has gone. */
static void a_number_that_came_again_stays_the_newer_ones(void **state)
{
	const struct folder *folder = *state;
	struct pipeline *pipeline = new_pipeline(folder->file);

	know(pipeline, PARENT_PID, OTHER_PID);
	know(pipeline, PARENT_PID, OTHER_PID + 1)->ended_ns = 1;
	know(pipeline, CHILD_PID, OTHER_PID);
	assert_int_equal(pipeline_evict_ended(pipeline), 0);
	assert_int_equal(pipeline->n_threads, 2);
	assert_int_equal(pipeline_find_thread(pipeline, OTHER_PID)->pid, CHILD_PID);
	pipeline_free(pipeline);
}

/* Their exit records were lost. */
static void threads_end_with_their_process(void **state)
{
	const struct folder *folder = *state;
	struct pipeline *pipeline = new_pipeline(folder->file);
	struct process *process, *other;

	assert_int_equal(processes_add(&pipeline->processes, PARENT_PID, 0, &process), 0);
	assert_int_equal(processes_add(&pipeline->processes, getpid(), 0, &other), 0);
	know(pipeline, PARENT_PID, PARENT_PID);
	know(pipeline, getpid(), getpid());
	process_end(process, 77);
	assert_int_equal(pipeline_evict_ended(pipeline), 0);
	assert_int_equal(pipeline_find_thread(pipeline, PARENT_PID)->ended_ns, 0); /* its last samples may come */
	process->last_batch = 1;
	process->is_new = false;
	pipeline->n_batches = 1; /* which is not written yet */
	assert_int_equal(pipeline_evict_ended(pipeline), 0);
	assert_int_equal(pipeline_find_thread(pipeline, PARENT_PID)->ended_ns, 77);
	assert_true(pipeline_find_thread(pipeline, PARENT_PID)->is_new);
	assert_int_equal(pipeline_find_thread(pipeline, getpid())->ended_ns, 0);
	assert_non_null(processes_find(&pipeline->processes, PARENT_PID));
	pipeline->n_batches = 0;
	pipeline_free(pipeline);
}

/* /proc shows its end before the recorder reads its last samples. Their batch points to what the process owns. */
static void a_process_stays_for_samples_read_after_its_end(void **state)
{
	const struct folder *folder = *state;
	struct pipeline *pipeline = new_pipeline(folder->file);
	struct process *process;

	assert_int_equal(pipeline_know_process(pipeline, PARENT_PID, &process), 0);
	process_end(process, 77);
	process->is_new = false;
	pipeline->n_batches = 1; /* which is not written yet */
	assert_int_equal(pipeline_evict_ended(pipeline), 0);
	assert_int_equal(process->last_batch, 1);
	assert_int_equal(pipeline_know_process(pipeline, PARENT_PID, &process), 0); /* a sample */
	pipeline->n_batches = 2;
	assert_int_equal(pipeline_evict_ended(pipeline), 0);
	assert_int_equal(process->last_batch, 2);
	pipeline->n_batches = 0;
	pipeline_free(pipeline);
}

static uint32_t intern_kernel_stack(struct pipeline *pipeline)
{
	struct frame frames[] = { { .kind = FRAME_KERNEL, .kernel.ip = 0xffffffff81000010 },
				  { .kind = FRAME_KERNEL, .kernel.ip = 0xffffffff81000020 } };
	const struct stack stack = { .frames = frames, .n_frames = N_ELEMENTS(frames), .end = STACK_COMPLETE };
	const struct stack_origin origin = { .program = 1, .time_ns = 1 };
	uint32_t id;

	assert_int_equal(intern_stack(&pipeline->intern, pipeline->batch, &stack, &origin, &id), 0);
	return id;
}

static void a_large_tree_begins_anew(void **state)
{
	const struct folder *folder = *state;
	struct pipeline *pipeline = new_pipeline(folder->file);
	uint32_t first = intern_kernel_stack(pipeline), n_frames = pipeline->intern.n_frames;

	assert_int_equal(intern_kernel_stack(pipeline), first);
	assert_int_equal(pipeline_renew_tree(pipeline), 0); /* it may be as large as it likes */
	assert_int_equal(intern_kernel_stack(pipeline), first);
	pipeline->most_tree_bytes = intern_bytes(&pipeline->intern);
	assert_int_equal(pipeline_renew_tree(pipeline), 0); /* it just fits */
	assert_int_equal(intern_kernel_stack(pipeline), first);
	assert_int_equal(pipeline->batch->old_stacks, 0);
	pipeline->most_tree_bytes--;
	assert_int_equal(pipeline_renew_tree(pipeline), 0);
	/* The writing thread gets the range of ids of the previous tree; none is reused. */
	assert_int_equal(pipeline->batch->old_stacks, first);
	assert_int_equal(pipeline->batch->old_frames, n_frames);
	assert_true(intern_kernel_stack(pipeline) > first);
	pipeline_free(pipeline);
}

/* The limit of a tree in memory follows from the limit of the file. */
static void the_size_of_a_tree_follows_the_limits(void **state)
{
	static const struct {
		struct store_limits limits;
		size_t most_bytes;
	} cases[] = {
		{ { 0 }, 0 },
		{ { .keep_ns = 1 }, 64 << 20 },
		{ { .max_bytes = 1 << 30 }, 64 << 20 },
		{ { .max_bytes = 32 << 20 }, 16 << 20 },
		{ { .max_bytes = 1 << 10 }, 256 << 10 },
	};
	const struct folder *folder = *state;

	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		const struct pipeline_options options = { .limits = cases[i].limits };
		struct pipeline *pipeline = pipeline_with(folder->file, &options);

		assert_int_equal(pipeline->most_tree_bytes, cases[i].most_bytes);
		pipeline_free(pipeline);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FOLDER_TEST(ended_threads_go_and_the_others_keep_their_numbers),
		FOLDER_TEST(a_number_that_came_again_stays_the_newer_ones),
		FOLDER_TEST(threads_end_with_their_process),
		FOLDER_TEST(a_process_stays_for_samples_read_after_its_end),
		FOLDER_TEST(a_large_tree_begins_anew),
		FOLDER_TEST(the_size_of_a_tree_follows_the_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
