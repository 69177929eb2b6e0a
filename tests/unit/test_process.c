/* SPDX-License-Identifier: MIT */
/* test_process.c - processes by made events: forks, execs, ends, pauses, and when they are evicted. */
#include "tests/unit/pipeline_fixture.h"

static struct process *find(struct pipeline *pipeline, pid_t pid)
{
	struct process *process = processes_find(&pipeline->processes, pid);

	assert_non_null(process);
	assert_int_equal(process->pid, pid);
	return process;
}

static struct process *add(struct pipeline *pipeline, pid_t pid)
{
	struct process *process;

	assert_int_equal(processes_add(&pipeline->processes, pid, 0, &process), 0);
	return process;
}

/* A process that ended long ago and has its row written. */
static struct process *add_ended(struct pipeline *pipeline, pid_t pid)
{
	struct process *process = add(pipeline, pid);

	process_end(process, 1);
	process->is_new = false;
	return process;
}

static void a_fork_begins_as_a_copy(void **state)
{
	const struct folder *folder = *state;
	struct pipeline *pipeline = new_pipeline(folder->file);
	struct process *parent, *child;
	uint64_t forked_ns;

	take(pipeline, mapped(PARENT_PID, 0x1000, later()));
	take(pipeline, named(PARENT_PID, PARENT_PID, "first", false, later()));
	forked_ns = later();
	take(pipeline, forked(PARENT_PID, CHILD_PID, forked_ns));
	parent = find(pipeline, PARENT_PID);
	child = find(pipeline, CHILD_PID);
	assert_int_equal(child->parent_pid, PARENT_PID);
	assert_string_equal(child->name, "first");
	assert_int_equal(child->started_ns, pipeline_to_realtime(pipeline, forked_ns));
	assert_int_equal(child->program->started_ns, child->started_ns);
	assert_int_equal(child->program->forked_ns, forked_ns);
	assert_ptr_equal(child->program->parent, parent->program);
	assert_int_not_equal(child->program->id, parent->program->id);
	assert_true(child->is_new);
	assert_string_equal(address_space_find(child->space, 0x1800)->module->path, "/made/code");
	/* Later mappings of either process are its own. */
	take(pipeline, mapped(PARENT_PID, 0x5000, later()));
	take(pipeline, mapped(CHILD_PID, 0x9000, later()));
	assert_non_null(address_space_find(parent->space, 0x5800));
	assert_null(address_space_find(child->space, 0x5800));
	assert_null(address_space_find(parent->space, 0x9800));
	pipeline_free(pipeline);
}

static void a_thread_is_no_process(void **state)
{
	const struct folder *folder = *state;
	struct pipeline *pipeline = new_pipeline(folder->file);

	take(pipeline, named(PARENT_PID, PARENT_PID, "first", false, later()));
	take(pipeline, (struct capture_event){ .type = CAPTURE_FORK,
					       .time_ns = later(),
					       .pid = PARENT_PID,
					       .tid = OTHER_PID,
					       .fork = { PARENT_PID, PARENT_PID } });
	assert_int_equal(pipeline->processes.n, 1);
	assert_null(processes_find(&pipeline->processes, OTHER_PID));
	pipeline_free(pipeline);
}

/* A child is called as the thread that made it. */
static void a_child_of_a_thread_has_its_name(void **state)
{
	const struct folder *folder = *state;
	struct pipeline *pipeline = new_pipeline(folder->file);
	struct capture_event fork_event = forked(PARENT_PID, CHILD_PID, later());
	uint32_t thread;

	take(pipeline, named(PARENT_PID, PARENT_PID, "first", false, later()));
	assert_int_equal(pipeline_know_thread(pipeline, PARENT_PID, OTHER_PID, 1, &thread), 0);
	take(pipeline, named(PARENT_PID, OTHER_PID, "maker", false, later()));
	pipeline_name_threads(pipeline, later());
	fork_event.fork.parent_tid = OTHER_PID;
	take(pipeline, fork_event);
	assert_string_equal(find(pipeline, CHILD_PID)->name, "maker");
	assert_string_equal(find(pipeline, PARENT_PID)->name, "first");
	pipeline_free(pipeline);
}

