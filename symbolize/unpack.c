/* SPDX-License-Identifier: MIT */
/* unpack.c - an ELF image in memory, with the debug sections that names and lines need; see unpack.h.
 *
 * libdw uncompresses all debug sections of a file at once, with zlib, before the first look-up. Half
 * of that time is for locations of variables, which probing does not use, and the rest takes
 * a third as long with libdeflate. So this file makes an image with the needed sections for
 * libdw, which finds nothing compressed there, and no link to another file.
 * The image is several times as large as the parts that look-ups read. A long-running recorder writes it to a file and
 * maps that, like uncompressed debug information: unused parts then take no memory.
 * A command that ends soon has a helper thread, which decompresses one section after the other while the caller reads other
 * files. In the end both take the remaining sections.
 *
 * Invariants: every size comes from headers that passed the limits; a section is
 * uncompressed into room of its header's size, and is rejected if it is shorter. Each section is filled by one thread.
 * Source: ELF gABI, "Section Compression"; elf(5); RFC 1950.
 */
#include "symbolize/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <linux/magic.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <zlib.h>
#ifdef HAVE_LIBDEFLATE
#include <libdeflate.h>
#endif

#include "base/mapping.h"
#include "base/util.h"
#include "symbolize/effort.h"
#include "symbolize/unpack_limits.h"
#include "symbolize/prune.h"

enum { MAX_SECTIONS = 1 << 12, MAX_WANTED = 24, SECTION_ALIGNMENT = 16, STEPS_OF_SECTION = 1 << 12 };

/* Leave space on the disk for the recording. */
#define ROOM_TO_LEAVE (1ULL << 30)

/* To start a thread pays from this size on. */
#define MIN_BYTES_TO_SHARE (1U << 20)

struct wanted {
	const char *name;
	const uint8_t *bytes;     /* borrowed from the file */
	size_t n_bytes, n_packed; /* decompressed; in the file, 0: not compressed */
	GElf_Xword flags, entry_bytes;
	size_t offset; /* in the image */
};

struct plan {
	struct wanted wanted[MAX_WANTED]; /* .debug_info first, then .debug_abbrev */
	size_t n;
	size_t names_offset, n_names, headers_offset, n_image;
};

/* The image is being made. */
struct filling {
	struct plan plan;
	Elf *elf; /* borrowed */
	const char *folder;
	bool is_brief;
	atomic_size_t n_taken; /* of the sections */
	atomic_int result;     /* negative: stop */
	bool has_helper;
	pthread_t helper;
	/* Of the helper, after its end. */
	uint64_t helper_ns;
	bool is_cut;
};

struct unpacked {
	struct filling *filling; /* NULL: the image is complete */
	void *image;
	size_t n_image;
	bool is_in_file, is_borrowed;
	Elf *elf;
	Dwarf *dwarf;
};

static void join_helper(struct filling *filling)
{
	if (filling->has_helper)
		pthread_join(filling->helper, NULL);
	filling->has_helper = false;
}

static void filling_free(struct filling *filling)
{
	if (!filling)
		return;
	atomic_store(&filling->result, -ECANCELED);
	join_helper(filling);
	free(filling);
}

void unpacked_free(struct unpacked *unpacked)
{
	if (!unpacked)
		return;
	filling_free(unpacked->filling);
	if (unpacked->dwarf)
		dwarf_end(unpacked->dwarf);
	if (unpacked->elf)
		elf_end(unpacked->elf);
	if (unpacked->image && !unpacked->is_borrowed)
		munmap(unpacked->image, unpacked->n_image);
	free(unpacked);
}

void unpacked_freep(struct unpacked **unpacked)
{
	unpacked_free(*unpacked);
}

Dwarf *unpacked_dwarf(struct unpacked *unpacked)
{
	return unpacked->dwarf;
}

void unpacked_trim(struct unpacked *unpacked)
{
	if (unpacked->is_in_file)
		elf_forget_pages(unpacked->elf);
}

void unpacked_bytes(const struct unpacked *unpacked, uint64_t *ret_memory, uint64_t *ret_disk)
{
	*ret_memory = unpacked->is_in_file ? 0 : unpacked->n_image;
	*ret_disk = unpacked->is_in_file ? unpacked->n_image : 0;
}

