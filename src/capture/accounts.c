/* SPDX-License-Identifier: MIT */
/* accounts.c - see accounts.h.
 *
 * The kernel counts nanoseconds, and reports ticks (_SC_CLK_TCK, mostly 10 ms), in four numbers: of the process and of
 * the children that it has waited for, in user mode and in the kernel. Each is rounded down.
 *
 * What a child used between its last reading and its end shows only in its parent's account, among the time of others that
 * ended there. If the child is left out, so is all that arrived since that reading: too little is better than time that nobody
 * could have sampled.
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

struct ticks {
	int parent;
	uint64_t own_ns, children_ns;
};

/* Fields 4 and 14 to 17 of proc_pid_stat(5). Errors: -ENOENT or -ESRCH if the process is gone, -EBADMSG; those of read(2). */
static int read_ticks(pid_t pid, struct ticks *ret)
{
	CLEANUP(freep) char *text = NULL;
	uint64_t own[2], children[2];
	const char *rest;
	char path[64];
	int r, parent;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	r = read_file(path, 4096, &text, NULL);
	if (r < 0)
		return r;
	rest = strrchr(text, ')'); /* the name may contain any character */
	if (!rest ||
	    sscanf(rest + 1, " %*c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
		   &parent, &own[0], &own[1], &children[0], &children[1]) != N_NUMBERS + 1)
		return -EBADMSG;
	*ret = (struct ticks){ parent, (own[0] + own[1]) * tick_ns(), (children[0] + children[1]) * tick_ns() };
	return 0;
}

/* Close the account of an ended child of ours with its final CPU time. Returns false if it has not ended, or is none. */
static bool end(struct account *account)
{
	struct ticks ticks;
	uint64_t used_ns;

	if (!read_ended_child(account->pid, &used_ns))
		return false;
	if (read_ticks(account->pid, &ticks) >= 0)
		account->children_ns = ticks.children_ns;
	account->now_ns = MAX(account->now_ns, used_ns);
	account->has_ended = account->is_exact = true;
	return true;
}

/* Returns false if the process is gone. */
static bool read_one(const struct accounts *accounts, struct account *account)
{
	struct ticks ticks;
	int r;

	if (account->has_ended || (!accounts->no_children && end(account)))
		return true;
	r = read_ticks(account->pid, &ticks);
	if (r < 0)
		return r != -ENOENT && r != -ESRCH;
	account->parent = ticks.parent;
	account->children_ns = ticks.children_ns;
	account->now_ns = MAX(account->now_ns, ticks.own_ns + (accounts->no_children ? 0 : ticks.children_ns));
	if (account->is_left_out)
		account->base_ns = account->now_ns;
	return true;
}

/* The latest with this PID: PIDs are reused. */
static struct account *find(const struct accounts *accounts, pid_t pid)
{
	for (size_t i = accounts->n; i-- > 0;)
		if (accounts->items[i].pid == pid)
			return &accounts->items[i];
	return NULL;
}

/* Whether it ended unseen: what its children used then is in the account of its own parent, if anywhere. */
static bool is_lost(const struct account *account)
{
	return account->has_ended && !account->is_exact;
}

/*
 * The process is gone. If its parent has waited for it, its whole life is now in the parent's account: leave it there, without
 * the time before it counted. A parent that ignores SIGCHLD gets nothing. Source: wait_task_zombie(), kernel/exit.c, Linux 6.18.
 */
static void move_to_parent(const struct accounts *accounts, struct account *account)
{
	struct account *parent = find(accounts, account->parent);
	uint64_t arrived_ns, unknown_ns;

	account->has_ended = true;
	for (size_t i = 0; parent && is_lost(parent) && i < accounts->n; i++)
		parent = find(accounts, parent->parent);
	if (accounts->no_children || !parent || is_lost(parent))
		return;
	(void)read_one(accounts, parent);
	if (parent->children_ns < parent->moved_ns + account->now_ns)
		return;
	parent->moved_ns += account->now_ns;
	parent->base_ns += account->base_ns;
	account->base_ns = account->now_ns;
	if (!account->is_left_out)
		return;
	arrived_ns = parent->children_ns - MIN(parent->children_ns, parent->earlier_ns + account->now_ns);
	unknown_ns = MIN(arrived_ns, parent->children_ns - parent->moved_ns);
	parent->moved_ns += unknown_ns;
	parent->base_ns += unknown_ns;
}

static int add(struct accounts *accounts, pid_t pid, struct account **ret)
{
	int r = grow(&accounts->items, accounts->n, &accounts->allocated, sizeof *accounts->items);

	if (r < 0)
		return r;
	*ret = &accounts->items[accounts->n++];
	**ret = (struct account){ .pid = pid };
	(void)read_one(accounts, *ret);
	(*ret)->moved_ns = (*ret)->earlier_ns = (*ret)->children_ns;
	return 0;
}

int accounts_add(struct accounts *accounts, pid_t pid)
{
	struct account *account = find(accounts, pid);
	int r;

	if (account && !account->is_left_out && (!account->has_ended || account->is_exact))
		return 0;
	r = account && !account->has_ended ? 0 : add(accounts, pid, &account);
	if (r < 0)
		return r;
	(void)read_one(accounts, account);
	account->is_left_out = false;
	account->base_ns = account->now_ns;
	return 0;
}

int accounts_add_born(struct accounts *accounts, pid_t pid)
{
	struct account *account = find(accounts, pid);

	return account && !(account->is_left_out && account->has_ended) ? 0 : add(accounts, pid, &account);
}

int accounts_leave_out(struct accounts *accounts, pid_t pid)
{
	struct account *account = find(accounts, pid);
	int r;

	if (account && !account->has_ended)
		return 0;
	r = add(accounts, pid, &account);
	if (r < 0)
		return r;
	account->is_left_out = true;
	account->base_ns = account->now_ns;
	return 0;
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

		if (!account->is_orphan || !end(account))
			continue;
		(void)waitpid(account->pid, NULL, WNOHANG);
		account->is_orphan = false;
		accounts->n_orphans--;
	}
}

static void read_those(struct accounts *accounts, bool left_out)
{
	for (size_t i = 0; i < accounts->n; i++)
		if (accounts->items[i].is_left_out == left_out && !read_one(accounts, &accounts->items[i]))
			move_to_parent(accounts, &accounts->items[i]);
}

/* Others last: what their parents' accounts still lack an explanation for was theirs. */
void accounts_read(struct accounts *accounts)
{
	read_those(accounts, false);
	read_those(accounts, true);
	for (size_t i = 0; i < accounts->n; i++)
		accounts->items[i].earlier_ns = accounts->items[i].children_ns;
	accounts->read_ns = monotonic_ns();
}

void accounts_read_sometimes(struct accounts *accounts, uint64_t now_ns)
{
	if (accounts->n > 0 && now_ns >= accounts->read_ns + SOMETIMES_NS)
		accounts_read(accounts);
}

uint64_t account_used(const struct account *account)
{
	return account->now_ns - MIN(account->now_ns, account->base_ns);
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
	for (size_t i = 0; i < accounts->n; i++) {
		accounts->items[i].base_ns = accounts->items[i].now_ns;
		accounts->items[i].moved_ns = accounts->items[i].children_ns;
	}
}

uint64_t accounts_resolution(const struct accounts *accounts)
{
	uint64_t sum_ns = 0;

	for (size_t i = 0; i < accounts->n; i++)
		if (!accounts->items[i].is_exact && !accounts->items[i].is_left_out)
			sum_ns += N_NUMBERS * tick_ns();
	return sum_ns;
}
