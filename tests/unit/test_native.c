/* SPDX-License-Identifier: MIT */
/* Native stacks in shapes that are hard: registers, cut dumps, generated code, calls to nowhere. */
#include "native_target.h"

/*
 * Assembly, so that the registers do not depend on the compiler.
 * pinned_call(function, argument): function(argument), with known values in all callee-saved registers.
 * spin(page), directly behind it: increments the int at page once, then loops forever; changes rax only.
 */
__asm__(".text\n"
	".globl pinned_call\n.hidden pinned_call\n.type pinned_call, @function\n"
	"pinned_call:\n.cfi_startproc\n"
	"push %rbx\n.cfi_def_cfa_offset 16\n.cfi_offset 3, -16\n"
	"push %rbp\n.cfi_def_cfa_offset 24\n.cfi_offset 6, -24\n"
	"push %r12\n.cfi_def_cfa_offset 32\n.cfi_offset 12, -32\n"
	"push %r13\n.cfi_def_cfa_offset 40\n.cfi_offset 13, -40\n"
	"push %r14\n.cfi_def_cfa_offset 48\n.cfi_offset 14, -48\n"
	"push %r15\n.cfi_def_cfa_offset 56\n.cfi_offset 15, -56\n"
	"mov %rdi, %rax\nmov %rsi, %rdi\n"
	"movabs $0x3003003003003003, %rbx\nmovabs $0x6006006006006006, %rbp\n"
	"movabs $0x1201201201201201, %r12\nmovabs $0x1301301301301301, %r13\n"
	"movabs $0x1401401401401401, %r14\nmovabs $0x1501501501501501, %r15\n"
	"call *%rax\n"
	"pop %r15\n.cfi_def_cfa_offset 48\n.cfi_restore 15\n"
	"pop %r14\n.cfi_def_cfa_offset 40\n.cfi_restore 14\n"
	"pop %r13\n.cfi_def_cfa_offset 32\n.cfi_restore 13\n"
	"pop %r12\n.cfi_def_cfa_offset 24\n.cfi_restore 12\n"
	"pop %rbp\n.cfi_def_cfa_offset 16\n.cfi_restore 6\n"
	"pop %rbx\n.cfi_def_cfa_offset 8\n.cfi_restore 3\n"
	"ret\n.cfi_endproc\n.size pinned_call, . - pinned_call\n"
	".globl spin\n.hidden spin\n.type spin, @function\n"
	"spin:\n.cfi_startproc\n"
	"lock incl (%rdi)\n"
	"1: inc %rax\njmp 1b\nret\n.cfi_endproc\n.size spin, . - spin\n");

#define HIDDEN __attribute__((visibility("hidden")))
extern void pinned_call(void (*function)(void *), void *argument) HIDDEN;
extern void spin(void *page) HIDDEN;

#define NOINLINE __attribute__((noinline))

static const struct {
	unsigned reg;
	uint64_t value;
} pinned[] = {
	{ 3, UINT64_C(0x3003003003003003) },  { 6, UINT64_C(0x6006006006006006) },
	{ 12, UINT64_C(0x1201201201201201) }, { 13, UINT64_C(0x1301301301301301) },
	{ 14, UINT64_C(0x1401401401401401) }, { 15, UINT64_C(0x1501501501501501) },
};

/* ---- Registers of outer frames ---- */

/* Saves all of them, and fills them with something else. */
static NOINLINE void clobber(void *page)
{
	__asm__ volatile("xor %%ebx, %%ebx\nxor %%r12d, %%r12d\nxor %%r13d, %%r13d\n"
			 "xor %%r14d, %%r14d\nxor %%r15d, %%r15d" ::
				 : "rbx", "r12", "r13", "r14", "r15");
	spin(page);
	__asm__ volatile("" ::: "memory");
}

static void run_pinned(struct target_page *page)
{
	pinned_call(clobber, page);
}

/* The same with nothing in between that saves. */
static void run_pinned_leaf(struct target_page *page)
{
	pinned_call(spin, page);
}

static size_t find_pinned(const struct native_stack *stack)
{
	uint64_t start = (uint64_t)(uintptr_t)pinned_call, end = (uint64_t)(uintptr_t)spin;

	for (size_t i = 0; i < stack->n_frames; i++)
		if (stack->frames[i].pc - start < end - start)
			return i;
	fail_msg("no frame of pinned_call");
	return 0;
}