/* Skip locations of variables, macros, unwind information, and indices: functions.c builds its own. */
static bool is_asked_for(const char *name)
{
	static const char *const left_out[] = {
		".debug_loc",      ".debug_loclists", ".debug_macro",        ".debug_macinfo",      ".debug_frame",
		".debug_pubnames", ".debug_pubtypes", ".debug_gnu_pubnames", ".debug_gnu_pubtypes", ".debug_names",
	};

	if (strncmp(name, ".debug_", strlen(".debug_")) != 0)
		return false;
	for (size_t i = 0; i < N_ELEMENTS(left_out); i++)
		if (strcmp(name, left_out[i]) == 0)
			return false;
	return true;
}

static int want(struct plan *plan, Elf_Scn *section, const GElf_Shdr *header, const char *name)
{
	struct wanted *wanted = &plan->wanted[plan->n];
	const Elf_Data *data = elf_rawdata(section, NULL);
	GElf_Chdr packed = { 0 };

	if (!data || (!data->d_buf && data->d_size > 0))
		return -EBADMSG;
	if (plan->n == MAX_WANTED)
		return -ENOTSUP;
	*wanted = (struct wanted){
		name, data->d_buf, data->d_size, 0, header->sh_flags & ~(GElf_Xword)SHF_COMPRESSED, header->sh_entsize,
		0
	};
	if (header->sh_flags & SHF_COMPRESSED) {
		if (!gelf_getchdr(section, &packed) || data->d_size < sizeof(Elf64_Chdr))
			return -EBADMSG;
		if (packed.ch_type != ELFCOMPRESS_ZLIB)
			return -ENOTSUP;
		wanted->bytes += sizeof(Elf64_Chdr);
		wanted->n_packed = data->d_size - sizeof(Elf64_Chdr);
		wanted->n_bytes = packed.ch_size;
		if (wanted->n_packed == 0)
			return -EBADMSG;
	}
	plan->n++;
	return 0;
}

static void move_to_front(struct plan *plan, const char *name)
{
	for (size_t i = 0; i < plan->n; i++) {
		struct wanted wanted = plan->wanted[i];

		if (strcmp(wanted.name, name) != 0)
			continue;
		memmove(plan->wanted + 1, plan->wanted, i * sizeof wanted);
		plan->wanted[0] = wanted;
		return;
	}
}

/* Choose the sections; -ENOTSUP also if none is compressed. */
static int choose(Elf *elf, struct plan *plan)
{
	Elf_Scn *section = NULL;
	bool is_packed = false;
	size_t names, n = 0;
	int r;

	if (elf_getshdrstrndx(elf, &names) < 0)
		return -ENOTSUP;
	while ((section = elf_nextscn(elf, section)) != NULL) {
		GElf_Shdr header;
		const char *name;

		if (++n > MAX_SECTIONS || !gelf_getshdr(section, &header))
			return -ENOTSUP;
		name = elf_strptr(elf, names, header.sh_name);
		if (name && (strcmp(name, ".gnu_debugaltlink") == 0 || strncmp(name, ".zdebug_", 8) == 0))
			return -ENOTSUP;
		if (!name || header.sh_type == SHT_NOBITS || !is_asked_for(name))
			continue;
		r = want(plan, section, &header, name);
		if (r < 0)
			return r;
		is_packed |= strcmp(name, ".debug_info") == 0 && (header.sh_flags & SHF_COMPRESSED);
	}
	move_to_front(plan, ".debug_abbrev");
	move_to_front(plan, ".debug_info");
	return is_packed ? 0 : -ENOTSUP;
}

static size_t align(size_t n)
{
	return (n + SECTION_ALIGNMENT - 1) / SECTION_ALIGNMENT * SECTION_ALIGNMENT;
}

/* Lay out header, sections, their names, section headers. */
static int lay_out(struct plan *plan)
{
	size_t at = align(sizeof(Elf64_Ehdr));

	plan->n_names = 1 + sizeof ".shstrtab";
	for (size_t i = 0; i < plan->n; i++) {
		plan->wanted[i].offset = at;
		if (plan->wanted[i].n_bytes > SIZE_MAX / 4 - at)
			return -EBADMSG;
		at = align(at + plan->wanted[i].n_bytes);
		plan->n_names += strlen(plan->wanted[i].name) + 1;
	}
	plan->names_offset = at;
	plan->headers_offset = align(at + plan->n_names);
	plan->n_image = plan->headers_offset + (plan->n + 2) * sizeof(Elf64_Shdr);
	return 0;
}

