/* runtime.c - finding the interpreter in a process and making sure that it is one.
 *
 * _PyRuntime is a dynamic symbol also in stripped static executables. A
 * candidate must be of a version whose layout is known, and its lists must
 * hold together: the first interpreter's first thread points back to it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "unwind/cpython/reader.h"

static const struct {
	const char *symbol, *kind;
} refused_builds[] = {
	{ "_Py_NegativeRefcount", "debug build" },
	{ "_PyGILState_GetThisThreadState_debug", "debug build" },
};

enum { VERSION_BYTES = 32 };

static void format_version(unsigned version, char *to)
{
	snprintf(to, VERSION_BYTES, "%u.%u.%u", version >> 24, version >> 16 & 255, version >> 8 & 255);
}

static int runtime_address_of(const struct mapping *mapping, struct elf_file *elf, const char *name,
			      uint64_t *ret)
{
	uint64_t value, size;
	int r;

	r = elf_file_symbol(elf, name, &value, &size);
	if (r < 0)
		return r;
	*ret = value + (uint64_t)mapping->bias;
	return 0;
}

/* Before 3.11 no symbol tells the version; the library's name does, for the message. */
static void guess_version(const struct module *module, char *version)
{
	const char *name = strstr(module_name(module), "python");
	unsigned major, minor;

	if (name && sscanf(name, "python%u.%u", &major, &minor) == 2)
		snprintf(version, VERSION_BYTES, "%u.%u", major, minor);
	else
		snprintf(version, VERSION_BYTES, "of an unknown version");
}

static int read_layout(struct py_runtime *runtime, const struct mapping *mapping, struct elf_file *elf,
		       char *version)
{
	uint64_t address, words[256];
	unsigned n_words;
	uint32_t hex;
	int r;

	guess_version(mapping->module, version);
	r = runtime_address_of(mapping, elf, "Py_Version", &address);
	if (r < 0)
		return -EOPNOTSUPP;
	r = remote_read(runtime->remote, RADDR(address), &hex, sizeof hex);
	if (r < 0)
		return r;
	format_version(hex, version);
	for (size_t i = 0; i < N_ELEMENTS(refused_builds); i++)
		if (runtime_address_of(mapping, elf, refused_builds[i].symbol, &address) == 0) {
			snprintf(version + strlen(version), VERSION_BYTES - strlen(version), " (%s)",
				 refused_builds[i].kind);
			return -EOPNOTSUPP;
		}
	r = layout_replay(hex, &runtime->layout);
	if (r < 0)
		return r;
	n_words = layout_debug_offsets_words(hex);
	if (n_words == 0)
		return 0;
	if (n_words > N_ELEMENTS(words))
		return -EOPNOTSUPP;
	r = remote_read(runtime->remote, RADDR(runtime->address), words, n_words * sizeof words[0]);
	if (r < 0)
		return r;
	return layout_read_debug_offsets(words, n_words, &runtime->layout);
}

/* The lists must hold together. -EAGAIN: not initialised yet. */
static int prove(struct py_runtime *runtime)
{
	struct raddr interpreter, thread, back;
	int r;

	r = remote_read_pointer(runtime->remote,
				RADDR(runtime->address + reader_field(runtime, RUNTIME_INTERPRETERS)),
				&interpreter);
	if (r < 0)
		return r;
	if (raddr_is_null(interpreter))
		return -EAGAIN;
	r = remote_read_pointer(runtime->remote,
				raddr_add(interpreter, (int64_t)reader_field(runtime, INTERPRETER_THREADS)),
				&thread);
	if (r < 0 || raddr_is_null(thread))
		return -EAGAIN;
	r = remote_read_pointer(runtime->remote,
				raddr_add(thread, (int64_t)reader_field(runtime, THREAD_INTERPRETER)), &back);
	if (r < 0)
		return -EAGAIN;
	return back.value == interpreter.value ? 0 : -EOPNOTSUPP;
}

/* All executable ground of the module, so that a PC is judged by two comparisons. */
static void find_text(struct address_space *space, struct py_runtime *runtime)
{
	const struct mapping *mapping;

	runtime->text_start = UINT64_MAX;
	for (size_t n = 0; (mapping = address_space_nth(space, n)) != NULL; n++) {
		if (mapping->module != runtime->module || !mapping->executable)
			continue;
		runtime->text_start = MIN(runtime->text_start, mapping->start);
		runtime->text_end = MAX(runtime->text_end, mapping->end);
	}
}

static int try_mapping(struct address_space *space, struct remote *remote, const struct mapping *mapping,
		       char *version, struct py_runtime **ret)
{
	CLEANUP(py_runtime_freep) struct py_runtime *runtime = NULL;
	struct module *module;
	struct elf_file *elf;
	uint64_t address, own;
	int r;

	/* Resolving settles the mapping's bias. */
	r = address_space_resolve(space, mapping->start, &module, &own);
	if (r < 0 || !mapping->has_bias)
		return -ENOENT;
	r = module_elf(mapping->module, &elf);
	if (r < 0)
		return -ENOENT;
	r = runtime_address_of(mapping, elf, "_PyRuntime", &address);
	if (r < 0)
		return -ENOENT;
	runtime = calloc(1, sizeof *runtime);
	if (!runtime)
		return -ENOMEM;
	runtime->remote = runtime->window.remote = remote;
	runtime->module = mapping->module;
	runtime->address = address;
	runtime->bias = mapping->bias;
	py_begin_sample(runtime);
	r = read_layout(runtime, mapping, elf, version);
	if (r >= 0)
		r = prove(runtime);
	if (r < 0)
		return r;
	find_text(space, runtime);
	memcpy(runtime->version, version, sizeof runtime->version);
	*ret = TAKE(runtime);
	return 0;
}

static bool is_likely(const struct mapping *mapping, bool by_name)
{
	if (!mapping->executable || !mapping->module || mapping->module->is_vdso)
		return false;
	return (strstr(module_name(mapping->module), "python") != NULL) == by_name;
}

int py_runtime_find(struct address_space *space, struct remote *remote, char *version,
		    struct py_runtime **ret)
{
	int found = -ENOENT;

	version[0] = '\0';
	/* Those that are called python first; then the rest, for embedded ones. */
	for (int by_name = 1; by_name >= 0; by_name--) {
		const struct mapping *mapping;

		for (size_t n = 0; (mapping = address_space_nth(space, n)) != NULL; n++) {
			int r;

			if (!is_likely(mapping, by_name))
				continue;
			r = try_mapping(space, remote, mapping, version, ret);
			if (r != -ENOENT)
				found = r;
			if (r >= 0 || r == -EPERM || r == -ENOMEM)
				return r;
		}
		if (found != -ENOENT)
			break;
	}
	return found;
}

void py_runtime_free(struct py_runtime *runtime)
{
	if (!runtime)
		return;
	reader_codes_done(&runtime->codes);
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
