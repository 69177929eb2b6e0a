/* SPDX-License-Identifier: MIT */
/* core_file.c - see core_file.h. */
#include "base/core_file.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cursor.h"
#include "base/util.h"

/* A thread has a few hundred bytes of notes, a mapping one path. */
enum { MAX_NOTE_BYTES = 256 << 20, MAX_THREADS = 1 << 20, MAX_MAPPINGS = 1 << 20 };

/* struct elf_prstatus and struct elf_prpsinfo, of 64-bit machines. */
enum {
	STATUS_SIGNAL = 12,
	STATUS_TID = 32,
	STATUS_REGS = 112,
	INFO_PID = 24,
	INFO_NAME = 40,
	INFO_NAME_BYTES = 16,
	INFO_COMMAND = 56,
	INFO_COMMAND_BYTES = 80,
};

DEFINE_CLEANUP(Elf *, elf_end)

void core_file_free(struct core_file *core)
{
	if (!core)
		return;
	free(core->threads);
	free(core->mappings);
	free(core->ranges);
	free(core->paths);
	free(core);
}

void core_file_freep(struct core_file **core)
{
	core_file_free(*core);
}

/* A note's bytes. */
struct note {
	const uint8_t *bytes;
	size_t n_bytes;
};

static struct cursor cursor_at(const struct note *note, size_t offset)
{
	return (struct cursor){ note->bytes + MIN(offset, note->n_bytes), note->bytes + note->n_bytes, false };
}

/* Add a thread. The one that received the signal comes first. */
static int take_status(struct core_file *core, const struct note *note)
{
	struct cursor signal = cursor_at(note, STATUS_SIGNAL), tid = cursor_at(note, STATUS_TID);
	uint64_t words[MACHINE_STATUS_WORDS];
	struct core_thread *thread;
	void *grown;

	if (note->n_bytes < STATUS_REGS + sizeof words || core->n_threads == MAX_THREADS)
		return -EBADMSG;
	/* Grow at powers of two. */
	if ((core->n_threads & (core->n_threads - 1)) == 0) {
		grown = realloc(core->threads, MAX(2 * core->n_threads, (size_t)1) * sizeof *core->threads);
		if (!grown)
			return -ENOMEM;
		core->threads = grown;
	}
	thread = &core->threads[core->n_threads++];
	thread->tid = (pid_t)cursor_fixed(&tid, 4);
	memcpy(words, note->bytes + STATUS_REGS, sizeof words);
	machine_regs_from_status(words, &thread->regs);
	if (core->n_threads == 1)
		core->signal = (int)cursor_signed(&signal, 2);
	return 0;
}

static void take_text(const struct note *note, size_t offset, size_t n_bytes, char *to)
{
	memcpy(to, note->bytes + offset, n_bytes);
	to[n_bytes] = '\0';
	for (size_t n = strlen(to); n > 0 && to[n - 1] == ' '; n--)
		to[n - 1] = '\0';
}

static int take_info(struct core_file *core, const struct note *note)
{
	struct cursor pid = cursor_at(note, INFO_PID);

	if (note->n_bytes < INFO_COMMAND + INFO_COMMAND_BYTES)
		return -EBADMSG;
	core->pid = (pid_t)cursor_fixed(&pid, 4);
	take_text(note, INFO_NAME, INFO_NAME_BYTES, core->name);
	take_text(note, INFO_COMMAND, INFO_COMMAND_BYTES, core->command);
	return 0;
}

/* Count, page size, then start, end, offset in pages of each mapping, then NUL-terminated paths. */
static int take_files(struct core_file *core, const struct note *note)
{
	enum { ENTRY_BYTES = 24 };
	struct cursor cursor = cursor_at(note, 0);
	uint64_t n = cursor_fixed(&cursor, 8), page_bytes = cursor_fixed(&cursor, 8);
	char *path, *end;

	if (cursor.failed || core->mappings || n > MAX_MAPPINGS || n > cursor_left(&cursor) / ENTRY_BYTES)
		return -EBADMSG;
	core->mappings = calloc(n + 1, sizeof *core->mappings);
	core->paths = malloc(cursor_left(&cursor) - n * ENTRY_BYTES + 1);
	if (!core->mappings || !core->paths)
		return -ENOMEM;
	for (uint64_t i = 0; i < n; i++) {
		struct core_mapping *mapping = &core->mappings[i];

		mapping->start = cursor_fixed(&cursor, 8);
		mapping->end = cursor_fixed(&cursor, 8);
		if (__builtin_mul_overflow(cursor_fixed(&cursor, 8), page_bytes, &mapping->file_offset))
			return -EBADMSG;
	}
	path = core->paths;
	end = path + cursor_left(&cursor);
	memcpy(path, cursor.at, cursor_left(&cursor));
	*end = '\0';
	for (; core->n_mappings < n; core->n_mappings++) {
		if (path >= end)
			return -EBADMSG;
		core->mappings[core->n_mappings].path = path;
		path += strlen(path) + 1;
	}
	return 0;
}

