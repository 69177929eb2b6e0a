/* SPDX-License-Identifier: MIT */
/* prompt.h - declarations that the files of the prompt share. Private. */
#ifndef PROBING_SQL_PROMPT_H
#define PROBING_SQL_PROMPT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/new_file.h"
#include "src/prompt/prompt.h"
#include "src/sql/sql.h"
#include "src/sql/text.h"

enum { MAX_SENTENCE = 4096 + 256 }; /* a path, and its problem */

struct prompt {
	struct sql_session session;
	FILE *out;              /* answers */
	FILE *file;             /* answers instead, after .output; NULL: none */
	struct new_file output; /* behind file */
	FILE *screen;           /* prompt and messages */
	struct line_editor line;
	struct sql_text statement; /* lines typed so far */
	bool is_timing;
	bool is_done;
};

/* prompt.c: run a text. 0 as long as the output can be written, mistakes included. */
int prompt_run(struct prompt *prompt, const char *sql);

/* commands.c: execute a line that begins with a dot; modifies it. Returns as above. */
int prompt_command(struct prompt *prompt, char *line);

/* prompt_end_output - end .output: the file appears. Reports errors. Harmless without .output. */
void prompt_end_output(struct prompt *prompt);

/* The n-th command, ".tables"; NULL: there are no more. */
const char *prompt_command_name(size_t n);

/* complete.c: the action of the Tab key. Source: editline(3), EL_ADDFN. */
unsigned char prompt_complete(EditLine *editor, int key);

#endif
