/* SPDX-License-Identifier: MIT */
/* made_kallsyms.h - /proc/kallsyms of a kernel that is not there, loaded where a test says. */
#ifndef PROBING_TESTS_MADE_KALLSYMS_H
#define PROBING_TESTS_MADE_KALLSYMS_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* Addresses of one boot. All 0: as with kptr_restrict. */
struct made_boot {
	uint64_t text, net, disk, bpf;
};

static const struct made_boot first_boot = { 0xffffffff81000000, 0xffffffffc0100000, 0xffffffffc0300000,
					     0xffffffffc0500000 };
static const struct made_boot second_boot = { 0xffffffffa5200000, 0xffffffffc0877000, 0xffffffffc0412000,
					      0xffffffffc0031000 };
static const struct made_boot hidden_boot = { 0 };

/* Offsets and names of the symbols that the tests look up. */
enum { SYSCALL_OFFSET = 0x1000, NET_OFFSET = 0x240, DISK_OFFSET = 0x80 };

static inline void made_line(FILE *file, uint64_t base, uint64_t offset, char type, const char *rest)
{
	fprintf(file, "%016" PRIx64 " %c %s\n", base ? base + offset : 0, type, rest);
}

static inline void make_kallsyms(const char *path, const struct made_boot *boot)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	made_line(file, boot->text, 0, 'T', "_stext");
	made_line(file, boot->text, 0, 'T', "_text");
	made_line(file, boot->text, SYSCALL_OFFSET, 'T', "do_made_syscall");
	made_line(file, boot->text, 0x3000, 't', "made_helper");
	made_line(file, boot->text, 0x9000, 'T', "_etext");
	made_line(file, boot->text, 0x20000, 'B', "_end");
	made_line(file, boot->net, NET_OFFSET, 't', "net_send\t[made_net]");
	made_line(file, boot->net, 0, 't', "net_init\t[made_net]");
	made_line(file, boot->disk, 0, 't', "disk_start\t[made_disk]");
	made_line(file, boot->disk, DISK_OFFSET, 't', "disk_read\t[made_disk]");
	made_line(file, boot->bpf, 0, 't', "bpf_prog_0123456789abcdef_first\t[bpf]");
	made_line(file, boot->bpf, boot == &first_boot ? 0x400 : 0x900, 't', "bpf_prog_fedcba9876543210_second\t[bpf]");
	assert_int_equal(fclose(file), 0);
}

#endif
