/* SPDX-License-Identifier: MIT */
/*
 * Test the unwinder, compiled for aarch64, on stacks recorded there.
 * fixtures/aarch64/record.py single-stepped programs and stored registers and stack. It also stored the true stack,
 * from the calls and returns that the processor executed. Each instruction is a sample here. The test runs on any
 * processor: base/ and unwind/native/ are compiled with -DPROBING_MACHINE_AARCH64.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "unwind/native/native.h"

enum { MAX_CALLS = 64, MAX_CHAINS = 16, MAX_CHAIN = 8, MAX_MODULES = 4, REG_LR = MACHINE_REG_RETURN };

/* A frame that waits for another to return; kinds as in record.py. */
struct call {
	char kind;
	uint64_t pc, sp;
	struct regs regs; /* of it, while it waits */
};

struct trace {
	char *text, *rest; /* rest: lines not read yet */
	const char *chains[MAX_CHAINS];
	size_t n_chains;
	uint64_t stack_low, stack_bytes;
	uint8_t *stack;
	struct regs regs;
	struct call calls[MAX_CALLS];
	size_t n_calls;

	bool hide_libraries; /* map them without a file */
	struct module_table *modules;
	struct address_space *space;
	uint8_t code[MACHINE_SIGRETURN_BYTES];
	struct remote *remote; /* the trampoline's code */
	struct native_unwinder *unwinder;
	struct native_process *process;
	struct sample sample;
	uint8_t *captured;
	struct native_stack native; /* borrows sample */
};

/* ---- Reading a trace ---- */

/* PROBING_FIXTURES_AARCH64: where record.py has written others. */
static char *fixture_path(const char *name)
{
	const char *root = getenv("PROBING_SOURCE_ROOT"), *other = getenv("PROBING_FIXTURES_AARCH64");
	char *path;

	assert_true(root || other);
	assert_true(asprintf(&path, "%s/%s%s", other ? other : root, other ? "" : "fixtures/aarch64/", name) > 0);
	return path;
}

static void read_map(struct trace *trace, const char *line)
{
	struct mapping_source source = { .executable = true, .inode = 1 + module_table_size(trace->modules) };
	CLEANUP(freep) char *path = NULL;
	char name[64];
	struct elf_file *elf;
	int fd;

	assert_int_equal(sscanf(line, "map %lx %lx %lx %63s", &source.start, &source.end, &source.file_offset, name),
			 4);
	path = fixture_path(name);
	source.path = trace->hide_libraries && strstr(name, ".so") ? "" : path;
	assert_int_equal(address_space_add(trace->space, &source), 0);
	if (source.path != path)
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(elf_file_open(fd, &elf), 0);
	module_table_get(trace->modules, source.inode - 1)->elf = elf;
}

static void read_code(struct trace *trace, const char *line)
{
	struct mapping_source source = { .executable = true, .path = "" };
	char hex[2 * MACHINE_SIGRETURN_BYTES + 1];

	assert_int_equal(sscanf(line, "code %lx %16s", &source.start, hex), 2);
	for (size_t i = 0; i < sizeof trace->code; i++)
		assert_int_equal(sscanf(hex + 2 * i, "%2hhx", &trace->code[i]), 1);
	source.end = source.start + 4096;
	assert_int_equal(address_space_add(trace->space, &source), 0);
	assert_int_equal(remote_open_buffer(RADDR(source.start), trace->code, sizeof trace->code, &trace->remote), 0);
}

static void read_stack(struct trace *trace, const char *line)
{
	uint64_t top;

	assert_int_equal(sscanf(line, "stack %lx %lx", &trace->stack_low, &top), 2);
	trace->stack_bytes = top - trace->stack_low;
	trace->stack = calloc(1, trace->stack_bytes);
	assert_non_null(trace->stack);
}

static char *next_line(struct trace *trace)
{
	return strsep(&trace->rest, "\n");
}

