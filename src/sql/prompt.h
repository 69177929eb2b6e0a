/* SPDX-License-Identifier: MIT */
/* prompt.h - what the files of the prompt share. Private. */
#ifndef PROBING_SQL_PROMPT_H
#define PROBING_SQL_PROMPT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/new_file.h"
#include "src/prompt/prompt.h"
#include "src/sql/sql.h"
#include "src/sql/text.h"

enum { MAX_SENTENCE = 4096 + 256 }; /* a path, and what is wrong with it */

struct prompt {
	struct sql_session session;
	FILE *out;              /* answers */
	FILE *file;             /* answers instead, after .output; NULL: none */
	struct new_file output; /* what file writes */
	FILE *screen;           /* prompt and messages */
	struct line_editor line;
	struct sql_text statement; /* lines typed so far */
	bool is_timing;
	bool is_done;
};

/* prompt.c: run a text. 0 as long as the output can be written, mistakes included. */
int prompt_run(struct prompt *prompt, const char *sql);

/* commands.c: a line that begins with a dot; it is taken to pieces. Returns as above. */
int prompt_command(struct prompt *prompt, char *line);

/* prompt_end_output - the end of .output: the file appears. What goes wrong is said. Harmless where there is none. */
void prompt_end_output(struct prompt *prompt);

/* The n-th command, ".tables"; NULL: there are no more. */
const char *prompt_command_name(size_t n);

/* complete.c: what the Tab key does. Source: editline(3), EL_ADDFN. */
unsigned char prompt_complete(EditLine *editor, int key);

#endif
