/* SPDX-License-Identifier: MIT */
/* elf_file.c - look-ups in an ELF file.
 *
 * The file is mapped, and libelf reads its headers; everything else is read on
 * demand, so that a library of several hundred megabytes opens as fast as a small
 * one. A part that another process truncates reads as zeros (mapping.h). Function
 * bounds come from .eh_frame_hdr, which stripped files keep; elf_eh_frame.c reads it.
 *
 * Invariants:
 * 1. Every byte of the file is reached through elf_file_data() or libelf;
 *    both check bounds. Neither the file nor answers of a reader (elf_reader.h) are trusted.
 * 2. segments[] has the values of the program headers; it may reach beyond the file.
 * 3. libelf keeps state in the handle: one thread at a time.
 */
#include "base/elf_file.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/elf_eh_frame.h"
#include "base/elf_reader.h"
#include "base/mapping.h"
#include "base/util.h"

/* Far more than linkers emit (about 15). */
enum { MAX_PROGRAM_HEADERS = 4096 };

/* A file has one of each kind. Many tables could share the same large bytes. */
enum { MAX_SYMBOL_TABLES = 8 };

/* An answer of elf_file_symbol() or elf_file_section(). A tree of forks asks the same of one file for each process. */
struct known_name {
	char *name; /* owned */
	bool is_section;
	int error; /* 0 or -ENOENT */
	uint64_t first, second;
};

/* Names that callers ask for are few, and their own; further ones are looked up each time. */
enum { MAX_KNOWN_NAMES = 32 };

struct elf_file {
	int fd;
	struct file_mapping *mapping; /* NULL: the bytes are owned elsewhere, or cannot be mapped */
	Elf *elf;
	const uint8_t *image;
	size_t n_image_bytes;
	struct build_id build_id;
	unsigned machine; /* e_machine */
	struct elf_segment *segments;
	size_t n_segments;
	uint64_t eh_frame_hdr, n_eh_frame_hdr_bytes; /* 0 bytes: missing */
	const struct elf_reader *reader; /* parses the file instead of libelf; NULL: libelf, and elf is set */
	uint32_t number;                 /* the reader's number for the file */
	struct known_name *known;        /* MAX_KNOWN_NAMES; NULL until the first */
	size_t n_known;
};

void build_id_format(const struct build_id *id, char *to)
{
	static const char digits[] = "0123456789abcdef";

	for (unsigned i = 0; i < id->n_bytes; i++) {
		*to++ = digits[id->bytes[i] >> 4];
		*to++ = digits[id->bytes[i] & 15];
	}
	*to = '\0';
}

bool build_id_equal(const struct build_id *a, const struct build_id *b)
{
	return a->n_bytes == b->n_bytes && memcmp(a->bytes, b->bytes, a->n_bytes) == 0;
}

static bool find_build_id(struct elf_file *file, uint64_t offset, uint64_t n_bytes, uint64_t align)
{
	Elf_Data *data;
	GElf_Nhdr note;
	size_t at = 0, next, name_at, desc_at;

	if (offset > file->n_image_bytes || n_bytes > file->n_image_bytes - offset)
		return false;
	data = elf_getdata_rawchunk(file->elf, (int64_t)offset, n_bytes, align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
	while (data && (next = gelf_getnote(data, at, &note, &name_at, &desc_at)) > 0) {
		const char *bytes = data->d_buf;

		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof "GNU" &&
		    memcmp(bytes + name_at, "GNU", sizeof "GNU") == 0 && note.n_descsz > 0 &&
		    note.n_descsz <= BUILD_ID_MAX) {
			memcpy(file->build_id.bytes, bytes + desc_at, note.n_descsz);
			file->build_id.n_bytes = note.n_descsz;
			return true;
		}
		at = next;
	}
	return false;
}

