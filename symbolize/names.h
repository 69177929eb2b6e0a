/* SPDX-License-Identifier: MIT */
/* names.h - names made for display: demangled, shortened, kept once. */
#ifndef PROBING_SYMBOLIZE_NAMES_H
#define PROBING_SYMBOLIZE_NAMES_H

#include <stddef.h>

/* Longer names, and files', with their NUL, are no names for people, and are left out. */
#define NAME_MAX_BYTES 32768

/*
 * name_base_length - bytes of a symbol without a compiler's suffix for a part or copy
 * of a function, or a version: 3 for "foo.cold", "foo.part.0.isra.1",
 * "foo@GLIBC_2.2.5".
 */
size_t name_base_length(const char *linkage);

/*
 * name_readable - a linkage name as a reader knows it: C++ and Rust demangled,
 * without parameters, long template arguments cut to "<...>"; others as they
 * are without the compiler's appendix.
 * @ret: owned by the caller. Errors: -ENOMEM.
 */
int name_readable(const char *linkage, char **ret);

/* A map from strings to strings; it keeps both. */
struct names;
int names_new(struct names **ret);
void names_free(struct names *names);
void names_freep(struct names **names);

/* names_keep - one lasting copy of a string. Errors: -ENOMEM. */
int names_keep(struct names *names, const char *string, const char **ret);

/* names_readable - name_readable(), done once per linkage name. Errors: -ENOMEM. */
int names_readable(struct names *names, const char *linkage, const char **ret);

#endif
