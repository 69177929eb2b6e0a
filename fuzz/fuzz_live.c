/* SPDX-License-Identifier: MIT */
/* fuzz_live.c - what /proc says of a process, whose names, paths and environment are its own choice.
 *
 * The first byte chooses the reader. Whatever the rest is, each ends, and what it hands out lies within.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/live/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void try_maps(char *text, size_t n)
{
	const char *end = text + n;
	struct map_entry entry;
	char *at = text;

	while (parse_next_map(&at, &entry)) {
		if (entry.source.path < text || entry.source.path > end || strlen(entry.permissions) != 4)
			abort();
		if (entry.rss_bytes < 0 || entry.swap_bytes < 0)
			abort();
	}
}

static void try_environment(const char *text, size_t n)
{
	struct variable variable;
	const char *at = text;

	while (parse_next_variable(&at, text + n, &variable))
		if (variable.name < text || variable.name + variable.n_name > text + n ||
		    (variable.value && variable.value + variable.n_value > text + n) || at > text + n)
			abort();
}

static void try_cells(const char *text, size_t n)
{
	const char *at = text;
	struct cell cell;

	while (parse_next_cell(&at, text + n, &cell))
		if (cell.text < text || cell.text + cell.n_text > text + n || at > text + n)
			abort();
}

static void try_lines(const char *text)
{
	struct stat_line stat;
	struct cpu_line cpu;
	char words[64];
	int64_t number;

	(void)parse_stat(text, &stat);
	(void)parse_cpu(text, &cpu);
	if (parse_number(text, "flags", 8, &number))
		parse_flags(number, words, sizeof words);
	if (parse_python_path(text, words, sizeof words) && !strchr(words, '.'))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	char *text;

	if (n_bytes < 1)
		return 0;
	text = malloc(n_bytes);
	if (!text)
		return 0;
	memcpy(text, data + 1, n_bytes - 1);
	text[n_bytes - 1] = '\0';
	switch (data[0]) {
	case 'm':
		try_maps(text, n_bytes - 1);
		break;
	case 'e':
		try_environment(text, n_bytes - 1);
		break;
	case 'c':
		try_cells(text, n_bytes - 1);
		break;
	default:
		try_lines(text);
	}
	free(text);
	return 0;
}
