/* SPDX-License-Identifier: MIT */
/*
 * perf_stack.c - stacks of perf's samples.
 *
 * The unwinder is the one of recordings, with files instead of the memory of ended processes. A file is used only if
 * it is the mapped one: by its inode, and by its build-id if perf recorded that. The vdso is our own, if
 * the build-id matches.
 *
 * Invariants:
 * 1. No process is read: another process may have a recorded PID now.
 * 2. Registers are used only if perf recorded all that the unwinder needs.
 */
#include "src/import/perf_stack.h"

#include <errno.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "src/import/lines.h"

#define KERNEL_HALF UINT64_C(0xffff800000000000)

enum { NOBODY = 0, MAX_CHAIN = 65536, VDSO_BYTES = 8192, MAX_KERNEL_BYTES = 256 << 20 };

int perf_stacks_init(const struct perf_file *file, struct perf_stacks *ret)
{
	int r;

	*ret = (struct perf_stacks){ .sink = file->sink, .file = file };
	r = module_table_new(&ret->modules);
	return r < 0 ? r : native_unwinder_new(ret->modules, &ret->unwinder);
}

void perf_stacks_done(struct perf_stacks *stacks)
{
	native_stack_done(&stacks->stack);
	for (size_t i = 0; i < stacks->n_processes; i++) {
		native_process_free(stacks->processes[i].native);
		address_space_free(stacks->processes[i].space);
	}
	native_unwinder_free(stacks->unwinder);
	module_table_free(stacks->modules);
	id_map_done(&stacks->by_pid);
	free(stacks->processes);
	free(stacks->is_checked);
	free(stacks->copy);
}

/* ---- Processes ---- */

static struct perf_process *find(struct perf_stacks *stacks, pid_t pid)
{
	const struct id_slot *slot = pid < 0 ? NULL : id_map_find(&stacks->by_pid, (uint64_t)pid + 1);

	return slot ? &stacks->processes[slot->id] : NULL;
}

/* Replaces a process with the same PID. Takes ownership of space. */
static int add_process(struct perf_stacks *stacks, pid_t pid, struct address_space *space)
{
	struct perf_process process = { .pid = pid, .space = space };
	struct id_slot *slot = id_map_find(&stacks->by_pid, (uint64_t)pid + 1);
	int r;

	r = native_process_new(stacks->unwinder, space, &process.native);
	if (r >= 0)
		r = grow(&stacks->processes, stacks->n_processes, &stacks->processes_allocated,
			 sizeof *stacks->processes);
	if (r >= 0 && slot)
		slot->id = (uint32_t)stacks->n_processes;
	else if (r >= 0)
		r = id_map_add(&stacks->by_pid, (uint64_t)pid + 1, (uint32_t)stacks->n_processes);
	if (r < 0) {
		native_process_free(process.native);
		address_space_free(space);
		return r;
	}
	stacks->processes[stacks->n_processes++] = process;
	return 0;
}

static int get(struct perf_stacks *stacks, pid_t pid, struct perf_process **ret)
{
	struct address_space *space;
	int r = 0;

	if (!find(stacks, pid)) {
		r = address_space_new(NOBODY, stacks->modules, &space);
		if (r >= 0)
			r = add_process(stacks, pid, space);
	}
	if (r >= 0)
		*ret = find(stacks, pid);
	return r;
}

int perf_stacks_map(struct perf_stacks *stacks, pid_t pid, const struct mapping_source *source)
{
	struct perf_process *process;
	int r;

	if (pid < 0)
		return 0;
	r = get(stacks, pid, &process);
	if (r >= 0)
		r = address_space_mapped(process->space, source);
	return r == -EINVAL ? 0 : r;
}

/*
 * For the kernel image, perf writes the address of _text instead of an offset.
 * Source: perf_event__synthesize_kernel_mmap(), tools/perf/util/synthetic-events.c, Linux 6.12.
 */
void perf_stacks_kernel_map(struct perf_stacks *stacks, const struct mapping_source *source, struct piece name)
{
	if (piece_is(name, "[kernel.kallsyms]_text")) {
		stacks->kernel_text = source->file_offset;
		stacks->kernel_end = MIN(source->end, source->file_offset + MAX_KERNEL_BYTES);
	} else if (source->start > stacks->kernel_text) {
		stacks->kernel_end = MIN(stacks->kernel_end,
					 source->start); /* in older versions the mapping extends into modules */
	}
}

int perf_stacks_fork(struct perf_stacks *stacks, pid_t parent, pid_t pid)
{
	struct perf_process *process = find(stacks, parent);
	struct address_space *space;
	int r;

	if (pid < 0 || parent == pid || !process)
		return 0;
	r = address_space_fork(process->space, NOBODY, &space);
	return r < 0 ? r : add_process(stacks, pid, space);
}

