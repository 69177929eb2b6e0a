/* SPDX-License-Identifier: MIT */
/* test_kernel_types.c - types as the kernel describes them: made ones, and the running kernel's against libbpf. */
#include <errno.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/btf.h>
#include <cmocka.h>

#include "base/util.h"
#include "src/capture/kernel_numbers.h"
#include "src/capture/kernel_types.h"

enum { MAX_WORDS = 256, MAX_STRING_BYTES = 256 };

/* A description under construction. */
struct made {
	struct btf_header header;
	uint32_t words[MAX_WORDS];
	char strings[MAX_STRING_BYTES];
	size_t n_words, n_string_bytes;
};

static uint32_t add_name(struct made *made, const char *name)
{
	size_t n = strlen(name) + 1, at = made->n_string_bytes;

	assert_true(at + n <= MAX_STRING_BYTES);
	memcpy(made->strings + at, name, n);
	made->n_string_bytes += n;
	return (uint32_t)at;
}

static void add_word(struct made *made, uint32_t word)
{
	assert_true(made->n_words < MAX_WORDS);
	made->words[made->n_words++] = word;
}

static void add_type(struct made *made, unsigned kind, const char *name, uint32_t n_parts, uint32_t size)
{
	add_word(made, name ? add_name(made, name) : 0);
	add_word(made, kind << 24 | n_parts);
	add_word(made, size);
}

static void add_member(struct made *made, const char *name, uint32_t type, uint32_t bits)
{
	add_word(made, name ? add_name(made, name) : 0);
	add_word(made, type);
	add_word(made, bits);
}

/* Every kind with words behind it comes before the one that is looked for. */
static void make(struct made *made)
{
	*made = (struct made){ .n_string_bytes = 1 };
	add_type(made, BTF_KIND_INT, "number", 0, 4); /* 1 */
	add_word(made, 32);
	add_type(made, BTF_KIND_ARRAY, NULL, 0, 0);
	for (int i = 0; i < 3; i++)
		add_word(made, 1);
	add_type(made, BTF_KIND_ENUM, "colour", 2, 4);
	for (int i = 0; i < 4; i++)
		add_word(made, 0);
	add_type(made, BTF_KIND_ENUM64, "colours", 1, 8);
	for (int i = 0; i < 3; i++)
		add_word(made, 0);
	add_type(made, BTF_KIND_FUNC_PROTO, NULL, 2, 1); /* 5 */
	for (int i = 0; i < 4; i++)
		add_word(made, 0);
	add_type(made, BTF_KIND_FUNC, "run", 0, 5);
	add_type(made, BTF_KIND_STRUCT, NULL, 2, 16); /* 7 */
	add_member(made, "inner", 1, 0);
	add_member(made, "wanted", 1, 64);
	add_type(made, BTF_KIND_UNION, NULL, 2, 16); /* 8 */
	add_member(made, "other", 1, 0);
	add_member(made, NULL, 7, 0);
	add_type(made, BTF_KIND_STRUCT, "outer", 3, 32); /* 9 */
	add_member(made, "first", 1, 0);
	add_member(made, NULL, 8, 128);
	add_member(made, "last", 1, 256);
	add_type(made, BTF_KIND_STRUCT, "flags", 2, 8); /* 10 */
	made->words[made->n_words - 2] |= 1u << 31;
	add_member(made, "whole", 1, 32);
	add_member(made, "bits", 1, 3u << 24 | 5);
	add_type(made, BTF_KIND_STRUCT, "circle", 1, 8); /* 11 */
	add_member(made, NULL, 11, 0);
	add_type(made, BTF_KIND_FUNC, "outer_run", 0, 5); /* 12: ends with another name */
}

