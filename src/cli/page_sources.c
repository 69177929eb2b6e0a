/* SPDX-License-Identifier: MIT */
/*
 * page_sources.c - see page_sources.h.
 *
 * Sources can be large, and users mail pages: for large sources fewer lines around those with time are
 * shown, until all fit.
 */
#include "src/cli/page_sources.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/util.h"
#include "src/cli/cli.h"
#include "src/report/report.h"

enum { MAX_BYTES = 2 << 20 };

error_t page_sources_parse(int key, char *argument, struct argp_state *state, struct page_sources *sources)
{
	switch (key) {
	case KEY_PAGE_SOURCES:
		sources->wanted = true;
		return 0;
	case KEY_PAGE_SOURCE_ROOT:
		cli_parse_source_root(state, argument, &sources->roots);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int page_sources_check(const struct page_sources *sources, const struct exporter *exporter)
{
	if (!sources->wanted && sources->roots.n == 0)
		return EXIT_OK;
	if (!sources->wanted)
		return cli_fail(EXIT_USAGE, "--source-root needs --sources, which embeds the sources found there");
	if (strcmp(exporter->name, "html") != 0)
		return cli_fail(EXIT_USAGE, "--sources works with html only, not with %s: use -o OUT.html",
				exporter->name);
	return EXIT_OK;
}

static int make(const struct page_sources *sources, const struct profile *profile, unsigned max_files, unsigned context,
		char **ret)
{
	const struct glob_list all = { 0 };
	const struct annotate_options options = {
		.what = &all,
		.roots = &sources->roots,
		.max_files = max_files,
		.context = context,
		.json = true,
		.recorded_ns = profile->run.started_ns,
	};
	CLEANUP(freep) char *text = NULL;
	size_t n_bytes = 0;
	FILE *out = open_memstream(&text, &n_bytes);
	int r;

	if (!out)
		return -ENOMEM;
	r = report_annotate(profile, &options, out);
	if (fclose(out) != 0 && r >= 0)
		r = -ENOMEM;
	if (r < 0)
		return r;
	if (n_bytes > MAX_BYTES)
		return -EFBIG;
	*ret = TAKE(text);
	return 0;
}

int page_sources_make(struct page_sources *sources, const struct profile *profile, bool quiet,
		      struct export_options *options)
{
	static const struct {
		unsigned max_files, context;
	} tries[] = { { 20, 200 }, { 20, 40 }, { 20, 10 }, { 10, 3 }, { 3, 0 }, { 1, 0 } };
	int r = -EFBIG;

	if (!sources->wanted)
		return EXIT_OK;
	for (size_t i = 0; i < N_ELEMENTS(tries) && r == -EFBIG; i++)
		r = make(sources, profile, tries[i].max_files, tries[i].context, &sources->json);
	options->sources = sources->json;
	if (r == -ENOMEM)
		return cli_fail(EXIT_FAILED, "not enough memory");
	if (r < 0 && !quiet)
		cli_say("probing: no sources are embedded: %s\n", r == -ENODATA ? "the recording has no source lines"
								  : r == -EFBIG ? "even one takes more than 2 MB"
										: strerror(-r));
	return EXIT_OK;
}

void page_sources_done(struct page_sources *sources)
{
	glob_list_done(&sources->roots);
	free(sources->json);
	*sources = (struct page_sources){ 0 };
}