/* Up to the first step, which stays to be read. */
static void read_head(struct trace *trace)
{
	while (strncmp(trace->rest, "step", 4) != 0) {
		char *line = next_line(trace);

		if (strncmp(line, "map ", 4) == 0)
			read_map(trace, line);
		else if (strncmp(line, "code ", 5) == 0)
			read_code(trace, line);
		else if (strncmp(line, "stack ", 6) == 0)
			read_stack(trace, line);
		else if (strncmp(line, "chain ", 6) == 0 && trace->n_chains < MAX_CHAINS)
			trace->chains[trace->n_chains++] = line + 6;
		else
			fail_msg("not in a trace: %s", line);
	}
}

static void trace_open(struct trace *trace, const char *name, bool hide_libraries)
{
	CLEANUP(freep) char *path = fixture_path(name);

	*trace = (struct trace){ .hide_libraries = hide_libraries };
	if (read_file(path, 16 << 20, &trace->text, NULL) < 0)
		fail_msg("%s is not there", path);
	trace->rest = trace->text;
	assert_int_equal(module_table_new(&trace->modules), 0);
	assert_int_equal(address_space_new(1, trace->modules, &trace->space), 0);
	read_head(trace);
	assert_int_equal(native_unwinder_new(trace->modules, &trace->unwinder), 0);
	assert_int_equal(native_process_new(trace->unwinder, trace->space, &trace->process), 0);
}

static void trace_close(struct trace *trace)
{
	native_stack_done(&trace->native);
	native_process_free(trace->process);
	native_unwinder_free(trace->unwinder);
	remote_free(trace->remote);
	address_space_free(trace->space);
	module_table_free(trace->modules);
	free(trace->captured);
	free(trace->stack);
	free(trace->text);
}

static void push_call(struct trace *trace, const char *change, const struct regs *regs)
{
	struct call *call = &trace->calls[trace->n_calls++];

	assert_in_range(trace->n_calls, 1, MAX_CALLS);
	*call = (struct call){ .kind = change[0], .regs = *regs };
	assert_int_equal(sscanf(change + 1, "%lx,%lx", &call->pc, &call->sp), 2);
}

static void change_state(struct trace *trace, const char *change)
{
	uint64_t address, value;
	unsigned reg;

	if (sscanf(change, "x%u=%lx", &reg, &value) == 2) {
		assert_in_range(reg, 0, MACHINE_N_REGS - 1);
		trace->regs.value[reg] = value;
		return;
	}
	assert_int_equal(sscanf(change, "%lx:%lx", &address, &value), 2);
	assert_in_range(address - trace->stack_low, 0, trace->stack_bytes - sizeof value);
	memcpy(trace->stack + (address - trace->stack_low), &value, sizeof value);
}

/* One instruction on; false at the end. */
static bool trace_step(struct trace *trace)
{
	struct regs before = trace->regs;
	char *line = next_line(trace), *change;

	if (!line || strncmp(line, "step", 4) != 0)
		return false;
	strsep(&line, " ");
	while ((change = strsep(&line, " ")) != NULL) {
		if (change[0] == '>')
			push_call(trace, change, &trace->regs);
		else if (change[0] == '!' || change[0] == '*')
			push_call(trace, change, &before);
		else if (change[0] == '<')
			trace->n_calls--;
		else
			change_state(trace, change);
	}
	return true;
}

/* @n_cut: bytes at the top of the stack that were not captured. */
static void trace_unwind(struct trace *trace, size_t n_cut)
{
	struct sample *sample = &trace->sample;
	uint64_t offset = trace->regs.value[MACHINE_REG_SP] - trace->stack_low;

	assert_in_range(offset, 0, trace->stack_bytes);
	*sample = (struct sample){ .pid = 1, .tid = 1, .has_user = true, .regs = trace->regs };
	sample->stack_bytes = trace->stack_bytes - offset;
	sample->stack_bytes -= MIN(n_cut, sample->stack_bytes);
	/* Allocate each block separately, so that AddressSanitizer detects every access beyond its end. */
	free(trace->captured);
	trace->captured = malloc(sample->stack_bytes + 1);
	assert_non_null(trace->captured);
	memcpy(trace->captured, trace->stack + offset, sample->stack_bytes);
	sample->stack = trace->captured;
	assert_int_equal(native_unwind(trace->process, sample, trace->remote, &trace->native), 0);
}

