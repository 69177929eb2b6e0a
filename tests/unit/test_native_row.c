/* SPDX-License-Identifier: MIT */
/* Hand-made call frame information: the rows it compiles to, and walks over it.
 *
 * The functions below are in the test's own code and never run; the walks are
 * over made-up registers and stack bytes.
 */
#include <fcntl.h>

#include "native_target.h"

#include "unwind/native/walk.h"

/* Two instructions under the given directives; the tests look up the second byte. */
#define FUNCTION(name, directives)                                                                                     \
	__asm__(".text\n.globl " #name "\n.hidden " #name "\n.type " #name ", @function\n" #name                       \
		":\n.cfi_startproc\n" directives "\nnop\nnop\nnop\nnop\n.cfi_endproc\n.size " #name ", . - " #name     \
		"\n");                                                                                                 \
	extern const char name[] __attribute__((visibility("hidden")))

/* The looked-up byte is a return, a jump to itself, or a jump out: registers were popped without a CFI rule. */
#define FUNCTION_ENDING(name, ending)                                                                                  \
	FUNCTION(name, ".cfi_def_cfa_offset 16\n.cfi_offset 6, -16\nnop\n.cfi_def_cfa_offset 8\n" ending)
FUNCTION_ENDING(ends_by_return, "ret");
FUNCTION_ENDING(ends_by_jump, ".byte 0xe9, 0, 1, 0, 0");
FUNCTION_ENDING(goes_on, ".byte 0xeb, 0xfe");

FUNCTION(plain_by_sp, ".cfi_def_cfa_offset 48\n.cfi_offset 3, -24\n.cfi_offset 12, -16");
FUNCTION(plain_by_fp, ".cfi_def_cfa 6, 16\n.cfi_offset 6, -16");
FUNCTION(plain_again, ".cfi_def_cfa 6, 16\n.cfi_offset 6, -16");
FUNCTION(by_other, ".cfi_def_cfa 10, 0");
FUNCTION(by_rbx, ".cfi_def_cfa 3, 64");
FUNCTION(outermost, ".cfi_undefined 16");
FUNCTION(lost_fp, ".cfi_undefined 6");
FUNCTION(signal_frame, ".cfi_signal_frame\n.cfi_def_cfa_offset 256");
/* breg6 -8; deref */
FUNCTION(by_memory, ".cfi_escape 0x0f, 3, 0x76, 0x78, 0x06");
/* breg7 8; lit3; lit2; shl; plus: rsp + 20 */
FUNCTION(by_expression, ".cfi_escape 0x0f, 6, 0x77, 8, 0x33, 0x32, 0x24, 0x22");
/* breg7 -8; deref; plus_uconst 8: where the stack pointer was is kept below where it is. */
FUNCTION(below_sp, ".cfi_escape 0x0f, 5, 0x77, 0x78, 0x06, 0x23, 8");
FUNCTION(calls, ".byte 0xe8, 0, 0, 0, 0");
FUNCTION(far_offset, ".cfi_offset 3, -80000");
FUNCTION(pc_in_register, ".cfi_register 16, 5\n.cfi_def_cfa_offset 8");
/* val_offset rbx, 2 * -8: rbx of the caller is CFA - 16 itself. */
FUNCTION(value_of_cfa, ".cfi_escape 0x14, 3, 2");
/* return address: an expression on r10, which no caller can recover */
FUNCTION(pc_by_r10, ".cfi_escape 0x10, 16, 2, 0x7a, 0");
/* breg7 8 and 69 nops: more operations than anybody writes. */
#define NOPS_23                                                                                                        \
	".cfi_escape 0x96,0x96,0x96,0x96,0x96,0x96,0x96,0x96,0x96,0x96,0x96,0x96,0x96,0x96,0x96,"                      \
	"0x96,0x96,0x96,0x96,0x96,0x96,0x96,0x96\n"
FUNCTION(too_long, ".cfi_escape 0x0f, 71, 0x77, 8\n" NOPS_23 NOPS_23 NOPS_23);
/* rbx is saved at the CFA, which depends on rbx of the previous frame: four times, or once. */
FUNCTION(hangs_on_four, ".cfi_escape 0x10, 3, 12, 0x73, 0, 0x13, 0x73, 0, 0x13, 0x73, 0, 0x13, 0x73, 0, "
			"0x13");