/* As the file has it: owned by the caller, of exact size. */
static void *pack(struct made *made, size_t *ret_n_bytes)
{
	size_t n_type_bytes = made->n_words * sizeof made->words[0], n = sizeof made->header;
	char *bytes = malloc(n + n_type_bytes + made->n_string_bytes);

	assert_non_null(bytes);
	made->header = (struct btf_header){
		.magic = BTF_MAGIC,
		.version = BTF_VERSION,
		.hdr_len = sizeof made->header,
		.type_len = (uint32_t)n_type_bytes,
		.str_off = (uint32_t)n_type_bytes,
		.str_len = (uint32_t)made->n_string_bytes,
	};
	memcpy(bytes, &made->header, n);
	memcpy(bytes + n, made->words, n_type_bytes);
	memcpy(bytes + n + n_type_bytes, made->strings, made->n_string_bytes);
	*ret_n_bytes = n + n_type_bytes + made->n_string_bytes;
	return bytes;
}

static int member_of(const struct kernel_types *types, const char *structure, const char *name, uint32_t *ret)
{
	struct kernel_type wanted = { .kind = BTF_KIND_STRUCT, .name = structure };
	int r = kernel_types_find(types, &wanted, 1);

	return r < 0 ? r : kernel_types_member(types, wanted.index, name, ret);
}

static void test_finds_types_and_members(void **state)
{
	struct kernel_type wanted[] = { { .kind = BTF_KIND_FUNC, .name = "outer_run" },
					{ .kind = BTF_KIND_STRUCT, .name = "outer" },
					{ .kind = BTF_KIND_FUNC, .name = "run" } };
	struct kernel_type missing[] = { { .kind = BTF_KIND_STRUCT, .name = "run" },
					 { .kind = BTF_KIND_STRUCT, .name = "ter" } };
	CLEANUP(freep) void *bytes = NULL;
	struct kernel_types types;
	struct made made;
	uint32_t offset;
	size_t n_bytes;

	(void)state;
	make(&made);
	bytes = pack(&made, &n_bytes);
	assert_int_equal(kernel_types_parse(bytes, n_bytes, &types), 0);
	assert_int_equal(kernel_types_find(&types, wanted, N_ELEMENTS(wanted)), 0);
	assert_int_equal(wanted[0].id, 12);
	assert_int_equal(wanted[1].id, 9);
	assert_int_equal(wanted[2].id, 6);
	assert_int_equal(kernel_types_find(&types, &missing[0], 1), -ENOENT);
	assert_int_equal(kernel_types_find(&types, &missing[1], 1), -ENOENT);
	assert_int_equal(member_of(&types, "outer", "last", &offset), 0);
	assert_int_equal(offset, 32);
	assert_int_equal(member_of(&types, "outer", "wanted", &offset), 0);
	assert_int_equal(offset, 24);
	assert_int_equal(member_of(&types, "outer", "whole", &offset), -ENOENT);
	assert_int_equal(member_of(&types, "flags", "whole", &offset), 0);
	assert_int_equal(offset, 4);
	assert_int_equal(member_of(&types, "flags", "bits", &offset), -EOPNOTSUPP);
	assert_int_equal(member_of(&types, "circle", "wanted", &offset), -ENOENT);
}

/* Nothing is read beyond the end, wherever that is, and nothing that is missing is found. */
static void test_cut(void **state)
{
	struct made made;
	size_t n_words;

	(void)state;
	make(&made);
	n_words = made.n_words;
	for (made.n_words = 0; made.n_words < n_words; made.n_words++) {
		CLEANUP(freep) void *bytes = NULL;
		struct kernel_types types;
		uint32_t offset;
		size_t n_bytes;

		bytes = pack(&made, &n_bytes);
		for (size_t n = 0; n < n_bytes; n++)
			assert_int_equal(kernel_types_parse(bytes, n, &types), -EBADMSG);
		assert_int_equal(kernel_types_parse(bytes, n_bytes, &types), 0);
		assert_true(member_of(&types, "circle", "last", &offset) < 0);
		(void)member_of(&types, "outer", "last", &offset);
		(void)member_of(&types, "outer", "wanted", &offset);
	}
}

