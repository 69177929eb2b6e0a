/* SPDX-License-Identifier: MIT */
/* runtime.c - identifies CPython and its version, and verifies both.
 *
 * The version decides how its memory is read. From 3.13 the runtime has it beside
 * its debug offsets, from 3.11 a constant does; before, the source text of
 * sys.version is in the interpreter's own data. A candidate must have a
 * version with a known layout, and its lists must be consistent: the first
 * interpreter's first thread points back to it.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "unwind/cpython/await.h"
#include "unwind/cpython/reader.h"

enum {
	MAX_WORDS = 256,           /* words of _Py_DebugOffsets */
	MAX_DATA_BYTES = 64 << 20, /* of data that is searched for the version text */
	CHUNK_BYTES = 64 << 10,
	TEXT_BYTES = 256, /* longest sys.version */
};

/* Of PY_VERSION_HEX, with the number of a pre-release in the lowest four bits. */
enum { LEVEL = 0xf0, ALPHA = 0xa0, BETA = 0xb0, CANDIDATE = 0xc0, FINAL = 0xf0 };

static void format_version(unsigned version, char *to)
{
	unsigned level = version & LEVEL, major = version >> 24, minor = version >> 16 & 255,
		 micro = version >> 8 & 255;
	const char *kind = level == ALPHA ? "a" : level == BETA ? "b" : "rc";

	if (level == FINAL)
		snprintf(to, VERSION_BYTES, "%u.%u.%u", major, minor, micro);
	else
		snprintf(to, VERSION_BYTES, "%u.%u.%u%s%u", major, minor, micro, kind, version & 15);
}

static void add_kind(char *version, const char *kind)
{
	size_t n = strlen(version);

	snprintf(version + n, VERSION_BYTES - n, " (%s)", kind);
}

/*
 * Parse a sys.version such as "3.8.18 (default, Nov 21 2026, 10:11:12) \n[GCC 12.2.0]".
 * Source: Python/getversion.c. Returns PY_VERSION_HEX; 0: no version.
 */
static unsigned parse_version(const char *text, size_t n_bytes)
{
	unsigned major, minor, micro, level = FINAL, number = 0;
	char copy[TEXT_BYTES];
	const char *end;
	int used = 0;

	n_bytes = MIN(n_bytes, sizeof copy - 1);
	memcpy(copy, text, n_bytes);
	copy[n_bytes] = '\0';
	if (sscanf(copy, "%1u.%2u.%2u%n", &major, &minor, &micro, &used) != 3 || used == 0)
		return 0;
	if (isalpha((unsigned char)copy[used])) {
		level = copy[used] == 'a' ? ALPHA : copy[used] == 'b' ? BETA : CANDIDATE;
		(void)sscanf(copy + used, "%*[abrc]%2u", &number);
	}
	used += (int)strspn(copy + used, "abrc0123456789+"); /* "rc1"; "+": built from a later commit */
	end = strstr(copy, ") ");
	if (strncmp(copy + used, " (", 2) != 0 || !end)
		return 0;
	end += 2 + (end[2] == '\n');
	return *end == '[' ? major << 24 | minor << 16 | micro << 8 | level | (number & 15) : 0;
}

static unsigned find_version_in(const char *bytes, size_t n_bytes)
{
	for (size_t i = 1; i + 2 < n_bytes; i++)
		if (bytes[i - 1] == '\0' && isdigit((unsigned char)bytes[i]) && bytes[i + 1] == '.') {
			unsigned version = parse_version(bytes + i, n_bytes - i);

			if (version != 0)
				return version;
		}
	return 0;
}

/* -EAGAIN: not found yet. */
static int search_version(struct remote *remote, const struct py_symbols *symbols, unsigned *ret)
{
	CLEANUP(freep) char *chunk = malloc(CHUNK_BYTES);
	uint64_t start = symbols->data_start;
	/* Compare sizes, not ends: a foreign segment may end at the end of the address space. */
	uint64_t n_data = symbols->data_end > start ? MIN(symbols->data_end - start, (uint64_t)MAX_DATA_BYTES) : 0;

	if (!chunk)
		return -ENOMEM;
	for (uint64_t at = 0; at < n_data; at += CHUNK_BYTES - TEXT_BYTES) {
		ssize_t n = remote_read_some(remote, RADDR(start + at), chunk,
					     (size_t)MIN(n_data - at, (uint64_t)CHUNK_BYTES));

		if (n == -EPERM || n == -ESRCH)
			return (int)n;
		*ret = n > 0 ? find_version_in(chunk, (size_t)n) : 0;
		if (*ret != 0)
			return 0;
	}
	return -EAGAIN;
}

static int find_version(struct remote *remote, const struct py_symbols *symbols, unsigned *ret, bool *ret_free_threaded)
{
	uint64_t words[3];
	int r;

	*ret_free_threaded = false;
	if (symbols->runtime) {
		r = remote_read(remote, RADDR(symbols->runtime), words, sizeof words);
		if (r < 0)
			return r;
		if (layout_peek_debug_offsets(words, ret, ret_free_threaded) == 0)
			return 0;
	}
	if (symbols->version)
		return remote_read(remote, RADDR(symbols->version), ret, sizeof *ret);
	return search_version(remote, symbols, ret);
}

