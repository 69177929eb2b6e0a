/* SPDX-License-Identifier: MIT */
/* print_json.c - stacks as one JSON object.
 *
 * Names are foreign: invalid UTF-8 becomes U+FFFD. Unknown values
 * are null.
 */
#include "base/json.h"
#include "base/util.h"
#include "src/backtrace/print.h"

static void put_answer(struct json *json, const char *key, enum py_answer answer)
{
	to_json_key(json, key);
	if (answer == PY_UNKNOWN)
		to_json_null(json);
	else
		to_json_bool(json, answer == PY_YES);
}

static void put_locals(struct json *json, const struct py_locals *locals)
{
	to_json_put_array(json, "locals");
	for (size_t i = 0; i < locals->n; i++) {
		to_json_object(json);
		to_json_put_string(json, "name", locals->locals[i].name);
		to_json_put_string(json, "value", locals->locals[i].value);
		to_json_put_string(json, "type", locals->locals[i].type);
		to_json_put_integer(json, "object", (int64_t)locals->locals[i].object);
		to_json_object_end(json);
	}
	to_json_array_end(json);
	to_json_put_bool(json, "locals_cut", locals->is_cut);
}

static void put_frame(struct json *json, const struct backtrace_frame *frame)
{
	to_json_object(json);
	to_json_put_string(json, "kind", frame->is_builtin ? "builtin" : frame_kind_name(frame->kind));
	to_json_put_string(json, "function", frame->name);
	to_json_put_string(json, "file", frame->file);
	to_json_put_known(json, "line", frame->line, frame->line > 0);
	to_json_put_string(json, "module", frame->module);
	if (frame->locals)
		put_locals(json, frame->locals);
	to_json_object_end(json);
}

static void put_frames(struct json *json, const struct backtrace_frame *frames, size_t n)
{
	to_json_put_array(json, "frames");
	for (size_t i = 0; i < n; i++)
		put_frame(json, &frames[i]);
	to_json_array_end(json);
}

static void put_task(struct json *json, const struct backtrace_task *task)
{
	to_json_object(json);
	to_json_put_text(json, "name", task->name);
	to_json_put_bool(json, "running", task->is_running);
	to_json_put_array(json, "awaited_by");
	for (size_t i = 0; i < task->n_awaiters; i++)
		to_json_integer(json, (int64_t)task->awaiters[i]);
	to_json_array_end(json);
	put_frames(json, task->frames, task->n_frames);
	to_json_object_end(json);
}

static void put_tasks(struct json *json, const struct backtrace_thread *thread)
{
	if (!thread->has_tasks)
		return;
	to_json_put_array(json, "tasks");
	for (size_t i = 0; i < thread->n_tasks; i++)
		put_task(json, &thread->tasks[i]);
	to_json_array_end(json);
}

static void put_wait(struct json *json, const struct backtrace_wait *wait)
{
	if (!wait->call) {
		to_json_key(json, "wait");
		to_json_null(json);
		return;
	}
	to_json_key(json, "wait");
	to_json_object(json);
	to_json_put_string(json, "call", wait->call);
	to_json_put_array(json, "descriptors");
	for (size_t i = 0; i < wait->n_descriptors; i++) {
		to_json_object(json);
		to_json_put_integer(json, "descriptor", wait->descriptors[i].number);
		to_json_put_string(json, "target", wait->descriptors[i].what);
		to_json_object_end(json);
	}
	to_json_array_end(json);
	to_json_put_integer(json, "more_descriptors", (int64_t)wait->n_more);
	to_json_put_string(json, "lock", print_lock(wait->lock));
	to_json_put_known(json, "lock_address", (int64_t)wait->lock_address, wait->lock_address != 0);
	to_json_put_known(json, "holder", wait->holder, wait->holder != 0);
	to_json_put_known(json, "depth", (int64_t)wait->depth, wait->lock == LOCK_RECURSIVE);
	to_json_put_known(json, "child", wait->child, wait->child > 0);
	to_json_object_end(json);
}

static void put_thread(struct json *json, const struct backtrace_thread *thread)
{
	const char state[2] = { thread->state, '\0' };
	bool was_stopped = thread->stop == STOP_DONE, was_held = was_stopped || thread->stop == STOP_DUMPED;

	to_json_object(json);
	to_json_put_integer(json, "tid", thread->tid);
	to_json_put_string(json, "name", thread->name);
	to_json_put_string(json, "python_name", thread->python_name);
	to_json_put_string(json, "state", thread->stop == STOP_DUMPED ? NULL : state);
	to_json_put_string(json, "verdict", verdict_name(thread->verdict));
	to_json_put_string(json, "stack_end", was_held ? stack_end_name(thread->end) : NULL);
	to_json_put_known(json, "interpreter", (int64_t)thread->python.interpreter, thread->is_python);
	put_answer(json, "holds_gil", thread->is_python ? thread->python.holds_gil : PY_UNKNOWN);
	put_answer(json, "waits_for_gil", thread->waits_for_gil);
	put_answer(json, "gc", thread->is_python ? thread->python.collects : PY_UNKNOWN);
	to_json_put_bool(json, "idle", thread->is_idle);
	to_json_put_known(json, "stopped_us", (int64_t)(thread->stopped_ns + 999) / 1000, was_stopped);
	to_json_put_string(json, "not_stopped", print_reason(thread->stop));
	to_json_put_text(json, "wchan", thread->wchan);
	put_wait(json, &thread->wait);
	put_frames(json, thread->frames, thread->n_frames);
	put_tasks(json, thread);
	to_json_object_end(json);
}

/* Write a process without its threads. @backtrace NULL: nothing is known. */
static void put_process(struct json *json, const struct backtrace *backtrace, const struct backtrace_place *place)
{
	static const struct backtrace nothing;

	to_json_put_integer(json, "pid", place ? place->pid : backtrace->pid);
	if (place) {
		to_json_put_known(json, "parent", place->parent, place->parent != 0);
		to_json_put_string(json, "problem", place->problem);
	}
	if (!backtrace)
		backtrace = &nothing;
	to_json_put_string(json, "command", backtrace->command);
	to_json_put_text(json, "python", backtrace->python);
	to_json_put_known(json, "signal", backtrace->signal, backtrace->signal != 0);
	to_json_put_known(json, "signalled", backtrace->signalled, backtrace->signal != 0);
}

int backtrace_print_json(const struct backtrace *backtrace, const struct backtrace_place *place, FILE *out)
{
	CLEANUP(to_json_done) struct json json = { 0 };
	int r = to_json_keep(NULL, &json);

	if (r < 0)
		return r;
	to_json_object(&json);
	put_process(&json, backtrace, place);
	to_json_put_array(&json, "threads");
	for (size_t i = 0; backtrace && i < backtrace->n_threads; i++)
		put_thread(&json, &backtrace->threads[i]);
	to_json_array_end(&json);
	to_json_object_end(&json);
	return to_json_finish(&json, out);
}
