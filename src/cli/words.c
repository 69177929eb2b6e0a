/* SPDX-License-Identifier: MIT */
/* words.c - see described.h. */
#include "src/cli/described.h"

#include <dirent.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/sqlite_cleanup.h"
#include "base/text.h"
#include "base/util.h"
#include "src/capture/capture.h"
#include "src/catalogue/catalogue.h"
#include "src/cli/cli.h"
#include "src/cli/cluster/cluster.h"
#include "src/export/export.h"
#include "src/store/store.h"

enum { MAX_COMMAND = 200, MAX_FUNCTIONS = 2000 };

static void put(FILE *out, const char *word, const char *description)
{
	text_put_spelled(out, word, strlen(word));
	if (description && description[0]) {
		fputc('\t', out);
		text_put_spelled(out, description, strlen(description));
	}
	fputc('\n', out);
}

static int put_verbs(FILE *out)
{
	for (size_t i = 0; verbs[i]; i++)
		put(out, verbs[i]->name, verbs[i]->summary);
	return 0;
}

/* All that "probing help" explains. */
static int put_topics(FILE *out)
{
	put(out, "filters", "the options that choose samples");
	return put_verbs(out);
}

static int put_cluster_verbs(FILE *out)
{
	for (size_t i = 0; cluster_verbs[i]; i++)
		if (cluster_verbs[i]->summary)
			put(out, cluster_verbs[i]->name, cluster_verbs[i]->summary);
	return 0;
}

/* ---- Processes ---- */

/* Only processes that the user may look into: a program's own file is readable to them alone. */
static bool is_accessible(const char *pid)
{
	char path[64], target[PATH_MAX];

	snprintf(path, sizeof path, "/proc/%s/exe", pid);
	return readlink(path, target, sizeof target) > 0;
}

static int each_process(int (*take)(FILE *out, pid_t pid), FILE *out)
{
	DIR *folder = opendir("/proc");
	struct dirent *entry;
	int r = 0;

	if (!folder)
		return -errno;
	while (r >= 0 && (entry = readdir(folder))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid > 0 && pid != getpid() && is_accessible(entry->d_name))
			r = take(out, pid);
	}
	closedir(folder);
	return r;
}

static int put_pid(FILE *out, pid_t pid)
{
	CLEANUP(freep) char *command = proc_text(pid, "cmdline", MAX_COMMAND);
	char word[16];

	snprintf(word, sizeof word, "%d", (int)pid);
	put(out, word, command);
	return 0;
}

static int put_pids(FILE *out)
{
	return each_process(put_pid, out);
}

static int put_name(FILE *out, pid_t pid)
{
	CLEANUP(freep) char *name = proc_text(pid, "comm", MAX_COMMAND);

	if (name && name[0])
		put(out, name, NULL);
	return 0;
}

static int put_names(FILE *out)
{
	return each_process(put_name, out);
}

/* ---- Tables of ours ---- */

static int put_tracepoint(void *data, const char *name)
{
	put(data, name, NULL);
	return 0;
}

/* Tracepoints may be root's alone to list: the others are there without them. */
static int put_events(FILE *out)
{
	struct sampled_event event;

	for (size_t n = 0; event_nth(n, &event); n++)
		put(out, event.name, event_summary(&event));
	(void)event_each_tracepoint(put_tracepoint, out);
	return 0;
}

static int put_formats(FILE *out)
{
	for (size_t i = 0; exporters[i]; i++)
		put(out, exporters[i]->name, exporters[i]->summary);
	return 0;
}

static int put_tables(FILE *out)
{
	for (size_t i = 0; catalogue_tables[i]; i++) {
		const struct catalogue_table *table = catalogue_tables[i];
		char name[128];

		snprintf(name, sizeof name, "%s%s%s", strcmp(table->schema, "main") == 0 ? "" : table->schema,
			 strcmp(table->schema, "main") == 0 ? "" : ".", table->name);
		put(out, name, table->doc);
	}
	return 0;
}

/* Of the default recording: which one the command line names, a shell's script cannot say. */
static int put_functions(FILE *out)
{
	CLEANUP(sqlite3_closep) sqlite3 *db = NULL;
	sqlite3_stmt *statement = NULL;
	int r = store_open_reader(cli_default_recording(), &db);

	if (r < 0)
		return -ENOENT;
	if (sqlite3_prepare_v2(db, "SELECT DISTINCT name FROM function WHERE name IS NOT NULL ORDER BY 1 LIMIT ?", -1,
			       &statement, NULL) != SQLITE_OK)
		return -ENOENT;
	sqlite3_bind_int(statement, 1, MAX_FUNCTIONS);
	while (sqlite3_step(statement) == SQLITE_ROW)
		put(out, (const char *)sqlite3_column_text(statement, 0), NULL);
	sqlite3_finalize(statement);
	return 0;
}

/* Arguments of probing tables. */
static int put_pids_and_tables(FILE *out)
{
	int r = put_tables(out);

	return r < 0 ? r : put_pids(out);
}

static const struct {
	const char *kind;
	int (*put)(FILE *out);
} kinds[] = {
	{ "verbs", put_verbs },     { "pids", put_pids },
	{ "names", put_names },     { "events", put_events },
	{ "formats", put_formats }, { "functions", put_functions },
	{ "tables", put_tables },   { "cluster-verbs", put_cluster_verbs },
	{ "topics", put_topics },   { "pids-tables", put_pids_and_tables },
};

int words_put(const char *kind, FILE *out)
{
	for (size_t i = 0; i < N_ELEMENTS(kinds); i++)
		if (strcmp(kinds[i].kind, kind) == 0)
			return kinds[i].put(out);
	return -ENOENT;
}

/* ---- Kinds of arguments ---- */

/* By the option's name if that says it, else by the word for its argument. */
static const struct {
	const char *option, *kind;
} of_options[] = {
	{ "pid", "pids" },       { "comm", "names" },          { "event", "events" }, { "function", "functions" },
	{ "format", "formats" }, { "to", "formats" },          { "output", "files" }, { "source-root", "folders" },
	{ "control", "files" },  { "baseline", "recordings" }, { "core", "files" },
};

static const struct {
	const char *part, *kind;
} of_arguments[] = {
	{ "CLUSTER-VERB", "cluster-verbs" },
	{ "VERB|filters", "topics" },
	{ "PID] [PATTERN]", "pids-tables" },
	{ "PID", "pids" },
	{ "COMMAND", "commands" },
	{ "CMD", "commands" },
	{ "VERB", "verbs" },
	{ "RECORDING", "recordings" },
	{ "BASE", "recordings" },
	{ "FILE", "recordings" },
	{ "TABLE", "tables" },
	{ "FOLDER", "folders" },
	{ "DIR", "folders" },
};

const char *words_of_argument(const char *option, const char *metavar)
{
	if (metavar && strcmp(metavar, "URL") == 0)
		return NULL;
	for (size_t i = 0; option && i < N_ELEMENTS(of_options); i++)
		if (strcmp(of_options[i].option, option) == 0)
			return of_options[i].kind;
	if (option)
		return metavar && (strcmp(metavar, "FILE") == 0 || strcmp(metavar, "OUT") == 0)     ? "files"
		       : metavar && (strcmp(metavar, "FOLDER") == 0 || strcmp(metavar, "DIR") == 0) ? "folders"
												    : NULL;
	for (size_t i = 0; metavar && i < N_ELEMENTS(of_arguments); i++)
		if (strstr(metavar, of_arguments[i].part))
			return of_arguments[i].kind;
	return NULL;
}
