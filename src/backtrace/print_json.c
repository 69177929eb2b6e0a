/* print_json.c - stacks as one JSON object.
 *
 * Names come from other programs: what is not UTF-8 in them becomes U+FFFD. What is not
 * known is null.
 */
#include <errno.h>
#include <string.h>
#include <utf8proc.h>
#include <yajl/yajl_gen.h>

#include "base/util.h"
#include "src/backtrace/print.h"

DEFINE_CLEANUP(yajl_gen, yajl_gen_free)

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

static void put_bytes(yajl_gen json, const char *bytes, size_t n)
{
	yajl_gen_string(json, (const unsigned char *)bytes, n);
}

static void put_key(yajl_gen json, const char *key)
{
	put_bytes(json, key, strlen(key));
}

/* Bytes that are a character; 0: the first of them is none. */
static size_t character_bytes(const char *text)
{
	utf8proc_int32_t c;
	utf8proc_ssize_t n;

	n = utf8proc_iterate((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)strnlen(text, 4), &c);
	return n > 0 ? (size_t)n : 0;
}

/* @text: NULL: not known. -ENOMEM. */
static int put_text(yajl_gen json, const char *key, const char *text)
{
	CLEANUP(freep) char *clean = NULL;
	size_t n = 0;

	put_key(json, key);
	if (!text) {
		yajl_gen_null(json);
		return 0;
	}
	clean = malloc(strlen(text) * strlen(REPLACEMENT) + 1);
	if (!clean)
		return -ENOMEM;
	while (*text) {
		size_t n_bytes = character_bytes(text);

		memcpy(clean + n, n_bytes ? text : REPLACEMENT, n_bytes ? n_bytes : strlen(REPLACEMENT));
		n += n_bytes ? n_bytes : strlen(REPLACEMENT);
		text += n_bytes ? n_bytes : 1;
	}
	put_bytes(json, clean, n);
	return 0;
}

static void put_number(yajl_gen json, const char *key, long long value, bool is_known)
{
	put_key(json, key);
	if (is_known)
		yajl_gen_integer(json, value);
	else
		yajl_gen_null(json);
}

static void put_answer(yajl_gen json, const char *key, enum py_answer answer)
{
	put_key(json, key);
	if (answer == PY_UNKNOWN)
		yajl_gen_null(json);
	else
		yajl_gen_bool(json, answer == PY_YES);
}

static int put_locals(yajl_gen json, const struct py_locals *locals)
{
	int r = 0;

	put_key(json, "locals");
	yajl_gen_array_open(json);
	for (size_t i = 0; i < locals->n && r >= 0; i++) {
		yajl_gen_map_open(json);
		r = put_text(json, "name", locals->locals[i].name);
		if (r >= 0)
			r = put_text(json, "value", locals->locals[i].value);
		if (r >= 0)
			r = put_text(json, "type", locals->locals[i].type);
		yajl_gen_map_close(json);
	}
	yajl_gen_array_close(json);
	put_key(json, "locals_cut");
	yajl_gen_bool(json, locals->is_cut);
	return r;
}

static int put_frame(yajl_gen json, const struct backtrace_frame *frame)
{
	int r;

	yajl_gen_map_open(json);
	r = put_text(json, "kind", frame->is_builtin ? "builtin" : frame_kind_name(frame->kind));
	if (r >= 0)
		r = put_text(json, "function", frame->name);
	if (r >= 0)
		r = put_text(json, "file", frame->file);
	put_number(json, "line", frame->line, frame->line > 0);
	if (r >= 0)
		r = put_text(json, "module", frame->module);
	if (r >= 0 && frame->locals)
		r = put_locals(json, frame->locals);
	yajl_gen_map_close(json);
	return r;
}

static int put_frames(yajl_gen json, const struct backtrace_frame *frames, size_t n)
{
	int r = 0;

	put_key(json, "frames");
	yajl_gen_array_open(json);
	for (size_t i = 0; i < n && r >= 0; i++)
		r = put_frame(json, &frames[i]);
	yajl_gen_array_close(json);
	return r;
}

static int put_task(yajl_gen json, const struct backtrace_task *task)
{
	int r;

	yajl_gen_map_open(json);
	r = put_text(json, "name", task->name[0] ? task->name : NULL);
	put_key(json, "running");
	yajl_gen_bool(json, task->is_running);
	put_key(json, "awaited_by");
	yajl_gen_array_open(json);
	for (size_t i = 0; i < task->n_awaiters; i++)
		yajl_gen_integer(json, (long long)task->awaiters[i]);
	yajl_gen_array_close(json);
	if (r >= 0)
		r = put_frames(json, task->frames, task->n_frames);
	yajl_gen_map_close(json);
	return r;
}

