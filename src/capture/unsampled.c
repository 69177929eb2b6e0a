/* SPDX-License-Identifier: MIT */
/* unsampled.c - see unsampled.h.
 *
 * An inherited event begins each child with a whole period, and a poll tick rarely finds a short child: a life
 * shorter than a period is hardly sampled. Lost records are missing, too. Both are in the kernel's account, and
 * are returned at the end as time without a stack.
 *
 * If each processor is sampled, samples of a process are proportional to its time, and the sum has an error: a
 * difference within three standard errors is not missing time.
 */
#include "src/capture/unsampled.h"

#include "base/proc.h"
#include "base/util.h"
#include "src/capture/children.h"

/* A smaller fraction of the total, or of the accounts' error, does not justify a row. */
enum { SHARE = 50 };

static int leave_out_children(struct capture *capture, pid_t pid)
{
	CLEANUP(task_set_done) struct task_set children = { 0 };
	int r;

	r = children_of(pid, &children);
	for (size_t i = 0; r >= 0 && i < children.n; i++)
		r = accounts_leave_out(&capture->accounts, children.tids[i]);
	return r;
}

/* Children from before the events, and their children, are not sampled. Visits those that it adds, too. */
static int leave_out_descendants(struct capture *capture, pid_t pid)
{
	const struct accounts *accounts = &capture->accounts;
	size_t n_before = accounts->n;
	int r;

	if (accounts->no_children)
		return 0;
	r = leave_out_children(capture, pid);
	for (size_t i = n_before; r >= 0 && i < accounts->n; i++)
		r = leave_out_children(capture, accounts->items[i].pid);
	return r;
}

/* Children that inherited the events, and so are sampled, have accounts of their own from now on. Visits those that it adds, too. */
static int add_born(struct capture *capture)
{
	struct accounts *accounts = &capture->accounts;
	int r = 0;

	for (size_t i = 0; r >= 0 && !accounts->no_children && i < accounts->n; i++) {
		CLEANUP(task_set_done) struct task_set children = { 0 };

		if (accounts->items[i].is_left_out || accounts->items[i].has_ended)
			continue;
		r = children_of(accounts->items[i].pid, &children);
		for (size_t k = 0; r >= 0 && k < children.n; k++)
			r = accounts_add_born(accounts, children.tids[k]);
	}
	return r;
}

static int add(struct capture *capture, const pid_t *pids, size_t n_pids)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < n_pids; i++)
		r = accounts_add(&capture->accounts, pids[i]);
	for (size_t i = 0; r >= 0 && i < n_pids; i++)
		r = leave_out_descendants(capture, pids[i]);
	return r;
}

int unsampled_begin(struct capture *capture, const struct capture_options *options, const pid_t *pids, size_t n_pids)
{
	capture->is_accounted = options->mode == MODE_CPU && !options->idle &&
				(!options->event || options->event->kind == EVENT_CLOCK);
	capture->period_ns = (uint64_t)(1e9 / options->hz);
	capture->accounts.no_children = options->no_children;
	capture->run_times.account = proc_run_time;
	capture->run_times.has_kernel = events_have_kernel(&capture->events);
	if (!capture->is_accounted)
		return 0;
	stolen_begin(&capture->stolen);
	return add(capture, pids, n_pids);
}

/* If the recorder loses the processor in between, the clock and the accounts are of different moments. Then read both again. */
int unsampled_restart(struct capture *capture)
{
	enum { MAX_TRIES = 3, CLOSE_NS = 3000000 };
	int r;

	r = add_born(capture);
	if (r < 0)
		return r;
	stolen_begin(&capture->stolen);
	for (int i = 0; i < MAX_TRIES; i++) {
		capture->since_ns = monotonic_ns();
		capture->before_ns = events_used(&capture->events);
		accounts_resume(&capture->accounts);
		if (monotonic_ns() - capture->since_ns < CLOSE_NS)
			break;
	}
	return 0;
}

int unsampled_add(struct capture *capture, pid_t pid)
{
	return capture->is_accounted ? add(capture, &pid, 1) : 0;
}

/* Without memory for the accounts of children born meanwhile, the sum contains time from a pause. */
void unsampled_pause(struct capture *capture)
{
	(void)add_born(capture);
	accounts_pause(&capture->accounts);
}

void unsampled_resume(struct capture *capture)
{
	(void)add_born(capture);
	accounts_resume(&capture->accounts);
}

void unsampled_count(struct capture *capture, const struct sample *sample)
{
	if (capture->is_accounted)
		capture->counts.sampled_ns += sample->weight;
}

/* Switch records cost time, so quiet recorders (no_wakeup, wake_on_live_read) do not use them. */
bool unsampled_may_time_runs(const struct capture *capture, const struct capture_options *options)
{
	return options->mode == MODE_CPU && capture->events.is_clock && !options->no_children && !options->no_wakeup &&
	       !capture->wake_on_live_read;
}

int unsampled_note(struct capture *capture, const struct capture_event *event)
{
	return capture->times_runs && !capture->events.system_wide ? run_times_note(&capture->run_times, event) : 0;
}

