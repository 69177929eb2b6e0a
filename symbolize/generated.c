/* SPDX-License-Identifier: MIT */
/* generated.c - names of a process' generated code.
 *
 * Two sources: jitdump files, whose records have times, come first; then the
 * perf map. Both are opened once and read on as they grow. An entry's text is
 * the JIT's; two writers' forms are parsed, everything else is a name:
 *
 *   py::NAME:FILE                CPython's trampolines, 3.12 and later
 *                                (Python/perf_trampoline.c)
 *   JS:*NAME FILE:LINE:COLUMN    V8's functions; the mark in front of the name
 *                                is the compiler's (src/logging/log.cc). Older
 *                                versions have LazyCompile: or Function: there.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/util.h"
#include "symbolize/jitdump.h"
#include "symbolize/names.h"
#include "symbolize/perf_map.h"

/* A process maps one dump; many are an attack. */
enum { MAX_DUMPS = 16, ELF_HEADER_BYTES = 64 };

struct generated_code {
	struct generated_owner owner;
	struct perf_map map;
	int map_fd; /* -1: not found yet */
	struct jitdump dumps[MAX_DUMPS];
	size_t n_dumps;
	struct names *names;
	bool is_final;
	bool is_fed;  /* the caller finds the map and the end of the process */
	bool is_gone; /* reported by the caller */
};

/* Whether the name is like "jit-123.dump". */
bool generated_is_dump_name(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t n_digits;

	if (strncmp(name, "jit-", 4) != 0)
		return false;
	n_digits = strspn(name + 4, "0123456789");
	return n_digits > 0 && strncmp(name + 4 + n_digits, ".dump", 5) == 0;
}

/* ---- Owner ---- */

/* CLOCK_REALTIME, or 0. Source: proc_pid_stat(5), field 22, in ticks since boot. */
static uint64_t start_of(pid_t pid)
{
	CLEANUP(freep) char *text = NULL;
	uint64_t ticks_per_s = (uint64_t)sysconf(_SC_CLK_TCK), age_ns;
	struct timespec boot;
	long long ticks;
	char path[64];
	const char *at;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	if (read_file(path, 4096, &text, NULL) < 0)
		return 0;
	at = strrchr(text, ')'); /* the name before may contain any character */
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (!at || (ticks = strtoll(at, NULL, 10)) <= 0 || clock_gettime(CLOCK_BOOTTIME, &boot) < 0)
		return 0;
	age_ns = (uint64_t)boot.tv_sec * 1000000000ULL + (uint64_t)boot.tv_nsec -
		 (uint64_t)ticks * (1000000000ULL / ticks_per_s);
	return realtime_ns() - age_ns;
}

void generated_owner_read(pid_t pid, struct generated_owner *owner)
{
	CLEANUP(freep) char *status = NULL;
	uint64_t started_ns = start_of(pid);
	char path[64];
	unsigned uids[3];

	owner->pid = pid;
	owner->is_known = false;
	snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	if (started_ns == 0 || read_file(path, 16384, &status, NULL) < 0)
		return;
	if (!proc_status_ids(status, "Uid", uids))
		return;
	owner->uid = (uid_t)uids[1];
	if (proc_status_own_pid(status, &owner->ns_pid, NULL) < 0)
		owner->ns_pid = pid;
	owner->started_ns = started_ns;
	owner->is_known = true;
}

/* ---- Files ---- */

int generated_code_new(const struct generated_owner *owner, struct generated_code **ret)
{
	CLEANUP(generated_code_freep) struct generated_code *code = NULL;
	int r;

	code = calloc(1, sizeof *code);
	if (!code)
		return -ENOMEM;
	code->owner = *owner;
	code->map_fd = -1;
	r = names_new(&code->names);
	if (r < 0)
		return r;
	*ret = TAKE(code);
	return 0;
}

static void close_map(struct generated_code *code)
{
	if (code->map_fd >= 0)
		close(TAKE_FD(code->map_fd));
}

void generated_code_free(struct generated_code *code)
{
	if (!code)
		return;
	close_map(code);
	perf_map_done(&code->map);
	for (size_t i = 0; i < code->n_dumps; i++)
		jitdump_done(&code->dumps[i]);
	names_free(code->names);
	free(code);
}

