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

/* What was needed of a page lately. */
struct page_cache_part {
	uint64_t address; /* of the page */
	uint16_t low, high;
	uint8_t age; /* samples in a row that had no use for it */
};

struct page_cache_habit {
	pid_t tid;
	unsigned n;
	struct page_cache_part parts[MAX_PARTS];
};

int page_cache_init(struct page_cache *window, struct remote *remote)
{
	window->remote = remote;
	window->bytes = malloc(WINDOW_N_PAGES * sizeof *window->bytes);
	return window->bytes ? 0 : -ENOMEM;
}

void page_cache_done(struct page_cache *window)
{
	free(window->bytes);
	free(window->habits);
	*window = (struct page_cache){ 0 };
}

void page_cache_touch(struct page_cache *window)
{
	if (window->is_touched)
		return;
	page_cache_forget(window);
	memset(window->bytes, 0xff, WINDOW_N_PAGES * sizeof *window->bytes);
	window->is_touched = true;
}

static unsigned slot_of(const struct page_cache *window, uint64_t address)
{
	unsigned slot = (unsigned)(mix64(address) % WINDOW_N_SLOTS);

	while (window->slots[slot] != 0 && window->pages[window->slots[slot] - 1].address != address)
		slot = (slot + 1) % WINDOW_N_SLOTS;
	return slot;
}

static struct page_cache_page *find(struct page_cache *window, uint64_t address)
{
	unsigned slot = slot_of(window, address);

	return window->slots[slot] != 0 ? &window->pages[window->slots[slot] - 1] : NULL;
}

/* A page of which nothing has been read. There must be room. */
static struct page_cache_page *add(struct page_cache *window, uint64_t address)
{
	struct page_cache_page *page = &window->pages[window->n++];

	window->slots[slot_of(window, address)] = (uint16_t)window->n;
	*page = (struct page_cache_page){ .address = address };
	return page;
}

/* ---- Habits ---- */

static void note_use(struct page_cache_part *part, struct page_cache_page *page)
{
	part->low = MIN(part->low, page->low);
	part->high = MAX(part->high, page->high);
	part->age = 0;
	page->high = 0; /* noted */
}

/* What the sample that ends has used of what its thread's others did, and what it has used beside. */
static void remember_set(struct page_cache *window)
{
	struct page_cache_habit *habit = window->habit;
	unsigned n = 0;

	for (unsigned i = 0; i < habit->n; i++) {
		struct page_cache_part *part = &habit->parts[i];
		struct page_cache_page *page = find(window, part->address);

		if (page && page->high > 0)
			note_use(part, page);
		else
			part->age++;
		if (part->age <= MAX_AGE)
			habit->parts[n++] = *part;
	}
	for (unsigned i = 0; i < window->n && n < MAX_PARTS; i++) {
		const struct page_cache_page *page = &window->pages[i];

		if (page->high > 0)
			habit->parts[n++] = (struct page_cache_part){ page->address, page->low, page->high, 0 };
	}
	habit->n = n;
	window->habit = NULL;
}

void page_cache_forget(struct page_cache *window)
{
	if (window->habit)
		remember_set(window);
	window->n = 0;
	memset(window->slots, 0, sizeof window->slots);
}

/* ---- Reading ---- */

/* Pages that are to be read in one call. */
struct request {
	struct remote_part parts[MAX_PARTS];
	struct page_cache_page *pages[MAX_PARTS];
	size_t n;
};

static void request(struct page_cache *window, struct request *request, struct page_cache_page *page, uint16_t start,
		    uint16_t end)
{
	uint8_t *bytes = window->bytes[page - window->pages];

	page->start = start;
	page->end = end;
	request->parts[request->n] = (struct remote_part){ RADDR(page->address + start), bytes + start, end - start };
	request->pages[request->n++] = page;
}

