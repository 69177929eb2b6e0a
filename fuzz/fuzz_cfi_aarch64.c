/* SPDX-License-Identifier: MIT */
/* fuzz_cfi_aarch64.c - fuzz_cfi.c over the unwinder as compiled for aarch64.
 *
 * The input is the same. The corpus is made of fixtures/aarch64/, with the PC in
 * a stub of the PLT, behind the prologue of a function with a signed return
 * address, and in a signal trampoline written over a function without CFI.
 */
#include "fuzz/fuzz_cfi.c"