int perf_stacks_exec(struct perf_stacks *stacks, pid_t pid)
{
	struct perf_process *process = find(stacks, pid);

	if (process)
		address_space_clear(process->space);
	return 0;
}

/* ---- Files ---- */

static const struct build_id *recorded_id(const struct perf_stacks *stacks, const struct module *module)
{
	for (size_t i = 0; i < stacks->file->n_build_ids; i++)
		if (strcmp(stacks->file->build_ids[i].path, module->path) == 0)
			return &stacks->file->build_ids[i].id;
	return NULL;
}

/* Use this process's vdso instead of the recorded one. */
static void lend_vdso(struct module *module)
{
	module->opener = getpid();
	module->map_start = getauxval(AT_SYSINFO_EHDR);
	module->map_end = module->map_start + VDSO_BYTES;
	module->map_offset = 0;
}

/* Called before first use. Reject a file that differs from the mapped one. */
static int check_module(struct perf_stacks *stacks, struct module *module)
{
	const struct build_id *wanted = recorded_id(stacks, module);
	struct elf_file *elf;
	bool *more;

	if (module->id >= stacks->n_checked) {
		more = realloc(stacks->is_checked, 2 * ((size_t)module->id + 1) * sizeof *more);
		if (!more)
			return -ENOMEM;
		memset(more + stacks->n_checked, 0, (2 * ((size_t)module->id + 1) - stacks->n_checked) * sizeof *more);
		stacks->is_checked = more;
		stacks->n_checked = 2 * ((size_t)module->id + 1);
	}
	if (stacks->is_checked[module->id])
		return 0;
	stacks->is_checked[module->id] = true;
	if (module->is_vdso && wanted)
		lend_vdso(module);
	if (module_elf(module, &elf) < 0)
		return 0;
	if ((wanted && !build_id_equal(wanted, elf_file_build_id(elf))) || (module->is_vdso && !wanted)) {
		elf_file_free(TAKE(module->elf));
		module->open_error = -ESTALE;
	}
	return 0;
}

/* Check all known modules before resolving a sample. */
static int check_modules(struct perf_stacks *stacks)
{
	int r = 0;

	for (size_t i = 0; i < module_table_size(stacks->modules) && r >= 0; i++)
		r = check_module(stacks, module_table_get(stacks->modules, i));
	return r;
}

/* ---- Frames ---- */

/* Add a frame for an address in user code. A return address was moved into its call instruction. */
static int put_user(struct perf_stacks *stacks, struct perf_process *process, uint64_t address, bool without_cfi,
		    int64_t parent, int64_t *ret)
{
	struct sink_frame frame = {
		.kind = FRAME_NATIVE, .has_address = true, .without_cfi = without_cfi, .address = address
	};
	struct build_id own = { 0 };
	const struct build_id *id;
	struct module *module = NULL;
	char text[2 * BUILD_ID_MAX + 1];
	int64_t place;
	int r;

	if (process && address_space_resolve(process->space, address, &module, &frame.address) < 0)
		frame.address = address;
	/*
	 * A chain by frame pointers may end in any stack word. The kernel's half of the address space is no program
	 * address.
	 */
	frame.has_address = frame.address < KERNEL_HALF;
	if (module) {
		id = recorded_id(stacks, module);
		if (!id && module_build_id(module, &own) >= 0)
			id = &own;
		frame.module = piece_of(module->path);
		if (id) {
			build_id_format(id, text);
			frame.build_id = piece_of(text);
		}
	}
	r = sink_frame(stacks->sink, &frame, &place);
	return r < 0 ? r : sink_stack(stacks->sink, parent, place, ret);
}

static int put_kernel(struct perf_stacks *stacks, uint64_t ip, int64_t parent, int64_t *ret)
{
	struct sink_frame frame = { .kind = FRAME_KERNEL };
	int64_t place;
	int r;

	/*
	 * A place as in symbolize/kernel_place.c. The file has the modules' addresses, but not relative to their lowest
	 * function.
	 */
	frame.has_address = ip >= stacks->kernel_text && ip < stacks->kernel_end;
	frame.address = frame.has_address ? ip - stacks->kernel_text : 0;
	r = sink_frame(stacks->sink, &frame, &place);
	return r < 0 ? r : sink_stack(stacks->sink, parent, place, ret);
}

/* ---- Registers and stack ---- */