static int read_layout(struct py_runtime *runtime, char *version)
{
	uint64_t words[MAX_WORDS];
	bool free_threaded;
	unsigned n_words, hex;
	int r;

	r = find_version(runtime->remote, &runtime->symbols, &hex, &free_threaded);
	if (r < 0)
		return r;
	format_version(hex, version);
	if (free_threaded)
		add_kind(version, "free-threaded");
	if (runtime->symbols.is_debug_build) {
		add_kind(version, "debug build");
		return -EOPNOTSUPP;
	}
	r = layout_of(hex, free_threaded, &runtime->layout);
	if (r < 0)
		return r;
	n_words = layout_n_words(&runtime->layout);
	if (n_words == 0)
		return 0;
	if (n_words > N_ELEMENTS(words))
		return -EOPNOTSUPP;
	r = remote_read(runtime->remote, RADDR(runtime->symbols.runtime), words, n_words * sizeof words[0]);
	if (r < 0)
		return r;
	return layout_read_debug_offsets(words, n_words, &runtime->layout);
}

/* Follow the thread that holds the GIL; unknown while no thread holds it. */
static int interpreter_of_current(struct py_runtime *runtime, uint64_t *ret)
{
	struct raddr thread, interpreter;
	int r;

	r = remote_read_pointer(runtime->remote, RADDR(runtime->symbols.current_thread), &thread);
	if (r < 0)
		return r;
	if (!raddr_is_null(thread)) {
		r = remote_read_pointer(runtime->remote,
					raddr_add(thread, (int64_t)reader_field(runtime, THREAD_INTERPRETER)),
					&interpreter);
		if (r >= 0)
			runtime->interpreter = interpreter.value;
	}
	*ret = runtime->interpreter;
	return runtime->interpreter ? 0 : -EAGAIN;
}

int reader_interpreters(struct py_runtime *runtime, uint64_t *ret)
{
	uint64_t head = runtime->symbols.interpreters;
	struct raddr interpreter;
	int r;

	if (runtime->layout.field[ROOT] == ROOT_RUNTIME)
		head = runtime->symbols.runtime + reader_field(runtime, RUNTIME_INTERPRETERS);
	else if (head == 0)
		return interpreter_of_current(runtime, ret);
	r = remote_read_pointer(runtime->remote, RADDR(head), &interpreter);
	if (r < 0)
		return r;
	*ret = interpreter.value;
	return interpreter.value ? 0 : -EAGAIN;
}

/* Check that the lists are consistent. -EAGAIN: the interpreter is not initialised yet. */
static int prove(struct py_runtime *runtime)
{
	struct raddr thread, back;
	uint64_t interpreter;
	int r;

	r = reader_interpreters(runtime, &interpreter);
	if (r < 0)
		return r;
	r = remote_read_pointer(runtime->remote, RADDR(interpreter + reader_field(runtime, INTERPRETER_THREADS)),
				&thread);
	if (r < 0 || raddr_is_null(thread))
		return -EAGAIN;
	r = remote_read_pointer(runtime->remote, raddr_add(thread, (int64_t)reader_field(runtime, THREAD_INTERPRETER)),
				&back);
	if (r < 0)
		return -EAGAIN;
	return back.value == interpreter ? 0 : -EOPNOTSUPP;
}

int py_runtime_open(struct remote *remote, pid_t pid, const struct py_symbols *symbols, char *version,
		    struct py_runtime **ret)
{
	CLEANUP(py_runtime_freep) struct py_runtime *runtime = calloc(1, sizeof *runtime);
	int r;

	version[0] = '\0';
	if (!runtime)
		return -ENOMEM;
	r = page_cache_init(&runtime->page_cache, remote);
	if (r < 0)
		return r;
	runtime->remote = remote;
	runtime->pid = pid;
	runtime->symbols = *symbols;
	runtime->codes.type = symbols->code_type;
	runtime->pthread_tid = ABSENT;
	py_begin_sample(runtime);
	r = read_layout(runtime, version);
	if (r >= 0)
		r = prove(runtime);
	if (r < 0)
		return r;
	memcpy(runtime->version, version, sizeof runtime->version);
	*ret = TAKE(runtime);
	return 0;
}

void py_runtime_free(struct py_runtime *runtime)
{
	if (!runtime)
		return;
	asyncio_free(runtime->asyncio);
	page_cache_done(&runtime->page_cache);
	reader_codes_done(&runtime->codes);
	task_ids_free(runtime->ids);
	free(runtime->threads);
	free(runtime->walk_codes);
	free(runtime->walk_results);
	free(runtime);
}

void py_runtime_freep(struct py_runtime **runtime)
{
	py_runtime_free(*runtime);
}

const char *py_runtime_version(const struct py_runtime *runtime)
{
	return runtime->version;
}

bool py_runtime_owns(const struct py_runtime *runtime, uint64_t pc)
{
	return pc >= runtime->text_start && pc < runtime->text_end;
}

const struct module *py_runtime_module(const struct py_runtime *runtime)
{
	return runtime->module;
}

int64_t py_runtime_bias(const struct py_runtime *runtime)
{
	return runtime->bias;
}

uint64_t py_runtime_loop(const struct py_runtime *runtime)
{
	return runtime->symbols.loop;
}

char *py_known_versions(char *to, size_t n_bytes)
{
	unsigned major, minor, first = 0, last_major = 0, last = 0;
	size_t used = (size_t)snprintf(to, n_bytes, "CPython");

	for (size_t n = 0;; n++) {
		bool more = layout_releases(n, &major, &minor);

		if (more && major == last_major && minor == last + 1) {
			last = minor;
			continue;
		}
		if (n > 0 && used < n_bytes)
			used += (size_t)snprintf(to + used, n_bytes - used, last > first ? " %u.%u to %u.%u" : " %u.%u",
						 last_major, first, last_major, last);
		if (!more)
			return to;
		if (n > 0 && used < n_bytes)
			used += (size_t)snprintf(to + used, n_bytes - used, ",");
		last_major = major;
		first = last = minor;
	}
}
