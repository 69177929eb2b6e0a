/* machine.h - what the rest needs to know about the processor.
 *
 * Registers are numbered as DWARF numbers them on the machine at hand
 * (System V ABI, AMD64 supplement, figure 3.36). One file per machine,
 * machine_<name>.c, defines the constants below.
 */
#ifndef PROBING_BASE_MACHINE_H
#define PROBING_BASE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
enum {
	MACHINE_N_REGS = 17,
	MACHINE_REG_FP = 6,  /* rbp */
	MACHINE_REG_SP = 7,  /* rsp */
	MACHINE_REG_PC = 16, /* rip */
	MACHINE_REG_RETURN = 16, /* the column that CFI gives return addresses */
	MACHINE_SIGNS_RETURN_ADDRESSES = 0,
};
#define MACHINE_USER_END (UINT64_C(1) << 56) /* no address of a program lies behind */
#else
#error "no machine_<name>.c for this processor yet"
#endif

/* A return address as saved, without what the processor may have signed it with. */
static inline uint64_t machine_return_address(uint64_t saved)
{
	return saved;
}

struct regs {
	uint64_t value[MACHINE_N_REGS];
};

/* Mask for perf_event_attr.sample_regs_user: all that struct regs holds. */
extern const uint64_t machine_perf_regs_mask;

/* Registers that a called function must keep (without SP), as DWARF numbers. */
extern const unsigned machine_callee_saved[];
extern const unsigned machine_n_callee_saved;

/*
 * machine_regs_from_perf - put perf's register dump into DWARF order.
 * @dump: one word per bit of machine_perf_regs_mask, lowest bit first.
 * Source: arch/x86/include/uapi/asm/perf_regs.h, Linux 6.12.
 */
void machine_regs_from_perf(const uint64_t *dump, struct regs *ret);

/*
 * machine_is_after_call - can code that follows these bytes be returned to?
 * @before: the MACHINE_CALL_BYTES bytes before a supposed return address.
 */
enum { MACHINE_CALL_BYTES = 7 };
bool machine_is_after_call(const uint8_t *before);

#endif
