/* SPDX-License-Identifier: MIT */
/* place.c - see place.h. */
#include "src/inject/place.h"

#include <errno.h>
#include <gelf.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/path.h"
#include "base/util.h"

struct named_range {
	uint64_t start, end; /* [start, end) */
	bool is_allowed; /* libc functions that only call or wait; otherwise a function that must not be interrupted */
};

struct place_names {
	bool is_read, is_wanted, brings_allocator;
	struct named_range *ranges; /* sorted by start */
	size_t n, allocated;
};

/* libc functions that hold no libc lock while they run or wait. Sorted. */
/* clang-format off */
static const char *const allowed[] = {
	"__clock_gettime", "__close", "__connect", "__errno_location", "__fcntl", "__libc_read", "__libc_write", "__poll", "__poll_chk",
	"__read", "__read_chk", "__recv", "__recv_chk", "__sched_yield", "__select", "__send", "__wait", "__waitpid", "__write",
	"accept", "accept4", "access", "bind", "clock_gettime", "clock_nanosleep", "close", "connect", "creat", "dup", "dup2",
	"epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait", "faccessat", "fcntl", "fcntl64", "fdatasync", "flock", "fstat", "fstat64",
	"fsync", "getpid", "getppid", "gettid", "gettimeofday", "ioctl", "listen", "lseek", "lseek64", "lstat", "lstat64", "madvise", "mkdir",
	"mmap", "mmap64", "mprotect", "msgrcv", "msgsnd", "munmap", "nanosleep", "newfstatat", "open", "open64", "openat", "openat64", "pause",
	"pipe", "pipe2", "poll", "ppoll", "pread", "pread64", "pselect", "pthread_cond_clockwait", "pthread_cond_timedwait",
	"pthread_cond_wait", "pthread_join", "pthread_mutex_lock", "pthread_mutex_timedlock", "pthread_rwlock_rdlock",
	"pthread_rwlock_wrlock", "pwrite", "pwrite64", "read", "readlink", "readv", "recv", "recvfrom", "recvmmsg", "recvmsg",
	"rename", "rmdir", "sched_yield", "select", "sem_clockwait", "sem_timedwait", "sem_wait", "semop", "semtimedop", "send", "sendfile",
	"sendfile64", "sendmmsg", "sendmsg", "sendto", "shutdown", "sigsuspend", "sigtimedwait", "sigwait", "sigwaitinfo", "socket", "splice",
	"stat", "stat64", "statx", "syscall", "time", "unlink", "usleep", "wait", "wait3", "wait4", "waitid", "waitpid", "write", "writev",
};
/* clang-format on */

/* Functions in any module. Sorted. */
/* clang-format off */
static const char *const refused[] = {
	"_Exit", "_Fork", "_ZdaPv", "_ZdaPvm", "_ZdlPv", "_ZdlPvm", "_Znam", "_ZnamRKSt9nothrow_t", "_Znwm", "_ZnwmRKSt9nothrow_t",
	"__libc_calloc", "__libc_fork", "__libc_free", "__libc_malloc", "__libc_memalign", "__libc_realloc", "aligned_alloc",
	"calloc", "cfree", "clone", "daemon", "dl_iterate_phdr", "dlclose", "dlmopen", "dlopen", "dlsym", "exit", "fork", "free",
	"free_aligned_sized", "free_sized", "mallctl", "malloc", "malloc_stats", "malloc_trim", "malloc_usable_size", "memalign",
	"mi_calloc", "mi_free", "mi_malloc", "mi_realloc", "nallocx", "posix_memalign", "posix_spawn", "posix_spawnp", "pthread_create",
	"pthread_exit", "pvalloc", "quick_exit", "realloc", "reallocarray", "sdallocx", "tc_calloc", "tc_free", "tc_malloc", "tc_realloc",
	"valloc", "vfork",
};
/* clang-format on */

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, *(const char *const *)b);
}

static bool is_among(const char *name, const char *const *names, size_t n)
{
	return bsearch(name, names, n, sizeof *names, compare_names) != NULL;
}

static bool is_of_libc(const struct module *module)
{
	return is_library(module, "libc") || is_library(module, "libpthread") || is_library(module, "libdl") ||
	       is_library(module, "librt");
}

