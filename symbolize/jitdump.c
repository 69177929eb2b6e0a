/* SPDX-License-Identifier: MIT */
/* jitdump.c - see jitdump.h.
 *
 * Only heads, names and lines are read; the code itself is skipped. A record
 * counts once the file contains all of it, so that an incomplete one is
 * read again the next time.
 *
 * Times: the specification leaves the clock to the writer. Most use
 * CLOCK_MONOTONIC, as perf does; a record from the future reveals another
 * clock, and a flag in the header the processor's. (The header's own time
 * is useless: CPython 3.13 takes it from another clock.)
 */
#include "symbolize/jitdump.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"

#define MAGIC 0x4A695444u
#define MAGIC_SWAPPED 0x4454694Au
#define VERSION 1
#define FLAG_ARCH_TIMESTAMP 1

enum record_id { CODE_LOAD, CODE_MOVE, CODE_DEBUG_INFO, CODE_CLOSE, CODE_UNWINDING_INFO };

enum { READ_BYTES = 32 << 10 };

struct header {
	uint32_t magic, version, total_size, elf_machine, padding, pid;
	uint64_t timestamp, flags;
};

struct prefix {
	uint32_t id, total_size;
	uint64_t timestamp;
};

struct load {
	uint32_t pid, tid;
	uint64_t vma, code_address, code_bytes, code_index;
};

struct move {
	uint32_t pid, tid;
	uint64_t vma, old_address, new_address, code_bytes, code_index;
};

struct debug_info {
	uint64_t code_address, n_entries;
};

struct debug_entry {
	uint64_t address;
	int32_t line, discriminator;
};

_Static_assert(sizeof(struct header) == 40, "as specified");
_Static_assert(sizeof(struct prefix) == 16, "as specified");
_Static_assert(sizeof(struct load) == 40, "as specified");
_Static_assert(sizeof(struct move) == 48, "as specified");

/* Reads the file through a sliding buffer. */
struct reading {
	struct jitdump *dump;
	uint64_t file_bytes;
	uint64_t now_ns;
	uint8_t *buffer;
	uint64_t at; /* file offset of buffer[0] */
	size_t n_bytes, allocated;
};

/* ---- Read ---- */

/* Bytes of the file, valid until the next call. -ENODATA: the file is shorter, or was truncated. */
static int see(struct reading *reading, uint64_t offset, size_t n_bytes, const void **ret)
{
	int r;

	if (offset < reading->at || offset + n_bytes > reading->at + reading->n_bytes) {
		size_t wanted = MAX(n_bytes, (size_t)READ_BYTES);

		r = grow(&reading->buffer, wanted, &reading->allocated, 1);
		if (r >= 0)
			r = pread_all(reading->dump->fd, reading->buffer, wanted, offset, &reading->n_bytes);
		if (r < 0)
			return r;
		reading->at = offset;
		if (reading->n_bytes < n_bytes)
			return -ENODATA;
	}
	*ret = reading->buffer + (offset - reading->at);
	return 0;
}

static int check_header(const struct header *header)
{
	if (header->magic == MAGIC_SWAPPED)
		return -EOPNOTSUPP;
	if (header->magic != MAGIC || header->total_size < sizeof *header)
		return -EBADMSG;
	return header->version == VERSION ? 0 : -EPROTONOSUPPORT;
}

int jitdump_open(int fd, struct jitdump *ret)
{
	struct header header;
	size_t n = 0;
	int r;

	r = pread_all(fd, &header, sizeof header, 0, &n);
	if (r < 0)
		return r;
	if (n < sizeof header)
		return -EBADMSG;
	r = check_header(&header);
	if (r < 0)
		return r;
	*ret = (struct jitdump){
		.fd = fd,
		.offset = header.total_size,
		.is_timed = (header.flags & FLAG_ARCH_TIMESTAMP) == 0,
	};
	return 0;
}

void jitdump_done(struct jitdump *dump)
{
	code_ranges_done(&dump->ranges);
	id_map_done(&dump->by_index);
	free(dump->functions);
	free(dump->lines);
	free(dump->files);
	close(dump->fd);
	*dump = (struct jitdump){ .fd = -1 };
}

/* ---- Code ---- */

/* The newer of two functions with one index wins. Key 0 is invalid, so index UINT64_MAX is skipped. */
static int note_index(struct jitdump *dump, uint64_t code_index)
{
	struct id_slot *slot = id_map_find(&dump->by_index, code_index + 1);
	uint32_t range = (uint32_t)dump->ranges.n - 1;

	if (code_index == UINT64_MAX)
		return 0;
	if (!slot)
		return id_map_add(&dump->by_index, code_index + 1, range);
	slot->id = range;
	return 0;
}

static int add_function(struct jitdump *dump, uint64_t code_address, uint32_t *ret)
{
	int r;

	r = grow(&dump->functions, dump->n_functions, &dump->functions_allocated, sizeof *dump->functions);
	if (r < 0)
		return r;
	*ret = (uint32_t)dump->n_functions;
	dump->functions[dump->n_functions++] = dump->next_address == code_address ? dump->next
										  : (struct jitdump_function){};
	dump->next = (struct jitdump_function){};
	return 0;
}