static void check_pinned(void (*run)(struct target_page *page))
{
	struct target target = target_fork(run);
	struct sample sample;
	struct view view;
	uint64_t value;
	size_t frame;

	view_open(&view, target.pid);
	thread_seize(target.pid);
	thread_stop(target.pid);
	sample = view_sample_all(&view, target.pid);
	view_unwind(&view, &sample, NULL);
	assert_end(&view.stack, STACK_COMPLETE);
	frame = find_pinned(&view.stack);
	assert_true(frame >= 1);
	for (size_t i = 0; i < N_ELEMENTS(pinned); i++) {
		value = 0;
		assert_int_equal(native_register(&view.stack, frame, pinned[i].reg, &value), 0);
		if (value != pinned[i].value)
			fail_msg("register %u of frame %zu: %#llx", pinned[i].reg, frame, (unsigned long long)value);
	}
	/* Caller-saved registers are known in the leaf only. */
	assert_int_equal(native_register(&view.stack, frame, 0, &value), -ENODATA);
	assert_int_equal(native_register(&view.stack, 0, 0, &value), 0);
	assert_int_equal(value, sample.regs.value[0]);
	assert_int_equal(native_register(&view.stack, frame, MACHINE_REG_SP, &value), 0);
	assert_int_equal(value, view.stack.frames[frame].sp);
	assert_int_equal(native_register(&view.stack, frame, MACHINE_REG_PC, &value), 0);
	assert_int_equal(value, view.stack.frames[frame].pc);
	assert_int_equal(native_register(&view.stack, view.stack.n_frames, 3, &value), -ENODATA);
	assert_int_equal(native_register(&view.stack, 0, MACHINE_N_REGS, &value), -ENODATA);
	view_close(&view);
	target_end(&target);
}

static void registers_saved_by_callees(void **state)
{
	(void)state;
	check_pinned(run_pinned);
}

static void registers_left_alone(void **state)
{
	(void)state;
	check_pinned(run_pinned_leaf);
}

/* ---- Dumps that end too early ---- */

/* A deep stack: the frames of the whole of it, and what to compare them with. */
struct whole {
	struct target target;
	struct view view;
	struct sample sample;
	struct native_frame *frames;
	size_t n_frames;
};

static NOINLINE void descend(struct target_page *page, unsigned depth)
{
	volatile uint64_t kept[3] = { depth };

	if (depth > 1)
		descend(page, depth - 1);
	else
		spin(page);
	kept[1] = kept[0];
}

static void run_shallow(struct target_page *page)
{
	descend(page, 60);
}

static void run_deep(struct target_page *page)
{
	descend(page, 5000);
}

static NOINLINE void descend_realigned(struct target_page *page, unsigned n_bytes)
{
	uint64_t aligned[8] __attribute__((aligned(64)));
	volatile char *scratch = __builtin_alloca(n_bytes);

	scratch[0] = (char)n_bytes;
	aligned[n_bytes % 8] = (uint64_t)(uintptr_t)scratch;
	__asm__ volatile("" ::"r"(aligned) : "memory");
	if (n_bytes > 16)
		descend_realigned(page, n_bytes - 8);
	else
		spin(page);
	__asm__ volatile("" ::"r"(aligned) : "memory");
}

static void run_realigned(struct target_page *page)
{
	descend_realigned(page, 200);
}

static void whole_open(struct whole *whole, void (*run)(struct target_page *page))
{
	whole->target = target_fork(run);
	view_open(&whole->view, whole->target.pid);
	thread_seize(whole->target.pid);
	thread_stop(whole->target.pid);
	whole->sample = view_sample_all(&whole->view, whole->target.pid);
	view_unwind(&whole->view, &whole->sample, NULL);
	assert_end(&whole->view.stack, STACK_COMPLETE);
	whole->n_frames = whole->view.stack.n_frames;
	whole->frames = calloc(whole->n_frames, sizeof *whole->frames);
	assert_non_null(whole->frames);
	memcpy(whole->frames, whole->view.stack.frames, whole->n_frames * sizeof *whole->frames);
}

static void whole_close(struct whole *whole)
{
	free(whole->frames);
	view_close(&whole->view);
	target_end(&whole->target);
}

static struct sample cut(const struct whole *whole, size_t n_bytes)
{
	struct sample sample = whole->sample;

	sample.stack_bytes = n_bytes;
	return sample;
}

/* The frames are the innermost ones of the whole stack. */
static void assert_beginning(const struct whole *whole)
{
	const struct native_stack *stack = &whole->view.stack;

	assert_true(stack->n_frames > 0 && stack->n_frames <= whole->n_frames);
	for (size_t i = 0; i < stack->n_frames; i++) {
		assert_int_equal(stack->frames[i].pc, whole->frames[i].pc);
		assert_int_equal(stack->frames[i].sp, whole->frames[i].sp);
	}
}