FUNCTION(hangs_on_one, ".cfi_escape 0x10, 3, 3, 0x73, 0, 0x13");
__asm__(".text\n.globl without\n.hidden without\n.type without, @function\nwithout:\nnop\nnop\nnop\n"
	".size without, . - without\n");
extern const char without[] __attribute__((visibility("hidden")));

static struct view view;

static int open_view(void **state)
{
	(void)state;
	view_open(&view, getpid());
	return 0;
}

static int close_view(void **state)
{
	(void)state;
	view_close(&view);
	return 0;
}

static uint64_t inside(const char *function)
{
	return (uint64_t)(uintptr_t)function + 1;
}

static uint32_t row_id(const char *function)
{
	struct module *module;
	uint64_t address;
	uint32_t id;

	assert_int_equal(address_space_resolve(view.space, inside(function), &module, &address), 0);
	assert_non_null(module);
	assert_int_equal(cfi_row_at(&view.unwinder->pool, NULL, module, address, &id), 0);
	return id;
}

static const struct cfi_row *row_of(const char *function)
{
	return &view.unwinder->pool.rows[row_id(function)];
}

static int16_t saved(const struct cfi_row *row, unsigned reg)
{
	return row->saved[row_saved_index(reg)];
}

/* ---- Rows ---- */

static void restored_rows(void **state)
{
	static const uint8_t ret[] = { 0xc3 }, bnd_ret[] = { 0xf2, 0xc3 }, ret_n[] = { 0xc2, 8, 0 },
			     jump[] = { 0xeb, 2 }, cut[] = { 0xe9, 0, 1 }, add[] = { 0x48, 0x83, 0xc4, 0x18 };

	(void)state;
	assert_int_equal(saved(row_of(ends_by_return), MACHINE_REG_FP), SAVED_SAME);
	assert_true(row_of(ends_by_return)->is_plain);
	assert_int_equal(saved(row_of(ends_by_jump), MACHINE_REG_FP), SAVED_SAME);
	/* Within the function this is unknown: a leaf may keep registers below the stack pointer. */
	assert_int_equal(saved(row_of(goes_on), MACHINE_REG_FP), -16);
	assert_int_equal(saved(row_of(plain_by_fp), MACHINE_REG_FP), -16);

	assert_true(machine_is_leaving(ret, sizeof ret, 0x10, 0, 0x20));
	assert_true(machine_is_leaving(bnd_ret, sizeof bnd_ret, 0x10, 0, 0x20));
	assert_true(machine_is_leaving(ret_n, sizeof ret_n, 0x10, 0, 0x20));
	assert_false(machine_is_leaving(jump, sizeof jump, 0x10, 0, 0x20));
	assert_true(machine_is_leaving(jump, sizeof jump, 0x1e, 0, 0x20));
	assert_false(machine_is_leaving(cut, sizeof cut, 0x10, 0, 0x20));
	assert_false(machine_is_leaving(add, sizeof add, 0x10, 0, 0x20));
	assert_false(machine_is_leaving(add, 0, 0x10, 0, 0x20));
}

static void plain_rows(void **state)
{
	const struct cfi_row *row = row_of(plain_by_sp);

	(void)state;
	assert_int_equal(row->cfa_kind, CFA_REGISTER);
	assert_int_equal(row->cfa_register, MACHINE_REG_SP);
	assert_int_equal(row->cfa_offset, 48);
	assert_int_equal(saved(row, MACHINE_REG_PC), -8);
	assert_int_equal(saved(row, 3), -24);
	assert_int_equal(saved(row, 12), -16);
	assert_int_equal(saved(row, MACHINE_REG_FP), SAVED_SAME);
	assert_true(row->is_plain && !row->is_signal && !row->is_outermost);
	assert_int_equal(row->slow, 0);

	row = row_of(plain_by_fp);
	assert_int_equal(row->cfa_register, MACHINE_REG_FP);
	assert_int_equal(saved(row, MACHINE_REG_FP), -16);
	assert_true(row->is_plain);
}

