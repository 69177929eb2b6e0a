/* SPDX-License-Identifier: MIT */
/* waits.c - see waits.h.
 *
 * Invariants:
 * 1. A thread's intervals neither overlap nor leave a gap, except for unknown_ns.
 * 2. A wait gets a stack only if the thread did not run from before the reading began
 *    until after it: between the switch away and the switch back its memory cannot have changed.
 *    A stack taken in the switch itself comes just before the record of the switch, or just after.
 *    Readings may be ahead of the records of switches; then they wait for these.
 * 3. Running time without a sample is owed to the thread's next sample; at its end
 *    it is put with the stack that it had as it last left the processor.
 * 4. A wait without a stack is owed to the thread's next one of its kind that has one: short ones
 *    and long ones, preempted and others apart. Time owed for too long, or to a thread that
 *    ends, goes to the last one of its kind; without one, it is put without a stack.
 * 5. A thread may be seen at work before its arrival is reported: an arrival that the kernel could not report at once
 *    comes with the next departure (switch_record.h). Until then the time in between is in doubt. It becomes unknown_ns
 *    only if the next report is another one.
 *
 * A reused number is another thread: its exit came before.
 */
#include "src/pipeline/waits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/id_map.h"
#include "base/util.h"

#define MAX_OWED_NS UINT64_C(10000000000)

enum activity { UNKNOWN, RUNS, WAITS, ENDED };

struct thread {
	pid_t pid, tid;
	enum activity activity;
	bool is_preempted;
	bool has_stack, has_last;
	bool is_queued; /* in a queue, to have its stack read */
	unsigned cpu;
	uint64_t since_ns;   /* start of the part of the current activity that is not reported yet */
	int64_t owed_run_ns; /* negative: samples were ahead of the events */
	struct kind {
		uint64_t owed_ns, since_ns;
		struct wait_stack seen; /* the last wait with a stack */
		bool has_seen;
	} kinds[2][2];           /* blocked, preempted; short, long */
	struct wait_stack stack; /* of the current wait, or of one not reported yet */
	struct wait_stack last;  /* of the last switch-out */
	struct doubt {           /* invariant 5: it waited, then ran; the arrival is somewhere in between */
		uint64_t from_ns, to_ns;
		uint64_t seen_ns; /* at work; 0: no doubt */
	} doubt;
};

/* Threads whose stack is to be read, ordered by since_ns. */
struct queue {
	struct queued {
		uint32_t thread;
		uint64_t since_ns;
	} * items;
	size_t first, n, allocated;
};

struct waits {
	struct thread *threads;
	size_t n, allocated;
	struct id_map index;   /* tid -> index */
	struct queue queue[2]; /* blocked, preempted */
	bool running;
	uint64_t began_ns;
	int (*put)(void *data, const struct interval *interval);
	void *data;
	struct waits_sums sums;
};

int waits_new(bool running, int (*put)(void *data, const struct interval *interval), void *data, struct waits **ret)
{
	struct waits *waits = calloc(1, sizeof *waits);

	if (!waits)
		return -ENOMEM;
	waits->running = running;
	waits->put = put;
	waits->data = data;
	*ret = waits;
	return 0;
}

void waits_free(struct waits *waits)
{
	if (!waits)
		return;
	for (size_t i = 0; i < N_ELEMENTS(waits->queue); i++)
		free(waits->queue[i].items);
	id_map_done(&waits->index);
	free(waits->threads);
	free(waits);
}

static uint64_t span(uint64_t from_ns, uint64_t to_ns)
{
	return to_ns > from_ns ? to_ns - from_ns : 0;
}

/* ---- Arrivals that are reported late ---- */

static void begin_doubt(struct thread *thread, uint64_t to_ns, uint64_t seen_ns)
{
	thread->doubt = (struct doubt){ thread->since_ns, to_ns, seen_ns };
	thread->since_ns = to_ns;
	thread->activity = RUNS;
}

/* No report of the arrival has come. */
static void end_doubt(struct waits *waits, struct thread *thread)
{
	if (thread->doubt.seen_ns != 0)
		waits->sums.unknown_ns += span(thread->doubt.from_ns, thread->doubt.to_ns);
	thread->doubt.seen_ns = 0;
}

/* ---- Threads ---- */

static struct thread *find(struct waits *waits, pid_t tid)
{
	const struct id_slot *slot = id_map_find(&waits->index, (uint64_t)tid + 1);
	struct thread *thread = slot ? &waits->threads[slot->id] : NULL;