/*
 * Truncate after every word: the result is always an inner part of the stack, or with the rest of the memory all of it.
 */
static void check_cuts(void (*run)(struct target_page *page))
{
	struct whole whole;
	uint64_t top;

	whole_open(&whole, run);
	/* The location of the outermost return address; from there on the stack is complete. */
	top = whole.frames[whole.n_frames - 1].sp - whole.sample.regs.value[MACHINE_REG_SP];
	for (size_t n_bytes = 8; n_bytes < top; n_bytes += 8) {
		struct sample sample = cut(&whole, n_bytes);

		view_unwind(&whole.view, &sample, NULL);
		assert_end(&whole.view.stack, STACK_TRUNCATED);
		assert_beginning(&whole);
		view_unwind(&whole.view, &sample, whole.view.remote);
		assert_end(&whole.view.stack, STACK_COMPLETED);
		assert_int_equal(whole.view.stack.n_frames, whole.n_frames);
		assert_beginning(&whole);
	}
	whole_close(&whole);
}

static void cut_anywhere(void **state)
{
	(void)state;
	check_cuts(run_shallow);
}

/* The address at which the CFA is stored. */
static void cut_realigned(void **state)
{
	(void)state;
	check_cuts(run_realigned);
}

/* Without captured bytes, later memory cannot be checked. */
static void nothing_captured(void **state)
{
	struct whole whole;
	struct sample sample;

	(void)state;
	whole_open(&whole, run_shallow);
	sample = cut(&whole, 0);
	view_unwind(&whole.view, &sample, whole.view.remote);
	assert_end(&whole.view.stack, STACK_TRUNCATED);
	assert_int_equal(whole.view.stack.n_frames, 1);
	whole_close(&whole);
}

/* Memory of the target at a later time, made by the test. */
struct later {
	uint8_t *bytes;
	struct remote *remote;
};

static struct later later_open(const struct whole *whole)
{
	struct later later;

	later.bytes = malloc(whole->sample.stack_bytes);
	assert_non_null(later.bytes);
	memcpy(later.bytes, whole->sample.stack, whole->sample.stack_bytes);
	assert_int_equal(remote_open_buffer(RADDR(whole->sample.regs.value[MACHINE_REG_SP]), later.bytes,
					    whole->sample.stack_bytes, &later.remote),
			 0);
	return later;
}

static void later_close(struct later *later)
{
	remote_free(later->remote);
	free(later->bytes);
}

/* One byte of the seam is another one now: the stack has moved on. */
static void seam_is_compared(void **state)
{
	static const struct {
		size_t captured, changed; /* offsets */
		enum stack_end end;
	} cases[] = {
		{ 1024, 1023, STACK_TRUNCATED },
		{ 1024, 512, STACK_TRUNCATED },
		{ 1024, 511, STACK_COMPLETED },
		{ 4096, 4095, STACK_TRUNCATED },
		{ 4096, 4096 - 512, STACK_TRUNCATED },
		{ 4096, 4096 - 513, STACK_COMPLETED },
		{ 64, 0, STACK_TRUNCATED },
	};
	struct whole whole;

	(void)state;
	whole_open(&whole, run_deep);
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		struct sample sample = cut(&whole, cases[i].captured);
		struct later later = later_open(&whole);
		uint64_t word;

		sample.time_ns = (i + 1) * UINT64_C(1000000000); /* too late for what was kept of the one before */
		later.bytes[cases[i].changed] ^= 1;
		view_unwind(&whole.view, &sample, later.remote);
		assert_end(&whole.view.stack, cases[i].end);
		assert_beginning(&whole);
		/* Nor is anything behind a bad seam given out. */
		assert_int_equal(native_stack_read(&whole.view.stack,
						   sample.regs.value[MACHINE_REG_SP] + cases[i].captured, &word,
						   sizeof word),
				 cases[i].end == STACK_COMPLETED ? 0 : -EFAULT);
		later_close(&later);
	}
	whole_close(&whole);
}

/* Memory in which the captured bytes match at first, and not at a later read. */
struct fickle {
	struct remote base;
	struct later later;
	unsigned n_reads, n_same;
	size_t seam;
};

