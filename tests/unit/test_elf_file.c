/* SPDX-License-Identifier: MIT */
/* test_elf_file.c - look-ups in files that are really there: this program,
 * libc, the vdso, a stripped interpreter; and in damaged copies.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/elf_file.h"
#include "base/elf_reader.h"
#include "base/util.h"
#include "elf_address.h"

static const char PYTHON[] = "/usr/bin/python3";

static struct elf_file *open_path(const char *path)
{
	struct elf_file *file = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(elf_file_open(fd, &file), 0);
	assert_int_equal(elf_file_fd(file), fd);
	return file;
}

/* An object that is loaded here, as the dynamic linker knows it. */
struct loaded {
	const char *part_of_name; /* "": the program itself */
	char path[4096];
	uint64_t bias;
	const ElfW(Phdr) * headers;
	size_t n_headers;
};

static int match_loaded(struct dl_phdr_info *info, size_t n_bytes, void *data)
{
	struct loaded *loaded = data;

	(void)n_bytes;
	if (*loaded->part_of_name ? !strstr(info->dlpi_name, loaded->part_of_name) : *info->dlpi_name != '\0')
		return 0;
	snprintf(loaded->path, sizeof loaded->path, "%s", *info->dlpi_name ? info->dlpi_name : "/proc/self/exe");
	loaded->bias = info->dlpi_addr;
	loaded->headers = info->dlpi_phdr;
	loaded->n_headers = info->dlpi_phnum;
	return 1;
}

static struct loaded find_loaded(const char *part_of_name)
{
	struct loaded loaded = { .part_of_name = part_of_name };

	assert_int_equal(dl_iterate_phdr(match_loaded, &loaded), 1);
	return loaded;
}

static void own_program_is_understood(void **state)
{
	struct loaded self = find_loaded("");
	CLEANUP(elf_file_freep) struct elf_file *file = open_path(self.path);
	uint64_t own = (uintptr_t)own_program_is_understood - self.bias;
	uint64_t value, size, start, end, text, text_bytes;

	(void)state;
	assert_int_equal(elf_file_symbol(file, "own_program_is_understood", &value, &size), 0);
	assert_int_equal(value, own);
	assert_int_equal(elf_file_function(file, own + 1, &start, &end), 0);
	assert_int_equal(start, own);
	assert_int_equal(end - start, size);
	assert_int_equal(elf_file_section(file, ".text", &text, &text_bytes), 0);
	assert_in_range(own, text, text + text_bytes - 1);
	assert_int_equal(elf_file_section(file, ".symtab", &text, &text_bytes), -ENOENT);
	assert_int_equal(elf_file_symbol(file, "no such symbol", &value, &size), -ENOENT);
	/* Defined elsewhere: an undefined symbol here. */
	assert_int_equal(elf_file_symbol(file, "dl_iterate_phdr", &value, &size), -ENOENT);
}

static void bytes_are_those_in_memory(void **state)
{
	struct loaded libc = find_loaded("libc.so");
	CLEANUP(elf_file_freep) struct elf_file *file = open_path(libc.path);
	uint64_t text, n_bytes;
	const void *bytes;

	(void)state;
	assert_int_equal(elf_file_section(file, ".text", &text, &n_bytes), 0);
	assert_int_equal(elf_file_data(file, text, n_bytes, &bytes), 0);
	assert_int_equal(memcmp(bytes, (void *)(uintptr_t)(text + libc.bias), n_bytes), 0);
	assert_int_equal(elf_file_data(file, text, SIZE_MAX, &bytes), -ENOENT);
	assert_int_equal(elf_file_data(file, UINT64_MAX, 1, &bytes), -ENOENT);
}