/* ---- The truth ---- */

static void assert_frame(const struct trace *trace, size_t i)
{
	const struct native_frame *frame = &trace->native.frames[i];
	const struct call *call = &trace->calls[trace->n_calls - i];

	if (frame->pc != call->pc || frame->sp != call->sp || frame->is_return_address != (call->kind == '>') ||
	    frame->is_trampoline != (call->kind == '*'))
		fail_msg("at %lx: frame %zu is %lx, sp %lx, not %c%lx, sp %lx", trace->regs.value[MACHINE_REG_PC], i,
			 frame->pc, frame->sp, call->kind, call->pc, call->sp);
}

static void assert_truth(const struct trace *trace)
{
	const struct native_stack *native = &trace->native;

	if (native->end != STACK_COMPLETE || native->n_frames != trace->n_calls + 1)
		fail_msg("at %lx: %s after %zu frames, not complete after %zu", trace->regs.value[MACHINE_REG_PC],
			 stack_end_name(native->end), native->n_frames, trace->n_calls + 1);
	for (size_t i = 1; i <= trace->n_calls; i++)
		assert_frame(trace, i);
	for (size_t i = 0; i < trace->n_calls; i++)
		assert_int_equal(native->frames[i].cfa, native->frames[i + 1].sp);
}

static void assert_register(struct trace *trace, size_t i, unsigned reg)
{
	const struct call *call = &trace->calls[trace->n_calls - i];
	uint64_t value = 0;

	if (native_register(&trace->native, i, reg, &value) != 0 || value != call->regs.value[reg])
		fail_msg("at %lx: x%u of frame %zu is %lx, not %lx", trace->regs.value[MACHINE_REG_PC], reg, i, value,
			 call->regs.value[reg]);
}

/* Compare the callers' callee-saved registers, and all registers of an interrupted frame. */
static void assert_registers(struct trace *trace)
{
	for (size_t i = 1; i <= trace->n_calls; i++) {
		char kind = trace->calls[trace->n_calls - i].kind;
		const struct native_frame *callee = &trace->native.frames[i - 1];

		if (callee->without_cfi && callee->cfa != callee->sp)
			return; /* it may have saved something, and only CFI would say where */
		if (kind == '*')
			continue;
		for (unsigned reg = 19; reg <= MACHINE_REG_FP; reg++)
			assert_register(trace, i, reg);
		if (kind == '!')
			assert_register(trace, i, REG_LR);
	}
}

/* Is a frame in the function of that name? */
static bool is_in(struct trace *trace, size_t i, const char *name)
{
	const struct native_frame *frame = &trace->native.frames[i];
	uint64_t address, start, size;
	struct module *module;
	struct elf_file *elf;

	if (strcmp(name, "*") == 0)
		return frame->is_trampoline;
	return address_space_resolve(trace->space, native_frame_lookup(frame), &module, &address) == 0 && module &&
	       module_elf(module, &elf) == 0 && elf_file_symbol(elf, name, &start, &size) == 0 && address >= start &&
	       address < start + size;
}

/* 1: the chain holds here, 0: another function runs. */
static unsigned check_chain(struct trace *trace, const char *chain)
{
	CLEANUP(freep) char *copy = strdup(chain);
	char *rest = copy, *name;
	size_t i = 0;

	for (; (name = strsep(&rest, " ")) != NULL; i++) {
		if (i == 0 && !is_in(trace, 0, name))
			return 0;
		if (i >= trace->native.n_frames || !is_in(trace, i, name))
			fail_msg("at %lx: frame %zu is not %s", trace->regs.value[MACHINE_REG_PC], i, name);
	}
	assert_int_equal(i, trace->native.n_frames);
	return 1;
}