static ssize_t fickle_read(struct remote *remote, struct raddr from, void *to, size_t n_bytes)
{
	struct fickle *fickle = (struct fickle *)remote;

	if (fickle->n_reads++ == fickle->n_same)
		fickle->later.bytes[fickle->seam] ^= 1;
	return remote_read_some(fickle->later.remote, from, to, n_bytes);
}

static void seam_is_compared_each_time(void **state)
{
	static const struct remote_ops ops = { .read = fickle_read };
	struct sample sample;
	struct whole whole;
	uint64_t word;

	(void)state;
	whole_open(&whole, run_deep);
	sample = cut(&whole, 1024);
	/* Right after the first bytes were read, or when more are. */
	for (unsigned n_same = 1; n_same <= 2; n_same++) {
		struct fickle fickle = { .base.ops = &ops, .seam = 1000, .n_same = n_same };

		fickle.later = later_open(&whole);
		view_unwind(&whole.view, &sample, &fickle.base);
		assert_true(fickle.n_reads > n_same);
		assert_end(&whole.view.stack, STACK_TRUNCATED);
		assert_beginning(&whole);
		assert_int_equal(native_stack_read(&whole.view.stack, sample.regs.value[MACHINE_REG_SP] + 1024, &word,
						   sizeof word),
				 -EFAULT);
		later_close(&fickle.later);
	}
	whole_close(&whole);
}

/* Completed parts are checked again while more memory is read that depends on them. */
static void seam_is_asked_for_later(void **state)
{
	static const struct remote_ops ops = { .read = fickle_read };
	struct fickle fickle = { .base.ops = &ops, .seam = 1000, .n_same = UINT32_MAX };
	struct sample sample;
	struct whole whole;

	(void)state;
	whole_open(&whole, run_deep);
	sample = cut(&whole, 1024);
	fickle.later = later_open(&whole);
	view_unwind(&whole.view, &sample, &fickle.base);
	assert_end(&whole.view.stack, STACK_COMPLETED);
	assert_true(native_seam_holds(&whole.view.stack));
	fickle.n_same = fickle.n_reads;
	assert_false(native_seam_holds(&whole.view.stack));
	later_close(&fickle.later);
	whole_close(&whole);
}

/* A sample that is come to too late has the rest of one before it, where the bytes at its seam were the same. */
static void rest_is_kept(void **state)
{
	enum { MS = 1000000, START = 1000 * MS };
	static const struct {
		size_t captured, changed; /* changed: of the captured bytes, 0: none is */
		int after_ms, tid;
		enum stack_end end;
	} cases[] = {
		{ 1024, 0, 1, 0, STACK_COMPLETED },   { 1024, 0, 199, 0, STACK_COMPLETED },
		{ 2048, 0, 2, 0, STACK_COMPLETED },   { 1024, 0, 201, 0, STACK_TRUNCATED },
		{ 1024, 0, -1, 0, STACK_TRUNCATED },  { 1024, 0, 1, 1, STACK_TRUNCATED },
		{ 1024, 600, 1, 0, STACK_TRUNCATED }, { 1024, 400, 1, 0, STACK_COMPLETED },
		{ 256, 0, 1, 0, STACK_COMPLETED },
	};
	struct whole whole;

	(void)state;
	whole_open(&whole, run_deep);
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		struct sample first = cut(&whole, 1024), late = cut(&whole, cases[i].captured);
		struct later later = later_open(&whole), changed = later_open(&whole);

		first.time_ns = (i + 1) * (uint64_t)START;
		late.time_ns = first.time_ns + (uint64_t)(cases[i].after_ms * (int64_t)MS);
		late.tid += cases[i].tid;
		later.bytes[cases[i].captured - 1] ^= 1;
		if (cases[i].changed > 0) {
			changed.bytes[cases[i].changed] ^= 1;
			late.stack = changed.bytes;
		}
		view_unwind(&whole.view, &first, whole.view.remote);
		assert_end(&whole.view.stack, STACK_COMPLETED);
		view_unwind(&whole.view, &late, later.remote);
		assert_end(&whole.view.stack, cases[i].end);
		assert_beginning(&whole);
		assert_true(whole.view.stack.n_frames == whole.n_frames || cases[i].end == STACK_TRUNCATED);
		/* The captured bytes no longer match the memory. */
		assert_false(cases[i].end == STACK_COMPLETED && native_seam_holds(&whole.view.stack));
		later_close(&later);
		later_close(&changed);
	}
	whole_close(&whole);
}

/* Of a frame of run_deep(). AddressSanitizer keeps room around what lies on the stack. */
#ifdef __SANITIZE_ADDRESS__
enum { MAX_FRAME_BYTES = 800 };
#else
enum { MAX_FRAME_BYTES = 200 };
#endif

