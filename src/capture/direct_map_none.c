/* SPDX-License-Identifier: MIT */
/* direct_map_none.c - direct_map.h where page tables are not known, or programs for the kernel could not be built. */
#include <errno.h>

#include "src/capture/direct_map.h"

int direct_map_find(struct direct_map *ret, struct kernel_numbers *ret_numbers)
{
	(void)ret, (void)ret_numbers;
	return -ENOSYS;
}
