/* SPDX-License-Identifier: MIT */
/* page.h - the files of the page, which tools/embed_page.py puts into the program. */
#ifndef PROBING_SERVE_PAGE_H
#define PROBING_SERVE_PAGE_H

struct page_file {
	const char *path; /* as requests name it: "/serve/page/main.js"; NULL: the end */
	const char *type; /* of the content */
	const char *text;
};

extern const struct page_file page_files[];

#endif