static int take_load(struct reading *reading, uint64_t offset, size_t n_bytes, uint64_t since_ns)
{
	struct jitdump *dump = reading->dump;
	size_t before = dump->ranges.n, n_head;
	struct code_range range;
	struct load load;
	const void *bytes;
	int r;

	if (n_bytes < sizeof load)
		return 0;
	n_head = MIN(n_bytes, sizeof load + JITDUMP_MAX_NAME);
	r = see(reading, offset, n_head, &bytes);
	if (r < 0)
		return r;
	memcpy(&load, bytes, sizeof load);
	if (load.code_bytes > UINT64_MAX - load.code_address || dump->ranges.n >= CODE_RANGES_MAX)
		return 0;
	range = (struct code_range){ .start = load.code_address,
				     .end = load.code_address + load.code_bytes,
				     .since_ns = since_ns };
	r = add_function(dump, load.code_address, &range.user);
	if (r >= 0)
		r = code_ranges_add(&dump->ranges, &range, (const char *)bytes + sizeof load,
				    strnlen((const char *)bytes + sizeof load, n_head - sizeof load));
	if (r >= 0 && dump->ranges.n > before)
		r = note_index(dump, load.code_index);
	return r;
}

/* From now on the code lies elsewhere, under the same name. */
static int take_move(struct reading *reading, uint64_t offset, size_t n_bytes, uint64_t since_ns)
{
	struct jitdump *dump = reading->dump;
	const struct id_slot *slot;
	struct code_range old, moved;
	CLEANUP(freep) char *name = NULL;
	struct move move;
	const void *bytes;
	int r;

	if (n_bytes < sizeof move)
		return 0;
	r = see(reading, offset, sizeof move, &bytes);
	if (r < 0)
		return r;
	memcpy(&move, bytes, sizeof move);
	slot = move.code_index == UINT64_MAX ? NULL : id_map_find(&dump->by_index, move.code_index + 1);
	if (!slot || move.code_bytes > UINT64_MAX - move.new_address || dump->ranges.n + 2 > CODE_RANGES_MAX)
		return 0;
	old = dump->ranges.ranges[slot->id];
	name = strdup(code_range_name(&dump->ranges, &old));
	if (!name)
		return -ENOMEM;
	moved = old;
	moved.start = move.new_address;
	moved.end = move.new_address + move.code_bytes;
	moved.since_ns = old.since_ns = since_ns;
	if (moved.start >= moved.end)
		return 0;
	r = code_ranges_add(&dump->ranges, &old, NULL, 0);
	if (r >= 0)
		r = code_ranges_add(&dump->ranges, &moved, name, strlen(name));
	return r < 0 ? r : note_index(dump, move.code_index);
}

/* ---- Lines ---- */

/* Add a file name, or reuse the last one: entries repeat it. Returns its offset. */
static int add_file(struct jitdump *dump, const char *name, size_t n_name, uint32_t *ret)
{
	size_t at = MAX(dump->files_bytes, (size_t)1);
	const char *last = *ret ? dump->files + *ret : NULL;
	int r;

	if (last && strncmp(last, name, n_name) == 0 && last[n_name] == '\0')
		return 0;
	if (at + n_name >= UINT32_MAX)
		return 0;
	r = grow(&dump->files, at + n_name, &dump->files_allocated, 1);
	if (r < 0)
		return r;
	dump->files[0] = '\0';
	memcpy(dump->files + at, name, n_name);
	dump->files[at + n_name] = '\0';
	dump->files_bytes = at + n_name + 1;
	*ret = (uint32_t)at;
	return 0;
}

/* V8 11 writes garbage for some scripts. */
static bool is_sensible(const struct debug_entry *entry, uint64_t code_address, const char *name)
{
	for (; *name; name++)
		if ((unsigned char)*name < ' ')
			return false;
	return entry->address >= code_address && entry->line >= 0;
}

static int add_line(struct jitdump *dump, const struct debug_entry *entry, uint64_t code_address, uint32_t file)
{
	int r;

	r = grow(&dump->lines, dump->n_lines, &dump->lines_allocated, sizeof *dump->lines);
	if (r < 0)
		return r;
	dump->lines[dump->n_lines++] = (struct jitdump_line){ .offset = entry->address - code_address,
							      .line = entry->line,
							      .file = file };
	return 0;
}

static int compare_lines(const void *a, const void *b)
{
	const struct jitdump_line *left = a, *right = b;

	return left->offset < right->offset ? -1 : left->offset > right->offset;
}