void generated_code_freep(struct generated_code **code)
{
	generated_code_free(*code);
}

static bool is_same_file(int a, int b)
{
	struct stat left, right;

	return fstat(a, &left) == 0 && fstat(b, &right) == 0 && left.st_dev == right.st_dev &&
	       left.st_ino == right.st_ino;
}

int generated_code_add_dump(struct generated_code *code, int fd)
{
	CLEANUP(closep) int taken = fd;
	int r;

	for (size_t i = 0; i < code->n_dumps; i++)
		if (is_same_file(code->dumps[i].fd, taken))
			return 0;
	if (code->n_dumps == MAX_DUMPS)
		return 0;
	r = jitdump_open(taken, &code->dumps[code->n_dumps]);
	if (r < 0)
		return r;
	code->n_dumps++;
	TAKE_FD(taken);
	return 0;
}

bool generated_owner_is_gone(const struct generated_owner *owner)
{
	char path[64];

	if (!owner->is_known)
		return true;
	snprintf(path, sizeof path, "/proc/%d", (int)owner->pid);
	return access(path, F_OK) < 0;
}

int generated_map_open(const struct generated_owner *owner, int *ret)
{
	return perf_map_open(owner, ret);
}

void generated_code_feed(struct generated_code *code, int map_fd, bool is_gone)
{
	CLEANUP(closep) int taken = map_fd;

	code->is_fed = true;
	code->is_gone = is_gone;
	if (code->map_fd < 0 && !code->is_final)
		code->map_fd = TAKE_FD(taken);
}

int generated_code_refresh(struct generated_code *code)
{
	bool gone = code->is_fed ? code->is_gone : generated_owner_is_gone(&code->owner), found = false;
	int r = 0;

	if (code->is_final)
		return 0;
	if (code->map_fd < 0 && !code->is_fed)
		(void)perf_map_open(&code->owner, &code->map_fd); /* most processes write no map */
	if (code->map_fd >= 0)
		r = perf_map_read(&code->map, code->map_fd);
	found |= r > 0;
	for (size_t i = 0; i < code->n_dumps && r != -ENOMEM; i++) {
		r = jitdump_read(&code->dumps[i]);
		found |= r > 0;
	}
	if (r == -ENOMEM)
		return r;
	code->is_final = gone;
	if (gone)
		close_map(code);
	return found;
}

bool generated_code_is_final(const struct generated_code *code)
{
	return code->is_final;
}

/* ---- Names ---- */

/* Copy part of a string for the lifetime of code; NULL: out of memory. */
static const char *store_text(struct generated_code *code, const char *text, size_t n_bytes)
{
	CLEANUP(freep) char *copy = strndup(text, n_bytes);
	const char *kept;

	return copy && names_keep(code->names, copy, &kept) == 0 ? kept : NULL;
}

/* Split "py::f:/x.py" into f and /x.py. Returns 1, 0 for another form, -ENOMEM. */
static int describe_python(struct generated_code *code, struct generated_symbol *symbol)
{
	static const char mark[] = "py::";
	const char *name = symbol->entry + strlen(mark), *colon;

	if (strncmp(symbol->entry, mark, strlen(mark)) != 0)
		return 0;
	colon = strchr(name, ':');
	if (!colon || colon == name)
		return 0;
	symbol->is_python = true;
	symbol->name = store_text(code, name, (size_t)(colon - name));
	symbol->file = store_text(code, colon + 1, strlen(colon + 1));
	return symbol->name && symbol->file ? 1 : -ENOMEM;
}

/* The end of the name and start of its file: files are paths or URLs, names may contain blanks. */
static const char *find_file(const char *text)
{
	static const char *const starts[] = { " /", " file:", " node:" };
	const char *found = NULL;

	for (size_t i = 0; i < N_ELEMENTS(starts) && !found; i++)
		found = strstr(text, starts[i]);
	return found ?: strrchr(text, ' ');
}

/* Step back over ":123" at the end; returns the number, 0 if there is none. */
static int take_last_number(const char *text, const char **end)
{
	const char *at = *end;

	while (at > text && at[-1] >= '0' && at[-1] <= '9')
		at--;
	if (at == *end || at == text || at[-1] != ':' || *end - at > 9)
		return 0;
	*end = at - 1;
	return atoi(at);
}

