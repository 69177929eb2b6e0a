/* SPDX-License-Identifier: MIT */
/* page_trim.c - see page_trim.h. */
#include "src/pipeline/page_trim.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

#include "base/util.h"

void page_trim_init(struct page_trim *trim, uint64_t busy_bytes, uint64_t calm_bytes)
{
	*trim = (struct page_trim){
		.busy_bytes = busy_bytes,
		.calm_bytes = calm_bytes,
		.statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC),
		.trimmed_ns = monotonic_ns(),
	};
}

void page_trim_done(struct page_trim *trim)
{
	closep(&trim->statm);
}

/* Pages of mapped files in our memory, in bytes. Source: proc(5), /proc/pid/statm. */
static uint64_t mapped_file_bytes(const struct page_trim *trim)
{
	char text[256];
	unsigned long long total, resident, shared;
	ssize_t n = trim->statm < 0 ? -1 : pread(trim->statm, text, sizeof text - 1, 0);

	if (n <= 0)
		return 0;
	text[n] = '\0';
	if (sscanf(text, "%llu %llu %llu", &total, &resident, &shared) != 3)
		return 0;
	return shared * (uint64_t)getpagesize();
}

/*
 * The next names mostly read the released pages again, so trim only after much new memory. If names are few and rare,
 * wait for more: rereading the pages would cost as much as the names. Other mappings, mainly rings, stay and do not
 * count.
 */
bool page_trim_is_due(const struct page_trim *trim)
{
	enum { ENOUGH_NEW_BYTES = 4 << 20 };
	const uint64_t calm_ns = 2000000000;
	uint64_t n_bytes = mapped_file_bytes(trim);
	uint64_t enough_bytes = monotonic_ns() - trim->trimmed_ns < calm_ns ? trim->busy_bytes : trim->calm_bytes;

	return n_bytes >= enough_bytes && n_bytes >= trim->trimmed_bytes + ENOUGH_NEW_BYTES;
}

void page_trim_did(struct page_trim *trim)
{
	malloc_trim(0);
	trim->trimmed_bytes = mapped_file_bytes(trim);
	trim->trimmed_ns = monotonic_ns();
}