/* Add a record's entries, for the next loaded code. -EBADMSG: they are implausible. */
static int add_lines(struct jitdump *dump, const struct debug_info *info, const char *at, const char *end)
{
	static const char repeated[] = "\xff"; /* same file as the previous entry */
	uint32_t file = 0;
	int r = 0;

	for (uint64_t n = info->n_entries; n > 0 && dump->n_lines < JITDUMP_MAX_LINES; n--) {
		struct debug_entry entry;
		size_t n_name;

		if ((size_t)(end - at) <= sizeof entry)
			return -EBADMSG;
		memcpy(&entry, at, sizeof entry);
		at += sizeof entry;
		n_name = strnlen(at, (size_t)(end - at));
		if (n_name == (size_t)(end - at) || !is_sensible(&entry, info->code_address, at))
			return -EBADMSG;
		if (strcmp(at, repeated) != 0)
			r = add_file(dump, at, MIN(n_name, (size_t)JITDUMP_MAX_NAME), &file);
		if (r >= 0)
			r = add_line(dump, &entry, info->code_address, file);
		if (r < 0)
			return r;
		at += n_name + 1;
	}
	return 0;
}

static int take_debug_info(struct reading *reading, uint64_t offset, size_t n_bytes)
{
	struct jitdump *dump = reading->dump;
	size_t n_before = dump->n_lines;
	struct debug_info info;
	const void *bytes;
	int r;

	if (n_bytes < sizeof info || n_bytes > JITDUMP_MAX_LINES_BYTES)
		return 0;
	r = see(reading, offset, n_bytes, &bytes);
	if (r < 0)
		return r;
	memcpy(&info, bytes, sizeof info);
	r = add_lines(dump, &info, (const char *)bytes + sizeof info, (const char *)bytes + n_bytes);
	if (r == -EBADMSG)
		dump->n_lines = n_before;
	dump->next_address = info.code_address;
	dump->next = (struct jitdump_function){ .first_line = (uint32_t)n_before,
						.n_lines = (uint32_t)(dump->n_lines - n_before) };
	if (dump->next.n_lines > 0)
		qsort(dump->lines + n_before, dump->next.n_lines, sizeof *dump->lines, compare_lines);
	return r == -EBADMSG ? 0 : r;
}

void jitdump_find_line(const struct jitdump *dump, const struct code_range *range, uint64_t address,
		       const char **ret_file, int *ret_line)
{
	const struct jitdump_function *function = &dump->functions[range->user];
	size_t low = 0, high = function->n_lines;
	const struct jitdump_line *lines;

	*ret_line = 0;
	*ret_file = NULL;
	if (high == 0)
		return; /* lines are optional */
	lines = dump->lines + function->first_line;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (lines[middle].offset <= address - range->start)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_line = low > 0 ? lines[low - 1].line : 0;
	*ret_file = *ret_line > 0 && lines[low - 1].file ? dump->files + lines[low - 1].file : NULL;
}

/* ---- Records ---- */

static uint64_t since(const struct reading *reading, const struct prefix *prefix)
{
	struct jitdump *dump = reading->dump;

	if (prefix->timestamp > reading->now_ns)
		dump->is_timed = false;
	return dump->is_timed ? prefix->timestamp : dump->last_ns;
}

static int take_record(struct reading *reading, const struct prefix *prefix, uint64_t offset)
{
	size_t n_bytes = prefix->total_size - sizeof *prefix;
	uint64_t since_ns = since(reading, prefix);

	switch (prefix->id) {
	case CODE_LOAD:
		return take_load(reading, offset, n_bytes, since_ns);
	case CODE_MOVE:
		return take_move(reading, offset, n_bytes, since_ns);
	case CODE_DEBUG_INFO:
		return take_debug_info(reading, offset, n_bytes);
	case CODE_CLOSE:
		reading->dump->is_closed = true;
		return 0;
	default:
		return 0; /* unwind information, and records of later versions */
	}
}

/* Returns 1 for a record, 0 if there is no complete one. */
static int read_record(struct reading *reading)
{
	struct jitdump *dump = reading->dump;
	const void *bytes;
	struct prefix prefix;
	int r;

	if (dump->is_closed || dump->offset + sizeof prefix > reading->file_bytes)
		return 0;
	r = see(reading, dump->offset, sizeof prefix, &bytes);
	if (r < 0)
		return r;
	memcpy(&prefix, bytes, sizeof prefix);
	if (prefix.total_size < sizeof prefix) {
		/* A file that is extended before it is written contains zeros. */
		dump->is_closed = prefix.total_size != 0;
		return 0;
	}
	if (dump->offset + prefix.total_size > reading->file_bytes)
		return 0;
	r = take_record(reading, &prefix, dump->offset + sizeof prefix);
	if (r < 0)
		return r;
	dump->offset += prefix.total_size;
	return 1;
}

int jitdump_read(struct jitdump *dump)
{
	struct reading reading = { .dump = dump };
	uint64_t began_ns = monotonic_ns();
	bool found = false;
	struct stat st;
	int r;

	if (fstat(dump->fd, &st) < 0)
		return -errno;
	reading.now_ns = monotonic_ns(); /* no existing record has a later time */
	reading.file_bytes = MIN((uint64_t)st.st_size, (uint64_t)JITDUMP_MAX_BYTES);
	do {
		r = read_record(&reading);
		found |= r > 0;
	} while (r > 0);
	free(reading.buffer);
	dump->last_ns = began_ns;
	if (r == -ENODATA) /* the file was truncated meanwhile */
		r = 0;
	return r < 0 ? r : found;
}