/* The rest ends before the stack does. */
static void rest_too_short(void **state)
{
	struct remote *remote;
	struct sample sample;
	struct whole whole;

	(void)state;
	whole_open(&whole, run_deep);
	sample = cut(&whole, 1024);
	assert_int_equal(remote_open_buffer(RADDR(sample.regs.value[MACHINE_REG_SP]), sample.stack, 8192, &remote), 0);
	view_unwind(&whole.view, &sample, remote);
	assert_end(&whole.view.stack, STACK_TRUNCATED);
	assert_beginning(&whole);
	assert_true(whole.view.stack.n_frames > 8192 / MAX_FRAME_BYTES);
	remote_free(remote);
	whole_close(&whole);
}

/* Read bytes of the stack across the end of the captured bytes. */
static void stack_bytes_can_be_read(void **state)
{
	struct sample sample;
	struct whole whole;
	uint8_t read[4096];
	uint64_t sp;

	(void)state;
	whole_open(&whole, run_deep);
	sample = cut(&whole, 4096);
	sp = sample.regs.value[MACHINE_REG_SP];
	view_unwind(&whole.view, &sample, whole.view.remote);
	assert_int_equal(native_stack_read(&whole.view.stack, sp, read, 4096), 0);
	assert_memory_equal(read, whole.sample.stack, 4096);
	assert_int_equal(native_stack_read(&whole.view.stack, sp + 2048, read, 4096), 0);
	assert_memory_equal(read, whole.sample.stack + 2048, 4096);
	assert_int_equal(native_stack_read(&whole.view.stack, sp + 4093, read, 100), 0);
	assert_memory_equal(read, whole.sample.stack + 4093, 100);
	assert_int_equal(native_stack_read(&whole.view.stack, sp - 8, read, 8), -EFAULT);
	assert_int_equal(native_stack_read(&whole.view.stack, sp - 8, read, 16), -EFAULT);
	assert_int_equal(native_stack_read(&whole.view.stack, UINT64_MAX - 3, read, 8), -EFAULT);

	view_unwind(&whole.view, &sample, NULL);
	assert_int_equal(native_stack_read(&whole.view.stack, sp + 4088, read, 8), 0);
	assert_int_equal(native_stack_read(&whole.view.stack, sp + 4089, read, 8), -EFAULT);
	whole_close(&whole);
}

static void deep_recursion(void **state)
{
	struct whole whole;

	(void)state;
	whole_open(&whole, run_deep);
	assert_true(whole.n_frames >= 5000);
	for (size_t i = 1; i < whole.n_frames; i++)
		assert_int_equal(whole.frames[i].sp, whole.frames[i - 1].cfa);
	whole_close(&whole);
}

/* A kernel thread, or one that had just left user space for good. */
static void without_user_registers(void **state)
{
	struct sample sample = { .pid = getpid() };
	struct view view;

	(void)state;
	view_open(&view, getpid());
	view_unwind(&view, &sample, view.remote);
	assert_int_equal(view.stack.n_frames, 0);
	view_close(&view);
}

/* ---- Code without CFI ---- */

/* push rbp; mov rbp, rsp; sub rsp, 64; call rsi; leave; ret */
static const uint8_t code_with_fp[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 64, 0xff, 0xd6, 0xc9, 0xc3 };
/*
 * xor eax, eax; mov rcx, rdx; 1: push rax; dec ecx; jnz 1b; call rsi; lea rsp, [rsp + 8 * rdx]; ret
 * Pushes the requested number of words. Unwritten words could contain a whole chain of ended frames, which no search
 * can distinguish from live ones.
 */
static const uint8_t code_without_fp[] = { 0x31, 0xc0, 0x48, 0x89, 0xd1, 0x50, 0xff, 0xc9, 0x75,
					   0xfb, 0xff, 0xd6, 0x48, 0x8d, 0x24, 0xd4, 0xc3 };

typedef void generated(void *page, void (*leaf)(void *page), uint64_t n_words);

static generated *generate(const uint8_t *code, size_t n_bytes)
{
	uint8_t *place = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (place == MAP_FAILED)
		_exit(1);
	memcpy(place, code, n_bytes);
	return (generated *)(uintptr_t)place;
}

/* The page's values: the address of the code, and the size of its frame. */
static NOINLINE void call_generated(void *argument)
{
	struct target_page *page = argument;

	((generated *)(uintptr_t)page->values[0])(page, spin, page->values[1]);
	__asm__ volatile("" ::: "memory");
}