/* perf's words follow the event's mask, ours the machine's. false: one is missing. */
static bool read_regs(const struct perf_event_attr *attr, const struct perf_sample *sample, struct regs *ret)
{
	uint64_t dump[64];
	size_t n = 0;

	if (!sample->regs || sample->abi != PERF_SAMPLE_REGS_ABI_64 ||
	    (machine_perf_regs_mask & ~attr->sample_regs_user) != 0)
		return false;
	for (unsigned bit = 0; bit < 64; bit++)
		if (machine_perf_regs_mask >> bit & 1)
			memcpy(&dump[n++],
			       sample->regs + 8 * bits_of(attr->sample_regs_user & ((UINT64_C(1) << bit) - 1)), 8);
	machine_regs_from_perf(dump, ret);
	return true;
}

static int copy_stack(struct perf_stacks *stacks, const struct perf_sample *sample)
{
	uint8_t *more;

	if (sample->stack_bytes > stacks->copy_bytes || !stacks->copy) {
		more = realloc(stacks->copy, sample->stack_bytes + 8);
		if (!more)
			return -ENOMEM;
		stacks->copy = more;
		stacks->copy_bytes = sample->stack_bytes;
	}
	if (sample->stack_bytes > 0)
		memcpy(stacks->copy, sample->stack, sample->stack_bytes);
	return 0;
}

static int put_unwound(struct perf_stacks *stacks, struct perf_process *process, const struct perf_sample *sample,
		       const struct regs *regs, int64_t *stack, enum stack_end *ret_end)
{
	struct sample one = {
		.time_ns = sample->time_ns, .pid = sample->pid, .tid = sample->tid, .has_user = true, .regs = *regs
	};
	int r;

	r = copy_stack(stacks, sample);
	if (r < 0)
		return r;
	one.stack = stacks->copy;
	one.stack_bytes = sample->stack_bytes;
	r = native_unwind(process->native, &one, NULL, &stacks->stack);
	for (size_t i = stacks->stack.n_frames; i > 0 && r >= 0; i--) {
		const struct native_frame *frame = &stacks->stack.frames[i - 1];

		r = put_user(stacks, process, native_frame_lookup(frame), frame->without_cfi, *stack, stack);
	}
	*ret_end = stacks->stack.end;
	return r;
}

/* ---- Call chains ---- */

static uint64_t chain_at(const struct perf_sample *sample, size_t i)
{
	uint64_t ip;

	memcpy(&ip, sample->chain + 8 * i, sizeof ip);
	return ip;
}

/*
 * Add frames from the outermost on. Words above PERF_CONTEXT_MAX give the context of the following addresses; the first
 * address after one is exact.
 */
static int put_chain(struct perf_stacks *stacks, struct perf_process *process, const struct perf_sample *sample,
		     bool of_kernel, int64_t *stack)
{
	uint64_t wanted = of_kernel ? (uint64_t)PERF_CONTEXT_KERNEL : (uint64_t)PERF_CONTEXT_USER;
	size_t first = 0, end = 0, n = MIN(sample->n_chain, (size_t)MAX_CHAIN);
	int r = 0;

	for (size_t i = 0; i < n && end == 0; i++) {
		if (chain_at(sample, i) == wanted)
			first = i + 1;
		else if (first > 0 && chain_at(sample, i) >= (uint64_t)PERF_CONTEXT_MAX)
			end = i;
	}
	if (first > 0 && end == 0)
		end = n;
	for (size_t i = end; i > first && r >= 0; i--) {
		uint64_t ip = chain_at(sample, i - 1);

		r = of_kernel ? put_kernel(stacks, ip, *stack, stack)
			      : put_user(stacks, process, ip - (i - 1 > first), true, *stack, stack);
	}
	return r;
}

int perf_stacks_put(struct perf_stacks *stacks, const struct perf_event *event, const struct perf_sample *sample,
		    uint16_t misc, int64_t *ret, enum stack_end *ret_end)
{
	bool is_kernel = (misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
	struct perf_process *process = find(stacks, sample->pid);
	int64_t stack = 0;
	struct regs regs;
	int r;

	*ret_end = STACK_COMPLETE;
	r = check_modules(stacks);
	if (r < 0)
		return r;
	if (process && read_regs(&event->attr, sample, &regs) && sample->stack_bytes > 0)
		r = put_unwound(stacks, process, sample, &regs, &stack, ret_end);
	else
		r = put_chain(stacks, process, sample, false, &stack);
	if (r >= 0)
		r = put_chain(stacks, process, sample, true, &stack);
	if (r >= 0 && stack == 0 && sample->ip != 0) /* without a stack, use the sampled address alone */
		r = is_kernel ? put_kernel(stacks, sample->ip, 0, &stack)
			      : put_user(stacks, process, sample->ip, true, 0, &stack);
	if (stack == 0)
		*ret_end = STACK_NO_UNWIND_INFO;
	*ret = stack;
	return r;
}
