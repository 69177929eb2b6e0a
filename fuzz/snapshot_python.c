/* snapshot_python.c - the little memory that the reader looks at, as a file.
 *
 * For the corpus of fuzz_cpython.c: runs the reader on a live interpreter that
 * stands still, keeps the pages that it reads, and leaves out every line of
 * them without which all answers stay the same.
 *
 * Usage: snapshot_python PID TID FILE
 */
#include <stdio.h>

#include "fuzz/cpython_memory.h"

enum { LINE_BYTES = 16 };

/* Reads on from the live process, and keeps what was read. */
struct recorder {
	struct remote base;
	struct remote *live;
	struct memory *memory;
};

static ssize_t record_read(struct remote *remote, struct raddr from, void *to, size_t n_bytes)
{
	struct recorder *recorder = (struct recorder *)remote;
	ssize_t n = remote_read_some(recorder->live, from, to, n_bytes);

	for (ssize_t i = 0; i < n; i++) {
		uint64_t address = from.value + (uint64_t)i;
		struct memory_page *page = memory_add_page(recorder->memory, address);

		if (!page)
			return -ENOSPC;
		page->bytes[address % WINDOW_PAGE_BYTES] = ((uint8_t *)to)[i];
	}
	return n;
}

static bool ask(struct memory *memory, struct remote *remote, uint64_t *ret)
{
	struct py_runtime *runtime;

	if (memory_open(memory, remote, &runtime) < 0)
		return false;
	*ret = memory_exercise(memory, runtime);
	py_runtime_free(runtime);
	return true;
}

static bool is_zero(const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bytes[i])
			return false;
	return true;
}

static void leave_out_lines(struct memory *memory, uint64_t hash)
{
	for (size_t i = 0; i < memory->n_pages; i++)
		for (size_t at = 0; at < WINDOW_PAGE_BYTES; at += LINE_BYTES) {
			uint8_t *line = memory->pages[i].bytes + at, kept[LINE_BYTES];
			uint64_t without;

			memcpy(kept, line, LINE_BYTES);
			memset(line, 0, LINE_BYTES);
			if (!ask(memory, &memory->base, &without) || without != hash)
				memcpy(line, kept, LINE_BYTES);
		}
}

static void put(FILE *file, uint64_t value, size_t n_bytes)
{
	fwrite(&value, n_bytes, 1, file);
}

static void put_piece(FILE *file, const struct memory_page *page, size_t from, size_t to)
{
	put(file, page->address + from, 8);
	put(file, to - from, 2);
	fwrite(page->bytes + from, to - from, 1, file);
}

static int write_file(const char *path, const struct memory *memory)
{
	FILE *file = fopen(path, "w");

	if (!file)
		return -errno;
	put(file, memory->version, 1);
	put(file, (uint64_t)memory->tid, 4);
	put(file, memory->runtime, 8);
	for (size_t i = 0; i < MEMORY_N_STARTS; i++)
		put(file, memory->starts[i], 8);
	for (size_t i = 0; i < memory->n_pages; i++) {
		const struct memory_page *page = &memory->pages[i];
		size_t n_pieces = 0;

		for (size_t at = 0, end; at < WINDOW_PAGE_BYTES; at = end + LINE_BYTES) {
			for (end = at; end < WINDOW_PAGE_BYTES && !is_zero(page->bytes + end, LINE_BYTES);)
				end += LINE_BYTES;
			n_pieces += end > at;
			if (end > at)
				put_piece(file, page, at, end);
		}
		if (n_pieces == 0)
			put_piece(file, page, 0, 1); /* that the page is there may matter */
	}
	return fclose(file) < 0 ? -errno : 0;
}

/* The runtime's address and version, and some frames to start from. */
static bool describe(pid_t pid, struct remote *live, struct memory *memory)
{
	struct module_table *modules;
	struct address_space *space;
	struct py_runtime *runtime;
	struct py_anchor anchors[MEMORY_MAX_ANCHORS];
	char version[32];
	int n;

	if (module_table_new(&modules) < 0 || address_space_new(pid, modules, &space) < 0 ||
	    address_space_load(space) < 0 || py_runtime_find(space, live, version, &runtime) < 0)
		return false;
	memory->runtime = runtime->symbols.runtime;
	memory->version = (uint8_t)((runtime->layout.version >> 16 & 255) - 11);
	if (layout_n_words(&runtime->layout) > 0)
		memory->version |= MEMORY_OFFSETS_BIT;
	n = py_live_anchors(runtime, memory->tid, anchors, MEMORY_MAX_ANCHORS, &memory->starts[0]);
	for (int i = 0; i < n && i + 1 < MEMORY_N_STARTS; i++)
		memory->starts[i + 1] = anchors[i].top ? anchors[i].top : anchors[i].outer_top;
	if (py_code_count(runtime) > 0)
		memory->starts[MEMORY_N_STARTS - 1] = py_code_nth(runtime, 0)->bytecode;
	py_runtime_free(runtime);
	address_space_free(space);
	module_table_free(modules);
	return n > 0;
}

int main(int argc, char **argv)
{
	static const struct remote_ops ops = { .read = record_read };
	static struct memory memory;
	struct recorder recorder = { .base = { &ops }, .memory = &memory };
	uint64_t hash;
	pid_t pid;
	int r;

	if (argc != 4) {
		fprintf(stderr, "usage: snapshot_python PID TID FILE\n");
		return 2;
	}
	pid = atoi(argv[1]);
	memory_parse(&memory, (const uint8_t *)"", 0);
	memory.tid = atoi(argv[2]);
	if (remote_open_process(pid, &recorder.live) < 0 || !describe(pid, recorder.live, &memory) ||
	    !ask(&memory, &recorder.base, &hash)) {
		fprintf(stderr, "snapshot_python: no Python thread there that can be read\n");
		return 1;
	}
	leave_out_lines(&memory, hash);
	remote_free(recorder.live);
	r = write_file(argv[3], &memory);
	if (r < 0)
		fprintf(stderr, "snapshot_python: %s: %s\n", argv[3], strerror(-r));
	return r < 0;
}
