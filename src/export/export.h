/* SPDX-License-Identifier: MIT */
/* export.h - a profile in the formats that others read.
 *
 * An exporter is a const descriptor in export_<name>.c and one word in
 * meson.build, which generates the table.
 */
#ifndef PROBING_EXPORT_H
#define PROBING_EXPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "src/profile/profile.h"

struct tracks;
struct sqlite3;

struct export_options {
	bool show_interpreter; /* interpreter-internal functions as frames too */
	bool by_thread;        /* a root frame per thread */
	bool merge_processes;  /* no root frame per process where there are several */
	bool lines;            /* split functions by executing line */
	bool inverted;         /* bottom-up: leaves at the root */
	double min_share;      /* 0..1: omit nodes with a smaller share; their time counts for their caller */
	const char *title;     /* NULL: none */
	const char *service;   /* otlp alone: service.name; NULL: the recorded program's name */
	bool compress;         /* otlp alone: as a gzip file */
	const char *sources;   /* html alone: the JSON of report_annotate(); NULL: none */
	/* Of formats with has_tracks; NULL: none. */
	const struct tracks *tracks;
	/* Of those that copy: called now and then with rows done, and all; false ends it with -ECANCELED. May be NULL. */
	bool (*keep_going)(void *data, uint64_t n_done, uint64_t n_all);
	void *data;
};

struct exporter {
	const char *name;    /* "svg" */
	const char *endings; /* file name endings, space separated: ".svg" */
	const char *summary; /* one line for --help */
	bool needs_samples; /* reads profile->samples; NULL where the recording has sums alone: it does without, or -ENODATA */
	bool has_tracks; /* shows options->tracks */
	/* NULL, or the library that the build lacks for this format, and the command that changes that. May be NULL. */
	const char *(*lacks)(void);
	/* Writes to out; negative errno (-EIO with ferror(out)) on failure. NULL: the format is no view of stacks. */
	int (*write)(const struct profile *profile, const struct export_options *options, FILE *out);
	/* Instead: creates a file at path with everything in the recording. The caller removes it after
	 * a failure. */
	int (*copy)(struct sqlite3 *db, const struct export_options *options, const char *path);
};

/* All exporters, ending with NULL. */
extern const struct exporter *const exporters[];
const struct exporter *exporter_by_name(const char *name);
const struct exporter *exporter_by_path(const char *path); /* NULL: no such ending */

/*
 * export_otlp_answer - what a receiver of an otlp file answers (ExportProfilesServiceResponse).
 * @ret_rejected: profiles that it refused. @ret_message: its words, owned by the caller; NULL: none.
 * Errors, with both untouched: -EBADMSG it is no such answer; -ENOMEM.
 *
 * export_otlp_count - how many profiles, as the receiver counts them, the otlp file of a profile has.
 */
int export_otlp_answer(const void *bytes, size_t n_bytes, int64_t *ret_rejected, char **ret_message);
unsigned export_otlp_count(const struct profile *profile);

/* ---- Beside stacks: steps, modules of torch, spans, communication, metrics ---- */

/*
 * tracks_read - what a recording's tables know over time; none is no error.
 * @db: with the tables of programs' rows (row_tables_attach()).
 * @since_ns, @until_ns: times are cut to these; what goes on at the recording's end ends with until_ns.
 * @ret: ended with tracks_free(). Errors: -ENOMEM; -EBADMSG a block of rows is damaged; those of store_errno().
 */
int tracks_read(struct sqlite3 *db, uint64_t since_ns, uint64_t until_ns, struct tracks **ret);
void tracks_free(struct tracks *tracks);

/* ---- Two measurements of one tree as a picture (diff_svg.c, diff_html.c) ---- */

struct diff_box {
	uint32_t parent;          /* a box before this one; box 0 is the root */
	const char *name, *place; /* UTF-8; place may be "" */
	double base, head;        /* with all that is called from there; base 0: it was not there */
	double change; /* 0.05 is 5 % more than base, INFINITY: it is new, NAN: it is all there is, which says nothing */
	bool is_known; /* that it has changed */
};

struct diff_picture {
	const struct diff_box *boxes;
	size_t n_boxes;
	const char *title, *note; /* the compared recordings, and the meaning of numbers */
	/* A value as text, in at least 32 bytes. */
	void (*format)(const void *data, double value, char *to, size_t n_bytes);
	const void *data;
};

/*
 * export_diff_svg - a flame graph as wide as head, red where that is more than base, blue where it is less.
 * Errors: -ENOMEM; -EINVAL a parent that does not come before its child; -EIO with ferror(out).
 */
int export_diff_svg(const struct diff_picture *picture, FILE *out);
/* The same as an HTML page. */
int export_diff_html(const struct diff_picture *picture, FILE *out);
/* NULL, or the library that the build lacks for it, and the command that changes that. */
const char *export_diff_html_lacks(void);

#endif
