/* SPDX-License-Identifier: MIT */
/* profile.h - a calling-context tree in memory, with functions for its readers.
 *
 * A profile is filled once and then read: by exports, reports, comparisons, the live view. The filling code calls, in
 * this order: profile_new(), rows into the arrays, profile_check_inlined(), profile_order_stacks(),
 * profile_order_samples(), profile_label_files(). The store fills profiles from files (store.h: profile_load()).
 */
#ifndef PROBING_PROFILE_H
#define PROBING_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sample.h"

struct strings;

enum frame_role { ROLE_NONE, ROLE_BUILTIN, ROLE_INTERNAL };

/* Values of function.role; any other text, and NULL, is ROLE_NONE. */
enum frame_role frame_role_parse(const char *text);

/* A place with its name, as exporters want it. Strings live as long as the profile. */
struct profile_frame {
	enum frame_kind kind;
	enum frame_role role;
	bool is_eval;
	bool is_label;                         /* of a label, profile_put_labels(): the outermost one of a stack */
	bool has_address;                      /* native: in its module's own address space */
	const char *name;                      /* never NULL */
	const char *symbol;                    /* linkage name, NULL: the same */
	const char *file;                      /* NULL: unknown */
	const char *module;                    /* path, NULL: unknown */
	const char *file_label, *module_label; /* how they are called where they are shown; see profile_label_files() */
	bool is_shared_name;                   /* native: functions of several files have that name */
	const char *build_id;                  /* of the module, hexadecimal; NULL: unknown */
	int line, first_line;                  /* executing, and where the function begins; 0: unknown */
	uint64_t address;
	int64_t function;     /* 0: unknown */
	int64_t inlined_into; /* index into frames of the profile, -1 none */
};

struct profile_stack {
	int32_t parent; /* index, -1: outermost */
	int32_t frame;  /* index */
};

/* There may be millions, so nothing is lost to alignment. */
struct __attribute__((packed, aligned(4))) profile_total {
	int32_t pid, tid;
	int32_t stack;            /* index, -1: nothing could be read */
	int32_t label;            /* index plus 1 into labels; 0: none */
	uint64_t samples, weight; /* the weight in the profile's unit */
};

struct profile_thread {
	int32_t pid, tid;
	const char *name, *process; /* comm of thread and process; "" unknown, never NULL */
};

/* One sample, as it was taken. As many as there are totals, or more. */
struct __attribute__((packed, aligned(4))) profile_sample {
	uint64_t time_ns; /* CLOCK_REALTIME */
	uint64_t weight;  /* as in profile_total */
	int32_t thread;   /* index into threads */
	int32_t stack;    /* index, -1: nothing could be read */
	uint16_t cpu;
	uint8_t verdict : 4, state : 4, gil : 2, gc : 2; /* enum verdict, thread_state, answer, answer */
};

/* Properties of the recording. Strings are NULL and numbers 0 if the file has no value. */
struct profile_run {
	uint64_t started_ns, ended_ns; /* CLOCK_REALTIME; ended_ns 0: it continues, or was killed */
	int32_t pid;
	const char *command, *mode, *python, *probing, *host;
	double hz;
};

/* A whole recording's calling-context tree, in memory; parents come before children. */
struct profile {
	struct profile_frame *frames;
	size_t n_frames;
	struct profile_stack *stacks;
	size_t n_stacks;
	struct profile_total *totals;
	size_t n_totals;
	const char **labels; /* values of a column of samples by which totals are split; none unless requested */
	size_t n_labels, labels_allocated;
	int32_t nothing; /* index plus 1 into frames: stands below a label if no other frame does; 0: no labels were put */
	struct profile_thread *threads;
	size_t n_threads;
	struct profile_sample *samples; /* in the order of time; NULL unless requested, and if there are none */
	size_t n_samples;
	struct profile_run run;
	const char *unit;        /* of weights ("page-faults"); NULL: nanoseconds */
	struct strings *strings; /* owner of the strings */
	/* Filter of profile_path(). Both are set by the loader's caller. */
	bool python_only; /* Python functions, tasks, and reasons of waits */
	bool *is_root;    /* by frame: a stack begins with its outermost shown one; NULL: unchanged; owned */
};

/*
 * profile_frame_module - whose code a frame is: of Python its source file, of native code the file it was
 * mapped from; "[kernel]", "[tasks]", "[waits]", and "[python]" or "[anonymous]" where it is not known. Never
 * NULL, borrowed from the frame.
 */
