/* SPDX-License-Identifier: MIT */
/* recording.c - opening a recording, and why that may fail. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sqlite_cleanup.h"
#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/fleet_source.h"
#include "src/profile/profile.h"
#include "src/store/store.h"

enum { MAX_SENTENCE = 512 };

const char *cli_default_recording(void)
{
	static char path[PATH_MAX];
	const char *folder = getenv("PROBING_DATA_DIR");
	struct stat st;

	if (!folder || !folder[0])
		return "probing.db";
	if (stat(folder, &st) < 0 || !S_ISDIR(st.st_mode))
		exit(cli_fail(
			EXIT_USAGE,
			"PROBING_DATA_DIR (in the environment) is %s, which is not a folder: create it, or unset PROBING_DATA_DIR",
			folder));
	if (snprintf(path, sizeof path, "%s/probing.db", folder) >= (int)sizeof path)
		exit(cli_fail(EXIT_USAGE, "PROBING_DATA_DIR (in the environment) is too long"));
	return path;
}

bool cli_is_quiet(void)
{
	static const char *const levels[] = { "off", "error", "warn", "info", "debug", "trace" };
	const char *level = getenv("PROBING_LOGLEVEL");

	if (!level || !level[0])
		return false;
	for (size_t i = 0; i < N_ELEMENTS(levels); i++)
		if (strcasecmp(level, levels[i]) == 0)
			return i < 2;
	exit(cli_fail(EXIT_USAGE,
		      "PROBING_LOGLEVEL (in the environment) is %s: it is off, error, warn, info, debug or trace",
		      level));
}

static const char *recording_path(const char *path)
{
	return path ? path : cli_default_recording();
}

static int fail(int error, const char *path)
{
	char sentence[MAX_SENTENCE];

	store_explain(error, path, sentence, sizeof sentence);
	return cli_fail(cli_status(error), "%s", sentence);
}

int cli_open_recording(const char *path, struct sqlite3 **ret)
{
	int r;

	if (path && fleet_source_is_one(path))
		return cli_fail(
			EXIT_USAGE,
			"%s is a fleet, not a recording: report, flamegraph, export, diff, check and sql read fleets",
			path);
	r = store_open_reader(recording_path(path), ret);

	return r < 0 ? fail(r, recording_path(path)) : EXIT_OK;
}

uint64_t cli_counter(sqlite3 *db, const char *name)
{
	CLEANUP(sqlite3_finalizep) sqlite3_stmt *statement = NULL;

	if (sqlite3_prepare_v2(db, "SELECT value FROM counter WHERE name = ?", -1, &statement, NULL) != SQLITE_OK ||
	    sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC) != SQLITE_OK ||
	    sqlite3_step(statement) != SQLITE_ROW)
		return 0;
	return (uint64_t)MAX(sqlite3_column_int64(statement, 0), 0);
}

uint64_t cli_count_samples(const struct profile *profile)
{
	uint64_t n = 0;

	for (size_t i = 0; i < profile->n_totals; i++)
		n += profile->totals[i].samples;
	return n;
}

const char *cli_why_empty(sqlite3 *db, const struct profile *profile)
{
	if (profile->run.ended_ns == 0)
		return "nothing has been written yet, or its recorder ended before that";
	if (cli_counter(db, "left out") > 0)
		return "--threads, --function or --gil dropped all samples while recording";
	if (cli_counter(db, "lost") > 0)
		return "all were lost while recording ('probing info' counts them)";
	if (cli_counter(db, "cpu ns") > 0)
		return "the program used too little CPU time for a sample (record -F takes more samples, --mode wall shows waits)";
	if (profile->unit)
		return "the event did not happen, or too rarely for a sample (record -c 1 samples each)";
	return "the program used no CPU time, or too little for a sample (record -F takes more samples, --mode wall "
	       "shows waits)";
}