static void take_auxiliary(struct core_file *core, const struct note *note)
{
	struct cursor cursor = cursor_at(note, 0);

	while (cursor_left(&cursor) >= 16) {
		uint64_t type = cursor_fixed(&cursor, 8), value = cursor_fixed(&cursor, 8);

		if (type == AT_SYSINFO_EHDR)
			core->vdso = value;
		else if (type == AT_PHDR)
			core->program = value;
	}
}

static int take_note(struct core_file *core, unsigned type, const struct note *note)
{
	switch (type) {
	case NT_PRSTATUS:
		return take_status(core, note);
	case NT_PRPSINFO:
		return take_info(core, note);
	case NT_FILE:
		return take_files(core, note);
	case NT_AUXV:
		take_auxiliary(core, note);
		return 0;
	default:
		return 0;
	}
}

static int take_notes(struct core_file *core, Elf *elf, const GElf_Phdr *header)
{
	size_t offset = 0, next, name_at, bytes_at;
	Elf_Data *data;
	GElf_Nhdr note;

	if (header->p_filesz > MAX_NOTE_BYTES)
		return -EBADMSG;
	data = elf_getdata_rawchunk(elf, (int64_t)header->p_offset, header->p_filesz, ELF_T_NHDR);
	if (!data)
		return -EBADMSG;
	while ((next = gelf_getnote(data, offset, &note, &name_at, &bytes_at)) > 0) {
		const uint8_t *bytes = data->d_buf;
		int r = 0;

		offset = next;
		if (note.n_namesz == sizeof "CORE" && memcmp(bytes + name_at, "CORE", sizeof "CORE") == 0)
			r = take_note(core, note.n_type, &(struct note){ bytes + bytes_at, note.n_descsz });
		if (r < 0)
			return r;
	}
	return 0;
}

static void take_range(struct core_file *core, const GElf_Phdr *header)
{
	uint64_t end;

	if (header->p_memsz == 0 || __builtin_add_overflow(header->p_vaddr, header->p_memsz, &end))
		return;
	core->ranges[core->n_ranges++] = (struct core_range){
		.start = header->p_vaddr,
		.end = end,
		.writable = header->p_flags & PF_W,
		.executable = header->p_flags & PF_X,
	};
}

static int by_tid(const void *a, const void *b)
{
	const struct core_thread *left = a, *right = b;

	return (left->tid > right->tid) - (left->tid < right->tid);
}

static int take_headers(struct core_file *core, Elf *elf)
{
	size_t n;

	if (elf_getphdrnum(elf, &n) < 0)
		return -EBADMSG;
	core->ranges = calloc(n + 1, sizeof *core->ranges);
	if (!core->ranges)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr header;
		int r = 0;

		if (!gelf_getphdr(elf, (int)i, &header))
			return -EBADMSG;
		if (header.p_type == PT_NOTE)
			r = take_notes(core, elf, &header);
		else if (header.p_type == PT_LOAD)
			take_range(core, &header);
		if (r < 0)
			return r;
	}
	if (core->n_threads == 0)
		return -ENODATA;
	qsort(core->threads + 1, core->n_threads - 1, sizeof *core->threads, by_tid);
	return 0;
}

static int check_kind(Elf *elf)
{
	GElf_Ehdr header;

	if (elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &header) || header.e_type != ET_CORE)
		return -EBADMSG;
	if (gelf_getclass(elf) != ELFCLASS64 || header.e_machine != MACHINE_ELF)
		return -EOPNOTSUPP;
	return 0;
}

int core_file_read(const char *path, struct core_file **ret)
{
	CLEANUP(core_file_freep) struct core_file *core = NULL;
	CLEANUP(closep) int fd = -1;
	CLEANUP(elf_endp) Elf *elf = NULL;
	struct stat st;
	int r;

	if (elf_version(EV_CURRENT) == EV_NONE)
		return -EOPNOTSUPP;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBADMSG;
	core = calloc(1, sizeof *core);
	if (!core)
		return -ENOMEM;
	elf = elf_begin(fd, ELF_C_READ, NULL); /* not mapped: the file may be truncated meanwhile */
	r = elf ? check_kind(elf) : -EBADMSG;
	if (r >= 0)
		r = take_headers(core, elf);
	if (r < 0)
		return r;
	*ret = TAKE(core);
	return 0;
}