static void equal_rows_are_one(void **state)
{
	(void)state;
	assert_int_equal(row_id(plain_by_fp), row_id(plain_again));
	assert_int_not_equal(row_id(plain_by_fp), row_id(plain_by_sp));
}

static void special_rows(void **state)
{
	(void)state;
	assert_int_equal(row_of(by_other)->cfa_register, 10);
	assert_false(row_of(by_other)->is_plain);
	assert_true(row_of(outermost)->is_outermost);
	assert_false(row_of(outermost)->is_plain);
	assert_int_equal(saved(row_of(lost_fp), MACHINE_REG_FP), SAVED_UNDEFINED);
	assert_false(row_of(lost_fp)->is_plain);
	assert_true(row_of(signal_frame)->is_signal);
	assert_false(row_of(signal_frame)->is_plain);
	assert_int_equal(row_of(by_memory)->cfa_kind, CFA_DEREF);
	assert_int_equal(row_of(by_memory)->cfa_register, MACHINE_REG_FP);
	assert_int_equal(row_of(by_memory)->cfa_offset, -8);
	assert_int_equal(row_of(by_expression)->cfa_kind, CFA_EXPRESSION);
	assert_int_equal(saved(row_of(far_offset), 3), SAVED_EXPRESSION);
	assert_int_equal(saved(row_of(value_of_cfa), 3), SAVED_EXPRESSION);
}

static void no_row(void **state)
{
	(void)state;
	assert_int_equal(row_id(without), ROW_NONE);
	assert_int_equal(row_id(too_long), ROW_NONE);
}

/* ---- Walks ---- */

enum { N_WORDS = 1 << 16 };

static uint64_t words[N_WORDS];

#define STACK_AT UINT64_C(0x7ffd00000000) /* the address of the invented stack */

/* The leaf is in a function, and the stack holds the words. */
static struct sample made_up(const char *leaf, size_t n_words)
{
	struct sample sample = {
		.pid = view.pid,
		.has_user = true,
		.stack = (const uint8_t *)words,
		.stack_bytes = n_words * sizeof *words,
	};

	sample.regs.value[MACHINE_REG_PC] = inside(leaf);
	sample.regs.value[MACHINE_REG_SP] = STACK_AT;
	return sample;
}

/* Return addresses, by the word. */
static void return_to(size_t word, const char *function)
{
	words[word] = inside(function) + 1;
}

static void unwind(const struct sample *sample, enum stack_end end, size_t n_frames)
{
	view_unwind(&view, sample, NULL);
	assert_end(&view.stack, end);
	assert_int_equal(view.stack.n_frames, n_frames);
}

static void walk_by_expression(void **state)
{
	struct sample sample = made_up(by_expression, 64);

	(void)state;
	memset(words, 0, sizeof words);
	sample.regs.value[MACHINE_REG_SP] += 4; /* the expression adds 20 */
	sample.stack += 4;
	sample.stack_bytes -= 8;
	return_to(2, outermost);
	unwind(&sample, STACK_COMPLETE, 2);
	assert_int_equal(view.stack.frames[0].cfa, STACK_AT + 24);
}

static void walk_by_memory(void **state)
{
	struct sample sample = made_up(by_memory, 64);

	(void)state;
	memset(words, 0, sizeof words);
	sample.regs.value[MACHINE_REG_FP] = STACK_AT + 80;
	words[9] = STACK_AT + 128;
	return_to(15, outermost);
	unwind(&sample, STACK_COMPLETE, 2);
	assert_int_equal(view.stack.frames[0].cfa, STACK_AT + 128);

	/* The word that holds the CFA was not captured, or is unmapped. */
	sample.regs.value[MACHINE_REG_FP] = STACK_AT + 64 * 8 + 800;
	unwind(&sample, STACK_TRUNCATED, 1);
	sample.regs.value[MACHINE_REG_FP] = 64;
	unwind(&sample, STACK_BAD_MEMORY, 1);
}