	return thread && thread->activity != ENDED ? thread : NULL;
}

static int add(struct waits *waits, pid_t pid, pid_t tid, enum activity activity, uint64_t time_ns, struct thread **ret)
{
	struct id_slot *slot = id_map_find(&waits->index, (uint64_t)tid + 1);
	int r;

	if (!slot) {
		r = grow(&waits->threads, waits->n, &waits->allocated, sizeof *waits->threads);
		if (r >= 0)
			r = id_map_add(&waits->index, (uint64_t)tid + 1, (uint32_t)waits->n);
		if (r < 0)
			return r;
		*ret = &waits->threads[waits->n++];
	} else {
		*ret = &waits->threads[slot->id];
		end_doubt(waits, *ret);
	}
	**ret = (struct thread){ .pid = pid, .tid = tid, .activity = activity, .since_ns = time_ns };
	return 0;
}

/* A thread that is new has spent the time up to now with the activity that ends now. -ESRCH: it has ended. */
static int know(struct waits *waits, pid_t pid, pid_t tid, enum activity until_now, uint64_t time_ns,
		struct thread **ret)
{
	const struct id_slot *slot = id_map_find(&waits->index, (uint64_t)tid + 1);
	struct thread *thread = slot ? &waits->threads[slot->id] : NULL;

	if (!thread)
		return add(waits, pid, tid, until_now, time_ns, ret);
	if (thread->activity == ENDED)
		return -ESRCH; /* its last instructions; a new thread with this TID would have been reported */
	if (thread->activity == UNKNOWN)
		thread->activity = until_now;
	thread->pid = pid;
	*ret = thread;
	return 0;
}

/* ---- Intervals ---- */

static int put(struct waits *waits, const struct thread *thread, enum thread_state state, uint64_t since_ns,
	       uint64_t weight, const struct wait_stack *stack)
{
	const struct interval interval = {
		.pid = thread->pid,
		.tid = thread->tid,
		.cpu = thread->cpu,
		.since_ns = since_ns,
		.weight = weight,
		.state = state,
		.stack = stack,
	};

	if (weight == 0)
		return 0;
	waits->sums.by_state[state] += weight;
	return waits->put(waits->data, &interval);
}

static int put_owed(struct waits *waits, struct thread *thread, bool is_preempted, bool is_long)
{
	struct kind *kind = &thread->kinds[is_preempted][is_long];
	enum thread_state state = is_preempted ? STATE_RUNNABLE : kind->has_seen ? kind->seen.state : STATE_BLOCKED;
	uint64_t weight = kind->owed_ns;

	kind->owed_ns = 0;
	return put(waits, thread, state, kind->since_ns, weight, kind->has_seen ? &kind->seen : NULL);
}

/* Collect the time of waits without a stack. */
static int owe(struct waits *waits, struct thread *thread, uint64_t weight, uint64_t now_ns)
{
	bool is_preempted = thread->is_preempted, is_long = weight >= WAIT_SHORT_NS;
	struct kind *kind = &thread->kinds[is_preempted][is_long];

	if (kind->owed_ns == 0)
		kind->since_ns = thread->since_ns;
	kind->owed_ns += weight;
	return span(kind->since_ns, now_ns) < MAX_OWED_NS ? 0 : put_owed(waits, thread, is_preempted, is_long);
}

/* Whether the stack belongs to the wait that ends now. An older stack is dropped. */
static bool takes_stack(struct thread *thread, uint64_t now_ns)
{
	if (!thread->has_stack)
		return false;
	if (thread->stack.from_ns >= thread->since_ns && thread->stack.to_ns <= now_ns) {
		thread->has_stack = false;
		return true;
	}
	thread->has_stack = thread->stack.from_ns > thread->since_ns;
	return false;
}

/* It is read after the switch: by then the thread may be in another wait. */
static void check_object(struct wait_stack *stack, uint64_t until_ns)
{
	if (stack->object_ns > until_ns)
		stack->object = 0;
}

static int put_wait(struct waits *waits, struct thread *thread, uint64_t now_ns)
{
	uint64_t weight = span(thread->since_ns, now_ns);
	struct kind *kind = &thread->kinds[thread->is_preempted][weight >= WAIT_SHORT_NS];
	struct wait_stack stack = thread->stack;

	thread->is_queued = false;
	if (!takes_stack(thread, now_ns))
		return owe(waits, thread, weight, now_ns);
	waits->sums.n_stacks++;
	check_object(&stack, now_ns);
	weight += kind->owed_ns;
	*kind = (struct kind){ .seen = stack, .has_seen = true };
	return put(waits, thread, thread->is_preempted ? STATE_RUNNABLE : stack.state, thread->since_ns, weight,
		   &stack);
}