static bool is_loader(const struct module *module)
{
	return strncmp(path_base_name(module->path), "ld-", 3) == 0;
}

/* ---- Names ---- */

void place_names_free(struct inject_target *target)
{
	for (size_t i = 0; i < target->n_names; i++)
		free(target->names[i].ranges);
	free(target->names);
	target->names = NULL;
	target->n_names = 0;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct named_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static int add_symbol(struct place_names *names, const GElf_Sym *symbol, const char *name, bool libc)
{
	bool is_refused = is_among(name, refused, N_ELEMENTS(refused));
	int type = GELF_ST_TYPE(symbol->st_info);

	if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol->st_shndx == SHN_UNDEF || symbol->st_size == 0)
		return 0;
	if (strcmp(name, "malloc") == 0 && !libc)
		names->brings_allocator = true;
	if (!is_refused && !libc)
		return 0;
	if (grow(&names->ranges, names->n, &names->allocated, sizeof *names->ranges) < 0)
		return -ENOMEM;
	names->ranges[names->n++] = (struct named_range){ symbol->st_value, symbol->st_value + symbol->st_size,
							  libc && !is_refused &&
								  is_among(name, allowed, N_ELEMENTS(allowed)) };
	return 0;
}

static int read_table(struct place_names *names, Elf *elf, Elf_Scn *section, const GElf_Shdr *header, bool libc)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t n = data && header->sh_entsize ? data->d_size / header->sh_entsize : 0;

	for (size_t i = 0; i < n; i++) {
		GElf_Sym symbol;
		const char *name;

		if (!gelf_getsym(data, (int)i, &symbol))
			break;
		name = elf_strptr(elf, header->sh_link, symbol.st_name);
		if (name && add_symbol(names, &symbol, name, libc) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int read_names(struct place_names *names, struct module *module)
{
	struct elf_file *file;
	Elf_Scn *section = NULL;
	Elf *elf;
	int r = 0;

	names->is_read = true;
	if (module->is_vdso || module_elf(module, &file) < 0)
		return 0;
	elf = elf_file_elf(file);
	while (r >= 0 && (section = elf_nextscn(elf, section))) {
		GElf_Shdr header;

		if (gelf_getshdr(section, &header) && header.sh_type == SHT_DYNSYM)
			r = read_table(names, elf, section, &header, is_of_libc(module));
	}
	if (names->n > 1)
		qsort(names->ranges, names->n, sizeof *names->ranges, compare_ranges);
	return r;
}

static int make_slots(struct inject_target *target, size_t n)
{
	struct place_names *names;

	if (n <= target->n_names)
		return 0;
	names = realloc(target->names, n * sizeof *names);
	if (!names)
		return -ENOMEM;
	memset(names + target->n_names, 0, (n - target->n_names) * sizeof *names);
	target->names = names;
	target->n_names = n;
	return 0;
}

int place_learn(struct inject_target *target)
{
	for (size_t i = 0; i < target->n_names; i++) {
		if (!target->names[i].is_wanted || target->names[i].is_read)
			continue;
		if (read_names(&target->names[i], module_table_get(target->modules, i)) < 0)
			return -ENOMEM;
	}
	return 0;
}

enum kind { NO_NAME, ALLOWED, REFUSED };

/* An address may have several names, such as wrappers of fork. */
static enum kind kind_of(const struct place_names *names, uint64_t address)
{
	enum kind kind = NO_NAME;

	for (size_t i = 0; i < names->n && names->ranges[i].start <= address; i++) {
		if (address >= names->ranges[i].end)
			continue;
		/* "read" is also called "__read": one allowed name suffices. */
		if (names->ranges[i].is_allowed)
			return ALLOWED;
		kind = REFUSED;
	}
	return kind;
}

/* ---- A stack ---- */

struct place_frame {
	struct module *module; /* NULL: anonymous code */
	bool in_libc;
	enum kind kind;
};

static int look_at(struct inject_target *target, const struct native_frame *frame, struct place_frame *ret)
{
	struct place_frame found = { 0 };
	const struct place_names *names;
	uint64_t address;
	int r;

	if (address_space_resolve(target->space, native_frame_lookup(frame), &found.module, &address) < 0)
		return -ENOENT;
	*ret = found;
	if (!found.module)
		return 0;
	r = make_slots(target, found.module->id + 1);
	if (r < 0)
		return r;
	names = &target->names[found.module->id];
	target->names[found.module->id].is_wanted = true;
	if (!names->is_read)
		return -EAGAIN;
	found.in_libc = is_of_libc(found.module);
	found.kind = kind_of(names, address);
	if (is_loader(found.module) || (names->brings_allocator && path_base_name(found.module->path)[0] == 'l'))
		found.kind = REFUSED;
	*ret = found;
	return 0;
}

/* Whether the system call waits or returns at once, and no allocator or stdio makes it with a lock held. */
static bool is_plain_call(const struct place_call *call)
{
	static const long plain[] = {
		SYS_read,
		SYS_write,
		SYS_recvfrom,
		SYS_sendto,
		SYS_recvmsg,
		SYS_sendmsg,
		SYS_accept4,
		SYS_connect,
		SYS_pselect6,
		SYS_ppoll,
		SYS_epoll_pwait,
		SYS_nanosleep,
		SYS_clock_nanosleep,
		SYS_wait4,
		SYS_waitid,
		SYS_rt_sigtimedwait,
#ifdef SYS_poll
		SYS_poll,
		SYS_select,
		SYS_epoll_wait,
		SYS_accept,
		SYS_pause,
#endif
	};

	if (call->number == SYS_futex)
		return (call->arguments[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
	for (size_t i = 0; i < N_ELEMENTS(plain); i++)
		if (call->number == plain[i])
			return true;
	return false;
}

/* Frames of libc below main() or a thread's start, and their callers, hold no locks. */
static size_t root_of(const struct inject_target *target, const struct place_frame *frames)
{
	size_t n = target->walked.n_frames;

	if (n > 0 && !frames[n - 1].in_libc)
		n--; /* _start */
	while (n > 0 && frames[n - 1].in_libc)
		n--;
	return n;
}

static bool judge(const struct inject_target *target, const struct place_frame *frames, const struct place_call *call)
{
	size_t n = root_of(target, frames);
	bool is_innermost = true;

	if (n == 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		const struct place_frame *frame = &frames[i];

		if (frame->kind == REFUSED)
			return false;
		if (frame->in_libc && frame->kind == NO_NAME && !(is_innermost && is_plain_call(call)))
			return false;
		is_innermost &= frame->in_libc && frame->kind == NO_NAME;
	}
	return true;
}

static int look_at_all(struct inject_target *target, struct place_frame *frames)
{
	bool misses_names = false;

	for (size_t i = 0; i < target->walked.n_frames; i++) {
		int r = look_at(target, &target->walked.frames[i], &frames[i]);

		if (r == -EAGAIN)
			misses_names = true;
		else if (r < 0)
			return r;
		if (target->walked.frames[i].is_signal)
			return -ENOENT;
	}
	return misses_names ? -EAGAIN : 0;
}

int place_is_safe(struct inject_target *target, pid_t tid, const struct regs *regs, const struct place_call *call)
{
	CLEANUP(freep) struct place_frame *frames = NULL;
	struct sample sample = {
		.time_ns = monotonic_ns(),
		.pid = target->pid,
		.tid = tid,
		.has_user = true,
		.is_held = true,
		.regs = *regs,
		.stack = target->stack_bytes,
	};
	ssize_t n;
	int r;

	n = remote_read_some(target->remote, RADDR(regs->value[MACHINE_REG_SP]), target->stack_bytes,
			     SAMPLE_STACK_BYTES);
	sample.stack_bytes = n > 0 ? (size_t)n : 0;
	r = native_unwind(target->native, &sample, target->remote, &target->walked);
	if (r < 0)
		return r;
	if (target->walked.end != STACK_COMPLETE && target->walked.end != STACK_COMPLETED)
		return 0;
	frames = calloc(target->walked.n_frames + 1, sizeof *frames);
	if (!frames)
		return -ENOMEM;
	r = look_at_all(target, frames);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	return judge(target, frames, call);
}
