/* SPDX-License-Identifier: MIT */
/* test_known.c - threads of a pipeline: whose a number is, what they are called, and which rows are written. */
#include "tests/unit/pipeline_fixture.h"

#include <sys/prctl.h>

enum { THREAD_TID = 5000077 };
#define SOON_NS UINT64_C(20000000)

static struct known_thread *know(struct pipeline *pipeline, pid_t pid, pid_t tid, uint64_t time_ns)
{
	uint32_t thread;

	assert_int_equal(pipeline_know_thread(pipeline, pid, tid, time_ns, &thread), 0);
	assert_true(thread < pipeline->n_threads);
	assert_int_equal(pipeline->threads[thread].pid, pid);
	assert_int_equal(pipeline->threads[thread].tid, tid);
	return &pipeline->threads[thread];
}

static void a_thread_is_known_once(void **state)
{
	const struct folder *folder = *state;
	struct pipeline *pipeline = new_pipeline(folder->file);
	struct known_thread *thread = know(pipeline, PARENT_PID, THREAD_TID, 1000);

	assert_int_equal(thread->started_ns, pipeline_to_realtime(pipeline, 1000));
	assert_true(thread->is_new);
	know(pipeline, PARENT_PID, THREAD_TID, 2000);
	assert_int_equal(pipeline->n_threads, 1);
	assert_int_equal(pipeline_find_thread(pipeline, THREAD_TID)->started_ns, pipeline_to_realtime(pipeline, 1000));
	assert_null(pipeline_find_thread(pipeline, THREAD_TID + 1));
	pipeline_free(pipeline);
}

static void a_number_is_the_last_processs(void **state)
{
	const struct folder *folder = *state;
	struct pipeline *pipeline = new_pipeline(folder->file);

	know(pipeline, PARENT_PID, THREAD_TID, 1);
	know(pipeline, CHILD_PID, THREAD_TID, 2);
	assert_int_equal(pipeline->n_threads, 2);
	assert_int_equal(pipeline_find_thread(pipeline, THREAD_TID)->pid, CHILD_PID);
	know(pipeline, CHILD_PID, THREAD_TID, 3);
	assert_int_equal(pipeline->n_threads, 2);
	pipeline_free(pipeline);
}

/* Threads without a number are one thread per process, and no number finds them. */
static void threads_at_their_end_are_apart_by_process(void **state)
{
	const struct folder *folder = *state;
	struct pipeline *pipeline = new_pipeline(folder->file);

	assert_string_equal(know(pipeline, PARENT_PID, 0, 1)->name, "[ended]");
	know(pipeline, CHILD_PID, 0, 1);
	know(pipeline, PARENT_PID, 0, 2);
	assert_int_equal(pipeline->n_threads, 2);
	assert_null(pipeline_find_thread(pipeline, PARENT_PID));
	pipeline_free(pipeline);
}

static void the_kernel_says_what_they_are_called(void **state)
{
	const struct folder *folder = *state;
	struct pipeline *pipeline = new_pipeline(folder->file);
	struct process *process;

	prctl(PR_SET_NAME, "known-test");
	assert_string_equal(know(pipeline, getpid(), gettid(), 1)->name, "known-test");
	/* One that is gone is called as its process was, if it is the main one. */
	assert_int_equal(processes_add(&pipeline->processes, CHILD_PID, 0, &process), 0);
	assert_int_equal(process_rename(process, "worker"), 0);
	assert_string_equal(know(pipeline, CHILD_PID, CHILD_PID, 1)->name, "worker");
	assert_string_equal(know(pipeline, CHILD_PID, THREAD_TID, 1)->name, "");
	pipeline_free(pipeline);
}

/* After 20 ms, 40 ms, ... 41 s; all threads at the same moments, which are multiples of that. */
static void names_are_asked_for_ever_less_often(void **state)
{
	const struct folder *folder = *state;
	struct pipeline *pipeline = new_pipeline(folder->file);
	struct known_thread *thread = know(pipeline, PARENT_PID, THREAD_TID, SOON_NS * 3 + 1);
	uint64_t wait_ns = SOON_NS;

	assert_int_equal(thread->next_name_ns, SOON_NS * 4);
	for (int i = 0; i < 14; i++) {
		uint64_t due_ns = thread->next_name_ns;

		assert_int_equal(thread->name_wait_ns, wait_ns);
		assert_int_equal(due_ns % wait_ns, 0);
		pipeline_name_threads(pipeline, due_ns - 1);
		assert_int_equal(thread->next_name_ns, due_ns);
		pipeline_name_threads(pipeline, due_ns);
		assert_true(thread->next_name_ns > due_ns);
		wait_ns = MIN(wait_ns * 2, SOON_NS << 11);
	}
	assert_int_equal(wait_ns, SOON_NS << 11);
	thread->ended_ns = 1;
	wait_ns = thread->next_name_ns;
	pipeline_name_threads(pipeline, wait_ns + SOON_NS);
	assert_int_equal(thread->next_name_ns, wait_ns); /* its name cannot be read any more */
	pipeline_free(pipeline);
}

