/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* placeholders.h - numbers of the running kernel that BPF programs contain.
 *
 * Each is compiled as the number below, and the loader replaces it: see kernel_numbers.h. Private.
 */
#ifndef PROBING_CAPTURE_BPF_PLACEHOLDERS_H
#define PROBING_CAPTURE_BPF_PLACEHOLDERS_H

enum placeholder {
	PLACEHOLDER_FIRST = 0x70726f62,
	PLACEHOLDER_RDONLY_CAST = PLACEHOLDER_FIRST, /* the kernel's function bpf_rdonly_cast() */
	PLACEHOLDER_WORD_TYPE,                       /* a type that begins with an integer */
	PLACEHOLDER_TASK_MM,                         /* offset of task_struct.mm */
	PLACEHOLDER_MM_PGD,                          /* offset of mm_struct.pgd */
	PLACEHOLDER_END,
	N_PLACEHOLDERS = PLACEHOLDER_END - PLACEHOLDER_FIRST,
};

#endif
