/* direct_map_none.c - direct_map.h for machines whose page tables are not known here. */
#include <errno.h>

#include "src/record/direct_map.h"

int direct_map_find(struct direct_map *ret)
{
	(void)ret;
	return -ENOSYS;
}