static void segments_are_those_loaded(void **state)
{
	struct loaded libc = find_loaded("libc.so");
	CLEANUP(elf_file_freep) struct elf_file *file = open_path(libc.path);
	struct elf_segment segment;
	uint64_t address;
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < libc.n_headers; i++) {
		const ElfW(Phdr) *header = &libc.headers[i];

		if (header->p_type != PT_LOAD)
			continue;
		assert_true(elf_file_segment(file, n++, &segment));
		assert_int_equal(segment.address, header->p_vaddr);
		assert_int_equal(segment.file_offset, header->p_offset);
		assert_int_equal(segment.n_file_bytes, header->p_filesz);
		assert_int_equal(segment.n_memory_bytes, header->p_memsz);
		assert_int_equal(segment.executable, (header->p_flags & PF_X) != 0);
		assert_int_equal(segment.writable, (header->p_flags & PF_W) != 0);
		assert_int_equal(elf_address(file, header->p_offset, &address), 0);
		assert_int_equal(address, header->p_vaddr);
	}
	assert_true(n > 2);
	assert_false(elf_file_segment(file, n, &segment));
	assert_int_equal(elf_address(file, UINT64_MAX, &address), -ENOENT);
}

static bool is_build_id(const ElfW(Nhdr) * note)
{
	return note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && memcmp(note + 1, "GNU", 4) == 0;
}

/* The build-id as it lies in memory, found without libelf. */
static const ElfW(Nhdr) * note_in_memory(const struct loaded *loaded)
{
	for (size_t i = 0; i < loaded->n_headers; i++) {
		const ElfW(Phdr) *header = &loaded->headers[i];
		const ElfW(Nhdr) *note = (void *)(uintptr_t)(header->p_vaddr + loaded->bias);

		if (header->p_type == PT_NOTE && header->p_align == 4 && is_build_id(note))
			return note;
	}
	return NULL;
}

static void build_id_is_that_in_memory(void **state)
{
	struct loaded libc = find_loaded("libc.so");
	CLEANUP(elf_file_freep) struct elf_file *file = open_path(libc.path);
	const struct build_id *id = elf_file_build_id(file);
	const ElfW(Nhdr) *note = note_in_memory(&libc);

	(void)state;
	assert_non_null(note);
	assert_int_equal(id->n_bytes, note->n_descsz);
	assert_memory_equal(id->bytes, (const char *)(note + 1) + 4, id->n_bytes);
}

static void build_ids_are_written_in_hex(void **state)
{
	struct build_id id = { .bytes = { 0x00, 0xa1, 0xff }, .n_bytes = 3 };
	struct build_id other = { .bytes = { 0x00, 0xa1, 0xfe }, .n_bytes = 3 };
	struct build_id longest = { .n_bytes = BUILD_ID_MAX };
	char text[2 * BUILD_ID_MAX + 1];

	(void)state;
	build_id_format(&id, text);
	assert_string_equal(text, "00a1ff");
	assert_false(build_id_equal(&id, &other));
	other = id;
	assert_true(build_id_equal(&id, &other));
	other.n_bytes = 2;
	assert_false(build_id_equal(&id, &other));
	build_id_format(&longest, text);
	assert_int_equal(strlen(text), 2 * BUILD_ID_MAX);
	build_id_format(&(struct build_id){ 0 }, text);
	assert_string_equal(text, "");
}

/* How many exported functions have an FDE, and how many of those agree with st_size. */
struct agreement {
	size_t n_functions, n_found, n_same;
};

static void compare_symbol(struct elf_file *file, const GElf_Sym *symbol, struct agreement *counts)
{
	uint64_t start, end;

	if (GELF_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF || symbol->st_size == 0)
		return;
	counts->n_functions++;
	if (elf_file_function(file, symbol->st_value, &start, &end) < 0)
		return;
	assert_in_range(symbol->st_value, start, end - 1);
	counts->n_found++;
	counts->n_same += start == symbol->st_value && end - start == symbol->st_size;
}

static struct agreement compare_symbols(struct elf_file *file)
{
	struct agreement counts = { 0 };
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	GElf_Sym symbol;

	while ((section = elf_nextscn(elf_file_elf(file), section)) != NULL) {
		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_DYNSYM)
			continue;
		for (int i = 0; gelf_getsym(elf_getdata(section, NULL), i, &symbol); i++)
			compare_symbol(file, &symbol, &counts);
	}
	return counts;
}