static void check_trace(const char *name, unsigned least_steps, size_t n_chains)
{
	unsigned n_steps = 0, n_seen[MAX_CHAINS] = { 0 };
	struct trace trace;

	trace_open(&trace, name, false);
	while (trace_step(&trace) && trace.n_calls > 0) {
		trace_unwind(&trace, 0);
		assert_truth(&trace);
		assert_registers(&trace);
		for (size_t i = 0; i < trace.n_chains; i++)
			n_seen[i] += check_chain(&trace, trace.chains[i]);
		n_steps++;
	}
	assert_in_range(n_steps, least_steps, 100000);
	assert_int_equal(trace.n_chains, n_chains);
	for (size_t i = 0; i < trace.n_chains; i++)
		if (n_seen[i] == 0)
			fail_msg("%s: never seen: %s", name, trace.chains[i]);
	trace_close(&trace);
}

static void test_frame_pointer(void **state)
{
	(void)state;
	check_trace("frame_pointer.trace", 200, 6);
}

static void test_no_frame_pointer(void **state)
{
	(void)state;
	check_trace("no_frame_pointer.trace", 200, 6);
}

static void test_unoptimised(void **state)
{
	(void)state;
	check_trace("unoptimised.trace", 350, 6);
}

static void test_signed(void **state)
{
	(void)state;
	check_trace("signed.trace", 200, 6);
}

static void test_signed_leaves(void **state)
{
	(void)state;
	check_trace("signed_leaves.trace", 200, 6);
}

/* The stub of the PLT has no CFI. */
static void test_shared(void **state)
{
	(void)state;
	check_trace("shared.trace", 200, 7);
}

/* Do the frames found name only true callers, in their order? */
static void assert_subsequence(const struct trace *trace)
{
	size_t at = trace->n_calls;

	for (size_t i = 1; i < trace->native.n_frames; i++) {
		while (at > 0 && trace->calls[at - 1].pc != trace->native.frames[i].pc)
			at--;
		if (at == 0)
			fail_msg("at %lx: frame %zu, %lx, is no caller", trace->regs.value[MACHINE_REG_PC], i,
				 trace->native.frames[i].pc);
		at--;
	}
}

static bool has_frame_without_cfi(const struct native_stack *native)
{
	for (size_t i = 0; i < native->n_frames; i++)
		if (native->frames[i].without_cfi)
			return true;
	return false;
}

/*
 * A whole program with its libc; too large to be kept, so only where record.py has
 * just made it. Some assembly of the start-up files has no CFI. Where that calls
 * other such code, a caller can be missed.
 */
static void test_with_libc(void **state)
{
	unsigned n_steps = 0, n_without_cfi = 0;
	struct trace trace;

	(void)state;
	if (!getenv("PROBING_FIXTURES_AARCH64")) {
		print_message("skipped: PROBING_FIXTURES_AARCH64 names no fixtures of that machine\n");
		skip();
	}
	trace_open(&trace, "with_libc.trace", false);
	for (; trace_step(&trace); n_steps++) {
		trace_unwind(&trace, 0);
		if (is_in(&trace, 0, "_start") && trace.n_calls > 0)
			continue; /* glibc's jump to main(), by an oversight under _start's CFI */
		if (has_frame_without_cfi(&trace.native)) {
			assert_subsequence(&trace);
			n_without_cfi++;
			continue;
		}
		assert_truth(&trace);
		assert_registers(&trace);
	}
	assert_in_range(n_steps, 5000, 100000);
	assert_in_range(n_without_cfi, 0, n_steps / 20);
	trace_close(&trace);
}