/* Report run time that no sample covers. */
static int put_rest(struct waits *waits, struct thread *thread, uint64_t now_ns)
{
	uint64_t weight = (uint64_t)MAX(thread->owed_run_ns, 0);

	thread->owed_run_ns = 0;
	return waits->running
		       ? put(waits, thread, STATE_RUNNING, now_ns, weight, thread->has_last ? &thread->last : NULL)
		       : 0;
}

/* A thread that never switched either ran all the time or waited; a stack shows which. */
static bool ran_to_the_end(const struct thread *thread)
{
	return thread->activity == RUNS ||
	       (thread->activity == UNKNOWN && (!thread->has_stack || thread->stack.state == STATE_RUNNABLE));
}

static int put_last(struct waits *waits, struct thread *thread, uint64_t now_ns)
{
	int r = 0;

	if (ran_to_the_end(thread))
		thread->owed_run_ns += (int64_t)span(thread->since_ns, now_ns);
	else if (thread->activity != ENDED)
		r = put_wait(waits, thread, now_ns);
	for (unsigned i = 0; i < 4 && r >= 0; i++)
		r = put_owed(waits, thread, i & 1, i & 2);
	if (r >= 0)
		r = put_rest(waits, thread, now_ns);
	thread->activity = ENDED;
	return r;
}

/* ---- Threads to read ---- */

static int enqueue(struct waits *waits, struct thread *thread)
{
	struct queue *queue = &waits->queue[thread->is_preempted];
	int r;

	if (queue->first > 1024 && queue->first > queue->n / 2) {
		memmove(queue->items, queue->items + queue->first, (queue->n - queue->first) * sizeof *queue->items);
		queue->n -= queue->first;
		queue->first = 0;
	}
	r = grow(&queue->items, queue->n, &queue->allocated, sizeof *queue->items);
	if (r < 0)
		return r;
	queue->items[queue->n++] = (struct queued){ (uint32_t)(thread - waits->threads), thread->since_ns };
	thread->is_queued = true;
	return 0;
}

static bool next_of(struct waits *waits, struct queue *queue, uint64_t before_ns, pid_t *ret_pid, pid_t *ret_tid,
		    uint64_t *ret_since)
{
	while (queue->first < queue->n && queue->items[queue->first].since_ns < before_ns) {
		const struct queued *queued = &queue->items[queue->first++];
		struct thread *thread = &waits->threads[queued->thread];

		/* The thread may have run since, and even waited again. */
		if (!thread->is_queued || thread->since_ns != queued->since_ns)
			continue;
		thread->is_queued = false;
		*ret_pid = thread->pid;
		*ret_tid = thread->tid;
		*ret_since = thread->since_ns;
		return true;
	}
	return false;
}

bool waits_next(struct waits *waits, uint64_t before_ns, pid_t *ret_pid, pid_t *ret_tid, uint64_t *ret_since)
{
	return next_of(waits, &waits->queue[0], before_ns, ret_pid, ret_tid, ret_since) ||
	       next_of(waits, &waits->queue[1], span(WAIT_SHORT_NS, before_ns), ret_pid, ret_tid, ret_since);
}

/* ---- Events ---- */

void waits_begin(struct waits *waits, uint64_t time_ns)
{
	waits->began_ns = time_ns;
}

int waits_find(struct waits *waits, pid_t pid, pid_t tid)
{
	struct thread *thread;
	int r;

	if (find(waits, tid))
		return 0;
	r = add(waits, pid, tid, UNKNOWN, waits->began_ns, &thread);
	return r < 0 ? r : enqueue(waits, thread);
}

int waits_created(struct waits *waits, pid_t pid, pid_t tid, uint64_t time_ns)
{
	struct thread *thread;
	int r;

	time_ns = MAX(time_ns, waits->began_ns);
	r = add(waits, pid, tid, WAITS, time_ns, &thread);
	if (r >= 0)
		thread->is_preempted = true;
	return r;
}

