/* SPDX-License-Identifier: MIT */
/* file_labels.h - short names for files: the shortest end of each path that tells it from the others.
 *
 *   /usr/lib/python3.11/json/__init__.py                        json/__init__.py
 *   /venv/lib/python3.11/site-packages/torch/nn/__init__.py     torch/nn/__init__.py
 *   /home/anna/train.py                                         train.py
 *
 * A label is made of whole components. Where the last one does not do, a file of a Python library gets its path from
 * the folder that imports begin in (site-packages, dist-packages, lib/python3.11). __init__.py and __main__.py always
 * have their folder with them, since they are known by it.
 */
#ifndef PROBING_BASE_FILE_LABELS_H
#define PROBING_BASE_FILE_LABELS_H

#include <stddef.h>

/*
 * file_labels_find - the label of each of n paths. Equal paths get equal labels, different ones different labels.
 * @ret: n of them, each the end of its path. Time grows with n log n.
 * Errors: -ENOMEM.
 */
int file_labels_find(const char *const *paths, size_t n, const char **ret);

/* Number of components that the ends of two paths share. Public for its test: labels are as long as this says. */
size_t file_labels_shared(const char *a, const char *b);

#endif
