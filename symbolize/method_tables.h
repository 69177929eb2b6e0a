/* SPDX-License-Identifier: MIT */
/* method_tables.h - C functions that Python code can call, by address.
 *
 * An interpreter or extension module names its builtins in its data: arrays of
 * PyMethodDef, hung on modules and types, and the slots of types. Nothing of
 * it can be stripped.
 */
#ifndef PROBING_SYMBOLIZE_METHOD_TABLES_H
#define PROBING_SYMBOLIZE_METHOD_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/cache_entry.h"
#include "symbolize/image.h"
#include "symbolize/python_module.h"

/* In order of preference for a function of several kinds. */
enum method_kind {
	METHOD_DEFINED, /* in a PyMethodDef: len, str.join */
	METHOD_SLOT,    /* of a type: _json.Scanner.__call__ */
	METHOD_GETTER,  /* of an attribute: method_descriptor.__doc__ */
	METHOD_GLUE,    /* the interpreter's table of slots that call Python methods */
};

struct method {
	uint64_t address;
	const char *owner;  /* module or type; NULL: builtins */
	const char *member; /* begins with a blank where it is not a name; NULL: the owner is called */
	uint8_t kind;
	bool is_body;      /* reached by a jump that is all of the method in the table */
	bool is_shared;    /* it has several owners or names: this is one of them */
	bool is_ambiguous; /* the members differ as well */
};

/* Default owners for the methods of a file; NULL: none. */
struct method_file {
	const char *stem;    /* "torch_python" of libtorch_python.so */
	const char *package; /* owner of static methods, which packages show as their functions: "torch" */
};

struct method_tables;

/*
 * method_tables_new - scan an image for tables.
 * @image:  may end before the result; the file behind it may not.
 * @python: the file's relation to Python.
 * @file:   default owners of methods. Its strings are borrowed.
 * Damaged or foreign data only yields less. Errors: -ENOMEM; those of effort.h.
 */
int method_tables_new(const struct image *image, const struct python_module *python, const struct method_file *file,
		      struct method_tables **ret);

/*
 * method_tables_restore - the same from a cache. @methods: n of them, which need not be valid. @strings: borrowed,
 * n_strings bytes that end with a NUL. Errors: -EBADMSG out of order, or of no kind; -ENOMEM; those of effort.h.
 */
int method_tables_restore(const struct cache_method *methods, size_t n, const char *strings, size_t n_strings,
			  struct method_tables **ret);
void method_tables_free(struct method_tables *tables);
void method_tables_freep(struct method_tables **tables);

/* The method whose code starts at an address; NULL: none. */
const struct method *method_tables_find(const struct method_tables *tables, uint64_t address);

/* The n-th in order of address; NULL past the last. */
const struct method *method_tables_nth(const struct method_tables *tables, size_t n);

/*
 * method_format - the name Python code knows a method by.
 * "sorted", "str.join", "list comparison"; for a shared one only "isdisjoint".
 * @ret: owned by the caller. Errors: -ENOMEM.
 */
int method_format(const struct method *method, char **ret);

#endif