/* Uncompressed sections are copied, and several sections may share bytes of the file. */
static int take_memory(const struct plan *plan, Elf *elf)
{
	size_t n_file = 0;

	(void)elf_rawfile(elf, &n_file);
	return unpack_limits_is_sane(plan->n_image, n_file) ? effort_take(plan->n_image, false) : -E2BIG;
}

#ifdef HAVE_LIBDEFLATE
static bool inflate_all(const struct wanted *wanted, uint8_t *to)
{
	struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
	bool is_whole;

	if (!decompressor)
		return false;
	is_whole = libdeflate_zlib_decompress(decompressor, wanted->bytes, wanted->n_packed, to, wanted->n_bytes,
					      NULL) == LIBDEFLATE_SUCCESS;
	libdeflate_free_decompressor(decompressor);
	return is_whole;
}
#else
static bool inflate_all(const struct wanted *wanted, uint8_t *to)
{
	uLongf n = wanted->n_bytes;

	return uncompress(to, &n, wanted->bytes, wanted->n_packed) == Z_OK && n == wanted->n_bytes;
}
#endif

static int fill_section(const struct wanted *wanted, uint8_t *image)
{
	if (wanted->n_packed > 0)
		return inflate_all(wanted, image + wanted->offset) ? 0 : -EBADMSG;
	if (wanted->n_bytes > 0)
		memcpy(image + wanted->offset, wanted->bytes, wanted->n_bytes);
	return 0;
}

static void fill_headers(const struct plan *plan, Elf *elf, uint8_t *image)
{
	Elf64_Ehdr *header = (Elf64_Ehdr *)image;
	Elf64_Shdr *sections = (Elf64_Shdr *)(image + plan->headers_offset);
	char *names = (char *)image + plan->names_offset;
	size_t at = 1;
	GElf_Ehdr original;

	gelf_getehdr(elf, &original);
	*header = (Elf64_Ehdr){
		.e_type = original.e_type,
		.e_machine = original.e_machine,
		.e_version = EV_CURRENT,
		.e_shoff = plan->headers_offset,
		.e_ehsize = sizeof *header,
		.e_shentsize = sizeof *sections,
		.e_shnum = (Elf64_Half)(plan->n + 2),
		.e_shstrndx = (Elf64_Half)(plan->n + 1),
	};
	memcpy(header->e_ident, original.e_ident, EI_NIDENT);
	for (size_t i = 0; i < plan->n; i++) {
		const struct wanted *wanted = &plan->wanted[i];

		sections[i + 1] = (Elf64_Shdr){
			.sh_name = (Elf64_Word)at,
			.sh_type = SHT_PROGBITS,
			.sh_flags = wanted->flags,
			.sh_offset = wanted->offset,
			.sh_size = wanted->n_bytes,
			.sh_addralign = 1,
			.sh_entsize = wanted->entry_bytes,
		};
		at += (size_t)(stpcpy(names + at, wanted->name) - (names + at)) + 1;
	}
	sections[plan->n + 1] = (Elf64_Shdr){ .sh_name = (Elf64_Word)at,
					      .sh_type = SHT_STRTAB,
					      .sh_offset = plan->names_offset,
					      .sh_size = plan->n_names,
					      .sh_addralign = 1 };
	strcpy(names + at, ".shstrtab");
}

/* ---- Fill the sections, in one thread or two ---- */

/* The next section that nobody fills; NULL: none. */
static const struct wanted *take_section(struct filling *filling)
{
	size_t i = atomic_fetch_add(&filling->n_taken, 1);

	return i < filling->plan.n ? &filling->plan.wanted[i] : NULL;
}

/* Main function of the helper. Its time and the cuts it met are the caller's, see fill(). */
static void *help(void *data)
{
	struct unpacked *unpacked = data;
	struct filling *filling = unpacked->filling;
	const struct wanted *wanted;
	struct file_guard guard;

	file_guard_enter(&guard);
	while (atomic_load(&filling->result) >= 0 && (wanted = take_section(filling)) != NULL)
		if (fill_section(wanted, unpacked->image) < 0)
			atomic_store(&filling->result, -EBADMSG);
	filling->is_cut = file_guard_leave(&guard);
	filling->helper_ns = thread_cpu_ns();
	return NULL;
}