/* The text after V8's mark; NULL: not V8's. */
static const char *javascript_of(const char *entry)
{
	static const char *const marks[] = { "JS:", "LazyCompile:", "Function:", "Eval:", "Script:" };

	for (size_t i = 0; i < N_ELEMENTS(marks); i++)
		if (strncmp(entry, marks[i], strlen(marks[i])) == 0)
			return entry + strlen(marks[i]);
	return NULL;
}

/* Split "JS:*f /x.js:3:7" into f, /x.js, 3. Returns 1, 0 for another form, -ENOMEM. */
static int describe_javascript(struct generated_code *code, struct generated_symbol *symbol)
{
	const char *name = javascript_of(symbol->entry), *file, *end;

	if (!name)
		return 0;
	name += strspn(name, "~^+*'");
	file = find_file(name);
	if (!file)
		return 0;
	symbol->name = file == name ? "(anonymous)" : store_text(code, name, (size_t)(file - name));
	file += strspn(file, " ");
	end = file + strlen(file);
	if (take_last_number(file, &end) > 0) /* column */
		symbol->first_line = take_last_number(file, &end);
	symbol->file = store_text(code, file, (size_t)(end - file));
	return symbol->name && symbol->file ? 1 : -ENOMEM;
}

/* Demangle C++ and Rust. Not with names_readable(): its names share the table with those kept here. */
static int describe_mangled(struct generated_code *code, struct generated_symbol *symbol)
{
	CLEANUP(freep) char *readable = NULL;
	int r;

	if (strncmp(symbol->entry, "_Z", 2) != 0 && strncmp(symbol->entry, "_R", 2) != 0)
		return 0;
	r = name_readable(symbol->entry, &readable);
	if (r < 0)
		return r;
	symbol->name = store_text(code, readable, strlen(readable));
	return symbol->name ? 1 : -ENOMEM;
}

static int describe(struct generated_code *code, const char *entry, struct generated_symbol *symbol)
{
	int r;

	symbol->entry = store_text(code, entry, strlen(entry));
	if (!symbol->entry)
		return -ENOMEM;
	r = describe_python(code, symbol);
	if (r == 0)
		r = describe_javascript(code, symbol);
	if (r == 0)
		r = describe_mangled(code, symbol);
	if (r == 0)
		symbol->name = symbol->entry;
	return MIN(r, 0);
}

static int look_in_dump(struct generated_code *code, struct jitdump *dump, uint64_t address, uint64_t time_ns,
			struct generated_symbol *symbol)
{
	const struct code_range *range;
	const char *entry, *file;
	int r;

	r = code_ranges_find(&dump->ranges, address, time_ns, &range);
	if (r < 0 || !range)
		return r;
	entry = code_range_name(&dump->ranges, range);
	if (javascript_of(entry)) /* V8's addresses include the ELF header of perf's copy of the code */
		address += ELF_HEADER_BYTES;
	jitdump_find_line(dump, range, address, &file, &symbol->line);
	r = describe(code, entry, symbol);
	if (r >= 0 && file && !symbol->file && !(symbol->file = store_text(code, file, strlen(file))))
		r = -ENOMEM;
	/* The line is in another file, that of an inlined function. */
	if (r >= 0 && file && strcmp(file, symbol->file) != 0)
		symbol->line = 0;
	return r < 0 ? r : 1;
}

int generated_code_lookup(struct generated_code *code, uint64_t address, uint64_t time_ns, struct generated_symbol *ret)
{
	struct generated_symbol symbol = { .entry = NULL };
	const struct code_range *range;
	int r = 0;

	for (size_t i = 0; i < code->n_dumps && r == 0; i++)
		r = look_in_dump(code, &code->dumps[i], address, time_ns, &symbol);
	if (r == 0) {
		r = code_ranges_find(&code->map.ranges, address, time_ns, &range);
		if (r >= 0 && range) {
			r = describe(code, code_range_name(&code->map.ranges, range), &symbol);
			r = r < 0 ? r : 1;
		}
	}
	if (r > 0)
		*ret = symbol;
	return r;
}
