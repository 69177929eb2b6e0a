/* SPDX-License-Identifier: MIT */
/* direct_map.c - where the kernel has all memory mapped; see direct_map.h. */
#include "src/capture/direct_map.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/util.h"
#include "src/capture/find_direct_map_object.h"

enum { MAX_ZONEINFO_BYTES = 16 << 20 }; /* about 100 bytes per processor and zone */

/*
 * Find the end of physical memory. Each zone prints its first page and its page count on separate lines, count first.
 * Source: zoneinfo_show_print(), mm/vmstat.c, Linux 6.18.
 */
static int find_end(uint64_t *ret)
{
	CLEANUP(freep) char *text = NULL;
	uint64_t n_pages = 0, first, end = 0;
	int r;

	r = read_file("/proc/zoneinfo", MAX_ZONEINFO_BYTES, &text, NULL);
	if (r < 0)
		return r;
	for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
		if (sscanf(line, " spanned %" SCNu64, &n_pages) != 1 &&
		    sscanf(line, " start_pfn: %" SCNu64, &first) == 1)
			end = MAX(end, first + n_pages);
	*ret = end * (uint64_t)sysconf(_SC_PAGESIZE);
	return end == 0 ? -ENXIO : 0;
}

static bool is_refused(void)
{
	const char *text = getenv("PROBING_DIRECT_MAP");

	return text && strcmp(text, "0") == 0;
}

/*
 * Test the direct map with a word of our own memory. The kernel writes the result back into the context:
 * bpf_prog_test_run_syscall(), net/bpf/test_run.c.
 */
static int look(const struct bpf_object *object, struct direct_map_trial *trial)
{
	LIBBPF_OPTS(bpf_test_run_opts, options, .ctx_in = trial, .ctx_size_in = sizeof *trial);
	int fd = bpf_program__fd(bpf_object__find_program_by_name(object, "find_direct_map"));

	if (fd < 0)
		return fd;
	return bpf_prog_test_run_opts(fd, &options);
}

int direct_map_find(struct direct_map *ret)
{
	uint64_t word = 0;
	struct direct_map_trial trial = { .address = (uintptr_t)&word };
	struct bpf_object *object;
	int r;

	if (is_refused())
		return -ECANCELED;
	if (getrandom(&word, sizeof word, 0) != (ssize_t)sizeof word)
		return -errno;
	trial.word = word;
	r = find_end(&trial.map.end);
	if (r < 0)
		return r;
	object = bpf_object__open_mem(find_direct_map_object_bytes, sizeof find_direct_map_object_bytes, NULL);
	if (!object)
		return -errno;
	r = bpf_object__load(object);
	if (r >= 0)
		r = look(object, &trial);
	bpf_object__close(object);
	if (r < 0)
		return r;
	if (trial.map.n_levels == 0)
		return -ENXIO;
	*ret = trial.map;
	return 0;
}