/* If the file of a library is unavailable, callers may be missing, but none is invented. */
static void test_library_without_cfi(void **state)
{
	unsigned n_inside = 0, n_complete = 0;
	struct trace trace;

	(void)state;
	trace_open(&trace, "shared.trace", true);
	while (trace_step(&trace) && trace.n_calls > 0) {
		if (trace.regs.value[MACHINE_REG_PC] >> 32 == 0)
			continue; /* in the program */
		trace_unwind(&trace, 0);
		assert_subsequence(&trace);
		n_inside++;
		n_complete += trace.native.end == STACK_COMPLETE;
	}
	assert_in_range(n_inside, 20, 100);
	assert_in_range(n_complete, 20, 100);
	trace_close(&trace);
}

/*
 * The same, and the way to the thread's start is cut off, so that nothing found by
 * search can prove itself: frame records lead on, and the rules of the caller
 * say where its stack pointer was.
 */
static void test_frame_records(void **state)
{
	unsigned n_exact = 0;
	struct trace trace;

	(void)state;
	trace_open(&trace, "shared.trace", true);
	while (trace_step(&trace) && trace.n_calls > 0) {
		uint64_t pc = trace.regs.value[MACHINE_REG_PC];
		const struct call *run = &trace.calls[1];

		if (pc >> 32 == 0 || trace.n_calls != 2)
			continue; /* not in shared_work */
		trace_unwind(&trace, 64);
		assert_subsequence(&trace);
		/* In its body; before and behind, the record is its caller's. */
		if (trace.regs.value[MACHINE_REG_FP] != trace.regs.value[MACHINE_REG_SP] ||
		    trace.regs.value[MACHINE_REG_SP] == run->sp)
			continue;
		assert_true(trace.native.n_frames >= 2);
		assert_int_equal(trace.native.frames[1].pc, run->pc);
		assert_int_equal(trace.native.frames[1].sp, run->sp);
		n_exact++;
	}
	assert_in_range(n_exact, 4, 100);
	trace_close(&trace);
}

/* The file's registers have other numbers, so its CFI must not be used. */
static void test_file_of_another_machine(void **state)
{
	struct mapping_source source = { 0x10000000, 0x20000000, .executable = true, .inode = 1, .path = "/other" };
	uint64_t words[64] = { 0 };
	struct sample sample = { .has_user = true, .stack = (const uint8_t *)words, .stack_bytes = sizeof words };
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct trace trace;
	struct elf_file *elf;
	uint64_t address, size, start, end;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(elf_file_open(fd, &elf), 0);
	if (elf_file_machine(elf) == MACHINE_ELF) {
		elf_file_free(elf);
		print_message("skipped: this is that machine\n");
		skip();
	}
	trace_open(&trace, "shared.trace", false);
	address_space_clear(trace.space);
	source.inode = 1 + module_table_size(trace.modules);
	assert_int_equal(address_space_add(trace.space, &source), 0);
	module_table_get(trace.modules, source.inode - 1)->elf = elf;
	assert_int_equal(elf_file_symbol(elf, "main", &address, &size), 0);
	sample.regs.value[MACHINE_REG_SP] = 0x7ff000;
	assert_int_equal(elf_file_function(elf, address, &start, &end), 0); /* there is CFI */
	sample.regs.value[MACHINE_REG_PC] = source.start + address;
	assert_int_equal(native_unwind(trace.process, &sample, NULL, &trace.native), 0);
	assert_int_equal(trace.native.n_frames, 1);
	assert_int_equal(trace.native.end, STACK_NO_UNWIND_INFO);
	assert_int_equal(trace.native.frames[0].row, 0);
	trace_close(&trace);
}

/* ---- machine_aarch64.c ---- */

static bool after_call(uint32_t code)
{
	uint8_t bytes[MACHINE_CALL_BYTES] = { (uint8_t)code, (uint8_t)(code >> 8), (uint8_t)(code >> 16),
					      (uint8_t)(code >> 24) };

	return machine_is_after_call(bytes);
}

