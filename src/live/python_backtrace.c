/* SPDX-License-Identifier: MIT */
/* python_backtrace.c - python.backtrace: the frames of all threads, as the verb backtrace shows them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "src/backtrace/backtrace.h"
#include "src/live/rows.h"
#include "src/live/tables.h"

static const char *type_of(const struct backtrace_frame *frame)
{
	switch (frame->kind) {
	case FRAME_PYTHON:
		return "Python";
	case FRAME_KERNEL:
		return "Kernel";
	default:
		return "Native";
	}
}

static void put_frame(struct live_rows *rows, const struct backtrace *backtrace, const struct backtrace_thread *thread,
		      size_t depth)
{
	const struct backtrace_frame *frame = &thread->frames[depth];

	live_integer(rows, thread->tid);
	live_text(rows, py_thread_title(thread->python_name, thread->name, backtrace->threads[0].name));
	if (frame->address != 0)
		live_integer(rows, (int64_t)frame->address);
	else
		live_null(rows);
	live_text(rows, frame->file ? frame->file : frame->module);
	live_text(rows, frame->name);
	if (frame->line > 0)
		live_integer(rows, frame->line);
	else
		live_null(rows);
	live_integer(rows, (int64_t)depth);
	live_text(rows, type_of(frame));
}

static void tell(void *data, const char *sentence)
{
	live_note(data, sentence);
}

static int read_backtrace(struct live *live, struct live_rows *rows)
{
	CLEANUP(backtrace_freep) struct backtrace *backtrace = NULL;
	const struct backtrace_options options = { .pid = live->options.pid };
	int r = 0;

	if (!live->session)
		r = backtrace_session_new(true, &live->session);
	if (r == 0)
		r = backtrace_take(live->session, &options, &backtrace);
	if (r < 0)
		return r;
	backtrace_session_keep(live->session);
	backtrace_shortcomings(backtrace, tell, live);
	for (size_t i = 0; i < backtrace->n_threads; i++)
		for (size_t j = 0; j < backtrace->threads[i].n_frames; j++)
			put_frame(rows, backtrace, &backtrace->threads[i], j);
	return 0;
}

const struct live_table live_python_backtrace = {
	.schema = "python",
	.name = "backtrace",
	.read = read_backtrace,
};