/* For files without note program headers, such as relocatable ones. */
static void find_build_id_in_sections(struct elf_file *file)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(file->elf, section)) != NULL)
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_NOTE &&
		    find_build_id(file, header.sh_offset, header.sh_size, header.sh_addralign))
			return;
}

static void add_program_header(struct elf_file *file, const GElf_Phdr *header)
{
	switch (header->p_type) {
	case PT_LOAD:
		file->segments[file->n_segments++] = (struct elf_segment){
			.address = header->p_vaddr,
			.file_offset = header->p_offset,
			.n_file_bytes = header->p_filesz,
			.n_memory_bytes = header->p_memsz,
			.writable = header->p_flags & PF_W,
			.executable = header->p_flags & PF_X,
		};
		break;
	case PT_GNU_EH_FRAME:
		file->eh_frame_hdr = header->p_vaddr;
		file->n_eh_frame_hdr_bytes = header->p_filesz;
		break;
	case PT_NOTE:
		if (file->build_id.n_bytes == 0)
			find_build_id(file, header->p_offset, header->p_filesz, header->p_align);
		break;
	}
}

static int read_program_headers(struct elf_file *file)
{
	GElf_Phdr header;
	size_t n;

	if (elf_getphdrnum(file->elf, &n) < 0 || n > MAX_PROGRAM_HEADERS)
		return -ENOEXEC;
	file->segments = calloc(n + 1, sizeof *file->segments);
	if (!file->segments)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (gelf_getphdr(file->elf, (int)i, &header))
			add_program_header(file, &header);
	return 0;
}

static int check_header(Elf *elf, unsigned *ret_machine)
{
	GElf_Ehdr header;

	if (elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &header))
		return -ENOEXEC;
	if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
		return -ENOEXEC;
	/* Accept the other machine, too: symbols work, only unwinding does not. */
	if (header.e_machine != EM_X86_64 && header.e_machine != EM_AARCH64)
		return -ENOEXEC;
	*ret_machine = header.e_machine;
	return 0;
}

/* Takes ownership of elf and mapping (NULL: none), also on failure. */
static int open_elf(Elf *elf, struct file_mapping *mapping, struct elf_file **ret)
{
	CLEANUP(elf_file_freep) struct elf_file *file = NULL;
	int r;

	file = calloc(1, sizeof *file);
	if (!file) {
		elf_end(elf);
		file_mapping_free(mapping);
		return -ENOMEM;
	}
	file->fd = -1;
	file->elf = elf;
	file->mapping = mapping;
	r = check_header(elf, &file->machine);
	if (r < 0)
		return r;
	file->image = (const uint8_t *)elf_rawfile(elf, &file->n_image_bytes);
	if (!file->image)
		return -ENOEXEC;
	r = read_program_headers(file);
	if (r < 0)
		return r;
	if (file->build_id.n_bytes == 0)
		find_build_id_in_sections(file);

	*ret = TAKE(file);
	return 0;
}

static Elf *memory_elf(const void *image, size_t n_bytes)
{
	/* libelf takes a non-const pointer, but only elf_update() writes. */
	return elf_memory((char *)(uintptr_t)image, n_bytes);
}

int elf_file_open(int fd, struct elf_file **ret)
{
	CLEANUP(file_mapping_freep) struct file_mapping *mapping = NULL;
	const void *image;
	size_t n_bytes;
	Elf *elf;
	int r;

	elf_version(EV_CURRENT);
	r = file_mapping_new(fd, &mapping);
	if (r == -ENOMEM)
		return r;
	image = mapping ? file_mapping_bytes(mapping, &n_bytes) : NULL;
	/* Some file systems do not support mmap(2). */
	elf = image ? memory_elf(image, n_bytes) : elf_begin(fd, ELF_C_READ, NULL);
	if (!elf)
		return -ENOEXEC;
	r = open_elf(elf, TAKE(mapping), ret);
	if (r < 0)
		return r;
	(*ret)->fd = fd;
	return 0;
}

