/* SPDX-License-Identifier: MIT */
/* place.h - the destination of a file: a folder, held by a descriptor, and a name in it.
 *
 * A path is walked once, part by part. Renamed folders and swapped links have no effect afterwards: all later
 * calls are relative to the descriptor.
 */
#ifndef PROBING_BASE_PLACE_H
#define PROBING_BASE_PLACE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* Errors of this header, negated as others are; place_explain() has their sentences. */
enum {
	PLACE_EOTHERS_LINK = EKEYREJECTED, /* another user's symbolic link, which may mislead */
	PLACE_EOTHERS_FILE = EKEYREVOKED,  /* another user's file, in a folder where everybody may create files */
	PLACE_EOTHERS_BESIDE =
		EKEYEXPIRED,      /* another user's file beside a database, which SQLite would use as a part of it */
	PLACE_ENO_READER = EPIPE, /* a FIFO without a reader */
	PLACE_ECHANGED = ESTALE,  /* the name now refers to another file */
};

struct place {
	int folder; /* O_PATH: for the *at() calls; -1: not open */
	char *name; /* one part of a path, no symbolic link unless is_magic */
	bool exists;
	bool is_others; /* another user may have planted it: place_find() refuses it */
	bool is_magic;  /* a procfs link without a path (a pipe): only the kernel can follow it */
	struct stat st; /* of the named file; valid if exists */
	struct stat folder_st;
};

/*
 * place_find - walk a path; opens nothing for writing, and creates nothing. Follows a symbolic link if its owner is
 * the caller, root, or the owner of the file behind it. If there is no file yet, the owner of its folder counts.
 * Follows a link to a folder, too, if its owner owns the folder that contains it. In a folder that everybody may
 * write to, it accepts only files of the caller, root and the folder's owner. This is stricter than the kernel,
 * whose sysctls for it may be off.
 * @ret: ended with place_done(), also after a failed call.
 * Errors: -EISDIR a path that ends with a slash, "." or ".."; -PLACE_EOTHERS_LINK, -PLACE_EOTHERS_FILE; -ELOOP more
 * than 40 links; -ENOMEM; what openat(2) and fstatat(2) report.
 * Source: Documentation/admin-guide/sysctl/fs.rst, protected_symlinks, protected_fifos and protected_regular.
 */
int place_find(const char *path, struct place *ret);
/*
 * place_find_file - the same for a file that the user names to change it in place. It may have any owner, since its
 * owner can change it anyway. Errors: those of place_find() except -PLACE_EOTHERS_FILE.
 */
int place_find_file(const char *path, struct place *ret);
void place_done(struct place *place);

/*
 * place_open - open an existing file for writing; keeps its contents. Never waits.
 * Returns a descriptor without O_NONBLOCK. Errors: -PLACE_ENO_READER; -PLACE_ECHANGED; what openat(2) reports.
 */
int place_open(const struct place *place);

/* place_folder_path - the path of a folder's descriptor, without links, as it is now. Owned by the caller. */
int place_folder_path(int folder, char **ret);

/* Whether a name in a folder refers to this file; whether both are one file. */
bool place_is(int folder, const char *name, const struct stat *file);
bool place_is_same(const struct stat *one, const struct stat *other);

/* place_remove - unlink a name if it still refers to the file that we created. Negative errno; 0 if it does not. */
int place_remove(int folder, const char *name, const struct stat *made);

/* place_explain - one sentence for a negative errno of a file to be written; it begins with the path. */
void place_explain(int error, const char *path, char *to, size_t n_bytes);

#endif