static void a_thread_that_is_renamed_has_another_row(void **state)
{
	const struct folder *folder = *state;
	struct pipeline *pipeline = new_pipeline(folder->file);
	struct known_thread *thread = know(pipeline, PARENT_PID, THREAD_TID, monotonic_ns());

	thread->is_new = false;
	take(pipeline, named(PARENT_PID, THREAD_TID, "loader", false, later()));
	assert_int_equal(thread->next_name_ns, 0);
	assert_string_equal(thread->name, ""); /* Python is asked first, with all others */
	pipeline_name_threads(pipeline, monotonic_ns());
	assert_string_equal(thread->name, "loader");
	assert_true(thread->is_new);
	/* A thread has no say in what its process is called; the main one has. */
	assert_null(processes_find(&pipeline->processes, PARENT_PID)->name);
	take(pipeline, named(PARENT_PID, PARENT_PID, "server", false, later()));
	assert_string_equal(processes_find(&pipeline->processes, PARENT_PID)->name, "server");
	/* An exec invalidates the previous program's name, even if Python set it. */
	thread->has_python_name = true;
	thread->is_new = false;
	take(pipeline, named(PARENT_PID, THREAD_TID, "second", true, later()));
	assert_string_equal(thread->name, "second");
	assert_false(thread->has_python_name);
	assert_true(thread->is_new);
	pipeline_free(pipeline);
}

/* As fixtures/images/3.11.7.truth has them. */
static void python_says_what_they_are_called(void **state)
{
	static struct memory_image image;
	const struct folder *folder = *state;
	struct pipeline *pipeline = new_pipeline(folder->file);
	struct known_thread *thread;
	struct process *process;

	assert_int_equal(processes_add(&pipeline->processes, PARENT_PID, 0, &process), 0);
	process->runtime = runtime_of_image("3.11.7", &image);
	thread = know(pipeline, PARENT_PID, 15310, 1);
	assert_string_equal(thread->name, "callback");
	assert_true(thread->has_python_name);
	assert_string_equal(know(pipeline, PARENT_PID, 15082, 1)->name, "MainThread");
	assert_string_equal(know(pipeline, PARENT_PID, 0, 1)->name, "[ended]");
	/* What Python is called stays where it cannot be read for now, as at the thread's end. */
	thread = pipeline_find_thread(pipeline, 15310);
	py_runtime_free(TAKE(process->runtime));
	thread->is_new = false;
	pipeline_name_thread(pipeline, process, thread, SOON_NS * 1000);
	assert_string_equal(thread->name, "callback");
	assert_false(thread->is_new);
	pipeline_free(pipeline);
}

static void fork_from(struct pipeline *pipeline, pid_t parent, pid_t parent_tid, pid_t child)
{
	struct capture_event event = forked(parent, child, later());

	event.fork.parent_tid = parent_tid;
	take(pipeline, event);
}

/* A forked process is called as the thread that forked it, before it can be read; also over several generations. */
static void children_are_called_as_their_parents_thread(void **state)
{
	static struct memory_image image;
	const struct folder *folder = *state;
	struct pipeline *pipeline = new_pipeline(folder->file);
	struct known_thread *thread;
	struct process *process;

	assert_int_equal(processes_add(&pipeline->processes, PARENT_PID, 0, &process), 0);
	process->runtime = runtime_of_image("3.11.7", &image);
	know(pipeline, PARENT_PID, 15310, 1);
	fork_from(pipeline, PARENT_PID, 15310, CHILD_PID);
	fork_from(pipeline, CHILD_PID, CHILD_PID, GRANDCHILD_PID); /* of a thread without a sample */
	for (pid_t pid = CHILD_PID; pid <= GRANDCHILD_PID; pid++) {
		thread = know(pipeline, pid, pid, monotonic_ns());
		assert_string_equal(thread->name, "callback");
		assert_true(thread->has_python_name);
		assert_string_equal(know(pipeline, pid, THREAD_TID + pid, monotonic_ns())->name, "");
	}
	fork_from(pipeline, GRANDCHILD_PID, GRANDCHILD_PID, OTHER_PID);
	take(pipeline, named(OTHER_PID, OTHER_PID, "other", false, later()));
	assert_string_equal(know(pipeline, OTHER_PID, OTHER_PID, monotonic_ns())->name, "other");
	pipeline_free(pipeline);
}

