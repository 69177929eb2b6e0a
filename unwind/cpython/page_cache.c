/* SPDX-License-Identifier: MIT */
/* page_cache.c - the pages of the target that the current sample needs.
 *
 * Reading a page costs some microseconds, mostly for the system call: each further page of the same call costs a
 * quarter. Samples of a thread mostly need the same pages as the previous one. So these are the thread's
 * prefetch set, read at once when its next sample begins; other pages are read on
 * demand.
 *
 * Invariants:
 * 1. No page is older than the last page_cache_forget().
 * 2. Pages are used in turn from the first on, so that a sample touches no more of our memory than it needs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "unwind/cpython/reader.h"

enum { MAX_PARTS = 64, MAX_AGE = 4, LINE_BYTES = 64 };

/* The part of a page that recent samples used. */
struct prefetch_part {
	uint64_t address; /* page address */
	uint16_t low, high;
	uint8_t age; /* consecutive samples that did not use it */
};

struct prefetch_set {
	pid_t tid;
	unsigned n;
	struct prefetch_part parts[MAX_PARTS];
};

int page_cache_init(struct page_cache *cache, struct remote *remote)
{
	cache->remote = remote;
	cache->bytes = malloc(CACHE_N_PAGES * sizeof *cache->bytes);
	return cache->bytes ? 0 : -ENOMEM;
}

void page_cache_done(struct page_cache *cache)
{
	free(cache->bytes);
	free(cache->prefetch_sets);
	*cache = (struct page_cache){ 0 };
}

void page_cache_touch(struct page_cache *cache)
{
	if (cache->is_touched)
		return;
	page_cache_forget(cache);
	memset(cache->bytes, 0xff, CACHE_N_PAGES * sizeof *cache->bytes);
	cache->is_touched = true;
}

static unsigned slot_of(const struct page_cache *cache, uint64_t address)
{
	unsigned slot = (unsigned)(mix64(address) % CACHE_N_SLOTS);

	while (cache->slots[slot] != 0 && cache->pages[cache->slots[slot] - 1].address != address)
		slot = (slot + 1) % CACHE_N_SLOTS;
	return slot;
}

static struct page_cache_page *find(struct page_cache *cache, uint64_t address)
{
	unsigned slot = slot_of(cache, address);

	return cache->slots[slot] != 0 ? &cache->pages[cache->slots[slot] - 1] : NULL;
}

/* A page of which nothing has been read. There must be room. */
static struct page_cache_page *add(struct page_cache *cache, uint64_t address)
{
	struct page_cache_page *page = &cache->pages[cache->n++];

	cache->slots[slot_of(cache, address)] = (uint16_t)cache->n;
	*page = (struct page_cache_page){ .address = address };
	return page;
}

/* ---- Prefetch sets ---- */

static void note_use(struct prefetch_part *part, struct page_cache_page *page)
{
	part->low = MIN(part->low, page->low);
	part->high = MAX(part->high, page->high);
	part->age = 0;
	page->high = 0; /* noted */
}

/* Update the thread's prefetch set by what the ending sample used. */
static void remember_set(struct page_cache *cache)
{
	struct prefetch_set *prefetch_set = cache->prefetch_set;
	unsigned n = 0;

	for (unsigned i = 0; i < prefetch_set->n; i++) {
		struct prefetch_part *part = &prefetch_set->parts[i];
		struct page_cache_page *page = find(cache, part->address);

		if (page && page->high > 0)
			note_use(part, page);
		else
			part->age++;
		if (part->age <= MAX_AGE)
			prefetch_set->parts[n++] = *part;
	}
	for (unsigned i = 0; i < cache->n && n < MAX_PARTS; i++) {
		const struct page_cache_page *page = &cache->pages[i];

		if (page->high > 0)
			prefetch_set->parts[n++] = (struct prefetch_part){ page->address, page->low, page->high, 0 };
	}
	prefetch_set->n = n;
	cache->prefetch_set = NULL;
}

void page_cache_forget(struct page_cache *cache)
{
	if (cache->prefetch_set)
		remember_set(cache);
	cache->n = 0;
	memset(cache->slots, 0, sizeof cache->slots);
}

/* ---- Reading ---- */

/* Pages to read with one call. */
struct request {
	struct remote_part parts[MAX_PARTS];
	struct page_cache_page *pages[MAX_PARTS];
	size_t n;
};

static void request(struct page_cache *cache, struct request *request, struct page_cache_page *page, uint16_t start,
		    uint16_t end)
{
	uint8_t *bytes = cache->bytes[page - cache->pages];

	page->start = start;
	page->end = end;
	request->parts[request->n] = (struct remote_part){ RADDR(page->address + start), bytes + start, end - start };
	request->pages[request->n++] = page;
}

