/* SPDX-License-Identifier: MIT */
/* place.h - where a file is to be: a folder, held by a descriptor, and a name in it.
 *
 * A path is walked once, part by part. Whoever renames folders or swaps links afterwards changes nothing: all
 * that follows is relative to the descriptor.
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
 * place_find - walk a path; nothing is opened for writing, and nothing made.
 * Symbolic links are followed where the caller or root has made them, or the owner of the file that they lead to (of its
 * folder, where there is no file yet); links to folders also where the owner of the folder in which they lie has. In a
 * folder that everybody may write to nothing is used that belongs to anybody but the caller, root and the owner of the
 * folder. This is stricter than the kernel, which has sysctls for it that may be off.
 * @ret: ended with place_done(), which a failed call makes harmless, too.
 * Errors: -EISDIR a path that ends with a slash, "." or ".."; -PLACE_EOTHERS_LINK, -PLACE_EOTHERS_FILE; -ELOOP more than
 * 40 links; -ENOMEM; what openat(2) and fstatat(2) report.
 * Source: Documentation/admin-guide/sysctl/fs.rst, protected_symlinks, protected_fifos and protected_regular.
 */
int place_find(const char *path, struct place *ret);
/*
 * place_find_file - the same of a file that its user names to be changed where it is: it may belong to anybody, since
 * whoever owns it could change it, too. Errors: those of place_find() but -PLACE_EOTHERS_FILE.
 */
int place_find_file(const char *path, struct place *ret);
void place_done(struct place *place);

/*
 * place_open - open what is there for writing; its contents stay. Never waits.
 * Returns a descriptor without O_NONBLOCK. Errors: -PLACE_ENO_READER; -PLACE_ECHANGED; what openat(2) reports.
 */
int place_open(const struct place *place);

/* place_folder_path - the path of a folder's descriptor, without links, as it is now. Owned by the caller. */
int place_folder_path(int folder, char **ret);

/* Whether a name in a folder means this file; whether both are one file. */
bool place_is(int folder, const char *name, const struct stat *file);
bool place_is_same(const struct stat *one, const struct stat *other);

/* place_remove - unlink a name, but only while it means the file that we made. Negative errno; 0 where it does not. */
int place_remove(int folder, const char *name, const struct stat *made);

/* place_explain - a negative errno of a file that is to be written, as one sentence that begins with its path. */
void place_explain(int error, const char *path, char *to, size_t n_bytes);

#endif
