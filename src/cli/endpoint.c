/* SPDX-License-Identifier: MIT */
/* endpoint.c - see endpoint.h. */
#include "src/cli/endpoint.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/cli/backtrace_format.h"
#include "src/cli/cli.h"
#include "src/cli/fleet_source.h"
#include "src/cli/probes_use.h"
#include "src/live/live.h"
#include "src/sql/sql.h"
#include "src/store/store.h"

enum { MAX_SENTENCE = 512, MAX_ID = 1 << 22 };

static bool ends_in(const char *text, const char *ending)
{
	size_t n = strlen(text), n_ending = strlen(ending);

	return n >= n_ending && strcmp(text + n - n_ending, ending) == 0;
}

bool endpoint_is_process(const char *word)
{
	return word[0] != '\0' && word[strspn(word, "0123456789")] == '\0';
}

bool endpoint_is_one(const char *word, bool surely)
{
	static const char *const beginnings[] = { "SELECT", "WITH", "EXPLAIN",  "PRAGMA",
						  "VALUES", "SHOW", "DESCRIBE", "DESC" };

	if (endpoint_is_process(word) || fleet_source_is_one(word) || access(word, F_OK) == 0)
		return true;
	for (size_t i = 0; i < N_ELEMENTS(beginnings); i++) {
		size_t n = strlen(beginnings[i]);

		if (strncasecmp(word, beginnings[i], n) == 0 && !isalnum((unsigned char)word[n]))
			return false;
	}
	if (ends_in(word, ".db"))
		return true;
	return !surely && word[0] != '\0' && !strpbrk(word, " \t\n;");
}

static int fail_recording(int error, const char *path)
{
	char sentence[MAX_SENTENCE];

	store_explain(error, path, sentence, sizeof sentence);
	return cli_fail(cli_status(error), "%s", sentence);
}

static int open_recording(const char *path, bool may_write, struct endpoint *to)
{
	int r;

	snprintf(to->title, sizeof to->title, "%s", path);
	if (!may_write) {
		r = cli_open_recording(path, &to->db);
		if (r == EXIT_OK) /* the statement is the user's own, and attached files are read-only */
			store_permit_attach(to->db);
		return r;
	}
	r = store_open(path, &to->store);
	if (r < 0)
		return fail_recording(r, path);
	to->db = store_connection(to->store);
	/* The file's checksum becomes invalid; endpoint_finish() computes it again. */
	r = store_begin(to->store);
	if (r >= 0)
		r = store_commit(to->store);
	return r < 0 ? fail_recording(r, path) : EXIT_OK;
}

int endpoint_forbid_files(void *data, int action, const char *name, const char *b, const char *c, const char *d)
{
	(void)data;
	(void)b;
	(void)c;
	(void)d;
	return action == SQLITE_ATTACH && (!name || strcmp(name, ":memory:") != 0) ? SQLITE_DENY : SQLITE_OK;
}

void endpoint_forbid_attach(struct endpoint *endpoint)
{
	if (endpoint->store)
		sqlite3_set_authorizer(endpoint->db, endpoint_forbid_files, NULL);
	else if (!endpoint->multi_db && !endpoint->live)
		store_forbid_attach(endpoint->db);
}

static int open_many(const char *const *paths, size_t n, struct endpoint *to)
{
	size_t failed;
	int r;

	r = multi_db_open(paths, n, &to->db, &to->multi_db, &failed);
	if (r < 0)
		return fail_recording(r, paths[failed]);
	sqlite3_set_authorizer(to->db, endpoint_forbid_files, NULL);
	snprintf(to->title, sizeof to->title, "%zu recordings", n);
	return EXIT_OK;
}

static void say(void *data, const char *sentence)
{
	(void)data;
	cli_say("%s\n", sentence);
}

static int read_probes(void *data, pid_t pid, const char *table, char **ret, size_t *ret_bytes, char *why)
{
	(void)data;
	return probes_read(pid, table, ret, ret_bytes, why, LIVE_WHY_BYTES);
}