static int put_tasks(yajl_gen json, const struct backtrace_thread *thread)
{
	int r = 0;

	if (!thread->has_tasks)
		return 0;
	put_key(json, "tasks");
	yajl_gen_array_open(json);
	for (size_t i = 0; i < thread->n_tasks && r >= 0; i++)
		r = put_task(json, &thread->tasks[i]);
	yajl_gen_array_close(json);
	return r;
}

static int put_thread(yajl_gen json, const struct backtrace_thread *thread)
{
	const char state[2] = { thread->state, '\0' };
	bool was_stopped = thread->stop == STOP_DONE, was_held = was_stopped || thread->stop == STOP_DUMPED;
	int r;

	yajl_gen_map_open(json);
	put_number(json, "tid", thread->tid, true);
	r = put_text(json, "name", thread->name);
	if (r >= 0)
		r = put_text(json, "python_name", thread->python_name);
	if (r >= 0)
		r = put_text(json, "state", thread->stop == STOP_DUMPED ? NULL : state);
	if (r >= 0)
		r = put_text(json, "verdict", verdict_name(thread->verdict));
	if (r >= 0)
		r = put_text(json, "stack_end", was_held ? stack_end_name(thread->end) : NULL);
	put_number(json, "interpreter", (long long)thread->python.interpreter, thread->is_python);
	put_answer(json, "holds_gil", thread->is_python ? thread->python.holds_gil : PY_UNKNOWN);
	put_answer(json, "waits_for_gil", thread->waits_for_gil);
	put_answer(json, "gc", thread->is_python ? thread->python.collects : PY_UNKNOWN);
	put_key(json, "idle");
	yajl_gen_bool(json, thread->is_idle);
	put_number(json, "stopped_us", (long long)(thread->stopped_ns + 999) / 1000, was_stopped);
	if (r >= 0)
		r = put_text(json, "not_stopped", print_reason(thread->stop));
	if (r >= 0)
		r = put_text(json, "wchan", thread->wchan[0] ? thread->wchan : NULL);
	if (r >= 0)
		r = put_frames(json, thread->frames, thread->n_frames);
	if (r >= 0)
		r = put_tasks(json, thread);
	yajl_gen_map_close(json);
	return r;
}

/* What is known of a process, without its threads. @backtrace: NULL: nothing is. */
static int put_process(yajl_gen json, const struct backtrace *backtrace, const struct backtrace_place *place)
{
	static const struct backtrace nothing;
	int r = 0;

	put_number(json, "pid", place ? place->pid : backtrace->pid, true);
	if (place) {
		put_number(json, "parent", place->parent, place->parent != 0);
		r = put_text(json, "problem", place->problem);
	}
	if (!backtrace)
		backtrace = &nothing;
	if (r >= 0)
		r = put_text(json, "command", backtrace->command);
	if (r >= 0)
		r = put_text(json, "python", backtrace->python[0] ? backtrace->python : NULL);
	put_number(json, "signal", backtrace->signal, backtrace->signal != 0);
	put_number(json, "signalled", backtrace->signalled, backtrace->signal != 0);
	return r;
}

int backtrace_print_json(const struct backtrace *backtrace, const struct backtrace_place *place, FILE *out)
{
	CLEANUP(yajl_gen_freep) yajl_gen json = yajl_gen_alloc(NULL);
	const unsigned char *bytes;
	size_t n;
	int r;

	if (!json)
		return -ENOMEM;
	yajl_gen_map_open(json);
	r = put_process(json, backtrace, place);
	put_key(json, "threads");
	yajl_gen_array_open(json);
	for (size_t i = 0; backtrace && i < backtrace->n_threads && r >= 0; i++)
		r = put_thread(json, &backtrace->threads[i]);
	yajl_gen_array_close(json);
	yajl_gen_map_close(json);
	if (r < 0)
		return r;
	if (yajl_gen_get_buf(json, &bytes, &n) != yajl_gen_status_ok)
		return -ENOMEM;
	fwrite(bytes, 1, n, out);
	fputc('\n', out);
	return ferror(out) ? -EIO : 0;
}
