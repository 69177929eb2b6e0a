/* SPDX-License-Identifier: MIT */
/* Unwind from a signal handler whose trampoline has no CFI, as with musl: by its instructions. */
#include <sys/syscall.h>

#include "native_target.h"

/*
 * interrupted(page): known values in registers, then kill(getpid(), SIGUSR1), whose handler never returns. trampoline
 * has no CFI, and no function precedes it.
 */
__asm__(".text\n"
	".globl interrupted\n.hidden interrupted\n.type interrupted, @function\n"
	"interrupted:\n.cfi_startproc\n"
	"push %rbx\n.cfi_def_cfa_offset 16\n.cfi_offset 3, -16\n"
	"mov $39, %eax\nsyscall\n" /* getpid */
	"mov %eax, %edi\nmov $10, %esi\n"
	"movabs $0x3003003003003003, %rbx\nmovabs $0x8008008008008008, %r8\n"
	"movabs $0x1501501501501501, %r15\n"
	"mov $62, %eax\nsyscall\n" /* kill */
	".globl interrupted_here\n.hidden interrupted_here\ninterrupted_here:\n"
	"pop %rbx\n.cfi_def_cfa_offset 8\n.cfi_restore 3\n"
	"ret\n.cfi_endproc\n.size interrupted, . - interrupted\n"
	"nop\n.globl trampoline\n.hidden trampoline\n.type trampoline, @function\n"
	"trampoline:\nmov $15, %rax\nsyscall\n.size trampoline, . - trampoline\n");

#define HIDDEN __attribute__((visibility("hidden")))
extern void interrupted(void) HIDDEN;
extern const char interrupted_here[] HIDDEN, trampoline[] HIDDEN;

static struct target_page *handler_page;

static void handler(int signal)
{
	(void)signal;
	poke(&handler_page->ready, 1);
	for (;;)
		__asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void run_interrupted(struct target_page *page)
{
	struct {
		void (*handler)(int);
		unsigned long flags;
		const void *restorer;
		unsigned long mask;
	} action = { handler, 0x04000000 /* SA_RESTORER */, trampoline, 0 };

	handler_page = page;
	syscall(SYS_rt_sigaction, SIGUSR1, &action, NULL, 8);
	interrupted();
	__asm__ volatile("" ::: "memory");
}

static size_t find_trampoline(const struct native_stack *stack)
{
	for (size_t i = 0; i + 1 < stack->n_frames; i++)
		if (stack->frames[i].is_trampoline)
			return i;
	fail_msg("no trampoline in %zu frames", stack->n_frames);
	return 0;
}

static void test_trampoline(void **state)
{
	static const struct {
		unsigned reg;
		uint64_t value;
	} known[] = {
		{ 3, UINT64_C(0x3003003003003003) },
		{ 8, UINT64_C(0x8008008008008008) },
		{ 15, UINT64_C(0x1501501501501501) },
	};
	struct target target = target_fork(run_interrupted);
	struct sample sample;
	struct view view;
	size_t frame;

	(void)state;
	view_open(&view, target.pid);
	thread_seize(target.pid);
	thread_stop(target.pid);
	sample = view_sample_all(&view, target.pid);
	view_unwind(&view, &sample, view.remote);
	assert_end(&view.stack, STACK_COMPLETE);
	frame = find_trampoline(&view.stack);
	assert_true(frame >= 1);
	assert_int_equal(view.stack.frames[frame].pc, (uintptr_t)trampoline);
	assert_true(view.stack.frames[frame].is_signal);
	frame++;
	assert_int_equal(view.stack.frames[frame].pc, (uintptr_t)interrupted_here);
	assert_false(view.stack.frames[frame].is_return_address);
	for (size_t i = 0; i < N_ELEMENTS(known); i++) {
		uint64_t value = 0;

		assert_int_equal(native_register(&view.stack, frame, known[i].reg, &value), 0);
		assert_int_equal(value, known[i].value);
	}
	view_close(&view);
	target_end(&target);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_trampoline) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
