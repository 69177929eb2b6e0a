/* SPDX-License-Identifier: MIT */
/* resymbolize_summary.c - summary of symbolize; see resymbolize_summary.h.
 *
 * Modules whose functions have no names come one by one, with the reason and
 * the remedy; those that only lack lines are listed together.
 */
#include "src/cli/cli.h"
#include "src/cli/resymbolize_summary.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/text.h"
#include "base/util.h"
#include "src/cli/debian.h"
#include "src/cli/format.h"

enum { MAX_MODULES = 12, MAX_PATH_SHOWN = 200 };

void format_printable_name(const char *name, char *to, size_t n_bytes)
{
	char spelled[TEXT_SPELL_BYTES];
	size_t n = 0;
	int32_t c;

	while ((c = text_decode(&name)) != 0) {
		bool is_hazard = text_spell(c, spelled);
		size_t n_spelled = is_hazard ? 1 : strlen(spelled);

		if (n + n_spelled >= n_bytes)
			break;
		memcpy(to + n, is_hazard ? "?" : spelled, n_spelled);
		n += n_spelled;
	}
	to[n] = '\0';
}

static bool lacks_names(const struct resymbolize_module *module)
{
	return module->n_named < module->n_places;
}

static bool lacks_lines(const struct resymbolize_module *module)
{
	/* Nobody publishes debug information of a vdso. */
	return !lacks_names(module) && module->n_places > 0 && module->n_lines == 0 && module->path[0] == '/';
}

/* Search the packages of all modules at once. */
static void find_packages(const struct resymbolize_module *const *modules, struct debug_package *packages, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		packages[i].path = modules[i]->path;
		packages[i].build_id = modules[i]->build_id;
	}
	debian_find_debug_packages(packages, (unsigned)n);
}

/* A file was found, but it has no symbol for these addresses. */
static void print_stripped(const struct resymbolize_module *module, const struct debug_package *package)
{
	if (module->has_lines) {
		fputs("no symbol covers them, as in the PLT; no file can name them", stderr);
		return;
	}
	fputs(module->is_debug_file ? "its debug file has no symbols for them; " : "its file has no symbols for them; ",
	      stderr);
	if (package->name[0])
		cli_say("install %s, or ", package->name);
	fputs("give --debug-dir DIR or --debuginfod URLS", stderr);
}

static void print_reason(const struct resymbolize_module *module, const struct debug_package *package)
{
	switch (module->error) {
	case 0:
		if (module->was_searched)
			print_stripped(module, package);
		else
			fputs("not searched", stderr);
		break;
	case -ESTALE:
		cli_say("another build is here (build-id %s) and was not used; %s was recorded: give "
			"--sysroot DIR, --debug-dir DIR or --debuginfod URLS",
			module->other_build_id && module->other_build_id[0] ? module->other_build_id : "none",
			module->build_id);
		break;
	case -ENODATA:
		fputs("the recording has no build-id for it; --force takes the file at that path", stderr);
		break;
	case -E2BIG:
		fputs("its file decompresses to an implausible size and was not read", stderr);
		break;
	case -ENOENT:
	case -ENOTDIR:
		cli_say("not on this machine (build-id %s): give --sysroot DIR, --debug-dir DIR or "
			"--debuginfod URLS",
			module->build_id ? module->build_id : "unknown");
		break;
	default:
		cli_say("its file cannot be used: %s", strerror(-module->error));
		break;
	}
}

