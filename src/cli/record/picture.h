/* SPDX-License-Identifier: MIT */
/* picture.h - exporting a recording at its end: "record -o profile.svg", "record --format speedscope". */
#ifndef PROBING_CLI_RECORD_PICTURE_H
#define PROBING_CLI_RECORD_PICTURE_H

#include <argp.h>
#include <stdbool.h>
#include <sys/types.h>

#include "src/cli/live_recording.h"
#include "src/export/export.h"

enum {
	KEY_PICTURE_FORMAT = 'f',
	KEY_PICTURE_BY_THREAD = 0xb00,
	KEY_PICTURE_MERGE,
	KEY_PICTURE_GIL,
	KEY_PICTURE_TITLE,
};

#define PICTURE_OPTION_ROWS                                                                                            \
	{ "format", KEY_PICTURE_FORMAT, "FORMAT", 0, "Also export in this format (default: by OUT's extension)", 0 },  \
		{ "by-thread", KEY_PICTURE_BY_THREAD, NULL, 0, "Split the export by thread", 0 },                      \
		{ "merge-processes", KEY_PICTURE_MERGE, NULL, 0, "Merge processes into one tree in the export", 0 },   \
		{ "show-gil",                                                                                          \
		  KEY_PICTURE_GIL,                                                                                     \
		  NULL,                                                                                                \
		  0,                                                                                                   \
		  "Export only samples of the thread that held the GIL; record all",                                   \
		  0 },                                                                                                 \
	{                                                                                                              \
		"title", KEY_PICTURE_TITLE, "TEXT", 0, "Set the title of the export", 0                                \
	}

/* All zero: none. Ended with picture_done(). */
struct picture {
	const char *format;              /* value of the option; NULL: not given */
	const struct exporter *exporter; /* NULL: no export */
	const char *title;
	bool by_thread, merge_processes, held_gil;
	char *out;                       /* "-" is stdout */
	char *recording;                 /* the recording to export, if the user did not name it; else NULL */
	struct live_recording temporary; /* that file, if it is to be removed */
	pid_t maker;                     /* the process that makes it; 0: none */
	int gate;                        /* written to: the recording is there */
};

/* One option; ARGP_ERR_UNKNOWN: it is none of these. A mistake ends the process (argp_error). */
error_t picture_parse(int key, char *argument, struct argp_state *state, struct picture *picture);

/*
 * picture_choose - interpret -o OUT and --format; an unknown extension of OUT is a usage error.
 * @path: OUT; NULL: not given. Replaced by the path of the recording, beside the exported file.
 */
void picture_choose(struct argp_state *state, struct picture *picture, const char **path);

/*
 * picture_prepare - check that it can be written, and start the process that exports: the recording process drops
 * the rights for that. Call it before there are threads. Returns 0, or prints a message and returns an exit status.
 * @mode: permissions of the new file.
 */
int picture_prepare(struct picture *picture, const char *recording, mode_t mode, bool quiet);

/* picture_make - export the complete recording. Returns 0, also without an export; else prints a message and returns
 * an exit status. */
int picture_make(struct picture *picture);
void picture_done(struct picture *picture);

#endif
