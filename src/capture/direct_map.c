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
#include "src/capture/kernel_numbers.h"

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
 * Where the map can be: at the kernel's variable if it randomises addresses, else at a constant.
 * Source: arch/x86/include/asm/page_64_types.h, Linux 6.18.
 */
static const struct {
	uint64_t base, n_levels;
} candidates[] = {
	{ 0, 4 },
	{ 0, 5 },
	{ 0xffff888000000000, 4 },
	{ 0xff11000000000000, 5 },
};

/*
 * Test the candidates with a word of our own memory. The kernel writes the result back into the context:
 * bpf_prog_test_run_syscall(), net/bpf/test_run.c.
 */
static int look(const struct bpf_object *object, struct direct_map_trial *trial)
{
	LIBBPF_OPTS(bpf_test_run_opts, options, .ctx_in = trial, .ctx_size_in = sizeof *trial);
	int fd = bpf_program__fd(bpf_object__find_program_by_name(object, "find_direct_map"));
	int r = 0;

	if (fd < 0)
		return fd;
	for (size_t i = 0; i < N_ELEMENTS(candidates) && r >= 0 && !trial->is_right; i++) {
		trial->map.base = candidates[i].base;
		trial->map.n_levels = candidates[i].n_levels;
		r = bpf_prog_test_run_opts(fd, &options);
	}
	return r;
}

static int try_program(const struct kernel_numbers *numbers, struct direct_map_trial *trial)
{
	CLEANUP(freep) void *bytes = NULL;
	struct bpf_object *object;
	int r;

	r = kernel_numbers_put(numbers, find_direct_map_object_bytes, sizeof find_direct_map_object_bytes, &bytes);
	if (r < 0)
		return r;
	object = bpf_object__open_mem(bytes, sizeof find_direct_map_object_bytes, NULL);
	if (!object)
		return -errno;
	r = bpf_object__load(object);
	if (r >= 0)
		r = look(object, trial);
	bpf_object__close(object);
	return r;
}

int direct_map_find(struct direct_map *ret, struct kernel_numbers *ret_numbers)
{
	uint64_t word = 0;
	struct direct_map_trial trial = { .address = (uintptr_t)&word };
	struct kernel_numbers numbers;
	int r;

	if (is_refused())
		return -ECANCELED;
	if (getrandom(&word, sizeof word, 0) != (ssize_t)sizeof word)
		return -errno;
	trial.word = word;
	r = find_end(&trial.map.end);
	if (r >= 0)
		r = kernel_numbers_find(&numbers);
	if (r >= 0)
		r = try_program(&numbers, &trial);
	if (r < 0)
		return r;
	if (!trial.is_right)
		return -ENXIO;
	*ret = trial.map;
	*ret_numbers = numbers;
	return 0;
}