/* Generated code belongs to a program, which lives as long as a process or a fork of it does. */
static void an_exec_is_another_program(void **state)
{
	const struct folder *folder = *state;
	struct pipeline *pipeline = new_pipeline(folder->file);
	struct processes *processes = &pipeline->processes;
	struct process *child, *grandchild;
	struct program *before;
	uint64_t executed_ns;

	take(pipeline, mapped(PARENT_PID, 0x1000, later()));
	take(pipeline, forked(PARENT_PID, CHILD_PID, later()));
	take(pipeline, forked(CHILD_PID, GRANDCHILD_PID, later()));
	assert_int_equal(processes->n_programs, 3);
	child = find(pipeline, CHILD_PID);
	grandchild = find(pipeline, GRANDCHILD_PID);
	before = child->program;
	child->left_ns = 5;
	child->next_load_ns = child->load_period_ns = 5;
	child->is_new = false;
	snprintf(child->python, sizeof child->python, "3.11.7");
	executed_ns = later();
	take(pipeline, named(CHILD_PID, CHILD_PID, "second", true, executed_ns));
	assert_ptr_equal(grandchild->program->parent, before);
	assert_int_equal(before->n_users, 1);
	assert_int_not_equal(child->program->id, before->id);
	assert_null(child->program->parent);
	assert_int_equal(child->program->started_ns, pipeline_to_realtime(pipeline, executed_ns));
	assert_string_equal(child->name, "second");
	assert_string_equal(child->python, "");
	assert_int_equal(child->python_error, -ENOENT);
	assert_true(child->is_new);
	assert_int_equal(child->left_ns, 0); /* another thread than the main one may have done it */
	assert_int_equal(child->next_load_ns, 0);
	assert_null(address_space_nth(child->space, 0));
	assert_non_null(address_space_nth(grandchild->space, 0));
	assert_int_equal(processes->n_programs, 4);
	/* The last user takes its program along, and that the one it was forked from. */
	take(pipeline, named(GRANDCHILD_PID, GRANDCHILD_PID, "third", true, later()));
	assert_int_equal(processes->n_programs, 3);
	for (size_t i = 0; i < processes->n_programs; i++)
		assert_int_equal(processes->programs[i]->index, i);
	pipeline_free(pipeline);
}

/* /proc was read after these events and includes their effect. */
static void events_before_the_maps_were_read_change_nothing(void **state)
{
	const struct folder *folder = *state;
	struct pipeline *pipeline = new_pipeline(folder->file);
	struct process *process;
	uint32_t program;

	take(pipeline, named(PARENT_PID, PARENT_PID, "now", false, later()));
	process = find(pipeline, PARENT_PID);
	program = process->program->id;
	assert_int_not_equal(process->loaded_ns, 0);
	take(pipeline, mapped(PARENT_PID, 0x1000, process->loaded_ns - 1));
	take(pipeline, named(PARENT_PID, PARENT_PID, "before", true, process->loaded_ns - 1));
	assert_null(address_space_nth(process->space, 0));
	assert_string_equal(process->name, "now");
	assert_int_equal(process->program->id, program);
	take(pipeline, mapped(PARENT_PID, 0x1000, process->loaded_ns));
	assert_non_null(address_space_nth(process->space, 0));
	pipeline_free(pipeline);
}

static void an_interpreter_outlives_its_program(void **state)
{
	static struct memory_image image;
	const struct folder *folder = *state;
	struct pipeline *pipeline = new_pipeline(folder->file);
	struct processes *processes = &pipeline->processes;
	struct process *process = add(pipeline, PARENT_PID);

	process->runtime = runtime_of_image("3.11.7", &image);
	assert_int_equal(process_exec(processes, process), 0);
	assert_null(process->runtime);
	assert_int_equal(processes->n_retired, 1);
	/* Batch 7 may point to its code objects: it stays until that batch is written. */
	assert_int_equal(processes_forget(processes, 7, 6), 0);
	assert_int_equal(processes->n_retired, 1);
	assert_int_equal(processes_forget(processes, 9, 6), 0);
	assert_int_equal(processes->n_retired, 1);
	assert_int_equal(processes_forget(processes, 9, 7), 0);
	assert_int_equal(processes->n_retired, 0);
	pipeline_free(pipeline);
}

