/* SPDX-License-Identifier: MIT */
/* machine_return_address() where it is an instruction: on aarch64, or qemu-aarch64.
 *
 * Exit status: 0 what was signed comes back, 1 it does not, 2 nothing is ever signed here.
 */
#include "base/machine.h"

static uint64_t sign(uint64_t address, uint64_t modifier)
{
	register uint64_t x17 __asm__("x17") = address;
	register uint64_t x16 __asm__("x16") = modifier;

	__asm__("hint #8" : "+r"(x17) : "r"(x16)); /* pacia1716 */
	return x17;
}

int main(void)
{
	uint64_t address = (uint64_t)(uintptr_t)main;
	int n_signed = 0;

	for (uint64_t modifier = 0; modifier < 64; modifier++) {
		uint64_t stored = sign(address, modifier * 16);

		n_signed += stored != address;
		if (machine_return_address(stored) != address)
			return 1;
	}
	return n_signed > 0 && machine_return_address(address) == address ? 0 : 2;
}