static void functions_agree_with_symbols(void **state)
{
	struct loaded libc = find_loaded("libc.so");
	CLEANUP(elf_file_freep) struct elf_file *file = open_path(libc.path);
	struct agreement counts = compare_symbols(file);

	(void)state;
	assert_true(counts.n_functions > 1000);
	/* Hand-written assembly joins or splits functions at will. */
	assert_true(counts.n_found * 100 >= counts.n_functions * 99);
	assert_true(counts.n_same * 100 >= counts.n_functions * 97);
}

/* Between functions lie bytes that belong to none; every other address to just one. */
static void padding_is_no_function(void **state)
{
	struct loaded libc = find_loaded("libc.so");
	CLEANUP(elf_file_freep) struct elf_file *file = open_path(libc.path);
	uint64_t text, n_bytes, start, end, last_end = 0;
	size_t n_gaps = 0;

	(void)state;
	assert_int_equal(elf_file_section(file, ".text", &text, &n_bytes), 0);
	for (uint64_t at = text; at < text + MIN(n_bytes, (uint64_t)1 << 18); at++) {
		if (elf_file_function(file, at, &start, &end) < 0) {
			n_gaps++;
			continue;
		}
		assert_in_range(at, start, end - 1);
		assert_true(at < last_end || start == at);
		last_end = end;
	}
	assert_true(n_gaps > 100);
	assert_int_equal(elf_file_function(file, 0, &start, &end), -ENOENT);
	assert_int_equal(elf_file_function(file, UINT64_MAX, &start, &end), -ENOENT);
}

static void a_stripped_interpreter_is_understood(void **state)
{
	CLEANUP(elf_file_freep) struct elf_file *file = NULL;
	uint64_t runtime, runtime_bytes, section, section_bytes, value, size;
	struct agreement counts;

	(void)state;
	if (access(PYTHON, R_OK) < 0) {
		print_message("skipped: no %s here\n", PYTHON);
		skip();
	}
	file = open_path(PYTHON);
	if (elf_file_symbol(file, "_PyRuntime", &runtime, &runtime_bytes) < 0) {
		print_message("skipped: %s has its runtime in libpython\n", PYTHON);
		skip();
	}
	assert_int_equal(elf_file_section(file, ".PyRuntime", &section, &section_bytes), 0);
	assert_int_equal(runtime, section);
	assert_int_equal(runtime_bytes, section_bytes);
	/* Static, thus gone with .symtab. */
	assert_int_equal(elf_file_symbol(file, "unicode_dealloc", &value, &size), -ENOENT);
	assert_int_equal(elf_file_symbol(file, "PyEval_EvalCode", &value, &size), 0);
	assert_true(size > 0);
	counts = compare_symbols(file);
	assert_true(counts.n_functions > 1000);
	assert_true(counts.n_same * 100 >= counts.n_functions * 97);
}

struct vdso {
	const uint8_t *image;
	size_t n_bytes;
};

/* Its segment begins at its start, and the image ends where its section headers do. */
static struct vdso find_vdso(void)
{
	const uint8_t *image = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	const ElfW(Ehdr) *header = (const void *)image;
	struct vdso vdso = { .image = image };

	if (!image) {
		print_message("skipped: this kernel gives no vdso\n");
		skip();
	}
	vdso.n_bytes = header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
	return vdso;
}

static void the_vdso_is_understood(void **state)
{
	struct vdso vdso = find_vdso();
	CLEANUP(elf_file_freep) struct elf_file *file = NULL;
	uint64_t value, size, start, end;

	(void)state;
	assert_int_equal(elf_file_open_memory(vdso.image, vdso.n_bytes, &file), 0);
	assert_int_equal(elf_file_fd(file), -1);
	assert_int_equal(elf_file_symbol(file, "__vdso_clock_gettime", &value, &size), 0);
	assert_int_equal(elf_file_function(file, value, &start, &end), 0);
	assert_int_equal(start, value);
	assert_true(end > start);
	assert_true(elf_file_build_id(file)->n_bytes > 0);
}

