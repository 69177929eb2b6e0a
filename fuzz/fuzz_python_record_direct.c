/* SPDX-License-Identifier: MIT */
/* fuzz_python_record_direct.c - fuzz_python_record.c over the program as it is where memory can be read by page tables.
 *
 * The input is the same, and so is the corpus.
 */
#define HAVE_DIRECT_MAP
#include "fuzz/fuzz_python_record.c"
