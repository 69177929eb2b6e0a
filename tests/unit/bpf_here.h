/* SPDX-License-Identifier: MIT */
/* bpf_here.h - the program that runs in the kernel, compiled into a test, on an image of memory.
 *
 * The kernel's helpers are functions here; one thread is sampled at a time. Includes the
 * program's source, so that it is the same that is loaded.
 */
#ifndef PROBING_TESTS_BPF_HERE_H
#define PROBING_TESTS_BPF_HERE_H

#include <linux/bpf.h>
#include <stdbool.h>

#include "tests/unit/memory_image.h"

/* In place of libbpf's bpf_helpers.h. */
#define SEC(name)
#define __uint(name, value) int(*name)[value]
#define __type(name, value) value *name
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

enum { MAX_MET_CODES = 256 };

/* State that the kernel would have. */
static struct bpf_here {
	struct memory_image *image;
	struct python_layout layout;
	uint32_t pid, tid;
	bool has_known; /* the thread of known_tid was met before */
	uint32_t known_tid;
	unsigned n_reads;
	uint64_t sp; /* of the thread */
	bool has_floor;
	uint64_t floor;              /* that the thread has been told to have */
	uint64_t met[MAX_MET_CODES]; /* code objects */
	size_t n_met;
	bool has_called; /* the last run has woken the reader */
	size_t n_output; /* bytes that the last run has written; 0: nothing */
	_Alignas(8) uint8_t output[PYTHON_RECORD_BYTES];
} bpf_here;

static inline long bpf_probe_read_user(void *to, uint32_t n_bytes, const void *from)
{
	bpf_here.n_reads++;
	if (remote_read(&bpf_here.image->base, RADDR((uintptr_t)from), to, n_bytes) == 0)
		return 0;
	memset(to, 0, n_bytes);
	return -EFAULT;
}

static inline long bpf_loop_here(uint32_t n, long (*step)(uint32_t, void *), void *context)
{
	for (uint32_t i = 0; i < n; i++)
		if (step(i, context) != 0)
			return (long)i + 1;
	return n;
}
#define bpf_loop(n, step, context, flags) bpf_loop_here(n, (long (*)(uint32_t, void *))(void *)(step), context)

static inline uint64_t bpf_get_current_pid_tgid(void)
{
	return (uint64_t)bpf_here.pid << 32 | bpf_here.tid;
}

static inline uint64_t bpf_ktime_get_ns(void)
{
	return 0;
}

static inline uint32_t bpf_get_smp_processor_id(void)
{
	return 0;
}

static inline long bpf_get_ns_current_pid_tgid(uint64_t device, uint64_t inode, struct bpf_pidns_info *ret,
					       uint32_t n_bytes)
{
	(void)device, (void)inode, (void)n_bytes;
	*ret = (struct bpf_pidns_info){ .pid = bpf_here.tid, .tgid = bpf_here.pid };
	return 0;
}

#define PT_REGS_SP(regs) ((void)(regs), bpf_here.sp)

static void *bpf_map_lookup_elem(void *map, const void *key);
static long bpf_map_update_elem(void *map, const void *key, const void *value, uint64_t flags);

static bool is_call(const void *map);

static inline long bpf_perf_event_output(void *context, void *map, uint64_t flags, const void *from, uint64_t n_bytes)
{
	uint32_t length = (uint32_t)n_bytes; /* stands before it */

	(void)context, (void)flags;
	bpf_here.has_called = is_call(map);
	if (n_bytes > sizeof bpf_here.output - sizeof length)
		abort();
	memcpy(bpf_here.output, &length, sizeof length);
	memcpy(bpf_here.output + sizeof length, from, n_bytes);
	bpf_here.n_output = sizeof length + n_bytes;
	return 0;
}

#ifdef HAVE_DIRECT_MAP
#include "tests/unit/page_tables_here.h"

/* Each page of the image has a place behind the tables, and may move. Then its old place belongs to another process. */
enum { OTHERS = 0xa5 };
#define PLACES_END (PAGE_TABLES_END + 2 * (uint64_t)IMAGE_MAX_PAGES * IMAGE_PAGE_BYTES)

static const volatile struct direct_map direct_map = { .base = DIRECT_MAP_BASE, .end = PLACES_END, .n_levels = 4 };

static bool have_moved;

