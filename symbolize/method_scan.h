/* SPDX-License-Identifier: MIT */
/* method_scan.h - collect the C functions that Python code can call from an image. */
#ifndef PROBING_SYMBOLIZE_METHOD_SCAN_H
#define PROBING_SYMBOLIZE_METHOD_SCAN_H

#include <stddef.h>

#include "symbolize/image.h"
#include "symbolize/method_tables.h"
#include "symbolize/python_module.h"

/* In no order; a function appears once per table and owner that it is found in. */
struct method_list {
	struct method *methods;
	size_t n_methods, allocated;
};

/*
 * method_scan - find modules, types and methods in an image.
 * @file: default owners of methods. Borrowed.
 * @list: zeroed by the caller, who frees its methods, also after an error.
 * Errors: -ENOMEM.
 */
int method_scan(const struct image *image, const struct python_module *python, const struct method_file *file,
		struct method_list *list);

#endif
