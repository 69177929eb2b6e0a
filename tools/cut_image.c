/* SPDX-License-Identifier: MIT */
/* cut_image.c - the little memory that the reader of CPython looks at, as a file.
 *
 * Runs the reader on an interpreter that stands still, keeps the pages that it reads,
 * and leaves out every line of them without which all answers stay the same. The file
 * is described in tests/unit/memory_image.h.
 *
 * Usage: cut_image OUT KEY=VALUE...
 *   process=PID   a live process, or
 *   core=FILE     a core file; what else there is to know then:
 *     pid= runtime= current_thread= interpreters= version= data_start= data_end=, or
 *   image=FILE    an image, to be cut smaller
 *   thread=TID    whose stack is of interest; several times, IMAGE_N_THREADS at most
 *   tasks=1       of its event loop, too, of a process: an image as fuzz/fuzz_asyncio.c reads it
 *   margin=BYTES  keep as much around what is needed, for what will be read some day
 */
#include <stdio.h>

#include "fuzz/exercise_tasks.h"
#include "unwind/cpython/reader.h"

enum { LINE_BYTES = 16, N_LINES = IMAGE_PAGE_BYTES / LINE_BYTES, NO_PAGE = 1 };

/* Reads on from where the memory is, and keeps what was read. */
struct recorder {
	struct remote base;
	struct remote *from;
	struct memory_image *image;
};

struct options {
	const char *core, *image;
	uint64_t process, margin;
	size_t n_threads;
};

static struct memory_image source, whole, cut;
static uint64_t with_tasks;
static bool kept[IMAGE_MAX_PAGES][N_LINES];

/* Whole pages, for the margins. */
static bool record_page(struct recorder *recorder, uint64_t address)
{
	struct image_page *page = image_page(recorder->image, address);

	if (page)
		return true;
	page = image_add_page(recorder->image, address);
	return page && remote_read_some(recorder->from, RADDR(page->address), page->bytes, sizeof page->bytes) > 0;
}

static ssize_t record_read(struct remote *remote, struct raddr from, void *to, size_t n_bytes)
{
	struct recorder *recorder = (struct recorder *)remote;
	ssize_t n = remote_read_some(recorder->from, from, to, n_bytes);

	for (ssize_t i = 0; i < n; i += IMAGE_PAGE_BYTES)
		if (!record_page(recorder, from.value + (uint64_t)i))
			return -ENOSPC;
	if (n > 0 && !record_page(recorder, from.value + (uint64_t)n - 1))
		return -ENOSPC;
	return n;
}

/* -ENOENT: there is none of these threads with Python frames. */
static int ask(struct remote *remote, uint64_t *ret)
{
	CLEANUP(py_runtime_freep) struct py_runtime *runtime = NULL;
	char version[32];
	int r;

	r = image_open(&cut, remote, version, &runtime);
	if (r < 0)
		return r;
	*ret = with_tasks ? exercise_tasks(&cut, runtime) : exercise(&cut, remote, runtime);
	return py_code_count(runtime) > 0 ? 0 : -ENOENT;
}

static bool answers_stay(uint64_t hash)
{
	uint64_t now;

	return ask(&cut.base, &now) == 0 && now == hash;
}

static bool is_zero(const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bytes[i])
			return false;
	return true;
}

static void leave_out_pages(uint64_t hash)
{
	for (size_t i = 0; i < cut.n_pages; i++) {
		uint64_t address = cut.pages[i].address;

		cut.pages[i].address = NO_PAGE;
		if (!answers_stay(hash))
			cut.pages[i].address = address;
	}
}

/* Halves of halves, so that what is not needed goes in large pieces; none is cut smaller than what a margin would restore. */
static void leave_out_lines(uint8_t *bytes, size_t n_bytes, size_t least, uint64_t hash)
{
	uint8_t copy[IMAGE_PAGE_BYTES];

	if (is_zero(bytes, n_bytes))
		return;
	memcpy(copy, bytes, n_bytes);
	memset(bytes, 0, n_bytes);
	if (answers_stay(hash))
		return;
	memcpy(bytes, copy, n_bytes);
	if (n_bytes / 2 < least)
		return;
	leave_out_lines(bytes, n_bytes / 2, least, hash);
	leave_out_lines(bytes + n_bytes / 2, n_bytes / 2, least, hash);
}