/* However many processes there are, reading their names takes a fiftieth of the time. */
static void reads_of_names_are_limited_together(void **state)
{
	const uint64_t second = 1000000000, minute = 60 * second;
	struct thread_names names = { 0 };

	(void)state;
	assert_true(thread_names_may_read(&names, minute));
	names.allowance_ns -= 60000000; /* a read of many names */
	assert_false(thread_names_may_read(&names, minute));
	assert_false(thread_names_may_read(&names, minute - second)); /* times need not be in order */
	assert_false(thread_names_may_read(&names, minute + second / 4));
	assert_true(thread_names_may_read(&names, minute + second));
	assert_true(thread_names_may_read(&names, 60 * minute));
	names.allowance_ns -= 60000000; /* time is not saved up */
	assert_false(thread_names_may_read(&names, 60 * minute));
	names.is_unlimited = true;
	assert_true(thread_names_may_read(&names, 60 * minute));
	thread_names_done(&names);
}

static void rows_are_of_what_has_changed(void **state)
{
	const struct folder *folder = *state;
	struct pipeline *pipeline = new_pipeline(folder->file);
	const struct batch *batch = pipeline->batch;
	struct process *process;
	uint64_t time_ns;

	take(pipeline, named(PARENT_PID, PARENT_PID, "server", false, later()));
	know(pipeline, PARENT_PID, THREAD_TID, 1);
	know(pipeline, PARENT_PID, PARENT_PID, 2);
	assert_int_equal(pipeline_put_changed(pipeline), 0);
	assert_int_equal(batch->n_processes, 1);
	assert_string_equal(batch->processes[0].name, "server");
	assert_null(batch->processes[0].python);
	assert_int_equal(batch->n_threads, 2);
	assert_int_equal(batch->threads[0].row.tid, THREAD_TID);
	assert_string_equal(batch->threads[1].name, "server");
	assert_int_equal(pipeline_put_changed(pipeline), 0);
	assert_int_equal(batch->n_processes, 1);
	assert_int_equal(batch->n_threads, 2);
	time_ns = later();
	take(pipeline, ended(PARENT_PID, THREAD_TID, time_ns));
	assert_int_equal(pipeline_put_changed(pipeline), 0);
	assert_int_equal(batch->n_processes, 1);
	assert_int_equal(batch->n_threads, 3);
	assert_int_equal(batch->threads[2].row.tid, THREAD_TID);
	assert_int_equal(batch->threads[2].row.started_ns, batch->threads[0].row.started_ns);
	assert_int_equal(batch->threads[2].row.ended_ns, pipeline_to_realtime(pipeline, time_ns));
	/* The last words of a process that is gone are kept. */
	process = processes_find(&pipeline->processes, PARENT_PID);
	process_end(process, 5);
	assert_int_equal(pipeline_put_changed(pipeline), 0);
	assert_int_equal(batch->n_processes, 2);
	assert_string_equal(batch->processes[1].name, "server");
	assert_int_equal(batch->processes[1].row.ended_ns, 5);
	pipeline_free(pipeline);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FOLDER_TEST(a_thread_is_known_once),
		FOLDER_TEST(a_number_is_the_last_processs),
		FOLDER_TEST(threads_at_their_end_are_apart_by_process),
		FOLDER_TEST(the_kernel_says_what_they_are_called),
		FOLDER_TEST(names_are_asked_for_ever_less_often),
		FOLDER_TEST(a_thread_that_is_renamed_has_another_row),
		FOLDER_TEST(python_says_what_they_are_called),
		FOLDER_TEST(children_are_called_as_their_parents_thread),
		cmocka_unit_test(reads_of_names_are_limited_together),
		FOLDER_TEST(rows_are_of_what_has_changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