int elf_file_open_memory(const void *image, size_t n_bytes, struct elf_file **ret)
{
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = memory_elf(image, n_bytes);
	if (!elf)
		return -ENOEXEC;
	return open_elf(elf, NULL, ret);
}

/* The reader's summary replaces the headers. */
static int read_summary(struct elf_file *file, const char *name, int fd)
{
	struct elf_summary summary;
	int r;

	r = file->reader->open(file->reader->data, name, fd, file->image, file->n_image_bytes, &summary, &file->number);
	if (r < 0) {
		file->reader = NULL; /* the reader has nothing to close */
		return r;
	}
	if (summary.n_segments > ELF_SUMMARY_MAX_SEGMENTS || summary.build_id.n_bytes > BUILD_ID_MAX)
		return -ENOEXEC;
	file->segments = calloc(summary.n_segments + 1, sizeof *file->segments);
	if (!file->segments)
		return -ENOMEM;
	memcpy(file->segments, summary.segments, summary.n_segments * sizeof *file->segments);
	file->n_segments = summary.n_segments;
	file->machine = summary.machine;
	file->build_id = summary.build_id;
	return 0;
}

int elf_file_open_through(const struct elf_reader *reader, const char *name, int fd, const void *image, size_t n_bytes,
			  struct elf_file **ret)
{
	CLEANUP(elf_file_freep) struct elf_file *file = calloc(1, sizeof *file);
	int r;

	if (!file)
		return -ENOMEM;
	file->fd = -1;
	file->reader = reader;
	file->image = image;
	file->n_image_bytes = n_bytes;
	r = fd < 0 ? 0 : file_mapping_new(fd, &file->mapping);
	if (r < 0)
		file->reader = NULL;
	if (r < 0)
		return r == -ENOMEM ? r : -ENOEXEC;
	if (file->mapping)
		file->image = file_mapping_bytes(file->mapping, &file->n_image_bytes);
	r = read_summary(file, name, fd);
	if (r < 0)
		return r;
	file->fd = fd;
	*ret = TAKE(file);
	return 0;
}

bool elf_file_number(const struct elf_file *file, uint32_t *ret)
{
	if (!file->reader)
		return false;
	*ret = file->number;
	return true;
}

int elf_file_summary(const struct elf_file *file, struct elf_summary *ret)
{
	if (file->n_segments > ELF_SUMMARY_MAX_SEGMENTS)
		return -E2BIG;
	memset(ret, 0, sizeof *ret);
	ret->machine = file->machine;
	ret->build_id = file->build_id;
	ret->n_segments = file->n_segments;
	memcpy(ret->segments, file->segments, file->n_segments * sizeof *file->segments);
	return 0;
}

void elf_file_free(struct elf_file *file)
{
	if (!file)
		return;
	if (file->reader)
		file->reader->close(file->reader->data, file->number);
	elf_end(file->elf);
	file_mapping_free(file->mapping);
	closep(&file->fd);
	for (size_t i = 0; i < file->n_known; i++)
		free(file->known[i].name);
	free(file->known);
	free(file->segments);
	free(file);
}

void elf_file_freep(struct elf_file **file)
{
	elf_file_free(*file);
}

Elf *elf_file_elf(struct elf_file *file)
{
	return file->elf;
}

int elf_file_fd(const struct elf_file *file)
{
	return file->fd;
}

const struct build_id *elf_file_build_id(const struct elf_file *file)
{
	return &file->build_id;
}

bool elf_file_is_cut(const struct elf_file *file)
{
	return file->mapping && file_mapping_is_cut(file->mapping);
}

unsigned elf_file_machine(const struct elf_file *file)
{
	return file->machine;
}

bool elf_file_segment(const struct elf_file *file, size_t n, struct elf_segment *ret)
{
	if (n >= file->n_segments)
		return false;
	*ret = file->segments[n];
	return true;
}

