/* SPDX-License-Identifier: MIT */
/* kernel_types.h - the kernel's description of its types (BTF). Private.
 *
 * libbpf reads all of it, once for each object. This finds a few names in one pass (docs/performance.md, "Start").
 * Source: Documentation/bpf/btf.rst and include/uapi/linux/btf.h, Linux 6.18.
 */
#ifndef PROBING_CAPTURE_KERNEL_TYPES_H
#define PROBING_CAPTURE_KERNEL_TYPES_H

#include <stddef.h>
#include <stdint.h>

struct kernel_types {
	const uint32_t *words; /* the types, one after the other; their ids count from 1 */
	size_t n_words;
	const char *strings;
	size_t n_string_bytes;
};

/* A type to find. */
struct kernel_type {
	unsigned kind; /* BTF_KIND_... */
	const char *name;
	uint32_t id;  /* 0: not found */
	size_t index; /* of its first word */
};

/*
 * kernel_types_parse - find the two parts of a description.
 * @bytes: aligned as a word; borrowed as long as ret is in use. Errors: -EBADMSG.
 */
int kernel_types_parse(const void *bytes, size_t n_bytes, struct kernel_types *ret);

/* kernel_types_find - set id and index of each. Errors: -ENOENT one of them is not there; -EBADMSG. */
int kernel_types_find(const struct kernel_types *types, struct kernel_type *wanted, size_t n);

/*
 * kernel_types_member - find a member of a structure, or of a nameless structure or union within it.
 * @index: of the structure, as kernel_types_find() sets it. @ret: its offset in bytes.
 * Errors: -ENOENT; -EBADMSG, -EOPNOTSUPP it is a bit field.
 */
int kernel_types_member(const struct kernel_types *types, size_t index, const char *name, uint32_t *ret);

#endif
