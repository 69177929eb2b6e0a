/* SPDX-License-Identifier: MIT */
/* nameless.c - see report.h.
 *
 * The first remedy that applies: a debug file that is installed already, the package that has it by its
 * build-id, debuginfod, a package by its name, dnf; else the user has to find the file.
 */
#include "src/cli/report/report.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "base/text.h"
#include "base/util.h"
#include "src/cli/debian.h"

enum { MAX_MODULES = 3 };

#define MIN_SHARE 5.0 /* percent of all time */
#define MIN_MODULE_SHARE 1.0

static void put_name(const char *name, FILE *out)
{
	text_put_spelled(out, name, strlen(name));
}

/* "/usr/lib/debug/.build-id/ab/cdef.debug"; false: no build-id. */
static bool debug_file_of(const char *build_id, char *to, size_t n_bytes)
{
	if (!build_id || strlen(build_id) < 3 || build_id[strspn(build_id, "0123456789abcdef")])
		return false;
	snprintf(to, n_bytes, "/usr/lib/debug/.build-id/%.2s/%s.debug", build_id, build_id + 2);
	return true;
}

static bool is_here(const char *build_id)
{
	char path[128];

	return debug_file_of(build_id, path, sizeof path) && access(path, R_OK) == 0;
}

/* The debug file is installed and has no name for these addresses: PLT stubs, or compiler-generated code. */
static bool is_hopeless(const struct report_nameless_module *module)
{
	return module->has_lines && is_here(module->build_id);
}

static void put_unknown(const struct report_nameless_module *module, FILE *out)
{
	char path[128];

	if (debug_file_of(module->build_id, path, sizeof path) && access("/usr/bin/dnf", X_OK) == 0) {
		fprintf(out, "dnf --enablerepo='*debug*' install %s", path);
		return;
	}
	fputs("no package is known to have its debug file", out);
	if (module->build_id)
		fprintf(out, " (build-id %s)", module->build_id);
	fputs("; find it, or build with symbols, and give its folder as --debug-dir DIR, or --debuginfod URLS", out);
}

static void put_remedy(const struct report_nameless_module *module, const struct debug_package *package, FILE *out)
{
	const char *servers = getenv("DEBUGINFOD_URLS");

	if (is_here(module->build_id))
		fputs("its debug file is installed", out);
	else if (package->trust == DEBUG_PACKAGE_SURE)
		fprintf(out, "apt install %s", package->name);
	else if (servers && servers[0])
		fputs("the debuginfod servers may have its debug file", out);
	else if (package->trust == DEBUG_PACKAGE_OUTDATED)
		fprintf(out, "apt update && apt install %s (apt's list has it for another build)", package->name);
	else if (package->trust == DEBUG_PACKAGE_GUESSED)
		fprintf(out, "apt install %s (add the distribution's archive of debug packages first)", package->name);
	else
		put_unknown(module, out);
}

/* Choose the modules that matter and can be improved, most time first. */
static unsigned choose(const struct report_nameless *nameless, const struct report_nameless_module **modules,
		       double *ret_share)
{
	unsigned n = 0;

	*ret_share = 0;
	for (size_t i = 0; i < nameless->n; i++) {
		const struct report_nameless_module *module = &nameless->modules[i];

		if (is_hopeless(module))
			continue;
		*ret_share += module->share;
		if (n < MAX_MODULES && module->share >= MIN_MODULE_SHARE)
			modules[n++] = module;
	}
	return n;
}

/* Wrap between words at this width; 0: no limit. */
static void put_wrapped(const char *text, unsigned columns, FILE *out)
{
	static const char indent[] = "         ";
	unsigned used = 0;

	while (*text) {
		const size_t n_blanks = strspn(text, " "), n = n_blanks + strcspn(text + n_blanks, " ");
		CLEANUP(freep) char *word = strndup(text, n);
		const unsigned width = word ? text_columns_shown(word) : 0;

		if (!word)
			return;
		if (columns > 0 && used > 0 && used + width > columns) {
			fprintf(out, "\n%s%s", indent, word + n_blanks);
			used = (unsigned)(sizeof indent - 1 + width - n_blanks);
		} else {
			fputs(word, out);
			used += width;
		}
		text += n;
	}
	fputc('\n', out);
}

static void print_module(const struct report_nameless_module *module, const struct debug_package *package,
			 unsigned columns, FILE *out)
{
	CLEANUP(freep) char *text = NULL;
	size_t n_text;
	FILE *line = open_memstream(&text, &n_text);

	if (!line)
		return;
	fprintf(line, "  %4.1f %% ", module->share);
	put_name(path_base_name(module->path), line);
	fputs(": ", line);
	put_remedy(module, package, line);
	if (fclose(line) == 0)
		put_wrapped(text, columns, out);
}

static void print_modules(const struct report_nameless_module *const *modules, unsigned n, unsigned columns, FILE *out)
{
	struct debug_package packages[MAX_MODULES];

	for (unsigned i = 0; i < n; i++) {
		packages[i].path = modules[i]->path;
		packages[i].build_id = modules[i]->build_id;
	}
	debian_find_debug_packages(packages, n);
	for (unsigned i = 0; i < n; i++)
		print_module(modules[i], &packages[i], columns, out);
}

void nameless_print(const struct profile *profile, const struct report_options *options, const char *recording,
		    FILE *out)
{
	CLEANUP(report_nameless_done) struct report_nameless nameless = {};
	const struct report_nameless_module *modules[MAX_MODULES];
	double share;
	unsigned n;

	if (report_nameless(profile, options->show_interpreter, &nameless) < 0 || nameless.share < MIN_SHARE)
		return;
	n = choose(&nameless, modules, &share);
	if (n == 0 || share < MIN_SHARE)
		return;
	fprintf(out, "\n%.1f %% of self time is in functions without a name:\n", share);
	print_modules(modules, n, options->columns, out);
	if (!recording)
		return;
	fputs("then: probing symbolize ", out);
	put_name(recording, out);
	fputc('\n', out);
}
