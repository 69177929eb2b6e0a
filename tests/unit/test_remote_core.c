/* SPDX-License-Identifier: MIT */
/* test_remote_core.c - core files made here, read back; damaged ones refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/remote.h"
#include "base/util.h"

enum { MAX_SEGMENTS = 4, DATA_OFFSET = 4096, DATA_BYTES = 8192 };

/* A file with a header, up to four program headers, and bytes of a pattern from DATA_OFFSET on. */
struct core_image {
	Elf64_Ehdr header;
	Elf64_Shdr section;
	Elf64_Phdr segments[MAX_SEGMENTS];
	size_t n_file_bytes;
};

static uint8_t pattern(size_t offset)
{
	return (uint8_t)(1 + offset % 251);
}

static struct core_image make_image(size_t n_segments)
{
	struct core_image image = {
		.header = {
			.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			.e_type = ET_CORE,
			.e_phoff = offsetof(struct core_image, segments),
			.e_phentsize = sizeof(Elf64_Phdr),
			.e_phnum = (uint16_t)n_segments,
		},
		.n_file_bytes = DATA_OFFSET + DATA_BYTES,
	};

	return image;
}

static Elf64_Phdr segment(uint64_t address, uint64_t offset, uint64_t n_file_bytes, uint64_t n_memory_bytes)
{
	return (Elf64_Phdr){
		.p_type = PT_LOAD,
		.p_vaddr = address,
		.p_offset = DATA_OFFSET + offset,
		.p_filesz = n_file_bytes,
		.p_memsz = n_memory_bytes,
	};
}

static int open_image(const struct core_image *image, struct remote **ret)
{
	uint8_t *bytes = malloc(DATA_OFFSET + DATA_BYTES);
	char path[] = "/tmp/test_remote_core.XXXXXX";
	int fd = mkstemp(path), r;

	assert_non_null(bytes);
	assert_true(fd >= 0);
	for (size_t i = 0; i < DATA_OFFSET + DATA_BYTES; i++)
		bytes[i] = pattern(i);
	memcpy(bytes, image, offsetof(struct core_image, n_file_bytes));
	assert_int_equal(write(fd, bytes, image->n_file_bytes), image->n_file_bytes);
	r = remote_open_core(path, ret);
	unlink(path);
	close(fd);
	free(bytes);
	return r;
}

static void assert_reads(struct remote *remote, uint64_t address, size_t asked, size_t expected, size_t offset)
{
	uint8_t to[512];

	assert_int_equal(remote_read_some(remote, RADDR(address), to, asked), expected);
	for (size_t i = 0; i < expected; i++)
		assert_int_equal(to[i], pattern(DATA_OFFSET + offset + i));
}

static void segments_are_memory(void **state)
{
	struct core_image image = make_image(4);
	CLEANUP(remote_freep) struct remote *remote = NULL;
	uint8_t byte;

	(void)state;
	image.segments[0] = segment(0x5000, 0, 256, 256);
	image.segments[1] = segment(0x1000, 1024, 128, 4096); /* the rest was not dumped */
	image.segments[2] = segment(0x5100, 256, 64, 64);
	image.segments[3] = segment(0x9000, 0, 64, 64);
	image.segments[3].p_type = PT_NOTE;
	assert_int_equal(open_image(&image, &remote), 0);
	assert_reads(remote, 0x1000, 16, 16, 1024);
	assert_reads(remote, 0x1000, 512, 128, 1024);
	assert_reads(remote, 0x50ff, 1, 1, 255);
	assert_reads(remote, 0x5080, 512, 128 + 64, 128); /* on into the next */
	assert_int_equal(remote_read_some(remote, RADDR(0xfff), &byte, 1), -EFAULT);
	assert_int_equal(remote_read_some(remote, RADDR(0x1080), &byte, 1), -EFAULT);
	assert_int_equal(remote_read_some(remote, RADDR(0x9000), &byte, 1), -EFAULT);
	assert_int_equal(remote_read_some(remote, RADDR(UINT64_MAX), &byte, 1), -EFAULT);
}