static uint64_t place_of_page(size_t i)
{
	return PAGE_TABLES_END + (i + (have_moved ? IMAGE_MAX_PAGES : 0)) * IMAGE_PAGE_BYTES;
}

static uint64_t physical_word(uint64_t physical)
{
	size_t i = (physical - PAGE_TABLES_END) / IMAGE_PAGE_BYTES;
	uint64_t word;

	if (physical >= PLACES_END)
		abort();
	if ((i >= IMAGE_MAX_PAGES) != have_moved || i % IMAGE_MAX_PAGES >= bpf_here.image->n_pages)
		return OTHERS * UINT64_C(0x0101010101010101);
	memcpy(&word, &bpf_here.image->pages[i % IMAGE_MAX_PAGES].bytes[physical % IMAGE_PAGE_BYTES], sizeof word);
	return word;
}

static void map_pages(void)
{
	for (size_t i = 0; i < bpf_here.image->n_pages; i++)
		if (bpf_here.image->pages[i].address >> 47 == 0)
			*page_tables_entry(bpf_here.image->pages[i].address, 4, 1) = place_of_page(i) | TABLE_PRESENT |
										     TABLE_USER;
}

static uint64_t own_tables(void)
{
	have_moved = false;
	page_tables_begin();
	map_pages();
	return DIRECT_MAP_BASE;
}
#endif

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wcast-function-type"
#include "src/capture/bpf/frames.bpf.c"
#pragma GCC diagnostic pop

static bool is_call(const void *map)
{
	return map == &calls;
}

static void *find_met(uint64_t key)
{
	for (size_t i = 0; i < bpf_here.n_met && i < MAX_MET_CODES; i++)
		if (bpf_here.met[i] == key)
			return &bpf_here.met[i];
	return NULL;
}

static void *bpf_map_lookup_elem(void *map, const void *key)
{
	static struct room only_room;
	static struct known_thread known;

	if (map == (void *)&processes)
		return *(const uint32_t *)key == bpf_here.pid ? &bpf_here.layout : NULL;
	if (map == (void *)&rooms)
		return &only_room;
	if (map == (void *)&floors)
		return bpf_here.has_floor ? &bpf_here.floor : NULL;
	if (map == (void *)&met)
		return find_met(*(const uint64_t *)key);
	if (map == (void *)&threads && bpf_here.known_tid == *(const uint32_t *)key)
		return bpf_here.has_known ? &known : NULL;
	return NULL; /* nobody is judged */
}

static long bpf_map_update_elem(void *map, const void *key, const void *value, uint64_t flags)
{
	(void)flags;
	if (map == (void *)&met) {
		bpf_here.met[bpf_here.n_met++ % MAX_MET_CODES] = *(const uint64_t *)key;
		return 0;
	}
	bpf_here.has_known = true;
	bpf_here.known_tid = *(const uint32_t *)key;
	memcpy(bpf_map_lookup_elem(&threads, key), value, sizeof(struct known_thread));
	return 0;
}

/* The interpreter of an image from now on. False: it cannot be described. */
static inline bool bpf_here_watch(struct memory_image *image, struct py_runtime *runtime)
{
	bpf_here.image = image;
	bpf_here.pid = (uint32_t)image->pid;
	bpf_here.has_known = false;
	if (py_describe(runtime, &bpf_here.layout) < 0)
		return false;
	bpf_here.layout.id = 1;
	return true;
}

/* A sample of a thread. NULL: only a call for it was written. */
static inline const struct python_record *bpf_here_run(pid_t tid)
{
	const struct python_record *record = (const struct python_record *)bpf_here.output;
	struct bpf_perf_event_data context = { 0 };

	bpf_here.tid = (uint32_t)tid;
	bpf_here.n_output = 0;
	bpf_here.n_reads = 0;
	if (read_frames(&context) != 1)
		abort(); /* the sample itself would not be written */
	if (bpf_here.n_output < sizeof *record)
		abort();
	if (record->layout_id == 0) {
		if (record->n_entries != 0 || record->n_states != 0 || !bpf_here.has_called)
			abort();
		return NULL;
	}
	if (bpf_here.n_output != sizeof *record + record->n_entries * sizeof(struct python_entry) ||
	    record->n_entries > PYTHON_MAX_ENTRIES || record->n_states > PYTHON_MAX_STATES)
		abort();
	return record;
}

#endif