/* Its section headers are unusable; function lookups must not need them. */
static void the_vdso_needs_no_sections(void **state)
{
	struct vdso vdso = find_vdso();
	CLEANUP(elf_file_freep) struct elf_file *whole = NULL, *bare = NULL;
	CLEANUP(freep) uint8_t *copy = malloc(vdso.n_bytes);
	uint64_t value, size, start, end;

	(void)state;
	assert_non_null(copy);
	memcpy(copy, vdso.image, vdso.n_bytes);
	((ElfW(Ehdr) *)copy)->e_shoff = 0;
	((ElfW(Ehdr) *)copy)->e_shnum = 0;
	((ElfW(Ehdr) *)copy)->e_shstrndx = 0;
	assert_int_equal(elf_file_open_memory(vdso.image, vdso.n_bytes, &whole), 0);
	assert_int_equal(elf_file_symbol(whole, "__vdso_getcpu", &value, &size), 0);
	assert_int_equal(elf_file_open_memory(copy, vdso.n_bytes, &bare), 0);
	assert_int_equal(elf_file_function(bare, value, &start, &end), 0);
	assert_int_equal(start, value);
	assert_int_equal(elf_file_symbol(bare, "__vdso_getcpu", &value, &size), -ENOENT);
	assert_true(build_id_equal(elf_file_build_id(bare), elf_file_build_id(whole)));
}

static void ask_everything(struct elf_file *file)
{
	struct elf_segment segment;
	uint64_t a, b;

	for (size_t i = 0; elf_file_segment(file, i, &segment); i++) {
		const void *bytes;

		for (uint64_t at = 0; at < segment.n_file_bytes; at += 97)
			elf_file_function(file, segment.address + at, &a, &b);
		elf_file_data(file, segment.address, 1, &bytes);
	}
	elf_file_symbol(file, "__vdso_getcpu", &a, &b);
	elf_file_section(file, ".text", &a, &b);
}

/* Truncated parts are detected and never read: the page after the image is unmapped. */
static void truncated_images_are_survived(void **state)
{
	struct vdso vdso = find_vdso();
	size_t page = (size_t)getpagesize(), n_opened = 0;
	size_t room = (vdso.n_bytes + page - 1) / page * page;
	uint8_t *ground = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_true(ground != MAP_FAILED);
	assert_int_equal(munmap(ground + room, page), 0);
	for (size_t n_bytes = 0; n_bytes < vdso.n_bytes; n_bytes += 13) {
		CLEANUP(elf_file_freep) struct elf_file *file = NULL;
		uint8_t *image = ground + ((room - n_bytes) & ~(size_t)7);

		memcpy(image, vdso.image, n_bytes);
		if (elf_file_open_memory(image, n_bytes, &file) < 0)
			continue;
		n_opened++;
		ask_everything(file);
	}
	assert_true(n_opened > 0);
	munmap(ground, room);
}

static void other_files_are_refused(void **state)
{
	static const struct {
		size_t at;
		uint8_t byte;
	} damages[] = {
		{ EI_MAG0, 0 },
		{ EI_CLASS, ELFCLASS32 },
		{ EI_DATA, ELFDATA2MSB },
		{ offsetof(Elf64_Ehdr, e_machine), EM_386 },
	};
	CLEANUP(freep) uint8_t *copy = NULL;
	struct vdso vdso = find_vdso();
	struct elf_file *file = NULL;
	int fd;

	(void)state;
	copy = malloc(vdso.n_bytes);
	assert_non_null(copy);
	for (size_t i = 0; i < N_ELEMENTS(damages); i++) {
		memcpy(copy, vdso.image, vdso.n_bytes);
		copy[damages[i].at] = damages[i].byte;
		assert_int_equal(elf_file_open_memory(copy, vdso.n_bytes, &file), -ENOEXEC);
	}
	fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	assert_int_equal(elf_file_open(fd, &file), -ENOEXEC);
	assert_null(file);
	/* Still ours after the failure. */
	assert_int_equal(close(fd), 0);
	assert_int_equal(elf_file_open(-1, &file), -ENOEXEC);
	elf_file_free(NULL);
}