/* Whether a line, or one near it, is needed. */
static bool is_near(uint64_t address, uint64_t margin)
{
	for (uint64_t at = 0; at <= 2 * margin; at += LINE_BYTES) {
		uint64_t near = address + at - margin;
		const struct image_page *page = image_page(&whole, near);

		if (page && kept[page - whole.pages][near % IMAGE_PAGE_BYTES / LINE_BYTES])
			return true;
	}
	return false;
}

/* What is near to what is needed, page by page; but half of an object may be worse than none. */
static void restore_margins(uint64_t margin, uint64_t hash)
{
	for (size_t i = 0; i < cut.n_pages; i++)
		for (size_t line = 0; line < N_LINES && cut.pages[i].address != NO_PAGE; line++)
			kept[i][line] = !is_zero(cut.pages[i].bytes + line * LINE_BYTES, LINE_BYTES);
	for (size_t i = 0; i < cut.n_pages; i++) {
		struct image_page *page = &cut.pages[i], before = *page; /* the same order of pages in both */
		bool has_more = false;

		if (page->address == NO_PAGE)
			memset(page->bytes, 0, sizeof page->bytes);
		for (size_t at = 0; at < IMAGE_PAGE_BYTES; at += LINE_BYTES)
			if (is_near(whole.pages[i].address + at, margin)) {
				memcpy(page->bytes + at, whole.pages[i].bytes + at, LINE_BYTES);
				has_more = true;
			}
		if (has_more)
			page->address = whole.pages[i].address;
		if (!has_more || !answers_stay(hash))
			*page = before;
	}
}

static void put(FILE *file, uint64_t value, size_t n_bytes)
{
	fwrite(&value, n_bytes, 1, file);
}

static void put_piece(FILE *file, const struct image_page *page, size_t from, size_t to)
{
	put(file, page->address + from, 8);
	put(file, to - from, 2);
	fwrite(page->bytes + from, to - from, 1, file);
}

static void put_page(FILE *file, const struct image_page *page)
{
	size_t n_pieces = 0;

	for (size_t at = 0, end; at < IMAGE_PAGE_BYTES; at = end + LINE_BYTES) {
		for (end = at; end < IMAGE_PAGE_BYTES && !is_zero(page->bytes + end, LINE_BYTES);)
			end += LINE_BYTES;
		n_pieces += end > at;
		if (end > at)
			put_piece(file, page, at, end);
	}
	if (n_pieces == 0)
		put_piece(file, page, 0, 1); /* that the page is there may matter */
}

static int write_file(const char *path)
{
	FILE *file = fopen(path, "w");

	if (!file)
		return -errno;
	if (with_tasks)
		put(file, cut.symbols.asyncio, 8);
	put(file, (uint64_t)cut.pid, 4);
	put(file, cut.symbols.runtime, 8);
	put(file, cut.symbols.current_thread, 8);
	put(file, cut.symbols.interpreters, 8);
	put(file, cut.symbols.version, 8);
	put(file, cut.symbols.data_start, 8);
	put(file, cut.symbols.data_end, 8);
	for (size_t i = 0; i < IMAGE_N_THREADS; i++)
		put(file, (uint64_t)cut.threads[i], 4);
	for (size_t i = 0; i < cut.n_pages; i++)
		if (cut.pages[i].address != NO_PAGE)
			put_page(file, &cut.pages[i]);
	return fclose(file) < 0 ? -errno : 0;
}

/* The addresses that a live interpreter's executable tells. */
static int find_symbols(pid_t pid, struct remote *remote, struct py_symbols *ret)
{
	CLEANUP(py_runtime_freep) struct py_runtime *runtime = NULL;
	struct module_table *modules = NULL;
	struct address_space *space = NULL;
	char version[32];
	int r;

	r = module_table_new(&modules);
	if (r >= 0)
		r = address_space_new(pid, modules, &space);
	if (r >= 0)
		r = address_space_load(space);
	if (r >= 0)
		r = py_runtime_find(space, remote, version, &runtime);
	if (r >= 0)
		py_asyncio_look(runtime, space);
	if (r >= 0)
		*ret = runtime->symbols;
	address_space_free(space);
	module_table_free(modules);
	return r;
}