int waits_exec(struct waits *waits, pid_t pid, pid_t tid, uint64_t time_ns)
{
	struct thread *thread;
	int r = 0;

	time_ns = MAX(time_ns, waits->began_ns);
	/* exec ends all other threads; the caller gets the leader's TID. */
	for (size_t i = 0; i < waits->n && r >= 0; i++)
		if (waits->threads[i].pid == pid && waits->threads[i].tid != tid)
			r = put_last(waits, &waits->threads[i], time_ns);
	if (r >= 0 && !find(waits, tid))
		r = add(waits, pid, tid, RUNS, time_ns, &thread);
	return r;
}

/* The stack of this switch-out is known, so the thread need not be read. */
static void note_leaving(struct thread *thread)
{
	thread->last = thread->stack;
	thread->has_last = true;
	thread->is_queued = false;
}

/* A sample of this switch comes just before its record; its stack belongs to the wait that begins. */
static void settle_stack(struct thread *thread, uint64_t time_ns)
{
	struct wait_stack *stack = &thread->stack;

	if (!thread->has_stack || stack->from_ns > time_ns || (stack->from_ns == time_ns && !stack->at_switch))
		return;
	thread->has_stack = stack->at_switch && stack->from_ns >= thread->since_ns;
	if (!thread->has_stack)
		return;
	stack->from_ns = stack->to_ns = time_ns;
	note_leaving(thread);
}

int waits_sched_out(struct waits *waits, pid_t pid, pid_t tid, unsigned cpu, bool is_preempted, uint64_t time_ns)
{
	struct thread *thread;
	int r;

	time_ns = MAX(time_ns, waits->began_ns);
	r = know(waits, pid, tid, RUNS, time_ns, &thread);
	if (r < 0)
		return r == -ESRCH ? 0 : r;
	end_doubt(waits, thread);
	if (thread->activity == WAITS) /* the record of its return was lost */
		waits->sums.unknown_ns += span(thread->since_ns, time_ns);
	else
		thread->owed_run_ns += (int64_t)span(thread->since_ns, time_ns);
	waits->sums.n_switches++;
	thread->activity = WAITS;
	thread->is_preempted = is_preempted;
	thread->cpu = cpu;
	settle_stack(thread, time_ns);
	thread->since_ns = time_ns;
	return thread->has_stack ? 0 : enqueue(waits, thread);
}

/* It waited until it arrived, and has run since. */
static int settle_doubt(struct waits *waits, struct thread *thread, uint64_t arrived_ns)
{
	struct doubt doubt = thread->doubt;
	uint64_t since_ns = thread->since_ns;
	int r;

	thread->doubt.seen_ns = 0;
	arrived_ns = MIN(MAX(arrived_ns, doubt.from_ns), doubt.to_ns);
	thread->since_ns = doubt.from_ns;
	r = put_wait(waits, thread, arrived_ns);
	thread->since_ns = since_ns;
	thread->owed_run_ns += (int64_t)span(arrived_ns, doubt.to_ns);
	return r >= 0 && thread->activity == ENDED ? put_last(waits, thread, since_ns) : r;
}

int waits_sched_in(struct waits *waits, pid_t pid, pid_t tid, uint64_t time_ns)
{
	struct thread *thread;
	int r;

	time_ns = MAX(time_ns, waits->began_ns);
	r = know(waits, pid, tid, WAITS, time_ns, &thread);
	if (r < 0)
		return r == -ESRCH ? 0 : r;
	end_doubt(waits, thread);
	/* After an exec outside the main thread, this record may be older than since_ns. */
	time_ns = MAX(time_ns, thread->since_ns);
	if (thread->activity == WAITS)
		r = put_wait(waits, thread, time_ns);
	else /* the record of its leaving was lost */
		waits->sums.unknown_ns += span(thread->since_ns, time_ns);
	thread->activity = RUNS;
	thread->since_ns = time_ns;
	return r;
}

int waits_sched_in_late(struct waits *waits, pid_t pid, pid_t tid, uint64_t time_ns)
{
	const struct id_slot *slot = id_map_find(&waits->index, (uint64_t)tid + 1);
	struct thread *thread = slot ? &waits->threads[slot->id] : NULL;

	if (thread && thread->doubt.seen_ns != 0)
		return settle_doubt(waits, thread, time_ns);
	return thread && thread->activity == RUNS ? 0 : waits_sched_in(waits, pid, tid, time_ns);
}

int waits_exit(struct waits *waits, pid_t tid, uint64_t time_ns)
{
	struct thread *thread = find(waits, tid);

	time_ns = MAX(time_ns, waits->began_ns);
	if (!thread)
		return 0;
	if (thread->activity == WAITS) /* an ending thread runs */
		begin_doubt(thread, time_ns, time_ns);
	return put_last(waits, thread, time_ns);
}

