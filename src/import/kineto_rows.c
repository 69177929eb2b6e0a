/* SPDX-License-Identifier: MIT */
/* kineto_rows.c - rows of the tables gpu_* and torch_* of a trace of torch.profiler. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/import/kineto.h"
#include "src/import/lines.h"

/* The profiler's step at that time; GPU_UNKNOWN: none. */
static int64_t step_at(const struct kineto *kineto, int64_t time_ns)
{
	size_t low = 0, high = kineto->n_steps;
	const struct kineto_event *step;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (kineto->events[kineto->steps[middle]].start_ns <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return GPU_UNKNOWN;
	step = &kineto->events[kineto->steps[low - 1]];
	return time_ns < step->end_ns ? kineto_step_of(kineto_text(kineto, step->name)) : GPU_UNKNOWN;
}

/* The innermost event of a thread of the host at that time; NULL: none. */
static const struct kineto_event *event_at(const struct kineto *kineto, const struct kineto_thread *thread,
					   int64_t time_ns)
{
	size_t i = kineto_segment_at(kineto, thread, time_ns);

	if (i == thread->first_segment + thread->n_segments || kineto->segments[i].start_ns > time_ns)
		return NULL;
	return &kineto->events[kineto->segments[i].event];
}

static struct gpu_span span_of(const struct kineto *kineto, const struct kineto_event *event)
{
	int64_t duration = event->end_ns - event->start_ns;

	return (struct gpu_span){ .name = kineto_text(kineto, event->name),
				  .calls = 1,
				  .duration_ns = duration,
				  .min_ns = duration,
				  .max_ns = duration,
				  .start_ns = event->start_ns };
}

static int put_op(struct kineto *kineto, const struct kineto_event *event)
{
	const struct kineto_thread *thread = &kineto->threads[event->thread];

	return gpu_put_op(kineto->writer,
			  &(struct torch_op_row){ .name = kineto_text(kineto, event->name),
						  .kind = event->kind == KINETO_OP ? "op" : "annotation",
						  .python = kineto_text(kineto, event->python),
						  .shapes = kineto_text(kineto, event->text),
						  .start_ns = event->start_ns,
						  .duration_ns = event->end_ns - event->start_ns,
						  .self_ns = event->self_ns,
						  .gpu_ns = event->gpu_ns,
						  .step = step_at(kineto, event->start_ns),
						  .sequence = event->sequence >= 0 ? event->sequence : GPU_UNKNOWN,
						  .pid = thread->sink_pid,
						  .tid = thread->sink_tid });
}

static int put_call(struct kineto *kineto, const struct kineto_event *event)
{
	const struct kineto_thread *thread = &kineto->threads[event->thread];

	return gpu_put_call(kineto->writer, &(struct gpu_call_row){ .span = span_of(kineto, event),
								    .pid = thread->sink_pid,
								    .tid = thread->sink_tid,
								    .result = GPU_UNKNOWN,
								    .correlation = event->correlation });
}

static struct gpu_place place_of(const struct kineto *kineto, const struct kineto_event *event, char device[24])
{
	const struct kineto_detail *detail = &kineto->details[event->detail];

	return (struct gpu_place){ .device = kineto_device(kineto, detail->device, device),
				   .context = detail->context,
				   .stream = detail->stream,
				   .correlation = event->correlation };
}

static int put_kernel(struct kineto *kineto, const struct kineto_event *event)
{
	const struct kineto_detail *detail = &kineto->details[event->detail];
	char device[24];
	struct gpu_kernel_row row = { .span = span_of(kineto, event),
				      .registers = detail->registers,
				      .static_shared_bytes = GPU_UNKNOWN,
				      .dynamic_shared_bytes = detail->shared_bytes,
				      .place = place_of(kineto, event, device) };

	memcpy(row.grid, detail->grid, sizeof row.grid);
	memcpy(row.block, detail->block, sizeof row.block);
	return gpu_put_kernel(kineto->writer, &row);
}

/* A word up to one of these characters, as text. @to: 32 bytes. */
static const char *word_of(struct piece *rest, const char *ends, char to[32])
{
	size_t n = 0;

	while (rest->n > 0 && *rest->at == ' ')
		rest->at++, rest->n--;
	while (n < rest->n && !strchr(ends, rest->at[n]))
		n++;
	snprintf(to, 32, "%.*s", (int)MIN(n, (size_t)31), rest->at);
	rest->at += n;
	rest->n -= n;
	return to[0] ? to : NULL;
}

/* "Memcpy HtoD (Pageable -> Device)", "Memset (Device)": named as in nvprof. */
static int put_copy(struct kineto *kineto, const struct kineto_event *event)
{
	struct piece rest = piece_of(kineto_text(kineto, event->name));
	char device[24], kind[32], source[32], destination[32], name[64];
	struct gpu_memcpy_row row = { .span = span_of(kineto, event),
				      .bytes = kineto->details[event->detail].bytes,
				      .place = place_of(kineto, event, device) };

	word_of(&rest, " (", kind);
	row.kind = event->kind == KINETO_FILL ? "memset" : word_of(&rest, " (", kind) ?: "unknown";
	while (rest.n > 0 && (*rest.at == ' ' || *rest.at == '('))
		rest.at++, rest.n--;
	row.destination = word_of(&rest, " )", destination);
	if (event->kind == KINETO_COPY) {
		row.source = row.destination ? strcpy(source, destination) : NULL;
		word_of(&rest, " )", destination);
		row.destination = word_of(&rest, " )", destination);
	}
	snprintf(name, sizeof name, event->kind == KINETO_FILL ? "[CUDA %s]" : "[CUDA memcpy %s]", row.kind);
	row.span.name = name;
	return gpu_put_memcpy(kineto->writer, &row);
}

static int put_memory(struct kineto *kineto, const struct kineto_event *event)
{
	const struct kineto_detail *detail = &kineto->details[event->detail];
	const struct kineto_thread *thread = &kineto->threads[event->thread];
	const struct kineto_event *around = event_at(kineto, thread, event->start_ns);
	char device[32] = "cpu";

	if (detail->bytes == GPU_UNKNOWN) {
		sink_skip(kineto->sink);
		return 0;
	}
	if (detail->device_type > 0) /* c10::DeviceType: 0 is the CPU, 1 CUDA */
		snprintf(device, sizeof device, detail->device_type == 1 ? "cuda:%" PRId64 : "device:%" PRId64,
			 MAX(detail->device, 0));
	return gpu_put_memory(kineto->writer,
			      &(struct torch_memory_row){ .time_ns = event->start_ns,
							  .bytes = detail->bytes,
							  .allocated_bytes = detail->allocated,
							  .reserved_bytes = detail->reserved,
							  .address = detail->address,
							  .device = device,
							  .op = around ? kineto_text(kineto, around->name) : NULL,
							  .pid = thread->sink_pid,
							  .tid = thread->sink_tid });
}

static int put_row(struct kineto *kineto, const struct kineto_event *event)
{
	switch (event->kind) {
	case KINETO_PYTHON: /* the stacks have them */
		return 0;
	case KINETO_ANNOTATION:
	case KINETO_OP:
		return put_op(kineto, event);
	case KINETO_CALL:
		return put_call(kineto, event);
	case KINETO_KERNEL:
		return put_kernel(kineto, event);
	case KINETO_COPY:
	case KINETO_FILL:
		return put_copy(kineto, event);
	case KINETO_MEMORY:
		return put_memory(kineto, event);
	}
	return 0;
}

int kineto_rows(struct kineto *kineto)
{
	int r = 0;

	for (size_t i = 0; i < kineto->n_events && r >= 0; i++) {
		const struct kineto_event *event = &kineto->events[i];

		r = put_row(kineto, event);
		if (r >= 0)
			r = sink_row(kineto->sink, kineto_is_on_gpu(event->kind) || event->kind == KINETO_CALL);
		if (r >= 0)
			r = sink_write(kineto->sink, i + 1, kineto->n_events);
	}
	return r < 0 ? r : kineto_idle(kineto);
}
