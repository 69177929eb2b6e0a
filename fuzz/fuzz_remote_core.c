/* SPDX-License-Identifier: MIT */
/* fuzz_remote_core.c - a core file from anywhere, read everywhere.
 *
 * What it reads is what the file has there, by the program headers as they stand.
 *
 * The corpus is made by fuzz/make_core_corpus.py.
 */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/remote.h"
#include "base/util.h"

enum { MAX_ASKED = 64, READ_BYTES = 256 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

struct core_file {
	const uint8_t *bytes;
	uint64_t n_bytes;
	const uint8_t *headers; /* n program headers, as many as fit in the file */
	size_t n;
};

static Elf64_Phdr header_at(const struct core_file *file, size_t i)
{
	Elf64_Phdr header;

	memcpy(&header, file->headers + i * sizeof header, sizeof header);
	return header;
}

/* Whether a segment has this byte at this address. */
static bool holds(const struct core_file *file, uint64_t address, uint8_t byte)
{
	for (size_t i = 0; i < file->n; i++) {
		Elf64_Phdr header = header_at(file, i);
		uint64_t at = address - header.p_vaddr;

		if (header.p_type == PT_LOAD && at < header.p_filesz && at < header.p_memsz &&
		    header.p_offset < file->n_bytes && at < file->n_bytes - header.p_offset &&
		    file->bytes[header.p_offset + at] == byte)
			return true;
	}
	return false;
}

static void ask(const struct core_file *file, struct remote *remote, uint64_t address)
{
	uint8_t *to = malloc(READ_BYTES);
	ssize_t got;

	if (!to)
		return;
	got = remote_read_some(remote, RADDR(address), to, READ_BYTES);
	if (got == 0 || got > READ_BYTES)
		abort();
	for (ssize_t i = 0; i < got; i += 1 + got / 8)
		if (!holds(file, address + (uint64_t)i, to[i]))
			abort();
	free(to);
}

static void ask_all(const struct core_file *file, struct remote *remote)
{
	for (size_t i = 0; i < MIN(file->n, (size_t)MAX_ASKED); i++) {
		Elf64_Phdr header = header_at(file, i);

		ask(file, remote, header.p_vaddr);
		ask(file, remote, header.p_vaddr + header.p_filesz / 2);
		ask(file, remote, header.p_vaddr + header.p_filesz - 1);
		ask(file, remote, header.p_vaddr + header.p_memsz);
	}
	ask(file, remote, 0);
	ask(file, remote, UINT64_MAX - READ_BYTES / 2);
}

/* The headers of an opened file are in bounds. */
static struct core_file headers_of(const uint8_t *data, size_t n_bytes)
{
	struct core_file file = { .bytes = data, .n_bytes = n_bytes };
	Elf64_Ehdr header;
	Elf64_Shdr section;

	memcpy(&header, data, sizeof header);
	file.n = header.e_phnum;
	if (header.e_phnum == PN_XNUM) {
		memcpy(&section, data + header.e_shoff, sizeof section);
		file.n = section.sh_info;
	}
	file.headers = data + header.e_phoff;
	return file;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	CLEANUP(remote_freep) struct remote *remote = NULL;
	struct core_file file;
	char path[64];
	int fd = memfd_create("core", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, n_bytes) != (ssize_t)n_bytes)
		abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (remote_open_core(path, &remote) == 0) {
		file = headers_of(data, n_bytes);
		ask_all(&file, remote);
	}
	close(fd);
	return 0;
}