static int compare_unnamed(const void *a, const void *b)
{
	const struct resymbolize_module *x = *(struct resymbolize_module *const *)a;
	const struct resymbolize_module *y = *(struct resymbolize_module *const *)b;
	size_t left_x = x->n_places - x->n_named, left_y = y->n_places - y->n_named;

	if (left_x != left_y)
		return left_x > left_y ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

static void print_unnamed(const struct resymbolize_result *result)
{
	CLEANUP(freep) const struct resymbolize_module **modules = NULL;
	struct debug_package packages[MAX_MODULES];
	size_t n = 0;

	modules = calloc(result->n_modules + 1, sizeof *modules);
	for (size_t i = 0; modules && i < result->n_modules; i++)
		if (lacks_names(&result->modules[i]))
			modules[n++] = &result->modules[i];
	if (n == 0)
		return;
	qsort(modules, n, sizeof *modules, compare_unnamed);
	find_packages(modules, packages, MIN(n, (size_t)MAX_MODULES));
	fputs("without a name:\n", stderr);
	for (size_t i = 0; i < MIN(n, (size_t)MAX_MODULES); i++) {
		size_t n_left = modules[i]->n_places - modules[i]->n_named;
		char path[MAX_PATH_SHOWN];

		format_printable_name(modules[i]->path, path, sizeof path);
		cli_say("  %s, %zu place%s: ", path, n_left, n_left == 1 ? "" : "s");
		print_reason(modules[i], &packages[i]);
		fputc('\n', stderr);
	}
	if (n > MAX_MODULES)
		cli_say("  and %zu modules more\n", n - MAX_MODULES);
}

static void print_without_lines(const struct resymbolize_result *result)
{
	const struct resymbolize_module *modules[MAX_MODULES];
	struct debug_package packages[MAX_MODULES];
	unsigned n = 0, n_more = 0;

	for (size_t i = 0; i < result->n_modules; i++) {
		if (!lacks_lines(&result->modules[i]))
			continue;
		if (n < MAX_MODULES)
			modules[n++] = &result->modules[i];
		else
			n_more++;
	}
	find_packages(modules, packages, n);
	for (unsigned i = 0; i < n; i++) {
		char name[MAX_PATH_SHOWN];

		format_printable_name(path_base_name(modules[i]->path), name, sizeof name);
		cli_say("%s%s", i == 0 ? "named, but without lines: " : ", ", name);
		if (packages[i].name[0])
			cli_say(" (install %s)", packages[i].name);
	}
	if (n_more > 0)
		cli_say(" and %u more", n_more);
	if (n > 0)
		fputc('\n', stderr);
}

static void print_kernel(const struct resymbolize_result *result)
{
	char host[80], kernel[80];

	if (result->kernel == RESYMBOLIZE_KERNEL_FINE)
		return;
	if (result->kernel == RESYMBOLIZE_KERNEL_HIDDEN) {
		fputs("kernel functions stay without a name: run as root, or `sysctl kernel.kptr_restrict=0`; those of modules "
		      "and BPF programs need these loaded\n",
		      stderr);
		return;
	}
	format_printable_name(result->recorded_host, host, sizeof host);
	format_printable_name(result->recorded_kernel, kernel, sizeof kernel);
	cli_say("kernel functions stay without a name: they are those of %s's kernel %s; symbolize there "
		"(recordings of older versions: before its next boot), or --force\n",
		host, kernel);
}

static void print_servers(int error)
{
	switch (error) {
	case 0:
		return;
	case -ENOSYS:
		fputs("debuginfod was not asked: install libdebuginfod1\n", stderr);
		return;
	case -ETIMEDOUT:
		fputs("the debuginfod servers did not answer in time: raise DEBUGINFOD_TIMEOUT (seconds)\n", stderr);
		return;
	default:
		cli_say("asking debuginfod failed: %s\n", strerror(-error));
	}
}

void resymbolize_summary(const struct resymbolize_result *result, const char *path,
			 const struct resymbolize_options *options)
{
	char all[32], before[32], after[32], lines_before[32], lines[32];

	format_count(result->n_places, all);
	format_count(result->n_named_before, before);
	format_count(result->n_named, after);
	format_count(result->n_lines_before, lines_before);
	format_count(result->n_lines, lines);
	cli_say("%s: of %s places in native and kernel code, named %s -> %s, with lines %s -> %s", path, all, before,
		after, lines_before, lines);
	if (result->n_inlined > 0) {
		format_count((uint64_t)result->n_inlined, all);
		cli_say("; %s inlined callers found", all);
	}
	fputc('\n', stderr);
	if (result->n_changed == 0 && !options->redo)
		fputs("nothing new was found\n", stderr);
	print_unnamed(result);
	print_without_lines(result);
	if (result->n_anonymous > 0)
		cli_say("%zu place%s in code made at run time can only be named while recording\n", result->n_anonymous,
			result->n_anonymous == 1 ? "" : "s");
	print_kernel(result);
	print_servers(result->server_error);
}
