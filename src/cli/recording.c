/* recording.c - opening a recording, and why that may fail. */
#include "base/util.h"
#include "src/cli/cli.h"
#include "src/store/store.h"

enum { MAX_SENTENCE = 512 };

static const char *recording_path(const char *path)
{
	return path ? path : "probing.db";
}

static int fail(int error, const char *path)
{
	char sentence[MAX_SENTENCE];

	store_explain(error, path, sentence, sizeof sentence);
	return cli_fail(cli_status(error), "%s", sentence);
}

int cli_open_recording(const char *path, struct sqlite3 **ret)
{
	int r = store_open_reader(recording_path(path), ret);

	return r < 0 ? fail(r, recording_path(path)) : EXIT_OK;
}

uint64_t cli_count_samples(const struct profile *profile)
{
	uint64_t n = 0;

	for (size_t i = 0; i < profile->n_totals; i++)
		n += profile->totals[i].samples;
	return n;
}
