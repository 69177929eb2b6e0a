/* SPDX-License-Identifier: MIT */
/* accounts.c - see accounts.h.
 *
 * The kernel counts nanoseconds, and reports ticks (_SC_CLK_TCK, mostly 10 ms), in four numbers: of the process and of
 * the children that it has waited for, in user mode and in the kernel. Each is rounded down.
 */
#include "src/capture/accounts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"

enum { N_NUMBERS = 4, SOMETIMES_NS = 2000000000 };

void accounts_done(struct accounts *accounts)
{
	free(accounts->items);
	*accounts = (struct accounts){ 0 };
}

static uint64_t tick_ns(void)
{
	long n = sysconf(_SC_CLK_TCK);

	return 1000000000u / (uint64_t)(n > 0 ? n : 100);
}

/*
 * Read the CPU time of an ended child without reaping it, so that a later wait still works. Source: wait_task_zombie(),
 * kernel/exit.c.
 */
static bool read_ended_child(pid_t pid, uint64_t *ret_ns)
{
	struct rusage usage;
	siginfo_t info = { 0 };

	if (syscall(SYS_waitid, P_PID, pid, &info, WEXITED | WNOWAIT | WNOHANG, &usage) < 0 || info.si_pid != pid)
		return false;
	*ret_ns = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000u +
		  (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000u;
	return true;
}

/* Fields 14 to 17 of proc_pid_stat(5). */
static bool read_ticks(pid_t pid, bool no_children, uint64_t *ret_ns)
{
	CLEANUP(freep) char *text = NULL;
	uint64_t own[2], children[2];
	const char *rest;
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	if (read_file(path, 4096, &text, NULL) < 0)
		return false;
	rest = strrchr(text, ')'); /* the name may contain any character */
	if (!rest || sscanf(rest + 1,
			    " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
			    &own[0], &own[1], &children[0], &children[1]) != N_NUMBERS)
		return false;
	*ret_ns = (own[0] + own[1] + (no_children ? 0 : children[0] + children[1])) * tick_ns();
	return true;
}

/* Close the account with its final CPU time. */
static void end(struct account *account, uint64_t used_ns)
{
	account->now_ns = MAX(account->now_ns, used_ns);
	account->has_ended = account->is_exact = true;
}

static void read_one(const struct accounts *accounts, struct account *account)
{
	uint64_t now_ns;

	if (account->has_ended)
		return;
	if (!accounts->no_children && read_ended_child(account->pid, &now_ns))
		end(account, now_ns);
	else if (read_ticks(account->pid, accounts->no_children, &now_ns))
		account->now_ns = MAX(account->now_ns, now_ns);
}

static int add(struct accounts *accounts, pid_t pid, struct account **ret)
{
	int r = grow(&accounts->items, accounts->n, &accounts->allocated, sizeof *accounts->items);

	if (r < 0)
		return r;
	*ret = &accounts->items[accounts->n++];
	**ret = (struct account){ .pid = pid };
	read_one(accounts, *ret);
	return 0;
}

static bool is_there(const struct accounts *accounts, pid_t pid)
{
	for (size_t i = 0; i < accounts->n; i++)
		if (accounts->items[i].pid == pid)
			return true;
	return false;
}

int accounts_add(struct accounts *accounts, pid_t pid)
{
	struct account *account;
	int r;

	if (is_there(accounts, pid))
		return 0;
	r = add(accounts, pid, &account);
	if (r >= 0)
		account->base_ns = account->now_ns;
	return r;
}

int accounts_add_born(struct accounts *accounts, pid_t pid)
{
	struct account *account;

	return is_there(accounts, pid) ? 0 : add(accounts, pid, &account);
}

int accounts_add_orphan(struct accounts *accounts, pid_t pid)
{
	struct account *account;
	int r;

	r = add(accounts, pid, &account);
	if (r < 0)
		return r;
	account->is_orphan = true;
	accounts->n_orphans++;
	return 0;
}

void accounts_reap(struct accounts *accounts)
{
	for (size_t i = 0; accounts->n_orphans > 0 && i < accounts->n; i++) {
		struct account *account = &accounts->items[i];
		uint64_t used_ns;

		if (!account->is_orphan || !read_ended_child(account->pid, &used_ns))
			continue;
		end(account, used_ns);
		(void)waitpid(account->pid, NULL, WNOHANG);
		account->is_orphan = false;
		accounts->n_orphans--;
	}
}

void accounts_read(struct accounts *accounts)
{
	for (size_t i = 0; i < accounts->n; i++)
		read_one(accounts, &accounts->items[i]);
	accounts->read_ns = monotonic_ns();
}

void accounts_read_sometimes(struct accounts *accounts, uint64_t now_ns)
{
	if (accounts->n > 0 && now_ns >= accounts->read_ns + SOMETIMES_NS)
		accounts_read(accounts);
}

uint64_t account_used(const struct account *account)
{
	return account->now_ns - account->base_ns;
}

uint64_t accounts_sum(const struct accounts *accounts)
{
	uint64_t sum_ns = accounts->before_ns;

	for (size_t i = 0; i < accounts->n; i++)
		sum_ns += account_used(&accounts->items[i]);
	return sum_ns;
}

void accounts_pause(struct accounts *accounts)
{
	accounts_read(accounts);
	accounts->before_ns = accounts_sum(accounts);
	accounts_resume(accounts);
}

void accounts_resume(struct accounts *accounts)
{
	accounts_read(accounts);
	for (size_t i = 0; i < accounts->n; i++)
		accounts->items[i].base_ns = accounts->items[i].now_ns;
}

uint64_t accounts_resolution(const struct accounts *accounts)
{
	uint64_t sum_ns = 0;

	for (size_t i = 0; i < accounts->n; i++)
		if (!accounts->items[i].is_exact)
			sum_ns += N_NUMBERS * tick_ns();
	return sum_ns;
}
