/* SPDX-License-Identifier: MIT */
/* stored_methods.c - see stored_methods.h.
 *
 *	lea  function(%rip), %rax	mov  table@GOTPCREL(%rip), %rax
 *	mov  %rax, slot(%rip)		lea  function(%rip), %rcx
 *					mov  %rcx, 0x48(%rax)
 *
 * The walk has the lengths of the few instructions in such code. At any other byte it forgets all registers and
 * continues with the next byte, so it may begin inside an instruction; a supposed store counts only if the
 * stored word is the start of a function, and the caller expects one at its address.
 *
 * Source: Intel SDM, volume 2, "Instruction format"; System V ABI, AMD64 supplement, "Register usage".
 */
#include "symbolize/stored_methods.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "symbolize/effort.h"

enum {
	REX_W = 0x48,
	REX_R = 4,
	REX_B = 1,
	LEA = 0x8d,
	LOAD = 0x8b,
	STORE = 0x89,
	CALL = 0xe8,
	CALL_BYTES = 5,
	N_REGISTERS = 16,
	SAVED_BY_CALLEE = 0xf028, /* rbx, rbp, r12 to r15 */
	MAX_BYTES = 8,            /* longest instruction that this file decodes */
	LOOK_BYTES = 4096,        /* check the effort after this many bytes */
	STEPS_OF_LOOK = 400,
};

struct walk {
	const struct image *image;
	uint64_t values[N_REGISTERS];
	uint32_t known; /* bit mask of registers */
	stored_word *on_store;
	void *context;
};

/* The ModR/M operand of MOV and LEA. */
struct operand {
	uint64_t address;
	unsigned reg, base; /* base is valid if is_register */
	unsigned length;    /* of the whole instruction */
	bool is_register, is_known;
};

static void learn(struct walk *walk, unsigned reg, uint64_t value)
{
	walk->values[reg] = value;
	walk->known |= 1U << reg;
}

static void forget(struct walk *walk, unsigned reg)
{
	walk->known &= ~(1U << reg);
}

static int64_t displacement(const uint8_t *bytes, unsigned n_bytes)
{
	int32_t wide;

	if (n_bytes == 1)
		return (int8_t)bytes[0];
	memcpy(&wide, bytes, sizeof wide);
	return n_bytes == 4 ? wide : 0;
}

/*
 * Decode ModR/M of an instruction with a REX prefix and a one-byte opcode. False: it has an index register, which is
 * not followed.
 */
static bool read_operand(const struct walk *walk, const uint8_t *code, uint64_t address, struct operand *ret)
{
	const unsigned mod = code[2] >> 6, low = code[2] & 7, has_sib = mod != 3 && low == 4;
	const bool is_relative = mod == 0 && low == 5;
	const unsigned n_bytes = is_relative || mod == 2 ? 4 : mod == 1 ? 1 : 0;
	const unsigned base = low | (code[0] & REX_B ? 8 : 0);

	if (has_sib && ((code[3] & 0x3f) != 0x24 || (mod == 0 && (code[3] & 7) == 5)))
		return false;
	*ret = (struct operand){
		.reg = ((code[2] >> 3) & 7) | (code[0] & REX_R ? 8 : 0),
		.base = base,
		.length = 3 + has_sib + n_bytes,
		.is_register = mod == 3,
		.is_known = is_relative || (walk->known >> base & 1) != 0,
	};
	ret->address = (is_relative ? address + ret->length : walk->values[base]) +
		       (uint64_t)displacement(code + 3 + has_sib, n_bytes);
	return true;
}

static void load(struct walk *walk, const struct operand *operand)
{
	uint64_t value;

	if (operand->is_register && operand->is_known)
		learn(walk, operand->reg, walk->values[operand->base]);
	else if (!operand->is_register && operand->is_known && image_word(walk->image, operand->address, &value))
		learn(walk, operand->reg, value);
	else
		forget(walk, operand->reg);
}

static int store(struct walk *walk, const struct operand *operand)
{
	const uint64_t value = walk->values[operand->reg];
	const bool is_known = walk->known >> operand->reg & 1;

	if (operand->is_register) {
		if (is_known)
			learn(walk, operand->base, value);
		else
			forget(walk, operand->base);
		return 0;
	}
	if (!is_known || !operand->is_known)
		return 0;
	return walk->on_store(walk->context, operand->address, value);
}

/* Returns the instruction's length; 0: another instruction; negative: the result of on_store. */
static int step_move(struct walk *walk, const uint8_t *code, uint64_t address)
{
	struct operand operand;
	int r = 0;

	if ((code[0] & 0xf8) != REX_W || !read_operand(walk, code, address, &operand))
		return 0;
	switch (code[1]) {
	case LEA:
		if (operand.is_register)
			return 0;
		if (operand.is_known)
			learn(walk, operand.reg, operand.address);
		else
			forget(walk, operand.reg);
		break;
	case LOAD:
		load(walk, &operand);
		break;
	case STORE:
		r = store(walk, &operand);
		break;
	default:
		return 0;
	}
	return r < 0 ? r : (int)operand.length;
}

/* PUSH, POP and CALL. Returns the length; 0: another instruction. */
static int step_other(struct walk *walk, const uint8_t *code)
{
	const unsigned prefix = code[0] == 0x41, opcode = code[prefix];

	if (code[0] == CALL) {
		walk->known &= SAVED_BY_CALLEE;
		return CALL_BYTES;
	}
	if ((opcode & 0xf0) != 0x50)
		return 0;
	if (opcode & 8)
		forget(walk, (opcode & 7) | prefix << 3);
	return (int)prefix + 1;
}

static int walk_code(struct walk *walk, const struct image_segment *segment)
{
	const uint64_t n_bytes = segment->end - segment->start;
	uint64_t looked = 0;

	for (uint64_t at = 0; at + MAX_BYTES <= n_bytes;) {
		const uint8_t *code = segment->bytes + at;
		int r = step_move(walk, code, segment->start + at);

		if (r == 0 && walk->known != 0)
			r = step_other(walk, code);
		if (r < 0)
			return r;
		if (r == 0)
			walk->known = 0;
		at += r ? (unsigned)r : 1;
		if (at - looked < LOOK_BYTES)
			continue;
		looked = at;
		if (!effort_go_on(STEPS_OF_LOOK))
			return -ETIME;
	}
	return 0;
}

int stored_words_find(const struct image *image, stored_word *on_store, void *context)
{
	struct walk walk = { .image = image, .on_store = on_store, .context = context };

	if (image->machine != EM_X86_64)
		return 0;
	for (size_t i = 0; i < image->n_segments; i++) {
		int r;

		if (!image->segments[i].executable)
			continue;
		walk.known = 0;
		r = walk_code(&walk, &image->segments[i]);
		if (r < 0)
			return r;
	}
	return 0;
}
