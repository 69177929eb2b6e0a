/* SPDX-License-Identifier: MIT */
/* file_labels.h - short names for files: the shortest end of each path that distinguishes it from the others.
 *
 *   /usr/lib/python3.11/json/__init__.py                        json/__init__.py
 *   /venv/lib/python3.11/site-packages/torch/nn/__init__.py     torch/nn/__init__.py
 *   /home/anna/train.py                                         train.py
 *
 * A label consists of whole components. If the last one is not unique, a file of a Python library gets its path below
 * the root of imports (site-packages, dist-packages, lib/python3.11). Labels of __init__.py and __main__.py always
 * include their folder, which names the package.
 */
#ifndef PROBING_BASE_FILE_LABELS_H
#define PROBING_BASE_FILE_LABELS_H

#include <stddef.h>

/*
 * file_labels_find - the label of each of n paths. Equal paths get equal labels, different ones different labels.
 * @ret: n pointers, each to the end of its path. Time grows with n log n.
 * Errors: -ENOMEM.
 */
int file_labels_find(const char *const *paths, size_t n, const char **ret);

#endif
