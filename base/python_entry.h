/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* python_entry.h - fields of a frame's structures for a record, in place or by copies.
 *
 * Part of python_walk.h. frames.bpf.c is compiled twice: with HAVE_DIRECT_MAP, for kernels that permit reading memory by
 * page tables (src/capture/bpf/page_tables.h, included before), and without. There, and in the agent, nothing is ever in
 * place, and the compiler removes the checks.
 */
#ifndef PROBING_BASE_PYTHON_ENTRY_H
#define PROBING_BASE_PYTHON_ENTRY_H

#include "base/python_record.h"

enum {
	BYTES_MASK = 511,
};

static __always_inline uint64_t at(uint64_t address, int32_t offset)
{
	return address + (uint64_t)(int64_t)offset;
}

static __always_inline uint64_t word_at(const uint8_t *bytes, int32_t offset)
{
	return *(const uint64_t *)(bytes + ((uint32_t)offset & BYTES_MASK));
}

static __always_inline uint32_t half_at(const uint8_t *bytes, int32_t offset)
{
	return *(const uint32_t *)(bytes + ((uint32_t)offset & BYTES_MASK));
}

static __always_inline uint8_t byte_at(const uint8_t *bytes, int32_t offset)
{
	return bytes[(uint32_t)offset & BYTES_MASK];
}

#ifndef HAVE_DIRECT_MAP
static __always_inline uint64_t own_tables(void)
{
	return 0;
}

static __always_inline uint64_t kernel_word(uint64_t address)
{
	return 0;
}

static __always_inline uint32_t kernel_half(uint64_t address)
{
	return 0;
}

static __always_inline uint8_t kernel_byte(uint64_t address)
{
	return 0;
}
#endif

/* A structure of the process: a copy, or in place in the kernel's direct map. The compiler knows which. */
struct view {
	const uint8_t *bytes; /* NULL: in place */
	uint64_t address;     /* in the direct map */
};

static __always_inline uint64_t view_word(const struct view *view, int32_t offset)
{
	return view->bytes ? word_at(view->bytes, offset) : kernel_word(at(view->address, offset));
}

static __always_inline uint32_t view_half(const struct view *view, int32_t offset)
{
	return view->bytes ? half_at(view->bytes, offset) : kernel_half(at(view->address, offset));
}

static __always_inline uint8_t view_byte(const struct view *view, int32_t offset)
{
	return view->bytes ? byte_at(view->bytes, offset) : kernel_byte(at(view->address, offset));
}

static __always_inline void take_frame(const struct python_layout *layout, const struct view *frame,
				       struct python_entry *entry)
{
	entry->previous = view_word(frame, layout->frame_previous);
	entry->instruction = layout->frame_instruction_bytes == 8 ? view_word(frame, layout->frame_instruction)
								  : view_half(frame, layout->frame_instruction);
	entry->code = view_word(frame, layout->frame_code) & ~(uint64_t)3;
	entry->type = layout->frame_type == PYTHON_ABSENT ? 0 : view_word(frame, layout->frame_type);
	entry->bytecode_index = layout->frame_bytecode_index == PYTHON_ABSENT
					? 0
					: view_half(frame, layout->frame_bytecode_index);
	entry->kind = PYTHON_ENTRY_FRAME;
	entry->owner = layout->frame_owner == PYTHON_ABSENT ? 0 : view_byte(frame, layout->frame_owner);
	entry->is_entry = layout->frame_entry == PYTHON_ABSENT ? 0 : view_byte(frame, layout->frame_entry);
}

static __always_inline void take_code(const struct python_layout *layout, const struct view *code,
				      struct python_entry *entry)
{
	entry->name = view_word(code, layout->code_name);
	entry->file = view_word(code, layout->code_file);
	entry->lines = view_word(code, layout->code_lines);
	entry->size = view_word(code, layout->code_size);
	entry->first_line = view_half(code, layout->code_first_line);
	entry->version = layout->code_version == PYTHON_ABSENT ? 0 : view_half(code, layout->code_version);
	entry->name_length = entry->name_hash = 0;
}

/* The name's length and hash are adjacent, so one read covers both. */
static __always_inline int32_t name_span(const struct python_layout *layout)
{
	return layout->name_identity + 2 * (int32_t)sizeof(uint64_t);
}

static __always_inline void take_name(const struct python_layout *layout, const struct view *name,
				      struct python_entry *entry)
{
	entry->name_length = view_word(name, layout->name_identity);
	entry->name_hash = view_word(name, layout->name_identity + (int32_t)sizeof(uint64_t));
}

enum in_place { NOT_IN_PLACE, IN_PLACE, MOVED };

#ifdef HAVE_DIRECT_MAP
#ifdef __bpf__ /* tests define their own map elsewhere */
/* User space sets this before loading; the verifier then treats it as constant. */
const volatile struct direct_map direct_map SEC(".rodata.direct_map");
#endif

/*
 * Each structure begins with a non-NULL pointer, or with an object's reference count and type. Zeros mean that the
 * direct map does not have the page.
 */
static __always_inline bool find_structure(uint64_t tables, uint64_t address, int32_t span, struct place *ret)
{
	return find_place(&direct_map, tables, address, (uint32_t)span, ret) &&
	       (kernel_word(ret->address) | kernel_word(ret->address + sizeof(uint64_t))) != 0;
}

/* The two functions below are global: the verifier checks a global function once, not once per call. */

__attribute__((noinline)) int take_frame_in_place(const struct python_layout *layout, uint64_t tables,
						  struct python_entry *entry)
{
	struct place place;
	struct view frame = { 0 };

	if (!layout || !entry || !find_structure(tables, entry->address, layout->frame_span, &place))
		return NOT_IN_PLACE;
	frame.address = place.address;
	take_frame(layout, &frame, entry);
	return is_in_place(&place) ? IN_PLACE : MOVED;
}

__attribute__((noinline)) int take_code_in_place(const struct python_layout *layout, uint64_t tables,
						 struct python_entry *entry)
{
	struct place code_place, name_place;
	struct view code = { 0 }, name = { 0 };

	if (!layout || !entry || !find_structure(tables, entry->code, layout->code_span, &code_place))
		return NOT_IN_PLACE;
	code.address = code_place.address;
	take_code(layout, &code, entry);
	if (!is_in_place(&code_place))
		return MOVED;
	if (layout->name_identity == PYTHON_ABSENT)
		return IN_PLACE;
	if (!find_structure(tables, entry->name, name_span(layout), &name_place))
		return NOT_IN_PLACE;
	name.address = name_place.address;
	take_name(layout, &name, entry);
	return is_in_place(&name_place) ? IN_PLACE : MOVED;
}

#else
static __always_inline int take_frame_in_place(const struct python_layout *layout, uint64_t tables,
					       struct python_entry *entry)
{
	return NOT_IN_PLACE;
}

static __always_inline int take_code_in_place(const struct python_layout *layout, uint64_t tables,
					      struct python_entry *entry)
{
	return NOT_IN_PLACE;
}
#endif

#endif