int elf_file_tail(const struct elf_file *file, uint64_t address, const uint8_t **ret, size_t *ret_bytes)
{
	for (size_t i = 0; i < file->n_segments; i++) {
		const struct elf_segment *segment = &file->segments[i];
		uint64_t into = address - segment->address;
		uint64_t offset = segment->file_offset + into;

		if (address < segment->address || into >= segment->n_file_bytes)
			continue;
		if (offset < into || offset >= file->n_image_bytes)
			continue;
		*ret = file->image + offset;
		*ret_bytes = MIN(segment->n_file_bytes - into, file->n_image_bytes - offset);
		return 0;
	}
	return -ENOENT;
}

int elf_file_data(struct elf_file *file, uint64_t address, size_t n_bytes, const void **ret)
{
	const uint8_t *bytes;
	size_t n_there;
	int r;

	r = elf_file_tail(file, address, &bytes, &n_there);
	if (r < 0)
		return r;
	if (n_there < n_bytes)
		return -ENOENT;
	*ret = bytes;
	return 0;
}

void elf_forget_pages(Elf *elf)
{
	size_t n_bytes = 0, page = (size_t)getpagesize();
	char *image = elf ? elf_rawfile(elf, &n_bytes) : NULL;

	/* Only for page-aligned memory, which comes from mmap(): malloc() keeps a word before its own. */
	if (image && (uintptr_t)image % page == 0)
		(void)madvise(image, n_bytes, MADV_DONTNEED);
}

int elf_file_cfi(const struct elf_file *file, uint64_t address, struct elf_cfi *ret)
{
	if (file->reader)
		return -ENODATA;
	return eh_frame_find(file, file->eh_frame_hdr, file->n_eh_frame_hdr_bytes, address, ret);
}

int elf_file_function(struct elf_file *file, uint64_t address, uint64_t *ret_start, uint64_t *ret_end)
{
	struct elf_cfi cfi;
	int r;

	if (file->reader)
		return file->reader->function(file->reader->data, file->number, address, ret_start, ret_end);
	r = elf_file_cfi(file, address, &cfi);
	if (r < 0)
		return -ENOENT;
	*ret_start = cfi.start;
	*ret_end = cfi.end;
	return 0;
}

static int find_in_table(struct elf_file *file, Elf_Scn *section, const GElf_Shdr *header, const char *name,
			 GElf_Sym *ret)
{
	Elf_Data *data = elf_getdata(section, NULL),
		 *strings = elf_getdata(elf_getscn(file->elf, header->sh_link), NULL);
	size_t n_name = strlen(name) + 1;
	GElf_Sym symbol;

	/* Compares all names of a table; elf_strptr() would search its section for each. */
	for (int i = 0; data && strings && strings->d_buf && gelf_getsym(data, i, &symbol); i++) {
		if (symbol.st_shndx == SHN_UNDEF || symbol.st_name >= strings->d_size ||
		    strings->d_size - symbol.st_name < n_name ||
		    memcmp((const char *)strings->d_buf + symbol.st_name, name, n_name) != 0)
			continue;
		*ret = symbol;
		return 0;
	}
	return -ENOENT;
}

static int find_symbol(struct elf_file *file, const char *name, uint64_t *ret_value, uint64_t *ret_size)
{
	static const GElf_Word types[] = { SHT_DYNSYM, SHT_SYMTAB };
	GElf_Shdr header;
	GElf_Sym symbol;

	if (file->reader)
		return file->reader->symbol(file->reader->data, file->number, name, ret_value, ret_size);
	for (size_t i = 0; i < N_ELEMENTS(types); i++) {
		Elf_Scn *section = NULL;
		unsigned n_tables = 0;

		while (n_tables < MAX_SYMBOL_TABLES && (section = elf_nextscn(file->elf, section)) != NULL) {
			if (!gelf_getshdr(section, &header) || header.sh_type != types[i])
				continue;
			n_tables++;
			if (find_in_table(file, section, &header, name, &symbol) < 0)
				continue;
			*ret_value = symbol.st_value;
			*ret_size = symbol.st_size;
			return 0;
		}
	}
	return -ENOENT;
}

