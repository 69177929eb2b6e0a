/* SPDX-License-Identifier: MIT */
/* label.h - the names of frames in an export.
 *
 * Frames that look the same are one label: all places of a function,
 * or all on the same line of it if functions are split by line.
 */
#ifndef PROBING_EXPORT_LABEL_H
#define PROBING_EXPORT_LABEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/profile/profile.h"

enum label_kind {
	LABEL_PYTHON,
	LABEL_BUILTIN,
	LABEL_NATIVE,
	LABEL_KERNEL,
	LABEL_TASK,  /* not a function either */
	LABEL_WAIT,  /* nor is the reason of a wait */
	LABEL_GROUP, /* not a function: a process, a thread, a missing stack */
	LABEL_N_KINDS
};

/* As a legend has it: "Python"; NULL of groups. */
const char *label_kind_name(enum label_kind kind);

struct label {
	enum label_kind kind;
	char *text;
	int64_t function;          /* 0: unknown */
	const char *file, *module; /* borrowed from the profile; NULL: unknown */
	int first_line, last_line; /* range of executing lines; 0: none */
};

struct label_options {
	bool lines;    /* split functions by executing line */
	bool one_line; /* for folded stacks: ';' becomes ':', kernel functions end in _[k];
			* labels of the same text are the same */
};

struct labels {
	struct label *items;
	size_t n_items, n_allocated;
	uint32_t *of_frame; /* label of each frame of the profile */
	bool one_line;
};

/* labels_init - name all frames of a profile, which must outlive @ret. -ENOMEM. */
int labels_init(const struct profile *profile, const struct label_options *options, struct labels *ret);
void labels_done(struct labels *labels);

/*
 * labels_add_group - a new label for a group, without a function.
 * @id: shown in parentheses; negative: none.
 * Errors: -ENOMEM.
 */
int labels_add_group(struct labels *labels, const char *name, int32_t id, uint32_t *ret);

/* labels_order - indices of the labels, sorted by their text; free(3) ends it. -ENOMEM. */
int labels_order(const struct labels *labels, uint32_t **ret);

#endif