int waits_end(struct waits *waits, uint64_t time_ns)
{
	int r = 0;

	time_ns = MAX(time_ns, waits->began_ns);
	for (size_t i = 0; i < waits->n && r >= 0; i++) {
		struct thread *thread = &waits->threads[i];

		/* Who has not left yet has reported no arrival. */
		if (thread->doubt.seen_ns != 0)
			r = settle_doubt(waits, thread, thread->doubt.to_ns);
		if (r >= 0)
			r = put_last(waits, thread, time_ns);
	}
	return r;
}

int waits_account_run(struct waits *waits, pid_t pid, pid_t tid, uint64_t period_ns, uint64_t time_ns, uint64_t *ret)
{
	struct thread *thread;
	int r;

	time_ns = MAX(time_ns, waits->began_ns);
	r = know(waits, pid, tid, RUNS, span(period_ns, time_ns), &thread);
	*ret = 0;
	if (r < 0)
		return r == -ESRCH ? 0 : r;
	if (thread->activity == WAITS) /* its return has not been reported */
		begin_doubt(thread, time_ns - MIN(period_ns, span(thread->since_ns, time_ns)), time_ns);
	*ret = (uint64_t)MAX(thread->owed_run_ns, 0) + span(thread->since_ns, time_ns);
	waits->sums.by_state[STATE_RUNNING] += *ret;
	thread->owed_run_ns = 0;
	thread->since_ns = MAX(thread->since_ns, time_ns);
	return 0;
}

int waits_stack(struct waits *waits, pid_t pid, pid_t tid, const struct wait_stack *stack)
{
	struct thread *thread;
	int r;

	r = know(waits, pid, tid, UNKNOWN, stack->from_ns, &thread);
	if (r < 0)
		return r == -ESRCH ? 0 : r;
	thread->stack = *stack;
	thread->stack.from_ns = MAX(stack->from_ns, waits->began_ns);
	thread->stack.to_ns = MAX(stack->to_ns, waits->began_ns);
	thread->has_stack = true;
	if (stack->at_switch && thread->activity == WAITS)
		note_leaving(thread);
	return 0;
}

uint64_t waits_sampled(struct waits *waits, pid_t tid, uint64_t weight, uint64_t time_ns)
{
	struct thread *thread = find(waits, tid);

	weight = MIN(weight, span(waits->began_ns, time_ns));
	waits->sums.by_state[STATE_RUNNING] += weight;
	if (thread)
		thread->owed_run_ns -= (int64_t)weight;
	return weight;
}

/* Report the wait up to here with its stack, which stays valid for the rest. */
static int put_portion(struct waits *waits, struct thread *thread, uint64_t until_ns)
{
	struct wait_stack stack = thread->stack;
	enum thread_state state = thread->is_preempted ? STATE_RUNNABLE : stack.state;
	uint64_t since_ns = thread->since_ns;

	check_object(&stack, until_ns);
	thread->activity = WAITS;
	thread->since_ns = thread->stack.from_ns = thread->stack.to_ns = until_ns;
	return put(waits, thread, state, since_ns, span(since_ns, until_ns), &stack);
}

int waits_flush_partial(struct waits *waits, uint64_t until_ns)
{
	int r = 0;

	for (size_t i = 0; i < waits->n && r >= 0; i++) {
		struct thread *thread = &waits->threads[i];
		bool waited = thread->activity == WAITS || (thread->activity == UNKNOWN && !ran_to_the_end(thread));

		if (waited && thread->has_stack && span(thread->since_ns, until_ns) >= WAIT_PORTION_NS &&
		    thread->stack.from_ns >= thread->since_ns && thread->stack.to_ns <= until_ns)
			r = put_portion(waits, thread, until_ns);
	}
	return r;
}

int waits_invalidate(struct waits *waits)
{
	int r = 0;

	for (size_t i = 0; i < waits->n && r >= 0; i++) {
		struct thread *thread = &waits->threads[i];

		if (!thread->has_stack || thread->stack.at_switch)
			continue;
		thread->has_stack = false;
		if (!thread->is_queued && (thread->activity == WAITS || thread->activity == UNKNOWN))
			r = enqueue(waits, thread);
	}
	return r;
}

void waits_read_sums(const struct waits *waits, struct waits_sums *ret)
{
	*ret = waits->sums;
}
