/* window.c - the pages of the target that the current sample has touched. */
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "unwind/cpython/reader.h"

enum { FREE_PAGE = 1 };

void window_forget(struct window *window)
{
	for (unsigned i = 0; i < WINDOW_N_PAGES; i++)
		window->pages[i].address = FREE_PAGE;
}

static int find_page(struct window *window, uint64_t address, const struct window_page **ret)
{
	struct window_page *page;
	int r;

	for (unsigned i = 0; i < WINDOW_N_PAGES; i++)
		if (window->pages[i].address == address) {
			*ret = &window->pages[i];
			return 0;
		}
	page = &window->pages[window->next];
	page->address = FREE_PAGE;
	r = remote_read(window->remote, RADDR(address), page->bytes, sizeof page->bytes);
	if (r < 0)
		return r;
	page->address = address;
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
