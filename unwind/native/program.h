/* SPDX-License-Identifier: MIT */
/* program.h - rows straight from the programs in .eh_frame. Private to this folder. */
#ifndef PROBING_PROGRAM_H
#define PROBING_PROGRAM_H

#include "base/elf_file.h"
#include "unwind/native/row.h"

/*
 * program_row - run a function's program up to one address.
 * @cfi:     of the function that holds @address.
 * @address: the module's own.
 * @slow:    filled (owned by the caller, ended with cfi_slow_done) when needed.
 * Returns 1 when slow was filled, 0 when not.
 * Errors: -EOPNOTSUPP rare operations, which libdw may support; -EBADMSG an invalid
 *         program; -ENOMEM.
 * Source: DWARF 5, 6.4.2 "Call Frame Instructions"; System V ABI, AMD64 supplement;
 *         DWARF for the Arm 64-bit Architecture, 2023Q3.
 */
int program_row(const struct elf_cfi *cfi, uint64_t address, struct cfi_row *ret, struct cfi_slow *slow);

/*
 * program_rows - all rows of a function, by one run of its program.
 * @take: called for [start, end) after [start, end), in order of address; takes ownership of a slow that it keeps; not
 *        called for ranges that need libdw. A value other than 0 ends the run.
 * Returns 0, the value of take(), or errors as above: ranges taken before remain valid.
 */
struct program_taker {
	int (*take)(void *data, uint64_t start, uint64_t end, const struct cfi_row *row, struct cfi_slow *slow,
		    bool kept);
	void *data;
};
int program_rows(const struct elf_cfi *cfi, const struct program_taker *taker);

#endif