/* The word that holds the CFA is below SP: a late read finds another call's, or none. */
static void walk_by_memory_below_sp(void **state)
{
	static const uint64_t now[] = { STACK_AT + 11 * 8, STACK_AT + 7 * 8, 12345, 0 };
	struct sample sample = made_up(below_sp, 64);
	struct remote *remote;

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(now); i++) {
		memset(words, 0, sizeof words);
		words[11] = (uint64_t)(uintptr_t)calls + 5;
		return_to(12, outermost);
		assert_int_equal(remote_open_buffer(RADDR(STACK_AT - 8), &now[i], sizeof now[i], &remote), 0);
		view_unwind(&view, &sample, now[i] ? remote : NULL);
		assert_end(&view.stack, STACK_COMPLETE);
		assert_int_equal(view.stack.n_frames, 3);
		assert_int_equal(view.stack.frames[0].cfa, STACK_AT + 12 * 8);
		assert_int_equal(view.stack.frames[1].pc, words[11]);
		assert_false(view.stack.frames[0].without_cfi);
		remote_free(remote);
	}
	words[11] = 0;
	unwind(&sample, STACK_BAD_MEMORY, 1);
	assert_int_equal(view.stack.frames[0].cfa, 0);
}

static void walk_by_register(void **state)
{
	struct sample sample = made_up(pc_in_register, 64);
	uint64_t rbx;

	(void)state;
	memset(words, 0, sizeof words);
	sample.regs.value[5] = inside(value_of_cfa) + 1;
	return_to(1, by_rbx);
	return_to(7, outermost);
	sample.regs.value[3] = 0xbad;
	unwind(&sample, STACK_COMPLETE, 4);
	assert_int_equal(view.stack.frames[1].pc, inside(value_of_cfa) + 1);
	/* The CFA of value_of_cfa is STACK_AT + 16, and rbx 16 less. */
	assert_int_equal(native_register(&view.stack, 2, 3, &rbx), 0);
	assert_int_equal(rbx, STACK_AT);
	assert_int_equal(native_register(&view.stack, 1, 3, &rbx), 0);
	assert_int_equal(rbx, 0xbad);
}

/* A return address that hangs on a register that callers do not keep. */
static void walk_to_lost_register(void **state)
{
	struct sample sample = made_up(plain_by_sp, 64);

	(void)state;
	memset(words, 0, sizeof words);
	return_to(5, pc_by_r10);
	unwind(&sample, STACK_BAD_MEMORY, 2);
}

/* A frame pointer that is lost does no harm to those who do not use it. */
static void walk_without_frame_pointer(void **state)
{
	struct sample sample = made_up(lost_fp, 64);

	(void)state;
	memset(words, 0, sizeof words);
	return_to(0, plain_by_sp);
	return_to(6, outermost);
	unwind(&sample, STACK_COMPLETE, 3);
}

/* A CFA that does not lie above the frame would never end. */
static void walk_in_circles(void **state)
{
	struct sample sample = made_up(by_rbx, 64);

	(void)state;
	memset(words, 0, sizeof words);
	sample.regs.value[3] = STACK_AT - 64;
	unwind(&sample, STACK_BAD_MEMORY, 1);
}

/* The frame pointer alone proves nothing: a zero behind it is no thread's start; a function without callers is. */
static void walk_by_frame_pointer_to_zero(void **state)
{
	struct sample sample = made_up(without, 64);

	(void)state;
	memset(words, 0, sizeof words);
	sample.regs.value[MACHINE_REG_FP] = STACK_AT + 2 * 8;
	return_to(3, plain_by_sp);
	unwind(&sample, STACK_NO_UNWIND_INFO, 2);
	assert_true(view.stack.frames[0].without_cfi);
	return_to(9, outermost);
	unwind(&sample, STACK_COMPLETE, 3);
}

/* ---- Hostile ---- */

/* Frames of one function only, and one whose rule needs rbx. */
static void make_chain(const char *function, size_t n)
{
	for (size_t i = 0; i < n; i++)
		return_to(i, function);
	return_to(n - 1, by_rbx);
}

/* Each rbx hangs on four others: 4^40 of them. */
static void exponential(void **state)
{
	struct sample sample = made_up(hangs_on_four, 64);

	(void)state;
	memset(words, 0, sizeof words);
	make_chain(hangs_on_four, 40);
	alarm(20);
	unwind(&sample, STACK_BAD_MEMORY, 41);
	alarm(0);
}

