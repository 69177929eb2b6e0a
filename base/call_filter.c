/* SPDX-License-Identifier: MIT */
/* call_filter.c - see call_filter.h.
 *
 * The BPF program loads the call's number and compares it with one rule after the other. That costs no time in the
 * steady state: since Linux 5.11 the kernel caches the numbers that are allowed with any arguments
 * (seccomp_cache_prepare(), kernel/seccomp.c). A call of another instruction set kills the process, since its numbers
 * mean other calls.
 */
#include "base/call_filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __x86_64__
#define OWN_MACHINE AUDIT_ARCH_X86_64
#define FIRST_FOREIGN_CALL 0x40000000u /* x32's. Source: arch/x86/include/uapi/asm/unistd.h */
#elif defined(__aarch64__)
#define OWN_MACHINE AUDIT_ARCH_AARCH64
#define FIRST_FOREIGN_CALL UINT32_MAX
#else
#error "the filter needs to know how the kernel calls this machine"
#endif

enum { MAX_STATEMENTS = 1024 };

struct program {
	struct sock_filter statements[MAX_STATEMENTS];
	unsigned short n;
	bool overflowed;
};

static void add(struct program *program, struct sock_filter statement)
{
	if (program->n == MAX_STATEMENTS)
		program->overflowed = true;
	else
		program->statements[program->n++] = statement;
}

static void add_load(struct program *program, size_t offset)
{
	add(program, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

/* Continue if the comparison has the wanted result, else skip n_skipped statements. */
static void add_jump(struct program *program, uint16_t comparison, uint32_t value, bool wanted, uint8_t n_skipped)
{
	uint8_t if_true = wanted ? 0 : n_skipped, if_false = wanted ? n_skipped : 0;

	add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | comparison | BPF_K, value, if_true, if_false));
}

static void add_return(struct program *program, enum call_verdict verdict)
{
	static const uint32_t returned[] = {
		[CALL_ALLOWED] = SECCOMP_RET_ALLOW,
		[CALL_KILLS] = SECCOMP_RET_KILL_PROCESS,
		[CALL_NOT_THERE] = SECCOMP_RET_ERRNO | ENOSYS,
		[CALL_SIGNALS] = SECCOMP_RET_TRAP,
	};

	add(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, returned[verdict]));
}

/* The accumulator holds the call number before each rule. */
static void add_rule(struct program *program, const struct call_rule *rule)
{
	if (rule->condition == CALL_ALWAYS) {
		add_jump(program, BPF_JEQ, (uint32_t)rule->number, true, 1);
		add_return(program, rule->verdict);
		return;
	}
	add_jump(program, BPF_JEQ, (uint32_t)rule->number, true, 4);
	add_load(program, offsetof(struct seccomp_data, args) + 8 * rule->argument); /* low half, little-endian */
	add_jump(program, rule->condition == CALL_EQUALS ? BPF_JEQ : BPF_JSET, rule->value,
		 rule->condition != CALL_WITHOUT_BITS, 1);
	add_return(program, rule->verdict);
	add_load(program, offsetof(struct seccomp_data, nr));
}

static void add_own_machine(struct program *program)
{
	add_load(program, offsetof(struct seccomp_data, arch));
	add_jump(program, BPF_JEQ, OWN_MACHINE, false, 1);
	add_return(program, CALL_KILLS);
	add_load(program, offsetof(struct seccomp_data, nr));
	add_jump(program, BPF_JGE, FIRST_FOREIGN_CALL, true, 1);
	add_return(program, CALL_KILLS);
}

static unsigned n_installed;

int call_filter_install(const struct call_table *tables, size_t n_tables, enum call_verdict otherwise, bool all_threads)
{
	struct program program = { .n = 0 };
	struct sock_fprog wanted = { .filter = program.statements };
	long r;

	add_own_machine(&program);
	for (size_t i = 0; i < n_tables; i++)
		for (size_t j = 0; j < tables[i].n; j++)
			add_rule(&program, &tables[i].rules[j]);
	add_return(&program, otherwise);
	if (program.overflowed)
		return -E2BIG;
	wanted.len = program.n;
	r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, all_threads ? SECCOMP_FILTER_FLAG_TSYNC : 0, &wanted);
	if (r == 0)
		__atomic_add_fetch(&n_installed, 1, __ATOMIC_RELAXED);
	return r < 0 ? -errno : r > 0 ? -EBUSY : 0;
}

unsigned call_filter_count(void)
{
	return __atomic_load_n(&n_installed, __ATOMIC_RELAXED);
}