static void run_with_fp(struct target_page *page)
{
	page->values[0] = (uint64_t)(uintptr_t)generate(code_with_fp, sizeof code_with_fp);
	pinned_call(call_generated, page);
}

static void run_without_fp(struct target_page *page)
{
	page->values[0] = (uint64_t)(uintptr_t)generate(code_without_fp, sizeof code_without_fp);
	page->values[1] = 11;
	pinned_call(call_generated, page);
}

/* The same code in two processes with different frame sizes: the result of one is wrong for the other. */
static void run_two_sizes(struct target_page *page)
{
	page->values[0] = (uint64_t)(uintptr_t)generate(code_without_fp, sizeof code_without_fp);
	page->values[1] = 11;
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		page->values[2] = (uint64_t)getpid();
		while (peek(&page->ready) < 1)
			sleep_us(1000);
		page->values[1] = 61;
	}
	call_generated(page);
}

static size_t find_generated(const struct native_stack *stack, uint64_t start)
{
	for (size_t i = 0; i < stack->n_frames; i++)
		if (stack->frames[i].pc - start < 4096)
			return i;
	fail_msg("no frame of the generated code");
	return 0;
}

/* Its frame is present and marked, and its caller is right. */
static void assert_generated(const struct view *view, const struct target *target)
{
	size_t frame = find_generated(&view->stack, target->page->values[0]);

	assert_int_equal(frame, 1);
	assert_true(view->stack.frames[frame].without_cfi);
	assert_true(frame + 1 < view->stack.n_frames);
	assert_in_range(view->stack.frames[frame + 1].pc, (uint64_t)(uintptr_t)call_generated,
			(uint64_t)(uintptr_t)call_generated + 512);
}

static void check_generated(void (*run)(struct target_page *page))
{
	struct target target = target_fork(run);
	struct sample sample;
	struct view view;

	view_open(&view, target.pid);
	thread_seize(target.pid);
	thread_stop(target.pid);
	sample = view_sample_all(&view, target.pid);
	for (unsigned i = 0; i < 2; i++) { /* found, and found again by what was learnt */
		view_unwind(&view, &sample, NULL);
		assert_end(&view.stack, STACK_COMPLETE);
		assert_generated(&view, &target);
		assert_int_equal(find_pinned(&view.stack), 3);
	}
	view_close(&view);
	target_end(&target);
}

static void generated_with_frame_pointer(void **state)
{
	(void)state;
	check_generated(run_with_fp);
}

static void generated_without_frame_pointer(void **state)
{
	(void)state;
	check_generated(run_without_fp);
}

static void generated_with_two_frame_sizes(void **state)
{
	struct target target = target_fork(run_two_sizes);
	pid_t pids[2];
	struct view view;

	(void)state;
	target_wait(&target, 2);
	pids[0] = target.pid;
	pids[1] = (pid_t)target.page->values[2];
	view_open(&view, target.pid);
	for (unsigned i = 0; i < 2; i++) {
		thread_seize(pids[i]);
		thread_stop(pids[i]);
	}
	for (unsigned i = 0; i < 6; i++) {
		struct sample sample;
		struct remote *remote = view.remote;

		/* The twin has the same map, and its own memory. */
		assert_int_equal(remote_open_process(pids[i % 2], &view.remote), 0);
		sample = view_sample_all(&view, pids[i % 2]);
		view_unwind(&view, &sample, NULL);
		assert_end(&view.stack, STACK_COMPLETE);
		assert_generated(&view, &target);
		remote_free(view.remote);
		view.remote = remote;
	}
	view_close(&view);
	kill(pids[1], SIGKILL);
	target_end(&target);
}

static NOINLINE void call_deeply(struct target_page *page, unsigned depth)
{
	if (depth == 0)
		pinned_call(call_generated, page);
	else
		call_deeply(page, depth - 1);
	__asm__ volatile("" ::: "memory");
}

static void run_large(struct target_page *page)
{
	page->values[0] = (uint64_t)(uintptr_t)generate(code_without_fp, sizeof code_without_fp);
	page->values[1] = 61;
	call_deeply(page, 10);
}

/* A target stopped in generated code with a large frame of zeros, and its stack. */
struct large {
	struct target target;
	struct view view;
	struct sample sample;
	struct native_frame frames[64];
	size_t n_frames;
};

