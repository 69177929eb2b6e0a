/* SPDX-License-Identifier: MIT */
/* target.c - see target.h. */
#include "src/backtrace/target.h"

#include <errno.h>
#include <stdlib.h>

#include "base/proc.h"
#include "base/util.h"

void target_free(struct target *target)
{
	if (!target)
		return;
	native_stack_done(&target->walked);
	stitcher_free(target->stitcher);
	py_runtime_free(target->runtime);
	native_process_free(target->native);
	native_unwinder_free(target->unwinder);
	remote_free(target->remote);
	address_space_free(target->space);
	free(target->stack_bytes);
	free(target);
}

void target_freep(struct target **target)
{
	target_free(*target);
}

/* Check that memory is readable, which readable maps do not guarantee. */
static int check_memory(struct target *target)
{
	const struct mapping *first = address_space_nth(target->space, 0);
	uint8_t byte;
	int r;

	if (!first)
		return -ENODATA;
	r = remote_read(target->remote, RADDR(first->start), &byte, 1);
	return r == -EPERM || r == -ESRCH ? r : 0;
}

static int find_python(struct target *target)
{
	int r;

	r = py_runtime_find(target->space, target->remote, target->python, &target->runtime);
	target->python_error = r;
	return r == -ENOMEM ? r : 0;
}

int target_make_tools(struct target *target)
{
	int r;

	r = native_unwinder_new(target->modules, &target->unwinder);
	if (r >= 0)
		r = native_process_new(target->unwinder, target->space, &target->native);
	if (r >= 0)
		r = stitcher_new(&target->stitcher);
	if (r < 0)
		return r;
	target->stack_bytes = malloc(SAMPLE_STACK_BYTES);
	return target->stack_bytes ? 0 : -ENOMEM;
}

int target_open(pid_t pid, struct module_table *modules, struct target **ret)
{
	CLEANUP(target_freep) struct target *target = NULL;
	int r;

	target = calloc(1, sizeof *target);
	if (!target)
		return -ENOMEM;
	target->pid = pid;
	target->modules = modules;
	r = address_space_new(pid, target->modules, &target->space);
	if (r >= 0)
		r = address_space_load(target->space);
	if (r >= 0)
		r = remote_open_process(pid, &target->remote);
	if (r >= 0)
		r = check_memory(target);
	if (r >= 0)
		r = find_python(target);
	if (r >= 0)
		r = target_make_tools(target);
	if (r < 0)
		return r;

	*ret = TAKE(target);
	return 0;
}

static bool is_whole(const struct target *target)
{
	return target->walked.end == STACK_COMPLETE || target->walked.end == STACK_COMPLETED;
}

/* If the walk ended early, code may have been mapped after the maps were read. */
static int unwind(struct target *target, const struct sample *sample)
{
	unsigned before = address_space_generation(target->space);
	int r;

	r = native_unwind(target->native, sample, target->remote, &target->walked);
	if (r < 0 || is_whole(target) || target->is_dumped)
		return r;
	r = address_space_load(target->space);
	if (r == -ENOMEM)
		return r;
	if (address_space_generation(target->space) == before)
		return 0;
	return native_unwind(target->native, sample, target->remote, &target->walked);
}

int target_stack(struct target *target, pid_t tid, const struct regs *regs, struct stack *ret)
{
	struct sample sample = {
		.time_ns = monotonic_ns(),
		.pid = target->pid,
		.tid = tid,
		.has_user = true,
		.is_held = true,
		.regs = *regs,
		.stack = target->stack_bytes,
	};
	ssize_t n;
	int r;

	/* The read is shorter at the end of a mapping. */
	n = remote_read_some(target->remote, RADDR(regs->value[MACHINE_REG_SP]), target->stack_bytes,
			     SAMPLE_STACK_BYTES);
	sample.stack_bytes = n > 0 ? (size_t)n : 0;
	r = unwind(target, &sample);
	return r < 0 ? r : stitch(target->stitcher, target->space, target->runtime, &target->walked, ret);
}

int target_python_stack(struct target *target, pid_t tid, struct stack *ret)
{
	const struct sample sample = { .pid = target->pid, .tid = tid, .has_user = true };

	target->walked.n_frames = 0;
	target->walked.end = STACK_TRUNCATED;
	target->walked.sample = &sample;
	target->walked.remote = target->remote;
	target->walked.rest.n_bytes = 0;
	return stitch(target->stitcher, target->space, target->runtime, &target->walked, ret);
}

int target_locals(struct target *target, const struct stack *stack, struct py_locals *locals)
{
	uint64_t deadline_ns = monotonic_ns() + LOCALS_NS;

	for (size_t i = 0; i < stack->n_frames; i++) {
		const struct frame *frame = &stack->frames[i];
		int r = -EBADMSG;

		if (frame->kind != FRAME_PYTHON)
			continue;
		if (frame->python.address != 0 && monotonic_ns() < deadline_ns)
			r = py_locals_read(target->runtime, frame->python.address, deadline_ns, &locals[i]);
		if (r == -ENOMEM)
			return r;
		if (r < 0)
			locals[i].is_cut = true;
	}
	return 0;
}

bool target_state(struct target *target, pid_t tid, struct py_state *ret)
{
	return target->runtime && py_state_of(target->runtime, tid, ret) == 0;
}

enum py_answer target_waits_for_gil(struct target *target, pid_t tid)
{
	uint64_t futex;

	if (!target->runtime || target->is_dumped)
		return PY_UNKNOWN;
	if (proc_futex(target->pid, tid, &futex) < 0)
		return PY_UNKNOWN;
	return futex ? py_waits_for_gil(target->runtime, tid, futex) : PY_NO;
}

int target_tasks(struct target *target, pid_t tid, struct py_tasks *ret)
{
	if (!target->runtime)
		return -ESRCH;
	py_begin_sample(target->runtime);
	return py_tasks_of(target->runtime, tid, ret);
}
