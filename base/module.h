/* module.h - between address_space.c and module.c; nobody else's. */
#ifndef PROBING_BASE_MODULE_H
#define PROBING_BASE_MODULE_H

#include "base/address_space.h"

struct module_identity {
	uint64_t device, inode; /* inode 0: unknown */
	const char *path;       /* path_bytes long, no NUL needed */
	size_t path_bytes;
};

/* The module of that identity, made at its first sight. -ENOMEM. */
int module_table_intern(struct module_table *table, const struct module_identity *identity,
			struct module **ret);

#endif