static void large_open(struct large *large)
{
	large->target = target_fork(run_large);
	view_open(&large->view, large->target.pid);
	thread_seize(large->target.pid);
	thread_stop(large->target.pid);
	large->sample = view_sample_all(&large->view, large->target.pid);
	view_unwind(&large->view, &large->sample, NULL);
	assert_end(&large->view.stack, STACK_COMPLETE);
	assert_generated(&large->view, &large->target);
	large->n_frames = large->view.stack.n_frames;
	assert_in_range(large->n_frames, 16, N_ELEMENTS(large->frames));
	memcpy(large->frames, large->view.stack.frames, large->n_frames * sizeof large->frames[0]);
	/* Start with a new unwinder: cached results must not help. */
	view_close(&large->view);
	view_open(&large->view, large->target.pid);
	large->sample = view_sample_all(&large->view, large->target.pid);
}

static void large_close(struct large *large)
{
	view_close(&large->view);
	target_end(&large->target);
}

/* Compare the remaining stack. */
static void assert_same_frames(const struct large *large, size_t n_frames)
{
	const struct native_stack *stack = &large->view.stack;

	assert_int_equal(stack->n_frames, n_frames);
	for (size_t i = 0; i < n_frames; i++) {
		assert_int_equal(stack->frames[i].pc, large->frames[i].pc);
		assert_int_equal(stack->frames[i].sp, large->frames[i].sp);
	}
}

/* Of a function that nothing called. */
static uint64_t start_of_stack(const struct large *large)
{
	return large->frames[large->n_frames - 1].pc;
}

/* Old return addresses below the true one: from one the walk comes to a zero at once, and the other's function has no caller. */
static void old_words_are_no_start(void **state)
{
	struct large large;
	uint64_t frame, *word;

	(void)state;
	large_open(&large);
	frame = large.frames[1].sp - large.sample.regs.value[MACHINE_REG_SP];
	word = (uint64_t *)(uintptr_t)(large.sample.stack + frame + 20 * sizeof *word);
	assert_int_equal(word[0] | word[7] | word[20], 0);
	word[0] = large.frames[3].pc;
	word[20] = start_of_stack(&large);
	assert_int_equal(find_pinned(&(struct native_stack){ .frames = large.frames, .n_frames = large.n_frames }), 3);
	view_unwind(&large.view, &large.sample, NULL);
	assert_end(&large.view.stack, STACK_COMPLETE);
	assert_same_frames(&large, large.n_frames);
	large_close(&large);
}

/* If the captured bytes end early, a long walk is accepted, here and at the next PC. */
static void ends_with_the_captured_bytes(void **state)
{
	struct large large;

	(void)state;
	large_open(&large);
	large.sample.stack_bytes = large.frames[large.n_frames - 2].sp - large.sample.regs.value[MACHINE_REG_SP];
	for (unsigned i = 0; i < 2; i++) {
		view_unwind(&large.view, &large.sample, NULL);
		assert_end(&large.view.stack, STACK_TRUNCATED);
		assert_generated(&large.view, &large.target);
		assert_same_frames(&large, large.view.stack.n_frames);
		assert_true(large.view.stack.n_frames + 3 >= large.n_frames);
	}
	large_close(&large);
}

/* No return address to be found, and a frame pointer that is none. */
static void nothing_to_go_by(void **state)
{
	static const uint64_t words[64];
	struct target target = target_fork(run_with_fp);
	struct sample sample = { .has_user = true, .stack = (const uint8_t *)words, .stack_bytes = sizeof words };
	struct view view;

	(void)state;
	view_open(&view, target.pid);
	sample.regs.value[MACHINE_REG_PC] = target.page->values[0];
	sample.regs.value[MACHINE_REG_SP] = UINT64_C(0x7ffd00000000);
	sample.regs.value[MACHINE_REG_FP] = UINT64_C(0x7ffd00000020);
	view_unwind(&view, &sample, NULL);
	assert_end(&view.stack, STACK_NO_UNWIND_INFO);
	assert_int_equal(view.stack.n_frames, 1);
	assert_false(view.stack.frames[0].without_cfi);
	view_close(&view);
	target_end(&target);
}

/* ---- A call to nowhere ---- */

static NOINLINE void call_null(void *argument)
{
	void (*volatile nowhere)(void) = NULL;

	poke(&((struct target_page *)argument)->ready, 1);
	nowhere();
	__asm__ volatile("" ::: "memory");
}

static void run_null(struct target_page *page)
{
	while (peek(&page->command) == 0)
		poke(&page->ready, 1);
	pinned_call(call_null, page);
}

