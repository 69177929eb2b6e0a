/* SPDX-License-Identifier: MIT */
/* view_title.c - the displayed part of a recording, in words, so that nobody mistakes it for the whole. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sqlite_cleanup.h"
#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/view.h"

struct writing {
	FILE *out;
	unsigned n; /* number of parts */
};

static void begin_part(struct writing *writing)
{
	fputs(writing->n++ > 0 ? "; " : "", writing->out);
}

static void put_words(struct writing *writing, const char *what, const struct glob_list *words)
{
	if (words->n == 0)
		return;
	begin_part(writing);
	fputs(what, writing->out);
	for (size_t i = 0; i < words->n; i++)
		fprintf(writing->out, "%s%s", i > 0 ? ", " : " ", words->words[i]);
}

static void put_text(struct writing *writing, const char *what, const char *text)
{
	if (!text)
		return;
	begin_part(writing);
	fprintf(writing->out, "%s%s", what, text);
}

static void put_parts(const struct view *view, sqlite3 *db, struct writing *writing)
{
	put_text(writing, "", db && cli_counter(db, "left out") > 0 ? "filtered while recording" : NULL);
	put_text(writing, "since ", view->since.text);
	put_text(writing, "until ", view->until.text);
	put_text(writing, "where ", view->where);
	put_words(writing, "process", &view->pids);
	put_words(writing, "process", &view->processes);
	put_words(writing, "threads", &view->threads);
	put_words(writing, "in", &view->functions);
	put_words(writing, "through", &view->focus);
	put_words(writing, "through module", &view->modules);
	put_words(writing, "without", &view->ignore);
	put_text(writing, "", view->gil ? "GIL held" : NULL);
	put_text(writing, "by ", view->by);
	put_text(writing, "", view->no_native ? "Python frames alone" : NULL);
}

char *view_parts(const struct view *view, sqlite3 *db)
{
	char *text = NULL;
	size_t n_bytes;
	struct writing writing = { .out = open_memstream(&text, &n_bytes) };

	if (!writing.out)
		return NULL;
	put_parts(view, db, &writing);
	if (fclose(writing.out) == 0)
		return text;
	free(text);
	return NULL;
}

char *view_title(const struct view *view, sqlite3 *db)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *statement = NULL;
	CLEANUP(freep) char *parts = view_parts(view, db);
	const char *command = NULL;
	char *title = NULL;

	if (sqlite3_prepare_v2(db, "SELECT command FROM run LIMIT 1", -1, &statement, NULL) == SQLITE_OK &&
	    sqlite3_step(statement) == SQLITE_ROW)
		command = (const char *)sqlite3_column_text(statement, 0);
	if (!parts || !parts[0])
		return command ? strdup(command) : NULL;
	if (asprintf(&title, "%s%s(%s)", command ? command : "", command ? " " : "", parts) < 0)
		return NULL;
	return title;
}