/* As aarch64-linux-gnu-as encodes them. */
static void test_calls(void **state)
{
	static const uint32_t calls[] = {
		0x94000000, 0x97ffff0c, /* bl forwards, backwards */
		0xd63f0000, 0xd63f03c0, /* blr x0, x30 */
		0xd63f081f, 0xd63f0d3f, /* blraaz x0, blrabz x9 */
		0xd73f0801, 0xd73f0d3f, /* blraa x0, x1; blrab x9, sp */
	};
	static const uint32_t others[] = {
		0x14000000, 0x17ffffff,                /* b */
		0xd61f0000, 0xd71f0801,                /* br x0; braa x0, x1 */
		0xd65f03c0, 0xd65f0bff,                /* ret, retaa */
		0xd4000001, 0xd503201f,                /* svc #0, nop */
		0x54000000, 0xb4000000, 0, 0xffffffff, /* b.eq, cbz, data */
	};

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(calls); i++)
		assert_true(after_call(calls[i]));
	for (size_t i = 0; i < N_ELEMENTS(others); i++)
		assert_false(after_call(others[i]));
}

static void test_signatures(void **state)
{
	const uint64_t pc = UINT64_C(0xfff7a3c1d4e0), far = UINT64_C(0xafff7a3c1d4e0);

	(void)state;
	assert_int_equal(machine_return_address(pc), pc);
	assert_int_equal(machine_return_address(0), 0);
	assert_int_equal(machine_return_address(pc | UINT64_C(0xff7f) << 48), pc);
	assert_int_equal(machine_return_address(UINT64_C(0x56000000400754)), 0x400754);
	assert_int_equal(machine_strip_signature(far | UINT64_C(0xff7) << 52, 52), far);
	/* Bit 55: the kernel's half. */
	assert_int_equal(machine_strip_signature(UINT64_C(0x12bf800008123456), 48), UINT64_C(0xffff800008123456));
}

static void test_registers(void **state)
{
	uint64_t dump[MACHINE_N_REGS], status[MACHINE_STATUS_WORDS];
	struct regs regs;

	(void)state;
	/* perf_regs.h: X0 .. X29, LR, SP, PC are the lowest 33 bits. */
	assert_int_equal(machine_perf_regs_mask, UINT64_C(0x1ffffffff));
	for (unsigned i = 0; i < N_ELEMENTS(dump); i++)
		dump[i] = 1000 + i;
	machine_regs_from_perf(dump, &regs);
	assert_int_equal(regs.value[0], 1000);
	assert_int_equal(regs.value[MACHINE_REG_FP], 1029);
	assert_int_equal(regs.value[REG_LR], 1030);
	assert_int_equal(regs.value[MACHINE_REG_SP], 1031);
	assert_int_equal(regs.value[MACHINE_REG_PC], 1032);
	/* struct user_pt_regs: X0 .. X30, SP, PC, PSTATE. */
	for (unsigned i = 0; i < N_ELEMENTS(status); i++)
		status[i] = 2000 + i;
	machine_regs_from_status(status, &regs);
	for (unsigned i = 0; i < MACHINE_N_REGS; i++)
		assert_int_equal(regs.value[i], 2000 + i);
	assert_int_equal(machine_signal_slot(MACHINE_N_REGS), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_signatures),
		cmocka_unit_test(test_registers),
		cmocka_unit_test(test_frame_pointer),
		cmocka_unit_test(test_no_frame_pointer),
		cmocka_unit_test(test_unoptimised),
		cmocka_unit_test(test_signed),
		cmocka_unit_test(test_signed_leaves),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_library_without_cfi),
		cmocka_unit_test(test_frame_records),
		cmocka_unit_test(test_with_libc),
		cmocka_unit_test(test_file_of_another_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