static void make_title(pid_t pid, char *to, size_t n_bytes)
{
	CLEANUP(freep) char *command = proc_text(pid, "cmdline", n_bytes);

	snprintf(to, n_bytes, "process %d%s%.*s", (int)pid, command && command[0] ? ": " : "", 60,
		 command ? command : "");
	for (char *c = to; *c; c++)
		if (iscntrl((unsigned char)*c))
			*c = '?';
}

static int open_process(const char *word, struct endpoint *to)
{
	struct live_options options = { .note = say, .probes = read_probes };
	long id = strtol(word, NULL, 10);
	pid_t process;
	int r;

	if (id < 1 || id > MAX_ID)
		return cli_fail(EXIT_NO_INPUT, "there is no process %s", word);
	options.pid = (pid_t)id;
	process = backtrace_process_of(options.pid);
	if (process != 0 && process != options.pid)
		return cli_fail(EXIT_NO_INPUT, "%ld is a thread of process %d: query the process WHERE tid = %ld", id,
				(int)process, id);
	if (sqlite3_open(":memory:", &to->db) != SQLITE_OK)
		return cli_fail(EXIT_FAILED, "not enough memory");
	r = live_open(to->db, &options, &to->live);
	if (r == -ESRCH)
		return cli_fail(EXIT_NO_INPUT, "there is no process %ld", id);
	if (r < 0)
		return cli_fail(cli_status(r), "process %ld cannot be queried: %s", id,
				r == -EINVAL ? sqlite3_errmsg(to->db) : strerror(-r));
	sqlite3_set_authorizer(to->db, endpoint_forbid_files, NULL);
	make_title(options.pid, to->title, sizeof to->title);
	if (live_has_ended(to->live)) {
		snprintf(to->title, sizeof to->title, "process %ld, which has ended", id);
		cli_say("process %ld has ended: only the rows that it wrote are left\n", id);
	}
	return sqlite3_exec(to->db, "PRAGMA query_only = ON", NULL, NULL, NULL) == SQLITE_OK
		       ? EXIT_OK
		       : cli_fail(EXIT_FAILED, "not enough memory");
}

static int open_words(const char *const *words, size_t n, bool may_write, struct endpoint *to)
{
	size_t n_processes = 0;

	for (size_t i = 0; i < n; i++)
		n_processes += endpoint_is_process(words[i]);
	if (n_processes > 0 && n > 1)
		return cli_fail(EXIT_USAGE, "give one process, or only recordings");
	if (may_write && (n_processes > 0 || n > 1))
		return cli_fail(EXIT_USAGE, "--write is for one recording");
	if (n_processes > 0)
		return open_process(words[0], to);
	if (n > 1)
		return open_many(words, n, to);
	return open_recording(n > 0 ? words[0] : cli_default_recording(), may_write, to);
}

int endpoint_open(const char *const *words, size_t n, bool may_write, struct endpoint *ret)
{
	struct endpoint endpoint = { 0 };
	int status;

	status = open_words(words, n, may_write, &endpoint);
	if (status == EXIT_OK && sql_attach(endpoint.db) < 0)
		status = cli_fail(EXIT_FAILED, "%s cannot be queried: %s", endpoint.title, sqlite3_errmsg(endpoint.db));
	if (status == EXIT_OK)
		*ret = endpoint;
	else
		endpoint_close(&endpoint);
	return status;
}

void endpoint_close(struct endpoint *endpoint)
{
	if (!endpoint->store)
		sqlite3_close(endpoint->db);
	store_close(endpoint->store);
	multi_db_close(endpoint->multi_db);
	live_close(endpoint->live);
	*endpoint = (struct endpoint){ 0 };
}

int endpoint_finish(struct endpoint *endpoint, int status)
{
	int r = 0;

	if (endpoint->store) {
		/* Discard an uncommitted transaction, as SQLite does. */
		if (!sqlite3_get_autocommit(endpoint->db))
			sqlite3_exec(endpoint->db, "ROLLBACK", NULL, NULL, NULL);
		r = store_checkpoint(endpoint->store);
	}
	if (r < 0 && status == EXIT_OK)
		status = fail_recording(r, endpoint->title);
	endpoint_close(endpoint);
	return status;
}
