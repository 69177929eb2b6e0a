/* SPDX-License-Identifier: MIT */
/* inputs.c - see inputs.h. */
#include "src/cli/inputs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "src/cli/cli.h"
#include "src/store/store.h"

enum { MAX_SENTENCE = 512 };

int inputs_open(const char *const *paths, size_t n, struct inputs *ret)
{
	*ret = (struct inputs){ .paths = paths, .n = n, .dbs = calloc(n, sizeof(sqlite3 *)) };
	if (!ret->dbs)
		return cli_fail(EXIT_FAILED, "not enough memory");
	for (size_t i = 0; i < n; i++) {
		int status = cli_open_recording(paths[i], &ret->dbs[i]);

		if (status != EXIT_OK)
			return status;
	}
	return EXIT_OK;
}

void inputs_done(struct inputs *sources)
{
	for (size_t i = 0; i < sources->n && sources->dbs; i++)
		sqlite3_close(sources->dbs[i]);
	free(sources->dbs);
}

int inputs_fail(const struct inputs *sources, const char *out, int error, const struct copy_result *result)
{
	const char *which = sources->paths[result->which];
	char sentence[MAX_SENTENCE];

	if (error == -EBADMSG)
		return cli_fail(EXIT_BAD_DATA, "%s is damaged: %s; run 'probing info --check' for details", which,
				result->why[0] ? result->why : "its rows cannot be read");
	if (error == -EDOM || error == -ENOTUNIQ)
		return cli_fail(EXIT_BAD_DATA, "%s cannot be added: %s", which, result->why);
	if (error == -ECANCELED)
		return cli_fail(EXIT_FAILED, "interrupted; no file was created");
	store_explain(error, out, sentence, sizeof sentence);
	return cli_fail(cli_status(error), "%s", sentence);
}

int inputs_fail_place(const char *out, int error)
{
	if (error == -EEXIST)
		return cli_fail(EXIT_NO_OUTPUT, "%s exists: give another name with -o, or --force to replace it", out);
	if (error == -EBUSY)
		return cli_fail(EXIT_NO_OUTPUT,
				"there is a log (%s-wal or -journal) of a recording in progress, or of a killed "
				"recorder: give another name with -o",
				out);
	return cli_fail_open(out, error);
}