/* libbpf's answer; searches structures without a name, too. Returns false if there is no such member. */
static bool by_libbpf(const struct btf *btf, const struct btf_type *type, const char *name, uint32_t *ret_bits)
{
	for (uint16_t i = 0; i < btf_vlen(type); i++) {
		const struct btf_member *member = btf_members(type) + i;
		const struct btf_type *inner = btf__type_by_id(btf, member->type);
		uint32_t bits = btf_member_bit_offset(type, i);

		if (strcmp(btf__name_by_offset(btf, member->name_off), name) == 0) {
			*ret_bits = bits;
			return true;
		}
		if (member->name_off == 0 && btf_is_composite(inner) && by_libbpf(btf, inner, name, ret_bits)) {
			*ret_bits += bits;
			return true;
		}
	}
	return false;
}

static void test_running_kernel(void **state)
{
	static const struct {
		const char *structure, *member;
	} members[] = { { "task_struct", "mm" },       { "task_struct", "pid" },       { "mm_struct", "pgd" },
			{ "mm_struct", "cpu_bitmap" }, { "vm_area_struct", "vm_end" }, { "page", "_refcount" } };
	struct btf *btf = btf__load_vmlinux_btf();
	const void *bytes;
	struct kernel_types types;
	struct kernel_type cast = { .kind = BTF_KIND_FUNC, .name = "bpf_rdonly_cast" };
	struct kernel_numbers numbers;
	uint32_t n_bytes;

	(void)state;
	if (!btf) {
		print_message("this kernel does not describe its types\n");
		skip();
	}
	bytes = btf__raw_data(btf, &n_bytes);
	assert_int_equal(kernel_types_parse(bytes, n_bytes, &types), 0);
	for (size_t i = 0; i < N_ELEMENTS(members); i++) {
		int id = btf__find_by_name_kind(btf, members[i].structure, BTF_KIND_STRUCT);
		struct kernel_type ours = { .kind = BTF_KIND_STRUCT, .name = members[i].structure };
		uint32_t bits, offset;

		assert_true(id > 0);
		assert_int_equal(kernel_types_find(&types, &ours, 1), 0);
		assert_int_equal(ours.id, id);
		assert_true(by_libbpf(btf, btf__type_by_id(btf, (uint32_t)id), members[i].member, &bits));
		assert_int_equal(kernel_types_member(&types, ours.index, members[i].member, &offset), 0);
		assert_int_equal(offset * 8, bits);
	}
	if (kernel_types_find(&types, &cast, 1) == 0) { /* Linux 6.2 */
		assert_int_equal(kernel_numbers_find(&numbers), 0);
		assert_int_equal(numbers.of[PLACEHOLDER_RDONLY_CAST - PLACEHOLDER_FIRST], cast.id);
		assert_int_equal(cast.id, btf__find_by_name_kind(btf, "bpf_rdonly_cast", BTF_KIND_FUNC));
	}
	btf__free(btf);
}

static void test_numbers_replace_placeholders(void **state)
{
	const struct kernel_numbers numbers = { { 101, 102, 103, 104 } };
	const struct bpf_insn before[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 2, .imm = PLACEHOLDER_WORD_TYPE },
		{ .code = BPF_JMP | BPF_CALL, .imm = PLACEHOLDER_RDONLY_CAST },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_map_lookup_elem },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 9, .imm = PLACEHOLDER_END },
		{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = 9, .imm = PLACEHOLDER_MM_PGD },
	};
	CLEANUP(freep) void *bytes = NULL;
	void *none = NULL;
	const struct bpf_insn *after;

	(void)state;
	assert_int_equal(kernel_numbers_put(&numbers, before, sizeof before, &bytes), 0);
	after = bytes;
	assert_int_equal(after[0].imm, 102);
	assert_int_equal(after[0].dst_reg, 2);
	assert_int_equal(after[1].imm, 101);
	assert_int_equal(after[1].src_reg, BPF_PSEUDO_KFUNC_CALL);
	assert_memory_equal(after + 2, before + 2, 3 * sizeof before[0]);
	assert_int_equal(kernel_numbers_put(&numbers, before + 2, 3 * sizeof before[0], &none), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_finds_types_and_members),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_running_kernel),
		cmocka_unit_test(test_numbers_replace_placeholders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
