/* window.c - the pages of the target that the current sample has touched. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "unwind/cpython/reader.h"

enum { FREE_PAGE = 1 };

void window_forget(struct window *window)
{
	for (unsigned i = 0; i < WINDOW_N_PAGES; i++)
		window->pages[i].address = FREE_PAGE;
	for (unsigned i = 0; window->more && i < WINDOW_N_MORE; i++)
		window->more[i].address = FREE_PAGE;
}

int window_widen(struct window *window)
{
	if (window->more)
		return 0;
	window->more = malloc(WINDOW_N_MORE * sizeof *window->more);
	if (!window->more)
		return -ENOMEM;
	memset(window->more, 0xff, WINDOW_N_MORE * sizeof *window->more); /* so that the kernel gives it now */
	for (unsigned i = 0; i < WINDOW_N_MORE; i++)
		window->more[i].address = FREE_PAGE;
	return 0;
}

void window_done(struct window *window)
{
	free(window->more);
	window->more = NULL;
}

static int fill(struct window *window, struct window_page *page, uint64_t address)
{
	int r;

	page->address = FREE_PAGE;
	r = remote_read(window->remote, RADDR(address), page->bytes, sizeof page->bytes);
	if (r >= 0)
		page->address = address;
	return r;
}

static int find_among_more(struct window *window, uint64_t address, const struct window_page **ret)
{
	struct window_page *page = &window->more[mix64(address) % WINDOW_N_MORE];
	int r = 0;

	if (page->address != address)
		r = fill(window, page, address);
	if (r >= 0)
		*ret = page;
	return r;
}

static int find_page(struct window *window, uint64_t address, const struct window_page **ret)
{
	struct window_page *page;
	int r;

	if (window->more)
		return find_among_more(window, address, ret);
	for (unsigned i = 0; i < WINDOW_N_PAGES; i++)
		if (window->pages[i].address == address) {
			*ret = &window->pages[i];
			return 0;
		}
	page = &window->pages[window->next];
	r = fill(window, page, address);
	if (r < 0)
		return r;
	window->next = (window->next + 1) % WINDOW_N_PAGES;
	*ret = page;
	return 0;
}

int window_read(struct window *window, uint64_t address, void *to, size_t n_bytes)
{
	uint8_t *out = to;

	if (address + n_bytes < address)
		return -EFAULT;
	while (n_bytes > 0) {
		uint64_t offset = address % WINDOW_PAGE_BYTES;
		size_t here = MIN(n_bytes, WINDOW_PAGE_BYTES - (size_t)offset);
		const struct window_page *page;
		int r;

		r = find_page(window, address - offset, &page);
		if (r < 0)
			return r;
		memcpy(out, page->bytes + offset, here);
		out += here;
		address += here;
		n_bytes -= here;
	}
	return 0;
}
