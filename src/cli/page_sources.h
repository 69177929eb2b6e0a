/* SPDX-License-Identifier: MIT */
/* page_sources.h - "--sources": the sources with the most time, for a page that shows them. */
#ifndef PROBING_CLI_PAGE_SOURCES_H
#define PROBING_CLI_PAGE_SOURCES_H

#include <argp.h>
#include <stdbool.h>

#include "base/glob_list.h"
#include "src/export/export.h"

enum { KEY_PAGE_SOURCES = 0xc00, KEY_PAGE_SOURCE_ROOT };

#define PAGE_SOURCES_OPTION_ROWS                                                                                       \
	{ "sources",                                                                                                   \
	  KEY_PAGE_SOURCES,                                                                                            \
	  NULL,                                                                                                        \
	  0,                                                                                                           \
	  "Embed the hottest source files in the HTML page, with times of their lines (up to 2 MB)",                   \
	  0 },                                                                                                         \
	{                                                                                                              \
		"source-root", KEY_PAGE_SOURCE_ROOT, "FOLDER", 0,                                                      \
			"Search for these sources below this folder first; FROM=TO maps a path prefix (repeatable)", 0 \
	}

/* All zero: not wanted. Ended with page_sources_done(). */
struct page_sources {
	bool wanted;
	struct glob_list roots;
	char *json; /* for export_options.sources */
};

/* One option; ARGP_ERR_UNKNOWN: it is none of these. A mistake ends the process (argp_error). */
error_t page_sources_parse(int key, char *argument, struct argp_state *state, struct page_sources *sources);

/* page_sources_check - 0, or prints that the format shows no sources and returns an exit status. */
int page_sources_check(const struct page_sources *sources, const struct exporter *exporter);

/*
 * page_sources_make - read them, if wanted. Reports if there are none to show, unless @quiet.
 * Returns 0, or prints a message and returns an exit status.
 */
int page_sources_make(struct page_sources *sources, const struct profile *profile, bool quiet,
		      struct export_options *options);
void page_sources_done(struct page_sources *sources);

#endif