static void give_out(struct capture *capture, pid_t pid, pid_t tid, uint64_t time_ns, uint64_t weight,
		     struct capture_event *ret)
{
	*ret = (struct capture_event){ .type = CAPTURE_UNSAMPLED, .time_ns = time_ns, .pid = pid, .tid = tid };
	ret->unsampled.weight = weight;
	ret->unsampled.at_ns = time_ns;
	capture->given_ns += weight;
}

void unsampled_put_before(struct capture *capture, struct capture_event *ret)
{
	uint64_t weight, at_ns;

	if (ret->type != CAPTURE_EXIT || !capture->times_runs || ret->time_ns < capture->since_ns)
		return;
	weight = run_times_unsampled(&capture->run_times, ret->tid, ret->time_ns, &at_ns);
	weight = stolen_leave(&capture->stolen, MIN(weight, ret->time_ns - capture->since_ns));
	if (weight == 0)
		return;
	capture->pending = *ret;
	capture->has_pending = true;
	give_out(capture, ret->pid, ret->tid, ret->time_ns, weight, ret);
	ret->unsampled.at_ns = MAX(at_ns, capture->since_ns);
	capture->counts.ended_ns += weight;
}

/* No other account contains a process that outlives the parent that started it. */
static void add_survivors(struct capture *capture)
{
	const pid_t *pids = capture->wanted.tids;
	size_t n = capture->events.system_wide ? capture->wanted.n : 0;

	/* Without memory the account stays too small: less than the samples. */
	for (size_t i = 0; i < n; i++)
		if (accounts_add_born(&capture->accounts, pids[i]) < 0)
			return;
}

/*
 * Combine the kernel's CPU accounts with the events' count. The count has nanosecond resolution and includes processes
 * that nobody waits for. It misses a process's last steps and includes stolen time. So the count decides within the
 * accounts' error, and above them by more than the stolen time.
 */
static uint64_t join(const struct capture *capture, uint64_t accounted_ns, uint64_t counted_ns)
{
	uint64_t unsure_ns = accounts_resolution(&capture->accounts);

	if (counted_ns == 0)
		return accounted_ns;
	if (counted_ns <= accounted_ns + unsure_ns)
		return MAX(counted_ns, accounted_ns - MIN(accounted_ns, unsure_ns));
	return MAX(stolen_leave(&capture->stolen, counted_ns), accounted_ns);
}

void unsampled_stop(struct capture *capture)
{
	uint64_t counted_ns;

	if (!capture->is_accounted)
		return;
	if (capture->paused_ns == 0) {
		add_survivors(capture);
		accounts_read(&capture->accounts);
	}
	stolen_read(&capture->stolen);
	counted_ns = events_used(&capture->events) - capture->before_ns;
	capture->used_ns = join(capture, accounts_sum(&capture->accounts), counted_ns);
}

/* Whether chance explains the missing samples. */
static bool may_be_chance(const struct capture *capture, uint64_t missing_ns)
{
	double n = (double)capture->counts.samples, periods = (double)missing_ns / (double)capture->period_ns;

	return capture->events.system_wide && periods * periods < 9 * n;
}

static uint64_t missing_ns(const struct capture *capture)
{
	uint64_t used_ns = capture->used_ns, sampled_ns = capture->counts.sampled_ns + capture->given_ns;
	uint64_t missing = used_ns > sampled_ns ? used_ns - sampled_ns : 0;
	uint64_t least = MAX(used_ns / SHARE, accounts_resolution(&capture->accounts));

	/* Samples that weigh a whole period cannot show less than one. The poller's samples weigh the CPU time used. */
	if (!capture->poller && sampled_ns > 0)
		least = MAX(least, capture->period_ns);
	return missing > least && !may_be_chance(capture, missing) ? missing : 0;
}

/* The index after the last account that counts. */
static size_t end_of_counted(const struct accounts *accounts)
{
	size_t n = accounts->n;

	while (n > 0 && accounts->items[n - 1].is_left_out)
		n--;
	return n;
}

/* Each requested process gets its share; the last one gets the rest. */
bool unsampled_take(struct capture *capture, struct capture_event *ret)
{
	const struct accounts *accounts = &capture->accounts;
	const struct account *account;
	uint64_t sum_ns = accounts_sum(accounts), weight;
	size_t n = end_of_counted(accounts);

	if (capture->next_unsampled == 0)
		capture->missing_ns = capture->unsampled_ns = missing_ns(capture);
	while (capture->unsampled_ns > 0 && capture->next_unsampled < n) {
		account = &accounts->items[capture->next_unsampled++];
		weight = sum_ns > 0 ? (uint64_t)((double)capture->missing_ns * (double)account_used(account) /
						 (double)sum_ns)
				    : 0;
		if (capture->next_unsampled == n || weight > capture->unsampled_ns)
			weight = capture->unsampled_ns;
		capture->unsampled_ns -= weight;
		if (weight == 0)
			continue;
		give_out(capture, account->pid, account->pid, monotonic_ns(), weight, ret);
		ret->unsampled.is_of_process = true;
		return true;
	}
	return false;
}
