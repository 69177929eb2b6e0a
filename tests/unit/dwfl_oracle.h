/* SPDX-License-Identifier: MIT */
/* dwfl_oracle.h - the same stack as libdwfl unwinds it, to compare ours with.
 *
 * One Dwfl is kept per process; registers and stack bytes come from a struct
 * sample, other memory from a struct remote or not at all. Used by the tests of
 * unwind/native and by bench/unwind.c.
 */
#ifndef PROBING_TESTS_DWFL_ORACLE_H
#define PROBING_TESTS_DWFL_ORACLE_H

#include <elfutils/libdwfl.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/sample.h"
#include "base/util.h"

struct oracle_frame {
	uint64_t pc, sp;
	bool is_activation; /* pc is the instruction itself, not a return address */
};

struct oracle {
	Dwfl *dwfl;
	pid_t pid;
	bool want_sp; /* ask for the stack pointers too, which takes a little more time */
	struct oracle_frame *frames;
	size_t n_frames, frames_allocated;
	const struct sample *sample;
	struct remote *remote; /* NULL: only the captured bytes */
};

static inline bool oracle_read(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *ret, void *argument)
{
	struct oracle *oracle = argument;
	const struct sample *sample = oracle->sample;
	uint64_t offset = address - sample->regs.value[MACHINE_REG_SP];

	(void)dwfl;
	if (offset < sample->stack_bytes && sample->stack_bytes - offset >= sizeof *ret) {
		memcpy(ret, sample->stack + offset, sizeof *ret);
		return true;
	}
	return oracle->remote && remote_read(oracle->remote, RADDR(address), ret, sizeof *ret) == 0;
}

static inline bool oracle_registers(Dwfl_Thread *thread, void *argument)
{
	const struct oracle *oracle = argument;
	const struct regs *regs = &oracle->sample->regs;
	Dwarf_Word values[MACHINE_N_REGS];

	for (unsigned i = 0; i < MACHINE_N_REGS; i++)
		values[i] = regs->value[i];
	dwfl_thread_state_register_pc(thread, regs->value[MACHINE_REG_PC]);
	return dwfl_thread_state_registers(thread, 0, MACHINE_N_REGS, values);
}

static inline pid_t oracle_next_thread(Dwfl *dwfl, void *argument, void **thread)
{
	struct oracle *oracle = argument;

	(void)dwfl;
	if (*thread)
		return 0;
	*thread = oracle;
	return oracle->pid;
}

static inline bool oracle_get_thread(Dwfl *dwfl, pid_t tid, void *argument, void **thread)
{
	(void)dwfl;
	(void)tid;
	*thread = argument;
	return true;
}

/* Do not search separate debug files: the test must not use the network. */
static inline int oracle_no_debuginfo(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
				      const char *file, const char *link, GElf_Word crc, char **ret)
{
	(void)module, (void)data, (void)name, (void)base, (void)file, (void)link, (void)crc, (void)ret;
	return -1;
}

/* @oracle: zeroed; ended with oracle_close(). Maps are read once, now. -ESRCH, -EIO. */
static inline int oracle_open(struct oracle *oracle, pid_t pid)
{
	static const Dwfl_Callbacks files = {
		.find_elf = dwfl_linux_proc_find_elf,
		.find_debuginfo = oracle_no_debuginfo,
	};
	static const Dwfl_Thread_Callbacks threads = {
		.next_thread = oracle_next_thread,
		.get_thread = oracle_get_thread,
		.memory_read = oracle_read,
		.set_initial_registers = oracle_registers,
	};

	oracle->pid = pid;
	oracle->dwfl = dwfl_begin(&files);
	if (!oracle->dwfl || dwfl_linux_proc_report(oracle->dwfl, pid) != 0 ||
	    dwfl_report_end(oracle->dwfl, NULL, NULL) != 0)
		return -ESRCH;
	return dwfl_attach_state(oracle->dwfl, NULL, pid, &threads, oracle) ? 0 : -EIO;
}

static inline void oracle_close(struct oracle *oracle)
{
	if (oracle->dwfl)
		dwfl_end(oracle->dwfl);
	free(oracle->frames);
	memset(oracle, 0, sizeof *oracle);
}

static inline int oracle_visit(Dwfl_Frame *state, void *argument)
{
	struct oracle *oracle = argument;
	struct oracle_frame *frame;

	if (grow(&oracle->frames, oracle->n_frames, &oracle->frames_allocated, sizeof *frame) < 0)
		return DWARF_CB_ABORT;
	frame = &oracle->frames[oracle->n_frames];
	frame->sp = 0;
	if (!dwfl_frame_pc(state, &frame->pc, &frame->is_activation))
		return DWARF_CB_ABORT;
	if (oracle->want_sp && dwfl_frame_reg(state, MACHINE_REG_SP, &frame->sp) != 0)
		frame->sp = 0;
	oracle->n_frames++;
	return DWARF_CB_OK;
}

/* Returns 0 when libdwfl reached an end it believes in, -EIO when it gave up on the way. */
static inline int oracle_unwind(struct oracle *oracle, const struct sample *sample, struct remote *remote)
{
	oracle->sample = sample;
	oracle->remote = remote;
	oracle->n_frames = 0;
	return dwfl_getthread_frames(oracle->dwfl, oracle->pid, oracle_visit, oracle) == 0 ? 0 : -EIO;
}

#endif
