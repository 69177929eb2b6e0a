/* SPDX-License-Identifier: MIT */
/* kernel_numbers.c - see kernel_numbers.h.
 *
 * A placeholder stands in two instructions: in a call, which then calls that function of the kernel, and in a move of a
 * constant. Instructions have 8 bytes, at multiples of 8 in an object. Nothing else looks like one of these, so the sections
 * need not be told apart. Source: Documentation/bpf/standardization/instruction-set.rst, Linux 6.18.
 */
#include "src/capture/kernel_numbers.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "src/capture/kernel_types.h"

static const char description[] = "/sys/kernel/btf/vmlinux";

enum { MAX_BYTES = 64 << 20 };

static uint32_t *number_of(struct kernel_numbers *numbers, enum placeholder placeholder)
{
	return &numbers->of[placeholder - PLACEHOLDER_FIRST];
}

static int find(const void *bytes, size_t n_bytes, struct kernel_numbers *ret)
{
	enum { CAST, WORD, TASK, MM, N };
	struct kernel_type wanted[N] = {
		[CAST] = { .kind = BTF_KIND_FUNC, .name = "bpf_rdonly_cast" },
		/* The verifier lets a program read memory as integers where the type begins with one. Since Linux 6.2; an
		 * integer type itself needs 6.17. */
		[WORD] = { .kind = BTF_KIND_STRUCT, .name = "timespec64" },
		[TASK] = { .kind = BTF_KIND_STRUCT, .name = "task_struct" },
		[MM] = { .kind = BTF_KIND_STRUCT, .name = "mm_struct" },
	};
	struct kernel_types types;
	int r;

	r = kernel_types_parse(bytes, n_bytes, &types);
	if (r >= 0)
		r = kernel_types_find(&types, wanted, N);
	if (r >= 0)
		r = kernel_types_member(&types, wanted[TASK].index, "mm", number_of(ret, PLACEHOLDER_TASK_MM));
	if (r >= 0)
		r = kernel_types_member(&types, wanted[MM].index, "pgd", number_of(ret, PLACEHOLDER_MM_PGD));
	if (r < 0)
		return r;
	*number_of(ret, PLACEHOLDER_RDONLY_CAST) = wanted[CAST].id;
	*number_of(ret, PLACEHOLDER_WORD_TYPE) = wanted[WORD].id;
	return 0;
}

/* The file can be mapped since Linux 6.16. */
static int find_mapped(int fd, struct kernel_numbers *ret)
{
	struct stat stat;
	void *bytes;
	int r;

	if (fstat(fd, &stat) < 0)
		return -errno;
	bytes = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return -errno;
	r = find(bytes, (size_t)stat.st_size, ret);
	munmap(bytes, (size_t)stat.st_size);
	return r;
}

static int find_read(struct kernel_numbers *ret)
{
	CLEANUP(freep) char *text = NULL;
	size_t n_bytes;
	int r;

	r = read_file(description, MAX_BYTES, &text, &n_bytes);
	return r < 0 ? r : find(text, n_bytes, ret);
}

int kernel_numbers_find(struct kernel_numbers *ret)
{
	CLEANUP(closep) int fd = open(description, O_RDONLY | O_CLOEXEC);
	struct kernel_numbers found;
	int r;

	if (fd < 0)
		return -ESRCH;
	r = find_mapped(fd, &found);
	if (r < 0)
		r = find_read(&found);
	if (r < 0)
		return r;
	*ret = found;
	return 0;
}

/* Returns whether it contained a placeholder. */
static bool replace(const struct kernel_numbers *numbers, struct bpf_insn *instruction)
{
	bool is_call = instruction->code == (BPF_JMP | BPF_CALL) && instruction->dst_reg == 0;

	if ((!is_call && instruction->code != (BPF_ALU64 | BPF_MOV | BPF_K)) || instruction->src_reg != 0 ||
	    instruction->off != 0 || instruction->imm < PLACEHOLDER_FIRST || instruction->imm >= PLACEHOLDER_END)
		return false;
	instruction->imm = (int32_t)numbers->of[instruction->imm - PLACEHOLDER_FIRST];
	if (is_call)
		instruction->src_reg = BPF_PSEUDO_KFUNC_CALL;
	return true;
}

int kernel_numbers_put(const struct kernel_numbers *numbers, const void *object, size_t n_bytes, void **ret)
{
	CLEANUP(freep) char *copy = malloc(n_bytes);
	size_t n_replaced = 0;

	if (!copy)
		return -ENOMEM;
	memcpy(copy, object, n_bytes);
	for (size_t i = 0; i + sizeof(struct bpf_insn) <= n_bytes; i += sizeof(struct bpf_insn)) {
		struct bpf_insn instruction;

		memcpy(&instruction, copy + i, sizeof instruction);
		if (!replace(numbers, &instruction))
			continue;
		memcpy(copy + i, &instruction, sizeof instruction);
		n_replaced++;
	}
	if (n_replaced == 0)
		return -ENOENT;
	*ret = TAKE(copy);
	return 0;
}