static void call_of_null(void **state)
{
	struct target target = target_fork(run_null);
	struct sample sample;
	struct view view;

	(void)state;
	view_open(&view, target.pid);
	thread_seize(target.pid);
	poke(&target.page->command, 1);
	assert_int_equal(thread_wait(target.pid), SIGSEGV);
	sample = view_sample_all(&view, target.pid);
	assert_int_equal(sample.regs.value[MACHINE_REG_PC], 0);
	view_unwind(&view, &sample, NULL);
	assert_end(&view.stack, STACK_COMPLETE);
	assert_true(view.stack.frames[0].without_cfi);
	assert_int_equal(view.stack.frames[0].pc, 0);
	assert_in_range(view.stack.frames[1].pc, (uint64_t)(uintptr_t)call_null, (uint64_t)(uintptr_t)call_null + 512);
	assert_int_equal(find_pinned(&view.stack), 2);
	view_close(&view);
	target_end(&target);
}

/* ---- Another library at the same place ---- */

/* Files that are mapped into this process anyway: their first executable mappings. */
static size_t two_libraries(struct address_space *space, struct mapping *ret)
{
	const struct mapping *mapping;
	size_t n = 0;

	for (size_t i = 0; n < 2 && (mapping = address_space_nth(space, i)) != NULL; i++)
		if (mapping->executable && mapping->module && !mapping->module->is_vdso &&
		    mapping->end - mapping->start > 0x10000)
			ret[n++] = *mapping;
	return n;
}

static void map_at(struct view *view, uint64_t start, const struct mapping *mapping)
{
	const struct mapping_source source = {
		.start = start,
		.end = start + 0x10000,
		.file_offset = mapping->file_offset,
		.executable = true,
		.device = mapping->module->device,
		.inode = mapping->module->inode,
		.path = mapping->module->path,
	};

	assert_int_equal(address_space_add(view->space, &source), 0);
}

/* The CFA of the leaf by the row at a PC. */
static uint64_t leaf_cfa(struct view *view, uint64_t pc)
{
	static const uint64_t words[512];
	struct sample sample = { .has_user = true, .stack = (const uint8_t *)words, .stack_bytes = sizeof words };

	sample.regs.value[MACHINE_REG_PC] = pc;
	sample.regs.value[MACHINE_REG_SP] = UINT64_C(0x7ffd00000000);
	sample.regs.value[MACHINE_REG_FP] = UINT64_C(0x7ffd00000800);
	view_unwind(view, &sample, NULL);
	return view->stack.frames[0].cfa;
}

static void library_replaced(void **state)
{
	enum { START = 0x10000000, STRIDE = 64, N = 0x10000 / STRIDE };
	static uint64_t first[N];
	struct mapping libraries[2];
	size_t n_differ = 0;
	struct view view;

	(void)state;
	view_open(&view, getpid());
	assert_int_equal(two_libraries(view.space, libraries), 2);
	map_at(&view, START, &libraries[0]);
	for (size_t i = 0; i < N; i++)
		first[i] = leaf_cfa(&view, START + i * STRIDE);
	map_at(&view, START, &libraries[1]);
	map_at(&view, START + 0x10000, &libraries[1]); /* never anything else there */
	for (size_t i = 0; i < N; i++) {
		uint64_t now = leaf_cfa(&view, START + i * STRIDE);

		assert_int_equal(now, leaf_cfa(&view, START + 0x10000 + i * STRIDE));
		n_differ += now != first[i];
	}
	assert_true(n_differ > N / 10);
	view_close(&view);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registers_saved_by_callees),
		cmocka_unit_test(registers_left_alone),
		cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(cut_realigned),
		cmocka_unit_test(nothing_captured),
		cmocka_unit_test(seam_is_compared),
		cmocka_unit_test(seam_is_compared_each_time),
		cmocka_unit_test(seam_is_asked_for_later),
		cmocka_unit_test(rest_is_kept),
		cmocka_unit_test(rest_too_short),
		cmocka_unit_test(stack_bytes_can_be_read),
		cmocka_unit_test(deep_recursion),
		cmocka_unit_test(without_user_registers),
		cmocka_unit_test(generated_with_frame_pointer),
		cmocka_unit_test(generated_without_frame_pointer),
		cmocka_unit_test(generated_with_two_frame_sizes),
		cmocka_unit_test(old_words_are_no_start),
		cmocka_unit_test(ends_with_the_captured_bytes),
		cmocka_unit_test(nothing_to_go_by),
		cmocka_unit_test(call_of_null),
		cmocka_unit_test(library_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
