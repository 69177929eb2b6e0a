/* SPDX-License-Identifier: MIT */
/*
 * sink_gpu.c - GPU data: rows of tables, and stacks of one function.
 *
 * Reports, flame graphs and comparisons use the stacks. They are in two artificial threads,
 * named as the two parts of nvprof's summary.
 */
#include <errno.h>
#include <string.h>

#include "src/import/sink_private.h"

enum { THREAD_ACTIVITIES = 1, THREAD_CALLS };

int sink_gpu(struct sink *sink, const struct gpu_trace_row *trace)
{
	bool has_pid = trace->pid > 0 && trace->pid <= INT32_MAX;
	int r;

	if (sink->gpu)
		gpu_writer_free(TAKE(sink->gpu));
	sink->gpu_pid = has_pid ? (pid_t)trace->pid : 1;
	r = gpu_writer_new(sink->store, trace, &sink->gpu);
	if (r < 0 || sink->into)
		return r;
	r = sink_process(sink, sink->gpu_pid, 0, piece_of(trace->command ?: ""), piece_of(trace->command ?: ""));
	if (r >= 0)
		r = sink_thread(sink, sink->gpu_pid, THREAD_ACTIVITIES, piece_of("GPU activities"));
	return r < 0 ? r : sink_thread(sink, sink->gpu_pid, THREAD_CALLS, piece_of("API calls"));
}

static int check_span(struct sink *sink, const struct gpu_span *span)
{
	if (span->calls < 0 || span->duration_ns < 0)
		return sink_explain(sink, -EBADMSG, "%.60s ran a negative time", span->name);
	return 0;
}

static int add_stack(struct sink *sink, pid_t tid, const struct gpu_span *span)
{
	struct sink_frame frame = { .kind = FRAME_NATIVE, .name = piece_of(span->name) };
	int64_t place, stack;
	int r;

	sink->result->n_gpu++;
	if (sink->into)
		return sink_step(sink);
	r = sink_frame(sink, &frame, &place);
	if (r >= 0)
		r = sink_stack(sink, 0, place, &stack);
	if (r >= 0)
		r = sink_total(sink, sink->gpu_pid, tid, stack, (uint64_t)span->calls, (uint64_t)span->duration_ns);
	return r < 0 ? r : sink_step(sink);
}

int sink_kernel(struct sink *sink, const struct gpu_kernel_row *row)
{
	int r = check_span(sink, &row->span);

	if (r >= 0)
		r = gpu_put_kernel(sink->gpu, row);
	return r < 0 ? r : add_stack(sink, THREAD_ACTIVITIES, &row->span);
}

int sink_memcpy(struct sink *sink, const struct gpu_memcpy_row *row)
{
	int r = check_span(sink, &row->span);

	if (r >= 0)
		r = gpu_put_memcpy(sink->gpu, row);
	return r < 0 ? r : add_stack(sink, THREAD_ACTIVITIES, &row->span);
}

int sink_call(struct sink *sink, const struct gpu_call_row *row)
{
	int r = check_span(sink, &row->span);

	if (r >= 0)
		r = gpu_put_call(sink->gpu, row);
	return r < 0 ? r : add_stack(sink, THREAD_CALLS, &row->span);
}

/* Ranges contain other activities, so their time does not add to the total. */
int sink_range(struct sink *sink, const struct gpu_range_row *row)
{
	int r = check_span(sink, &row->span);

	sink->result->n_gpu++;
	return r < 0 ? r : gpu_put_range(sink->gpu, row);
}

int sink_gpu_rows(struct sink *sink, const struct gpu_trace_row *trace, struct gpu_writer **ret)
{
	int r;

	gpu_writer_free(TAKE(sink->gpu));
	r = gpu_writer_new(sink->store, trace, &sink->gpu);
	*ret = sink->gpu;
	return r;
}

int sink_flight(struct sink *sink, struct flight_writer **ret)
{
	int r = sink->flight ? 0 : flight_writer_new(sink->store, &sink->flight);

	*ret = sink->flight;
	return r;
}

int sink_row(struct sink *sink, bool is_gpu)
{
	sink->result->n_gpu += is_gpu;
	return sink_step(sink);
}
