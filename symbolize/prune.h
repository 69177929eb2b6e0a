/* SPDX-License-Identifier: MIT */
/* prune.h - debug information without the types and variables of C. Private to this folder. */
#ifndef PROBING_SYMBOLIZE_PRUNE_H
#define PROBING_SYMBOLIZE_PRUNE_H

#include <stddef.h>
#include <stdint.h>

/*
 * prune_types - give back the memory of what names and lines never lead to, in units of C.
 * The entries on both sides stay where they are, and who walks from one to its sibling comes past. Units that are
 * not understood, or of another language, whose types hold functions, stay whole.
 * @info:    .debug_info, in anonymous memory that is ours to change.
 * @abbrevs: .debug_abbrev of the same file.
 * Errors: -ENOMEM; part may be gone then.
 * Source: DWARF 5, 7.5 "Format of Debugging Information".
 */
int prune_types(uint8_t *info, size_t n_info, const uint8_t *abbrevs, size_t n_abbrevs);

#endif
