/* SPDX-License-Identifier: MIT */
/* picture.c - see picture.h.
 *
 * The verb flamegraph makes the picture. The recording beside it remains: it answers more
 * questions than a picture does.
 */
#include "src/cli/record/picture.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/path.h"
#include "base/util.h"
#include "src/cli/cli.h"
#include "src/cli/exporters.h"

extern const struct verb verb_flamegraph;

enum { MAX_WORDS = 16 };

error_t picture_parse(int key, char *argument, struct argp_state *state, struct picture *picture)
{
	switch (key) {
	case KEY_PICTURE_FORMAT:
		picture->format = argument;
		picture->exporter = exporters_named(state, argument, true);
		return 0;
	case KEY_PICTURE_BY_THREAD:
		picture->by_thread = true;
		return 0;
	case KEY_PICTURE_MERGE:
		picture->merge_processes = true;
		return 0;
	case KEY_PICTURE_GIL:
		picture->held_gil = true;
		return 0;
	case KEY_PICTURE_TITLE:
		picture->title = argument;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- Meaning of -o ---- */

static bool is_recording(const char *path)
{
	static const char *const endings[] = { ".db", ".sqlite", ".sqlite3", ".data" };
	const char *ending = exporters_ending(path);

	for (size_t i = 0; i < N_ELEMENTS(endings); i++)
		if (strcasecmp(ending, endings[i]) == 0)
			return true;
	return ending[0] == '\0';
}

static char *with_ending(const char *path, const char *endings)
{
	char *text;

	if (asprintf(&text, "%.*s%.*s", (int)path_stem_bytes(path), path, (int)strcspn(endings, " "), endings) < 0)
		return NULL;
	return text;
}

/* The recording's name, from OUT, the picture's name. */
static char *recording_beside(struct picture *picture, const char *out)
{
	if (strcmp(out, "-") != 0)
		return with_ending(out, ".db");
	return live_folder(&picture->temporary) < 0 ? NULL : strdup(picture->temporary.path);
}

void picture_choose(struct argp_state *state, struct picture *picture, const char **path)
{
	const char *out = *path;

	if (out && !picture->format && !is_recording(out))
		picture->exporter = exporters_of_path(state, out, true);
	if (!picture->exporter)
		return;
	if (!out)
		picture->out = with_ending("flamegraph", picture->exporter->endings);
	else if (exporters_ending(out)[0] && is_recording(out))
		picture->out = with_ending(out, picture->exporter->endings);
	else
		picture->out = strdup(out);
	if (out && picture->out && strcmp(picture->out, out) == 0)
		*path = picture->recording = recording_beside(picture, out);
	if (!picture->out || (out && !*path))
		argp_failure(state, EXIT_FAILED, 0,
			     "not enough memory, or no folder for temporary files ($TMPDIR, /tmp)");
}

/* ---- Make the picture ---- */

static int make(const struct picture *picture, const char *recording, mode_t mode, bool quiet)
{
	char name[] = "probing flamegraph", permissions[24];
	const char *words[MAX_WORDS] = {
		name, recording, "--output", picture->out, "--format", picture->exporter->name
	};
	int n = 6;

	if (mode != 0) {
		snprintf(permissions, sizeof permissions, "--chmod=%o", (unsigned)mode);
		words[n++] = permissions;
	}
	if (picture->title) {
		words[n++] = "--title";
		words[n++] = picture->title;
	}
	if (picture->by_thread)
		words[n++] = "--by-thread";
	if (picture->merge_processes)
		words[n++] = "--merge-processes";
	if (picture->held_gil)
		words[n++] = "--gil";
	if (quiet)
		words[n++] = "--quiet";
	return verb_flamegraph.run(n, (char **)words);
}

/* Report an unwritable path before recording. */
static int check_place(const struct picture *picture, mode_t mode)
{
	CLEANUP(output_abandon) struct output output = { .fd = -1 };
	int r = strcmp(picture->out, "-") == 0 ? 0 : output_open(&output, picture->out, mode);

	if (r == -EEXIST)
		return cli_fail(EXIT_NO_OUTPUT,
				"%s is a recording, or another SQLite file, and stays: give another name with -o",
				picture->out);
	return r < 0 ? cli_fail_open(picture->out, r) : EXIT_OK;
}

/* Waits at the gate; ends if the gate is closed without a byte. */
static void run_maker(const struct picture *picture, const char *recording, mode_t mode, bool quiet, int gate)
{
	sigset_t none;
	char go;

	if (read(gate, &go, 1) != 1)
		_exit(EXIT_OK);
	close(gate);
	sigemptyset(&none);
	pthread_sigmask(SIG_SETMASK, &none, NULL);
	exit(make(picture, recording, mode, quiet));
}

int picture_prepare(struct picture *picture, const char *recording, mode_t mode, bool quiet)
{
	int ends[2], status;

	if (!picture->exporter)
		return EXIT_OK;
	status = exporters_check(picture->exporter);
	if (status == EXIT_OK)
		status = check_place(picture, mode);
	if (status != EXIT_OK)
		return status;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return cli_fail(EXIT_FAILED, "a pipe cannot be created: %s", strerror(errno));
	fflush(NULL);
	picture->maker = fork();
	if (picture->maker == 0) {
		close(ends[1]);
		run_maker(picture, recording, mode, quiet, ends[0]);
	}
	close(ends[0]);
	picture->gate = ends[1];
	if (picture->maker > 0)
		return EXIT_OK;
	picture->maker = 0;
	close(picture->gate);
	return cli_fail(EXIT_FAILED, "a process cannot be started: %s", strerror(errno));
}

static int wait_for_maker(struct picture *picture)
{
	pid_t maker = picture->maker;
	int status = 0;

	picture->maker = 0;
	close(picture->gate);
	while (waitpid(maker, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILED;
}

int picture_make(struct picture *picture)
{
	if (picture->maker == 0)
		return EXIT_OK;
	if (write(picture->gate, "", 1) != 1)
		return cli_fail(EXIT_FAILED,
				"%s cannot be created: its process has ended; probing flamegraph creates it from the "
				"recording",
				picture->out);
	return wait_for_maker(picture);
}

void picture_done(struct picture *picture)
{
	if (picture->maker != 0)
		wait_for_maker(picture);
	free(picture->out);
	free(picture->recording);
	live_recording_done(&picture->temporary);
	*picture = (struct picture){ 0 };
}