static void a_file_cut_short_has_less(void **state)
{
	struct core_image image = make_image(3);
	CLEANUP(remote_freep) struct remote *remote = NULL;
	uint8_t byte;

	(void)state;
	image.segments[0] = segment(0x1000, 0, 256, 256);
	image.segments[1] = segment(0x2000, 256, 256, 256);
	image.segments[2] = segment(0x3000, UINT64_MAX - 100, UINT64_MAX, UINT64_MAX);
	image.n_file_bytes = DATA_OFFSET + 300;
	assert_int_equal(open_image(&image, &remote), 0);
	assert_reads(remote, 0x1000, 256, 256, 0);
	assert_reads(remote, 0x2000, 256, 44, 256);
	assert_int_equal(remote_read_some(remote, RADDR(0x202c), &byte, 1), -EFAULT);
}

static void many_segments_are_counted_elsewhere(void **state)
{
	struct core_image image = make_image(PN_XNUM);
	CLEANUP(remote_freep) struct remote *remote = NULL;

	(void)state;
	image.header.e_shoff = offsetof(struct core_image, section);
	image.section.sh_info = 2;
	image.segments[0] = segment(0x1000, 0, 64, 64);
	image.segments[1] = segment(0x2000, 64, 64, 64);
	assert_int_equal(open_image(&image, &remote), 0);
	assert_reads(remote, 0x2000, 64, 64, 64);
}

static int open_changed(void (*change)(struct core_image *image))
{
	struct core_image image = make_image(2);
	CLEANUP(remote_freep) struct remote *remote = NULL;

	image.segments[0] = segment(0x1000, 0, 64, 64);
	image.segments[1] = segment(0x2000, 64, 64, 64);
	change(&image);
	return open_image(&image, &remote);
}

static void change_nothing(struct core_image *image)
{
	(void)image;
}

static void overlap(struct core_image *image)
{
	image->segments[1].p_vaddr = 0x103f;
}

static void have_no_segment(struct core_image *image)
{
	image->segments[0].p_filesz = image->segments[1].p_filesz = 0;
}

static void count_too_many(struct core_image *image)
{
	image->header.e_phnum = PN_XNUM;
	image->header.e_shoff = offsetof(struct core_image, section);
	image->section.sh_info = UINT32_MAX;
}

static void lead_outside(struct core_image *image)
{
	image->header.e_phoff = UINT64_MAX - 8;
}

static void cut_headers(struct core_image *image)
{
	image->n_file_bytes = offsetof(struct core_image, segments) + 60;
}

static void be_a_program(struct core_image *image)
{
	image->header.e_type = ET_EXEC;
}

static void be_of_32_bits(struct core_image *image)
{
	image->header.e_ident[EI_CLASS] = ELFCLASS32;
}

static void damaged_ones_are_refused(void **state)
{
	CLEANUP(remote_freep) struct remote *remote = NULL;

	(void)state;
	assert_int_equal(open_changed(change_nothing), 0);
	assert_int_equal(open_changed(overlap), -EBADMSG);
	assert_int_equal(open_changed(have_no_segment), -EBADMSG);
	assert_int_equal(open_changed(count_too_many), -EBADMSG);
	assert_int_equal(open_changed(lead_outside), -EBADMSG);
	assert_int_equal(open_changed(cut_headers), -EBADMSG);
	assert_int_equal(open_changed(be_a_program), -EBADMSG);
	assert_int_equal(open_changed(be_of_32_bits), -EOPNOTSUPP);
	assert_int_equal(remote_open_core("/dev/null", &remote), -EBADMSG);
	assert_int_equal(remote_open_core("/nonexistent", &remote), -ENOENT);
	assert_null(remote);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(segments_are_memory),
		cmocka_unit_test(a_file_cut_short_has_less),
		cmocka_unit_test(many_segments_are_counted_elsewhere),
		cmocka_unit_test(damaged_ones_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