/* Without a second thread, unpacked_finish() does all. Signals are for the threads of before, but for SIGBUS (mapping.c). */
static void start_helper(struct unpacked *unpacked)
{
	struct filling *filling = unpacked->filling;
	sigset_t mask, before;

	if (!filling->is_brief || unpacked->n_image < MIN_BYTES_TO_SHARE)
		return;
	sigfillset(&mask);
	sigdelset(&mask, SIGBUS);
	if (pthread_sigmask(SIG_SETMASK, &mask, &before) != 0)
		return;
	filling->has_helper = pthread_create(&filling->helper, NULL, help, unpacked) == 0;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static int fill_next(struct filling *filling, uint8_t *image)
{
	const struct wanted *wanted = take_section(filling);

	if (!wanted)
		return 0;
	return effort_go_on(STEPS_OF_SECTION) ? fill_section(wanted, image) : -ETIME;
}

/*
 * Decompress and prune the largest section first. So its full size is never in memory together with the other sections
 * and the file's pages.
 */
static int fill_info(struct filling *filling, uint8_t *image)
{
	const struct wanted *info = &filling->plan.wanted[0], *abbrevs = info + 1;
	bool has_abbrevs = filling->plan.n > 1 && strcmp(abbrevs->name, ".debug_abbrev") == 0;
	int r;

	r = fill_next(filling, image);
	if (r >= 0 && has_abbrevs)
		r = fill_next(filling, image);
	elf_forget_pages(filling->elf);
	if (r < 0 || !has_abbrevs || filling->is_brief)
		return r;
	return prune_types(image + info->offset, info->n_bytes, image + abbrevs->offset, abbrevs->n_bytes);
}

static int fill(struct unpacked *unpacked)
{
	struct filling *filling = unpacked->filling;
	bool has_helper = filling->has_helper;
	int r = has_helper ? 0 : fill_info(filling, unpacked->image);

	while (r >= 0 && atomic_load(&filling->result) >= 0 && atomic_load(&filling->n_taken) < filling->plan.n)
		r = fill_next(filling, unpacked->image);
	if (r < 0)
		atomic_store(&filling->result, r);
	join_helper(filling);
	elf_forget_pages(filling->elf);
	if (!has_helper)
		return r;
	effort_spend(filling->helper_ns);
	if (filling->is_cut)
		file_guard_cut();
	return r < 0 ? r : atomic_load(&filling->result);
}

/* Use huge pages if available: a page fault every 4 KiB takes longer than decompressing. */
static int map_image(const struct plan *plan, struct unpacked *unpacked)
{
	unpacked->image = mmap(NULL, plan->n_image, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (unpacked->image == MAP_FAILED) {
		unpacked->image = NULL;
		return -ENOMEM;
	}
	unpacked->n_image = plan->n_image;
	(void)madvise(unpacked->image, plan->n_image, MADV_HUGEPAGE);
	return 0;
}

static bool write_whole(int fd, const uint8_t *bytes, size_t n)
{
	while (n > 0) {
		ssize_t written = write(fd, bytes, n);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return false;
		bytes += written;
		n -= (size_t)written;
	}
	return true;
}

static bool is_on_disk_with_room(int fd, size_t n_bytes)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type != TMPFS_MAGIC && fs.f_type != RAMFS_MAGIC &&
	       (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize >= ROOM_TO_LEAVE + n_bytes;
}

/* On any error the image stays in memory, which also works. */
static void move_to_file(struct unpacked *unpacked, const char *folder)
{
	CLEANUP(closep) int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	void *mapped;

	if (fd < 0 || !is_on_disk_with_room(fd, unpacked->n_image) ||
	    !write_whole(fd, unpacked->image, unpacked->n_image))
		return;
	mapped = mmap(NULL, unpacked->n_image, PROT_READ, MAP_PRIVATE, fd, 0);
	if (mapped == MAP_FAILED)
		return;
	munmap(unpacked->image, unpacked->n_image);
	unpacked->image = mapped;
	unpacked->is_in_file = true;
}

/* Only linked files of this machine's class and byte order. */
static bool is_known(Elf *elf)
{
	static const unsigned char own = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
	GElf_Ehdr header;

	return gelf_getehdr(elf, &header) && header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_ident[EI_DATA] == own &&
	       (header.e_type == ET_DYN || header.e_type == ET_EXEC);
}

static int open_dwarf(struct unpacked *unpacked)
{
	unpacked->dwarf = unpacked->elf ? dwarf_begin_elf(unpacked->elf, DWARF_C_READ, NULL) : NULL;
	return unpacked->dwarf ? 0 : -EBADMSG;
}

int unpacked_start(struct elf_file *file, const char *folder, bool is_brief, struct unpacked **ret)
{
	CLEANUP(unpacked_freep) struct unpacked *unpacked = NULL;
	Elf *elf = elf_file_elf(file);
	struct filling *filling;
	int r;

	if (!is_known(elf))
		return -ENOTSUP;
	unpacked = calloc(1, sizeof *unpacked);
	if (!unpacked)
		return -ENOMEM;
	filling = unpacked->filling = calloc(1, sizeof *filling);
	if (!filling)
		return -ENOMEM;
	filling->elf = elf;
	filling->folder = folder;
	filling->is_brief = is_brief;
	r = choose(elf, &filling->plan);
	if (r >= 0)
		r = lay_out(&filling->plan);
	if (r >= 0)
		r = take_memory(&filling->plan, elf);
	if (r >= 0)
		r = map_image(&filling->plan, unpacked);
	if (r < 0)
		return r;
	fill_headers(&filling->plan, elf, unpacked->image);
	start_helper(unpacked);

	*ret = TAKE(unpacked);
	return 0;
}

int unpacked_finish(struct unpacked *unpacked)
{
	const char *folder = unpacked->filling->folder;
	int r;

	r = fill(unpacked);
	filling_free(TAKE(unpacked->filling));
	if (r < 0)
		return r;
	if (folder)
		move_to_file(unpacked, folder);
	unpacked->elf = elf_memory(unpacked->image, unpacked->n_image);
	return open_dwarf(unpacked);
}

int unpacked_new(struct elf_file *file, const char *folder, bool is_brief, struct unpacked **ret)
{
	CLEANUP(unpacked_freep) struct unpacked *unpacked = NULL;
	int r;

	r = unpacked_start(file, folder, is_brief, &unpacked);
	if (r >= 0)
		r = unpacked_finish(unpacked);
	if (r < 0)
		return r;

	*ret = TAKE(unpacked);
	return 0;
}

/* Accept only sections as fill_headers() writes them: libdw would decompress others and follow links to other files. */
static bool is_plain(Elf *elf)
{
	Elf_Scn *section = NULL;
	size_t names, n = 0;

	if (!is_known(elf) || elf_getshdrstrndx(elf, &names) < 0)
		return false;
	while ((section = elf_nextscn(elf, section)) != NULL) {
		GElf_Shdr header;
		const char *name;

		if (++n > MAX_WANTED + 2 || !gelf_getshdr(section, &header) || (header.sh_flags & SHF_COMPRESSED))
			return false;
		name = elf_strptr(elf, names, header.sh_name);
		if (!name || (strcmp(name, ".shstrtab") != 0 && !is_asked_for(name)))
			return false;
	}
	return true;
}

int unpacked_restore(const void *image, size_t n, struct unpacked **ret)
{
	CLEANUP(unpacked_freep) struct unpacked *unpacked = calloc(1, sizeof *unpacked);
	int r;

	if (!unpacked)
		return -ENOMEM;
	unpacked->image = (void *)image;
	unpacked->n_image = n;
	unpacked->is_in_file = unpacked->is_borrowed = true;
	unpacked->elf = elf_memory(unpacked->image, unpacked->n_image);
	if (!unpacked->elf || !is_plain(unpacked->elf))
		return -EBADMSG;
	r = open_dwarf(unpacked);
	if (r < 0)
		return r;
	*ret = TAKE(unpacked);
	return 0;
}

const void *unpacked_image(const struct unpacked *unpacked, size_t *ret_n)
{
	*ret_n = unpacked->n_image;
	return unpacked->image;
}
