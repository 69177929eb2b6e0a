/* SPDX-License-Identifier: MIT */
/* process_maps.c - process.maps: mappings of a process, with their resident size. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/sysmacros.h>

#include "base/util.h"
#include "src/live/parse.h"
#include "src/live/rows.h"
#include "src/live/tables.h"

enum { MAX_MAPS = 256 << 20 }; /* several times the default of vm.max_map_count */

static void put_bytes(struct live_rows *rows, const struct map_entry *entry, int64_t bytes)
{
	if (entry->has_use)
		live_integer(rows, bytes);
	else
		live_null(rows);
}

static void put_map(struct live_rows *rows, const struct map_entry *entry)
{
	const struct mapping_source *source = &entry->source;
	char device[32];

	snprintf(device, sizeof device, "%u:%u", major(source->device), minor(source->device));
	live_integer(rows, (int64_t)source->start);
	live_integer(rows, (int64_t)source->end);
	live_integer(rows, (int64_t)(source->end - source->start));
	live_text(rows, entry->permissions);
	live_integer(rows, (int64_t)source->file_offset);
	live_text(rows, device);
	live_integer(rows, (int64_t)source->inode);
	live_text(rows, source->path[0] ? source->path : NULL);
	put_bytes(rows, entry, entry->rss_bytes);
	put_bytes(rows, entry, entry->pss_bytes);
	put_bytes(rows, entry, entry->private_bytes);
	put_bytes(rows, entry, entry->anonymous_bytes);
	put_bytes(rows, entry, entry->swap_bytes);
}

static int read_maps(struct live *live, struct live_rows *rows)
{
	CLEANUP(freep) char *text = NULL;
	struct map_entry entry;
	char *at;
	int r;

	r = live_read_file(live->options.pid, "smaps", MAX_MAPS, &text, NULL);
	if (r == -ESRCH) /* the kernel does not have it */
		r = live_read_file(live->options.pid, "maps", MAX_MAPS, &text, NULL);
	if (r < 0)
		return r;
	at = text;
	while (parse_next_map(&at, &entry))
		put_map(rows, &entry);
	return 0;
}

const struct live_table live_process_maps = {
	.schema = "process",
	.name = "maps",
	.read = read_maps,
};
