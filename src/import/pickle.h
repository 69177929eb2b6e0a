/* SPDX-License-Identifier: MIT */
/* pickle.h - Python's pickle format, as far as plain data need it: numbers, text, lists, tuples and dicts. Runs nothing. */
#ifndef PROBING_IMPORT_PICKLE_H
#define PROBING_IMPORT_PICKLE_H

#include "src/import/marshal.h"

/*
 * pickle_read - the value of a pickle of protocol 2 to 5. Lists are tuples, None is MARSHAL_NONE, True is 1.
 *
 * An object of a class, which a pickle makes by a call, is refused: nothing in the file is called or imported.
 * A list may contain itself: bound each walk.
 * @bytes: borrowed for the life of the values. @ret: ended with marshal_done(), also after an error; the value is *ret_root.
 * Errors: -EBADMSG damaged; -EPROTONOSUPPORT it has an object of a class; -E2BIG more than MARSHAL_MAX_VALUES; -ENOMEM.
 * Source: CPython's Lib/pickletools.py, 3.8 to 3.15; torch/csrc/jit/serialization/pickler.cpp, 2.2 to 2.14.
 */
int pickle_read(const uint8_t *bytes, size_t n_bytes, struct marshal *ret, uint32_t *ret_root);

#endif
