/* SPDX-License-Identifier: MIT */
/* prune.h - debug information without the types and variables of C. Private to this folder. */
#ifndef PROBING_SYMBOLIZE_PRUNE_H
#define PROBING_SYMBOLIZE_PRUNE_H

#include <stddef.h>
#include <stdint.h>

/*
 * prune_types - free the memory of types, which names and lines do not use, in units of C.
 * The entries before and after keep their place, and walks from sibling to sibling skip the gap. Units that are
 * not understood, or of another language, whose types contain functions, remain complete.
 * @info:    .debug_info, in anonymous memory that is ours to change.
 * @abbrevs: .debug_abbrev of the same file.
 * Errors: -ENOMEM; part may be freed then.
 * Source: DWARF 5, 7.5 "Format of Debugging Information".
 */
int prune_types(uint8_t *info, size_t n_info, const uint8_t *abbrevs, size_t n_abbrevs);

#endif
