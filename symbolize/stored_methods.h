/* SPDX-License-Identifier: MIT */
/* stored_methods.h - functions that code stores into method tables. Private to this folder.
 *
 * A C++ compiler fills a PyMethodDef at start-up if its function needs a cast that is no constant expression. The file
 * then has the method's name and flags, and a zero instead of the function.
 */
#ifndef PROBING_SYMBOLIZE_STORED_METHODS_H
#define PROBING_SYMBOLIZE_STORED_METHODS_H

#include <stdint.h>

#include "symbolize/image.h"

/*
 * stored_words_find - find code that stores a known word at a known address.
 * Follows words in general registers through straight code: LEA and MOV. x86-64 only; elsewhere it finds nothing.
 * @on_store: called for each store, also for bytes that only resemble one. A negative result ends the search.
 * Errors: the result of on_store; -ETIME.
 */
typedef int stored_word(void *context, uint64_t address, uint64_t word);
int stored_words_find(const struct image *image, stored_word *on_store, void *context);

#endif