/* Each rbx hangs on one other, as deep as the stack is. */
static void deep_nesting(void **state)
{
	struct sample sample = made_up(hangs_on_one, N_WORDS);

	(void)state;
	memset(words, 0, sizeof words);
	make_chain(hangs_on_one, 60000);
	alarm(20);
	unwind(&sample, STACK_BAD_MEMORY, 60001);
	alarm(0);
}

/* More frames than the array is to hold. */
static void too_many_frames(void **state)
{
	struct sample sample = made_up(hangs_on_one, N_WORDS);

	(void)state;
	for (size_t i = 0; i < N_WORDS; i++)
		return_to(i, hangs_on_one);
	unwind(&sample, STACK_FRAME_LIMIT, NATIVE_MAX_FRAMES);
}

/* An interrupted frame, and the trampoline, are looked up by their exact address. */
static void through_a_signal_frame(void **state)
{
	struct sample sample = made_up(plain_by_sp, 64);

	(void)state;
	memset(words, 0, sizeof words);
	return_to(5, signal_frame);
	words[6 + 31] = (uint64_t)(uintptr_t)plain_by_sp; /* its first byte */
	return_to(6 + 32 + 5, outermost);
	unwind(&sample, STACK_COMPLETE, 4);
	assert_true(view.stack.frames[1].is_signal);
	assert_false(view.stack.frames[1].is_return_address);
	assert_false(view.stack.frames[2].is_return_address);
	assert_true(view.stack.frames[3].is_return_address);
}

/* ---- A library that is truncated while it is mapped ---- */

static void map_code_of(const char *path, const char **ret_code, size_t *ret_bytes)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct elf_segment segment;
	size_t n = 0, page = (size_t)getpagesize();

	assert_int_equal(elf_file_open(fd, &elf), 0);
	do
		assert_true(elf_file_segment(elf, n++, &segment));
	while (!segment.executable);
	*ret_bytes = segment.n_file_bytes;
	*ret_code = mmap(NULL, *ret_bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd,
			 (off_t)(segment.file_offset / page * page));
	assert_true(*ret_code != MAP_FAILED);
}

static unsigned count_rows(struct view *of, const char *code, size_t n_bytes, size_t from)
{
	unsigned n = 0;

	for (size_t at = from; at < n_bytes; at += 512) {
		struct module *module;
		uint64_t address;
		uint32_t id;

		assert_int_equal(address_space_resolve(of->space, (uint64_t)(uintptr_t)code + at, &module, &address),
				 0);
		assert_non_null(module);
		assert_int_equal(cfi_row_at(&of->unwinder->pool, NULL, module, address, &id), 0);
		n += id != ROW_NONE;
	}
	return n;
}

static void truncated_library(void **state)
{
	char path[] = "/tmp/test_native_row.XXXXXX", line[128];
	struct view own;
	const char *code;
	size_t n_bytes;

	(void)state;
	close(mkstemp(path));
	snprintf(line, sizeof line, "cat /proc/%d/exe > %s", (int)getpid(), path);
	assert_int_equal(system(line), 0);
	map_code_of(path, &code, &n_bytes);
	view_open(&own, getpid());
	assert_true(count_rows(&own, code, n_bytes, 0) > 0);
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(count_rows(&own, code, n_bytes, 64), 0);
	view_close(&own);
	munmap((void *)(uintptr_t)code, n_bytes);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(truncated_library),
		cmocka_unit_test(plain_rows),
		cmocka_unit_test(restored_rows),
		cmocka_unit_test(equal_rows_are_one),
		cmocka_unit_test(special_rows),
		cmocka_unit_test(no_row),
		cmocka_unit_test(walk_by_expression),
		cmocka_unit_test(walk_by_memory),
		cmocka_unit_test(walk_by_memory_below_sp),
		cmocka_unit_test(walk_by_register),
		cmocka_unit_test(walk_to_lost_register),
		cmocka_unit_test(walk_without_frame_pointer),
		cmocka_unit_test(walk_by_frame_pointer_to_zero),
		cmocka_unit_test(walk_in_circles),
		cmocka_unit_test(exponential),
		cmocka_unit_test(deep_nesting),
		cmocka_unit_test(too_many_frames),
		cmocka_unit_test(through_a_signal_frame),
	};

	return cmocka_run_group_tests(tests, open_view, close_view);
}
