/* SPDX-License-Identifier: MIT */
/* mhd.c - see mhd.h. */
#include "src/serve/mhd.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>

struct mhd mhd;

int mhd_load(void)
{
	void *library = dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL);
	bool is_whole = true;

	if (!library)
		return -ENOENT;
		/* POSIX guarantees that a function's address survives in a void *. */
#define X(name)                                                                                                        \
	*(void **)&mhd.name = dlsym(library, "MHD_" #name);                                                            \
	is_whole &= mhd.name != NULL;
	MHD_FUNCTIONS(X)
#undef X
	return is_whole ? 0 : -ENOENT;
}