/* The later reader reports pages that cannot be read. */
static void carry_out(struct page_cache *cache, struct request *request)
{
	int n = request->n > 0 ? remote_read_parts(cache->remote, request->parts, request->n) : 0;

	for (size_t i = (size_t)n; i < request->n; i++)
		request->pages[i]->start = request->pages[i]->end = 0;
	request->n = 0;
}

int page_cache_expect(struct page_cache *cache, pid_t tid)
{
	struct request wanted = { .n = 0 };
	struct prefetch_set *prefetch_set;

	if (!cache->prefetch_sets)
		cache->prefetch_sets = calloc(CACHE_N_PREFETCH_SETS, sizeof *cache->prefetch_sets);
	if (!cache->prefetch_sets)
		return -ENOMEM;
	prefetch_set = &cache->prefetch_sets[(unsigned)tid % CACHE_N_PREFETCH_SETS];
	if (prefetch_set->tid != tid)
		prefetch_set->n = 0;
	prefetch_set->tid = tid;
	cache->prefetch_set = prefetch_set;
	for (unsigned i = 0; i < prefetch_set->n && cache->n < CACHE_N_PAGES; i++) {
		const struct prefetch_part *part = &prefetch_set->parts[i];

		if (!find(cache, part->address))
			request(cache, &wanted, add(cache, part->address), part->low, part->high);
	}
	carry_out(cache, &wanted);
	return 0;
}

static bool has(const struct page_cache_page *page, uint64_t offset, size_t n_bytes)
{
	return offset >= page->start && offset + n_bytes <= page->end;
}

void page_cache_prepare(struct page_cache *cache, const uint64_t *addresses, size_t n, size_t n_bytes)
{
	struct request wanted = { .n = 0 };

	for (size_t i = 0; i < n; i++) {
		uint64_t offset = addresses[i] % CACHE_PAGE_BYTES,
			 end = MIN(offset + n_bytes, (uint64_t)CACHE_PAGE_BYTES);
		struct page_cache_page *page = find(cache, addresses[i] - offset);

		if (page && has(page, offset, end - offset))
			continue;
		if (wanted.n == MAX_PARTS || cache->n == CACHE_N_PAGES)
			break;
		if (!page)
			page = add(cache, addresses[i] - offset);
		request(cache, &wanted, page, 0, CACHE_PAGE_BYTES);
	}
	carry_out(cache, &wanted);
}

/* Read the whole page, or the requested part if the whole is unreadable. */
static int fill(struct page_cache *cache, struct page_cache_page *page, uint64_t offset, size_t n_bytes)
{
	uint8_t *bytes = cache->bytes[page - cache->pages];
	int r;

	page->start = 0;
	page->end = CACHE_PAGE_BYTES;
	r = remote_read(cache->remote, RADDR(page->address), bytes, CACHE_PAGE_BYTES);
	if (r >= 0)
		return 0;
	page->start = (uint16_t)offset;
	page->end = (uint16_t)(offset + n_bytes);
	if (r == -EFAULT)
		r = remote_read(cache->remote, RADDR(page->address + offset), bytes + offset, n_bytes);
	if (r < 0)
		page->start = page->end = 0;
	return r;
}

static int load(struct page_cache *cache, uint64_t address, uint64_t offset, size_t n_bytes,
		struct page_cache_page **ret)
{
	struct page_cache_page *page = find(cache, address);
	int r = 0;

	if (!page && cache->n == CACHE_N_PAGES)
		page_cache_forget(cache);
	if (!page)
		page = add(cache, address);
	if (!has(page, offset, n_bytes))
		r = fill(cache, page, offset, n_bytes);
	if (r >= 0)
		*ret = page;
	return r;
}

static void note(struct page_cache_page *page, uint64_t offset, size_t n_bytes)
{
	uint16_t low = (uint16_t)(offset / LINE_BYTES * LINE_BYTES);
	uint16_t high = (uint16_t)((offset + n_bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES);

	page->low = page->high > 0 ? MIN(page->low, low) : low;
	page->high = MAX(page->high, high);
}

int page_cache_read(struct page_cache *cache, uint64_t address, void *to, size_t n_bytes)
{
	uint8_t *out = to;

	if (address + n_bytes < address)
		return -EFAULT;
	while (n_bytes > 0) {
		uint64_t offset = address % CACHE_PAGE_BYTES;
		size_t here = MIN(n_bytes, CACHE_PAGE_BYTES - (size_t)offset);
		struct page_cache_page *page;
		int r;

		r = load(cache, address - offset, offset, here, &page);
		if (r < 0)
			return r;
		note(page, offset, here);
		memcpy(out, cache->bytes[page - cache->pages] + offset, here);
		out += here;
		address += here;
		n_bytes -= here;
	}
	return 0;
}