static void the_main_threads_end_is_the_process_end(void **state)
{
	const struct folder *folder = *state;
	struct pipeline *pipeline = new_pipeline(folder->file);
	struct process *process = add(pipeline, PARENT_PID);
	uint64_t first_ns = later();

	take(pipeline, ended(PARENT_PID, OTHER_PID, first_ns));
	assert_int_equal(process->ended_ns, 0);
	assert_true(pipeline_knows(pipeline, PARENT_PID));
	take(pipeline, ended(PARENT_PID, PARENT_PID, first_ns + 1));
	assert_int_equal(process->ended_ns, pipeline_to_realtime(pipeline, first_ns + 1));
	assert_false(pipeline_knows(pipeline, PARENT_PID));
	take(pipeline, ended(PARENT_PID, OTHER_PID, first_ns + 2));
	assert_int_equal(process->ended_ns, pipeline_to_realtime(pipeline, first_ns + 1));
	pipeline_free(pipeline);
}

/* Its other threads continue, and the last one ends the process: /proc decides. */
static void a_process_without_a_main_thread_ends_with_its_last(void **state)
{
	const struct folder *folder = *state;
	struct pipeline *pipeline = new_pipeline(folder->file);
	pid_t pid = start_child();
	struct process *process = add(pipeline, pid), *untold;
	pid_t other = start_child();
	uint64_t first_ns = later();

	untold = add(pipeline, other);
	take(pipeline, ended(pid, pid, first_ns));
	assert_int_equal(process->ended_ns, 0);
	assert_false(pipeline_knows(pipeline, pid));
	take(pipeline, ended(pid, OTHER_PID, first_ns + 5));
	assert_int_equal(process->ended_ns, 0);
	assert_int_equal(process->left_ns, pipeline_to_realtime(pipeline, first_ns + 5));
	processes_seek_ended(&pipeline->processes);
	assert_int_equal(process->ended_ns, 0);
	assert_int_equal(untold->ended_ns, 0);
	end_child(pid);
	end_child(other);
	processes_seek_ended(&pipeline->processes);
	assert_int_equal(process->ended_ns, process->left_ns);
	assert_true(untold->ended_ns > process->started_ns); /* no record had the time */
	pipeline_free(pipeline);
}

static void a_number_that_comes_again_is_the_newer_process(void **state)
{
	const struct folder *folder = *state;
	struct pipeline *pipeline = new_pipeline(folder->file);
	struct process *older = add(pipeline, CHILD_PID), *newer, *newest;

	newer = add(pipeline, CHILD_PID);
	assert_int_equal(older->ended_ns, newer->started_ns);
	assert_ptr_equal(find(pipeline, CHILD_PID), newer);
	newer->left_ns = 77; /* its main thread has exited */
	newest = add(pipeline, CHILD_PID);
	assert_int_equal(newer->ended_ns, 77);
	older->is_new = newer->is_new = false;
	assert_int_equal(processes_forget(&pipeline->processes, 1, 1), 0);
	assert_int_equal(pipeline->processes.n, 1);
	assert_ptr_equal(find(pipeline, CHILD_PID), newest);
	pipeline_free(pipeline);
}