/* ---- A reader that counts its questions ---- */

static int counted_open(void *data, const char *name, int fd, const void *bytes, size_t n_bytes,
			struct elf_summary *ret, uint32_t *ret_number)
{
	(void)data, (void)name, (void)fd, (void)bytes, (void)n_bytes;
	*ret = (struct elf_summary){ .machine = EM_X86_64 };
	*ret_number = 0;
	return 0;
}

static void counted_close(void *data, uint32_t number)
{
	(void)data, (void)number;
}

/* Names that begin with "no" are missing; the value of others is their length. */
static int counted_name(void *data, uint32_t number, const char *name, uint64_t *ret_value, uint64_t *ret_size)
{
	unsigned *n_asked = data;

	(void)number;
	++*n_asked;
	if (strncmp(name, "no", 2) == 0)
		return -ENOENT;
	*ret_value = strlen(name);
	*ret_size = 1;
	return 0;
}

static int counted_section(void *data, uint32_t number, const char *name, uint64_t *ret_value, uint64_t *ret_size)
{
	int r = counted_name(data, number, name, ret_value, ret_size);

	*ret_size = 2;
	return r;
}

static int counted_function(void *data, uint32_t number, uint64_t address, uint64_t *ret_start, uint64_t *ret_end)
{
	(void)data, (void)number, (void)address, (void)ret_start, (void)ret_end;
	return -ENOENT;
}

static void names_are_asked_for_once(void **state)
{
	unsigned n_asked = 0;
	const struct elf_reader reader = { counted_open,    counted_close,    counted_name,
					   counted_section, counted_function, &n_asked };
	CLEANUP(elf_file_freep) struct elf_file *file = NULL;
	char name[] = "changing";
	uint64_t value, size;

	(void)state;
	assert_int_equal(elf_file_open_through(&reader, "made", -1, "", 0, &file), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(elf_file_symbol(file, "symbol", &value, &size), 0);
		assert_int_equal(value, 6);
		assert_int_equal(size, 1);
		assert_int_equal(elf_file_section(file, "symbol", &value, &size), 0);
		assert_int_equal(size, 2); /* a section and a symbol of one name are two names */
		assert_int_equal(elf_file_symbol(file, "none", &value, &size), -ENOENT);
		assert_int_equal(value, 6);
	}
	assert_int_equal(n_asked, 3);
	/* Names are copied. Those that exceed the buffer are looked up each time. */
	for (char c = 'A'; c < 'A' + 50; c++) {
		*name = c;
		assert_int_equal(elf_file_symbol(file, name, &value, &size), 0);
		assert_int_equal(value, 8);
	}
	assert_int_equal(n_asked, 53);
	*name = 'A';
	assert_int_equal(elf_file_symbol(file, name, &value, &size), 0);
	assert_int_equal(n_asked, 53);
	*name = 'A' + 49;
	assert_int_equal(elf_file_symbol(file, name, &value, &size), 0);
	assert_int_equal(n_asked, 54);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_program_is_understood),     cmocka_unit_test(bytes_are_those_in_memory),
		cmocka_unit_test(segments_are_those_loaded),     cmocka_unit_test(build_id_is_that_in_memory),
		cmocka_unit_test(build_ids_are_written_in_hex),  cmocka_unit_test(functions_agree_with_symbols),
		cmocka_unit_test(padding_is_no_function),        cmocka_unit_test(a_stripped_interpreter_is_understood),
		cmocka_unit_test(the_vdso_is_understood),        cmocka_unit_test(the_vdso_needs_no_sections),
		cmocka_unit_test(truncated_images_are_survived), cmocka_unit_test(other_files_are_refused),
		cmocka_unit_test(names_are_asked_for_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
