/* SPDX-License-Identifier: MIT */
/* remote_core.c - the memory of a process from its core file.
 *
 * A core file's PT_LOAD segments are the mappings. Parts that the file does not
 * contain (usually program text) were not dumped; they are unreadable, not zeros.
 * Source: elf(5), core(5); for many segments PN_XNUM in elf(5).
 *
 * Invariants:
 * 1. segments[] is sorted by address, none is empty, none reaches past the end of the
 *    file or of the address space, and no two overlap.
 * 2. The file is read, not mapped: a truncated file causes short reads.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/remote.h"
#include "base/util.h"

/* Far more than vm.max_map_count allows by default. */
enum { MAX_SEGMENTS = 1 << 20 };

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
enum { OUR_BYTE_ORDER = ELFDATA2LSB };
#else
enum { OUR_BYTE_ORDER = ELFDATA2MSB };
#endif

struct core_segment {
	uint64_t start, n_bytes, file_offset;
};

struct core_remote {
	struct remote base;
	int fd;
	uint64_t n_file_bytes;
	struct core_segment *segments;
	size_t n_segments;
};

static void core_free(struct remote *remote)
{
	struct core_remote *core = (struct core_remote *)remote;

	if (core->fd >= 0)
		close(core->fd);
	free(core->segments);
	free(core);
}

static void core_freep(struct core_remote **core)
{
	if (*core)
		core_free(&(*core)->base);
}

/* Read up to n_bytes, as many as the file has; after an error, those before it. */
static ssize_t read_file_at(int fd, uint64_t offset, void *to, size_t n_bytes)
{
	size_t n;
	int r = pread_all(fd, to, n_bytes, offset, &n);

	return n == 0 && r < 0 ? r : (ssize_t)n;
}

/* Read exactly n_bytes. -EBADMSG: the file is shorter. */
static int read_table(const struct core_remote *core, uint64_t offset, void *to, size_t n_bytes)
{
	ssize_t got;

	if (offset > core->n_file_bytes || n_bytes > core->n_file_bytes - offset)
		return -EBADMSG;
	got = read_file_at(core->fd, offset, to, n_bytes);
	if (got < 0)
		return (int)got;
	return (size_t)got == n_bytes ? 0 : -EBADMSG;
}

/* The last segment that starts at or before an address; NULL: none. */
static const struct core_segment *segment_before(const struct core_remote *core, uint64_t address)
{
	size_t low = 0, high = core->n_segments;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (core->segments[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 ? &core->segments[low - 1] : NULL;
}

static ssize_t core_read(struct remote *remote, struct raddr from, void *to, size_t n_bytes)
{
	const struct core_remote *core = (const struct core_remote *)remote;
	size_t done = 0;

	while (done < n_bytes) {
		uint64_t address = from.value + done;
		const struct core_segment *segment = segment_before(core, address);
		ssize_t got;
		size_t piece;

		if (address < from.value || !segment || address - segment->start >= segment->n_bytes)
			break;
		address -= segment->start;
		piece = MIN(n_bytes - done, (size_t)(segment->n_bytes - address));
		got = read_file_at(core->fd, segment->file_offset + address, (uint8_t *)to + done, piece);
		if (got < 0 && done == 0)
			return got;
		done += got > 0 ? (size_t)got : 0;
		if (got < 0 || (size_t)got < piece)
			break;
	}
	return done > 0 ? (ssize_t)done : -EFAULT;
}

/* Number of program headers; the first section has it if the header's field is too small. */
static int count_headers(const struct core_remote *core, const Elf64_Ehdr *header, size_t *ret)
{
	Elf64_Shdr section;
	int r;

	*ret = header->e_phnum;
	if (header->e_phnum != PN_XNUM)
		return 0;
	r = read_table(core, header->e_shoff, &section, sizeof section);
	if (r < 0)
		return r;
	*ret = section.sh_info;
	return 0;
}

static int check_header(const Elf64_Ehdr *header)
{
	if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_type != ET_CORE)
		return -EBADMSG;
	if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != OUR_BYTE_ORDER ||
	    header->e_phentsize != sizeof(Elf64_Phdr))
		return -EOPNOTSUPP;
	return 0;
}

/* Add the part of a segment that is in the file. */
static void add_segment(struct core_remote *core, const Elf64_Phdr *header)
{
	uint64_t n_bytes = MIN(header->p_filesz, header->p_memsz);

	if (header->p_type != PT_LOAD || header->p_offset >= core->n_file_bytes)
		return;
	n_bytes = MIN(n_bytes, core->n_file_bytes - header->p_offset);
	n_bytes = MIN(n_bytes, UINT64_MAX - header->p_vaddr);
	if (n_bytes > 0)
		core->segments[core->n_segments++] = (struct core_segment){ header->p_vaddr, n_bytes,
									    header->p_offset };
}

static int by_start(const void *a, const void *b)
{
	const struct core_segment *left = a, *right = b;

	return (left->start > right->start) - (left->start < right->start);
}

static int sort_segments(struct core_remote *core)
{
	if (core->n_segments == 0)
		return -EBADMSG;
	qsort(core->segments, core->n_segments, sizeof *core->segments, by_start);
	for (size_t i = 1; i < core->n_segments; i++)
		if (core->segments[i].start - core->segments[i - 1].start < core->segments[i - 1].n_bytes)
			return -EBADMSG;
	return 0;
}

static int read_segments(struct core_remote *core)
{
	CLEANUP(freep) Elf64_Phdr *headers = NULL;
	Elf64_Ehdr header;
	size_t n;
	int r;

	r = read_table(core, 0, &header, sizeof header);
	if (r >= 0)
		r = check_header(&header);
	if (r >= 0)
		r = count_headers(core, &header, &n);
	if (r < 0)
		return r;
	if (n == 0 || n > MAX_SEGMENTS || n > core->n_file_bytes / sizeof *headers)
		return -EBADMSG;
	headers = malloc(n * sizeof *headers);
	core->segments = calloc(n, sizeof *core->segments);
	if (!headers || !core->segments)
		return -ENOMEM;
	r = read_table(core, header.e_phoff, headers, n * sizeof *headers);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		add_segment(core, &headers[i]);
	return sort_segments(core);
}

int remote_open_core(const char *path, struct remote **ret)
{
	static const struct remote_ops ops = { .read = core_read, .free = core_free };
	CLEANUP(core_freep) struct core_remote *core = NULL;
	struct stat st;
	int r;

	core = calloc(1, sizeof *core);
	if (!core)
		return -ENOMEM;
	core->base.ops = &ops;
	core->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (core->fd < 0 || fstat(core->fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBADMSG;
	core->n_file_bytes = (uint64_t)st.st_size;
	r = read_segments(core);
	if (r < 0)
		return r;
	*ret = &TAKE(core)->base;
	return 0;
}