const char *profile_frame_module(const struct profile_frame *frame);

/* profile_frame_is_libc - whether a frame is code of the C library, by the name of the file that it was mapped from. */
bool profile_frame_is_libc(const struct profile_frame *frame);

/*
 * profile_label_files - set the labels of all frames: the shortest ends of paths that are unique among the recording's
 * files and modules (base/file_labels.h). Loading a profile does that. -ENOMEM, -EOVERFLOW.
 */
int profile_label_files(struct profile *profile);
/* profile_show_full_paths - use whole paths as labels from now on. */
void profile_show_full_paths(struct profile *profile);

/*
 * profile_frame_place - the file shown with a function's name, "work (alpha/base.py)": for Python always, for native
 * code if functions of several files have that name (the module if the file is unknown). NULL: none. Borrowed.
 */
const char *profile_frame_place(const struct profile_frame *frame);

/* profile_frame_module_label - profile_frame_module() as it is shown. */
const char *profile_frame_module_label(const struct profile_frame *frame);

/* Rows of time that was not sampled are no samples: their totals keep a weight alone. Loading a profile does that. */
void profile_count_sampled(struct profile *profile);

/* Whether a stack, -1: none, is one of samples, and not of time that was not sampled. */
bool profile_is_sampled(const struct profile *profile, int32_t stack);
/* Whether it has neither samples nor time that was not sampled. */
bool profile_is_empty(const struct profile *profile);
/* Whether samples weigh anything at all, and whether some weigh more than others. */
bool profile_has_weights(const struct profile *profile);
bool profile_weights_differ(const struct profile *profile);
/*
 * profile_drop_weights - remove weights, so that numbers of samples are shown instead. Removes unsampled time,
 * too.
 */
void profile_drop_weights(struct profile *profile);

/*
 * profile_put_labels - make the labels of totals the outermost frames of their stacks, and leave no labels. A stack that has
 * several labels becomes several. Time that was not sampled has none. Call it after the filter (python_only) is set.
 * @none: of totals without a label; copied. Errors: -ENOMEM; -EOVERFLOW more than 2^31 stacks.
 */
int profile_put_labels(struct profile *profile, const char *none);

/* The row of a thread, NULL: there is none. */
const struct profile_thread *profile_find_thread(const struct profile *profile, int32_t pid, int32_t tid);

/* Shown for a stack without any shown frame: "[no stack]", or that it has nothing in Python. */
const char *profile_nothing(const struct profile *profile);

void profile_free(struct profile *profile);
void profile_freep(struct profile **profile);

/*
 * profile_path - the shown frames of one stack, outermost first.
 * @show_interpreter: false folds interpreter-internal functions: evaluation
 *   frames, functions of role internal, and frames between an evaluation
 *   and the builtin it calls; also the kernel's functions in a wait whose kind is known.
 *   Never hides functions of the user, or builtins.
 *   Inlined functions come as frames of their own.
 * @path: receives indices into profile->frames; at most max of them. Longer
 *   stacks keep their outermost max.
 * Returns how many were written.
 */
size_t profile_path(const struct profile *profile, int32_t stack, bool show_interpreter, int32_t *path, size_t max);

/* ---- Filling a profile ---- */

/* profile_new - a profile without rows, ended with profile_free(). -ENOMEM. */
int profile_new(struct profile **ret);

/*
 * profile_add_string - copy n_bytes and a NUL.
 * @ret: lives as long as the profile; never moves.
 * Errors: -ENOMEM.
 */
int profile_add_string(struct profile *profile, const char *text, size_t n_bytes, const char **ret);

/* A function inlined deeper than this is damage; compilers stop far earlier. */
enum { PROFILE_MAX_INLINED = 64 };

/*
 * profile_check_inlined - every chain of inlined functions ends, within PROFILE_MAX_INLINED.
 * Errors: -EBADMSG.
 */
int profile_check_inlined(const struct profile *profile);

/*
 * profile_order_stacks - bring parents before their children.
 * Stacks' parents and the stacks of totals and samples are valid indices or -1; they follow.
 * Errors: -EBADMSG a stack is its own ancestor; -ENOMEM.
 */
int profile_order_stacks(struct profile *profile);

/* Bring samples in the order of their times. */
void profile_order_samples(struct profile *profile);

#endif