static int load_image(const char *path)
{
	enum { MAX_BYTES = 16 << 20 };
	CLEANUP(freep) char *bytes = NULL;
	size_t n_bytes;
	int r;

	r = read_file(path, MAX_BYTES, &bytes, &n_bytes);
	if (r < 0)
		return r;
	image_parse(&source, (const uint8_t *)bytes, n_bytes);
	cut.pid = source.pid;
	cut.symbols = source.symbols;
	return 0;
}

static int open_source(const struct options *options, struct remote **ret)
{
	int r;

	if (options->core)
		return remote_open_core(options->core, ret);
	if (options->image) {
		r = load_image(options->image);
		*ret = &source.base;
		return r;
	}
	cut.pid = (pid_t)options->process;
	r = remote_open_process(cut.pid, ret);
	return r < 0 ? r : find_symbols(cut.pid, *ret, &cut.symbols);
}

static int cut_out(const struct options *options)
{
	static const struct remote_ops ops = { .read = record_read };
	struct recorder recorder = { .base = { &ops }, .image = &cut };
	uint64_t hash;
	int r;

	r = open_source(options, &recorder.from);
	if (r >= 0)
		r = ask(&recorder.base, &hash);
	if (r < 0)
		return r;
	whole = cut;
	leave_out_pages(hash);
	for (size_t i = 0; i < cut.n_pages; i++)
		if (cut.pages[i].address != NO_PAGE)
			leave_out_lines(cut.pages[i].bytes, IMAGE_PAGE_BYTES, MAX((size_t)LINE_BYTES, options->margin),
					hash);
	if (options->margin > 0)
		restore_margins(options->margin, hash);
	return answers_stay(hash) ? 0 : -EBADMSG;
}

static bool parse_number(const char *name, const char *value, struct options *options)
{
	struct {
		const char *name;
		uint64_t *to;
	} numbers[] = {
		{ "process", &options->process },
		{ "margin", &options->margin },
		{ "tasks", &with_tasks },
		{ "runtime", &cut.symbols.runtime },
		{ "current_thread", &cut.symbols.current_thread },
		{ "interpreters", &cut.symbols.interpreters },
		{ "version", &cut.symbols.version },
		{ "data_start", &cut.symbols.data_start },
		{ "data_end", &cut.symbols.data_end },
	};
	char *end;
	uint64_t number = strtoull(value, &end, 0);

	if (end == value || *end != '\0')
		return false;
	for (size_t i = 0; i < N_ELEMENTS(numbers); i++)
		if (strcmp(name, numbers[i].name) == 0) {
			*numbers[i].to = number;
			return true;
		}
	if (strcmp(name, "thread") == 0 && options->n_threads < IMAGE_N_THREADS)
		cut.threads[options->n_threads++] = (pid_t)number;
	else if (strcmp(name, "pid") == 0)
		cut.pid = (pid_t)number;
	else
		return false;
	return true;
}

static bool parse_option(char *argument, struct options *options)
{
	char *value = strchr(argument, '=');

	if (!value)
		return false;
	*value++ = '\0';
	if (strcmp(argument, "core") == 0)
		options->core = value;
	else if (strcmp(argument, "image") == 0)
		options->image = value;
	else
		return parse_number(argument, value, options);
	return true;
}

int main(int argc, char **argv)
{
	struct options options = { 0 };
	bool sound = argc > 2;
	int r;

	image_init(&cut);
	for (int i = 2; i < argc && sound; i++)
		sound = parse_option(argv[i], &options);
	if (!sound || options.n_threads == 0 || options.margin % LINE_BYTES != 0) {
		fprintf(stderr, "usage: cut_image OUT process=PID|core=FILE|image=FILE [KEY=VALUE...] thread=TID...\n");
		return 2;
	}
	r = cut_out(&options);
	if (r >= 0)
		r = write_file(argv[1]);
	if (r < 0)
		fprintf(stderr, "cut_image: %s: %s\n", argv[1], strerror(-r));
	return r < 0;
}