static void who_has_ended_stays_until_its_batch_is_written(void **state)
{
	const struct folder *folder = *state;
	struct pipeline *pipeline = new_pipeline(folder->file);
	struct processes *processes = &pipeline->processes;
	struct process *unwritten;

	add_ended(pipeline, CHILD_PID);
	add(pipeline, getpid());
	unwritten = add(pipeline, OTHER_PID);
	process_end(unwritten, 1);
	assert_int_equal(processes->n_programs, 3);
	assert_int_equal(processes_forget(processes, 5, 4), 0);
	assert_int_equal(find(pipeline, CHILD_PID)->last_batch, 5);
	assert_int_equal(processes_forget(processes, 6, 4), 0);
	assert_int_equal(find(pipeline, CHILD_PID)->last_batch, 5);
	assert_int_equal(processes_forget(processes, 6, 5), 0);
	assert_null(processes_find(processes, CHILD_PID));
	/* Who runs stays, and who has a row to be written. */
	assert_int_equal(processes->n, 2);
	assert_int_equal(processes->n_programs, 2);
	find(pipeline, getpid());
	find(pipeline, OTHER_PID);
	unwritten->is_new = false;
	assert_int_equal(processes_forget(processes, 7, 7), 0);
	assert_int_equal(processes->n, 1);
	find(pipeline, getpid());
	pipeline_free(pipeline);
}

/* It is in /proc still: samples of it may come. */
static void who_is_still_there_is_not_evicted(void **state)
{
	const struct folder *folder = *state;
	struct pipeline *pipeline = new_pipeline(folder->file);

	add_ended(pipeline, getpid());
	assert_int_equal(processes_forget(&pipeline->processes, 5, 5), 0);
	assert_int_equal(find(pipeline, getpid())->last_batch, 0);
	process_end(find(pipeline, getpid()), 2); /* it has ended once */
	assert_int_equal(find(pipeline, getpid())->ended_ns, 1);
	assert_false(find(pipeline, getpid())->is_new);
	pipeline_free(pipeline);
}

static void ends_that_nobody_told_are_sought_now_and_then(void **state)
{
	const struct folder *folder = *state;
	struct pipeline *pipeline = new_pipeline(folder->file);
	struct process *process = add(pipeline, PARENT_PID);

	assert_int_equal(processes_forget(&pipeline->processes, 63, 0), 0);
	assert_int_equal(process->ended_ns, 0);
	assert_int_equal(processes_forget(&pipeline->processes, 64, 0), 0);
	assert_int_not_equal(process->ended_ns, 0);
	pipeline_free(pipeline);
}

static void what_happened_in_a_pause_is_found(void **state)
{
	const struct folder *folder = *state;
	struct pipeline *pipeline = new_pipeline(folder->file);
	struct processes *processes = &pipeline->processes;
	struct process *own = add(pipeline, getpid()), *gone = add(pipeline, PARENT_PID);
	uint32_t program = own->program->id;

	processes_note_images(processes);
	assert_int_not_equal(own->image, 0);
	assert_int_equal(process_follow_pause(processes, own), 0);
	assert_int_equal(own->program->id, program);
	own->image++; /* as if it had been another program */
	assert_int_equal(process_follow_pause(processes, own), 0);
	assert_int_not_equal(own->program->id, program);
	program = own->program->id;
	own->image = 0; /* it could not be seen */
	assert_int_equal(process_follow_pause(processes, own), 0);
	assert_int_equal(own->program->id, program);
	assert_int_equal(own->ended_ns, 0);
	assert_int_equal(process_follow_pause(processes, gone), 0);
	assert_int_not_equal(gone->ended_ns, 0);
	pipeline_free(pipeline);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FOLDER_TEST(a_fork_begins_as_a_copy),
		FOLDER_TEST(a_thread_is_no_process),
		FOLDER_TEST(a_child_of_a_thread_has_its_name),
		FOLDER_TEST(an_exec_is_another_program),
		FOLDER_TEST(events_before_the_maps_were_read_change_nothing),
		FOLDER_TEST(an_interpreter_outlives_its_program),
		FOLDER_TEST(the_main_threads_end_is_the_process_end),
		FOLDER_TEST(a_process_without_a_main_thread_ends_with_its_last),
		FOLDER_TEST(a_number_that_comes_again_is_the_newer_process),
		FOLDER_TEST(who_has_ended_stays_until_its_batch_is_written),
		FOLDER_TEST(who_is_still_there_is_not_evicted),
		FOLDER_TEST(ends_that_nobody_told_are_sought_now_and_then),
		FOLDER_TEST(what_happened_in_a_pause_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
