/* SPDX-License-Identifier: MIT */
/* memory_image.h - what a reader looked at of an interpreter's memory, in a small file.
 *
 * Shared by the tests, the fuzz target and tools/cut_image.c, which makes them. The
 * file does not say which CPython it is of: that is read from the memory, as from a
 * process. In the machine's byte order:
 *   u32  the process, as it knew itself
 *   u64  six: where _PyRuntime, _PyThreadState_Current, interp_head and Py_Version
 *        are (0: there is none), and from where to where its writable memory goes
 *   u32  IMAGE_N_THREADS: ids of threads of interest; 0: none
 *   then pieces to the end: u64 address, u16 length, bytes.
 * What else struct py_symbols has is of no use where there are no native stacks.
 * Memory exists in whole pages; what no piece fills is zero. A file that ends early
 * goes on with zeros, and pages beyond IMAGE_MAX_PAGES are not there.
 */
#ifndef PROBING_TESTS_MEMORY_IMAGE_H
#define PROBING_TESTS_MEMORY_IMAGE_H

#include <errno.h>
#include <string.h>

#include "base/remote.h"
#include "base/util.h"
#include "unwind/cpython/cpython.h"

enum { IMAGE_PAGE_BYTES = 4096, IMAGE_MAX_PAGES = 1024, IMAGE_N_SLOTS = 4096, IMAGE_N_THREADS = 8 };

struct memory_image {
	struct remote base;
	pid_t pid;
	struct py_symbols symbols;
	pid_t threads[IMAGE_N_THREADS];
	size_t n_pages;
	struct image_page {
		uint64_t address;
		uint8_t bytes[IMAGE_PAGE_BYTES];
	} pages[IMAGE_MAX_PAGES];
	uint16_t slots[IMAGE_N_SLOTS]; /* hash of a page's address -> index + 1 */
};

/* The slot of an address's page, or the free one where it belongs. */
static inline uint16_t *image_slot(struct memory_image *image, uint64_t page_address)
{
	size_t i = mix64(page_address) % IMAGE_N_SLOTS;

	while (image->slots[i] != 0 && image->pages[image->slots[i] - 1].address != page_address)
		i = (i + 1) % IMAGE_N_SLOTS;
	return &image->slots[i];
}

/* NULL: no such page. */
static inline struct image_page *image_page(struct memory_image *image, uint64_t address)
{
	uint16_t n = *image_slot(image, address - address % IMAGE_PAGE_BYTES);

	return n ? &image->pages[n - 1] : NULL;
}

/* The existing page, or a new one of zeros. NULL: the image is full. */
static inline struct image_page *image_add_page(struct memory_image *image, uint64_t address)
{
	uint64_t page_address = address - address % IMAGE_PAGE_BYTES;
	uint16_t *slot = image_slot(image, page_address);
	struct image_page *page;

	if (*slot != 0)
		return &image->pages[*slot - 1];
	if (image->n_pages == IMAGE_MAX_PAGES)
		return NULL;
	page = &image->pages[image->n_pages++];
	*slot = (uint16_t)image->n_pages;
	page->address = page_address;
	memset(page->bytes, 0, sizeof page->bytes);
	return page;
}

static inline ssize_t image_read(struct remote *remote, struct raddr from, void *to, size_t n_bytes)
{
	struct memory_image *image = (struct memory_image *)remote;
	size_t done = 0;

	while (done < n_bytes) {
		uint64_t address = from.value + done, offset = address % IMAGE_PAGE_BYTES;
		size_t piece = MIN(n_bytes - done, (size_t)(IMAGE_PAGE_BYTES - offset));
		const struct image_page *page = image_page(image, address);

		if (!page)
			break;
		memcpy((uint8_t *)to + done, page->bytes + offset, piece);
		done += piece;
	}
	return done > 0 ? (ssize_t)done : -EFAULT;
}

static inline void image_init(struct memory_image *image)
{
	static const struct remote_ops ops = { .read = image_read };

	image->base.ops = &ops;
	image->n_pages = 0;
	memset(&image->symbols, 0, sizeof image->symbols);
	memset(image->threads, 0, sizeof image->threads);
	memset(image->slots, 0, sizeof image->slots);
}

struct image_cursor {
	const uint8_t *at, *end;
};

static inline uint64_t image_take(struct image_cursor *cursor, size_t n_bytes)
{
	uint64_t value = 0;

	n_bytes = MIN(n_bytes, (size_t)(cursor->end - cursor->at));
	memcpy(&value, cursor->at, n_bytes);
	cursor->at += n_bytes;
	return value;
}

static inline void image_take_piece(struct memory_image *image, struct image_cursor *cursor)
{
	uint64_t address = image_take(cursor, 8);
	size_t n_bytes = (size_t)image_take(cursor, 2);

	n_bytes = MIN(n_bytes, (size_t)(cursor->end - cursor->at));
	while (n_bytes > 0) {
		uint64_t offset = address % IMAGE_PAGE_BYTES;
		size_t here = MIN(n_bytes, (size_t)(IMAGE_PAGE_BYTES - offset));
		struct image_page *page = image_add_page(image, address);

		if (page)
			memcpy(page->bytes + offset, cursor->at, here);
		cursor->at += here;
		address += here;
		n_bytes -= here;
	}
}

static inline void image_parse(struct memory_image *image, const uint8_t *bytes, size_t n_bytes)
{
	struct image_cursor cursor = { bytes, bytes + n_bytes };

	image_init(image);
	image->pid = (pid_t)image_take(&cursor, 4);
	image->symbols.runtime = image_take(&cursor, 8);
	image->symbols.current_thread = image_take(&cursor, 8);
	image->symbols.interpreters = image_take(&cursor, 8);
	image->symbols.version = image_take(&cursor, 8);
	image->symbols.data_start = image_take(&cursor, 8);
	image->symbols.data_end = image_take(&cursor, 8);
	for (size_t i = 0; i < IMAGE_N_THREADS; i++)
		image->threads[i] = (pid_t)image_take(&cursor, 4);
	while (cursor.at < cursor.end)
		image_take_piece(image, &cursor);
}

/*
 * image_open - the interpreter in an image.
 * @remote: the image itself, or what it is being cut out of.
 */
static inline int image_open(const struct memory_image *image, struct remote *remote, char version[32],
			     struct py_runtime **ret)
{
	return py_runtime_open(remote, image->pid, &image->symbols, version, ret);
}

#endif