/* What cannot be read is left to who asks for it. */
static void carry_out(struct page_cache *window, struct request *request)
{
	int n = request->n > 0 ? remote_read_parts(window->remote, request->parts, request->n) : 0;

	for (size_t i = (size_t)n; i < request->n; i++)
		request->pages[i]->start = request->pages[i]->end = 0;
	request->n = 0;
}

int page_cache_expect(struct page_cache *window, pid_t tid)
{
	struct request wanted = { .n = 0 };
	struct page_cache_habit *habit;

	if (!window->habits)
		window->habits = calloc(WINDOW_N_HABITS, sizeof *window->habits);
	if (!window->habits)
		return -ENOMEM;
	habit = &window->habits[(unsigned)tid % WINDOW_N_HABITS];
	if (habit->tid != tid)
		habit->n = 0;
	habit->tid = tid;
	window->habit = habit;
	for (unsigned i = 0; i < habit->n && window->n < WINDOW_N_PAGES; i++) {
		const struct page_cache_part *part = &habit->parts[i];

		if (!find(window, part->address))
			request(window, &wanted, add(window, part->address), part->low, part->high);
	}
	carry_out(window, &wanted);
	return 0;
}

static bool has(const struct page_cache_page *page, uint64_t offset, size_t n_bytes)
{
	return offset >= page->start && offset + n_bytes <= page->end;
}

void page_cache_prepare(struct page_cache *window, const uint64_t *addresses, size_t n, size_t n_bytes)
{
	struct request wanted = { .n = 0 };

	for (size_t i = 0; i < n; i++) {
		uint64_t offset = addresses[i] % WINDOW_PAGE_BYTES,
			 end = MIN(offset + n_bytes, (uint64_t)WINDOW_PAGE_BYTES);
		struct page_cache_page *page = find(window, addresses[i] - offset);

		if (page && has(page, offset, end - offset))
			continue;
		if (wanted.n == MAX_PARTS || window->n == WINDOW_N_PAGES)
			break;
		if (!page)
			page = add(window, addresses[i] - offset);
		request(window, &wanted, page, 0, WINDOW_PAGE_BYTES);
	}
	carry_out(window, &wanted);
}

/* The whole page; where not all of it can be read, what is asked for. */
static int fill(struct page_cache *window, struct page_cache_page *page, uint64_t offset, size_t n_bytes)
{
	uint8_t *bytes = window->bytes[page - window->pages];
	int r;

	page->start = 0;
	page->end = WINDOW_PAGE_BYTES;
	r = remote_read(window->remote, RADDR(page->address), bytes, WINDOW_PAGE_BYTES);
	if (r >= 0)
		return 0;
	page->start = (uint16_t)offset;
	page->end = (uint16_t)(offset + n_bytes);
	if (r == -EFAULT)
		r = remote_read(window->remote, RADDR(page->address + offset), bytes + offset, n_bytes);
	if (r < 0)
		page->start = page->end = 0;
	return r;
}

static int load(struct page_cache *window, uint64_t address, uint64_t offset, size_t n_bytes,
		struct page_cache_page **ret)
{
	struct page_cache_page *page = find(window, address);
	int r = 0;

	if (!page && window->n == WINDOW_N_PAGES)
		page_cache_forget(window);
	if (!page)
		page = add(window, address);
	if (!has(page, offset, n_bytes))
		r = fill(window, page, offset, n_bytes);
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

int page_cache_read(struct page_cache *window, uint64_t address, void *to, size_t n_bytes)
{
	uint8_t *out = to;

	if (address + n_bytes < address)
		return -EFAULT;
	while (n_bytes > 0) {
		uint64_t offset = address % WINDOW_PAGE_BYTES;
		size_t here = MIN(n_bytes, WINDOW_PAGE_BYTES - (size_t)offset);
		struct page_cache_page *page;
		int r;

		r = load(window, address - offset, offset, here, &page);
		if (r < 0)
			return r;
		note(page, offset, here);
		memcpy(out, window->bytes[page - window->pages] + offset, here);
		out += here;
		address += here;
		n_bytes -= here;
	}
	return 0;
}
