/* SPDX-License-Identifier: MIT */
/* module.h - private to address_space.c and module.c. */
#ifndef PROBING_BASE_MODULE_H
#define PROBING_BASE_MODULE_H

#include "base/address_space.h"

struct module_identity {
	uint64_t device, inode; /* inode 0: unknown */
	const char *path;       /* path_bytes long, no NUL needed */
	size_t path_bytes;
};

/* The module with that identity; creates it on first use. -ENOMEM. */
int module_table_intern(struct module_table *table, const struct module_identity *identity, struct module **ret);

/*
 * module_copy - the image of a file, copied from the memory of the process that mapped it.
 * @ret: owned by the caller; laid out like the file, without section headers.
 * Errors: -ESRCH, -EPERM, -EFBIG, -ENOEXEC no ELF file there, -ENOMEM.
 */
int module_copy(const struct module *module, void **ret, size_t *ret_bytes);

#endif