static int find_section(struct elf_file *file, const char *name, uint64_t *ret_address, uint64_t *ret_size)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	size_t names;

	if (file->reader)
		return file->reader->section(file->reader->data, file->number, name, ret_address, ret_size);
	if (elf_getshdrstrndx(file->elf, &names) < 0)
		return -ENOENT;
	while ((section = elf_nextscn(file->elf, section)) != NULL) {
		const char *found;

		if (!gelf_getshdr(section, &header) || !(header.sh_flags & SHF_ALLOC))
			continue;
		found = elf_strptr(file->elf, names, header.sh_name);
		if (found && strcmp(found, name) == 0) {
			*ret_address = header.sh_addr;
			*ret_size = header.sh_size;
			return 0;
		}
	}
	return -ENOENT;
}

/* Without memory for it, the answer is looked up again the next time. */
static void remember(struct elf_file *file, const char *name, const struct known_name *answer)
{
	struct known_name *known;

	if (!file->known)
		file->known = calloc(MAX_KNOWN_NAMES, sizeof *file->known);
	if (!file->known || file->n_known == MAX_KNOWN_NAMES)
		return;
	known = &file->known[file->n_known];
	*known = *answer;
	known->name = strdup(name);
	file->n_known += known->name != NULL;
}

static int find_name(struct elf_file *file, bool is_section, const char *name, uint64_t *ret_first,
		     uint64_t *ret_second)
{
	struct known_name answer = { .is_section = is_section };

	for (size_t i = 0; i < file->n_known; i++) {
		const struct known_name *known = &file->known[i];

		if (known->is_section != is_section || strcmp(known->name, name) != 0)
			continue;
		if (known->error == 0) {
			*ret_first = known->first;
			*ret_second = known->second;
		}
		return known->error;
	}
	answer.error = (is_section ? find_section : find_symbol)(file, name, &answer.first, &answer.second);
	if (answer.error == 0 || answer.error == -ENOENT)
		remember(file, name, &answer);
	if (answer.error == 0) {
		*ret_first = answer.first;
		*ret_second = answer.second;
	}
	return answer.error;
}

int elf_file_symbol(struct elf_file *file, const char *name, uint64_t *ret_value, uint64_t *ret_size)
{
	return find_name(file, false, name, ret_value, ret_size);
}

int elf_file_section(struct elf_file *file, const char *name, uint64_t *ret_address, uint64_t *ret_size)
{
	return find_name(file, true, name, ret_address, ret_size);
}

/* .zdebug_* sections begin with "ZLIB" and the size, 8 bytes, most significant first. */
static uint64_t old_packed_bytes(Elf_Scn *section)
{
	const Elf_Data *data = elf_rawdata(section, NULL);
	uint64_t n_bytes = 0;

	if (!data || !data->d_buf || data->d_size < 12 || memcmp(data->d_buf, "ZLIB", 4) != 0)
		return 0;
	for (int i = 4; i < 12; i++)
		n_bytes = n_bytes << 8 | ((const uint8_t *)data->d_buf)[i];
	return n_bytes;
}

uint64_t elf_file_packed_bytes(const struct elf_file *file)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	GElf_Chdr packed;
	uint64_t sum = 0;

	while ((section = elf_nextscn(file->elf, section)) != NULL) {
		uint64_t n_bytes = 0;

		if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS)
			continue;
		if (header.sh_flags & SHF_COMPRESSED)
			n_bytes = gelf_getchdr(section, &packed) ? packed.ch_size : 0;
		else if (!(header.sh_flags & SHF_ALLOC))
			n_bytes = old_packed_bytes(section);
		if (__builtin_add_overflow(sum, n_bytes, &sum))
			return UINT64_MAX;
	}
	return sum;
}
