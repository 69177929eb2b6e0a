/* SPDX-License-Identifier: MIT */
/* sampler.c - see sampler.h.
 *
 * Invariants:
 * 1. The handler calls nothing but system calls, clock_gettime(3) and memcpy(3). It takes no lock, allocates nothing,
 *    and leaves errno as it was. tests/signal_safe_test.py looks at its code.
 * 2. Slots are never freed or moved: a signal that was pending while its timer was deleted may still name one. It does
 *    nothing then, for the slot has another thread, or there is no ring.
 * 3. A ring is unmapped only when no handler is in a slot. Handlers enter a slot before they look for the ring.
 * 4. The signal has the default action again once nothing samples and no thread has it pending: its default action
 *    would end the process.
 * 5. If the program sets an action for the signal itself, sampling ends: at the next tick.
 *
 * A sample's weight is the thread's CPU time since its last one. The kernel looks at CPU timers once a clock tick, so
 * samples are rarer than asked for, but the weights add up.
 */
#include "src/agent/sampler.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "src/agent/frames.h"
#include "src/agent/private.h"
#include "src/agent/sample_ring.h"

enum {
	MAX_SLOTS = 1024, /* threads that are sampled at a time */
	RING_BYTES_PER_CPU = 1 << 20,
	MIN_RING_BYTES = 1 << 22,
	PATIENCE_MS = 1000, /* for handlers to end: a thread may wait for a processor */
	TICK_PERIODS = 5,
	SLOW_TICKS = 10,          /* between two looks at masks and pending signals */
	REFUSED_AGAIN_TICKS = 10, /* ticks until a refused timer is tried again */
	MAX_STATUS_BYTES = 4096,
	CPU_CLOCK_OF_THREAD = 6, /* CPUCLOCK_SCHED | CPUCLOCK_PERTHREAD_MASK, include/linux/posix-timers_types.h */
};

/* One sampled thread. */
struct slot {
	uint32_t busy; /* a handler is in it */
	int32_t tid;   /* 0: free */
	int timer;     /* the kernel's id, if has_timer */
	bool has_timer, is_found, is_blocked;
	uint8_t refused_ticks; /* left until its timer is tried again */
	uint32_t n_samples;
	uint64_t sampled_ns; /* its CPU clock at its last sample */
	uint64_t mask_ns;    /* its CPU clock when its signal mask was last read */
	struct frames_room *frames;
};

static struct {
	struct sample_ring *ring; /* NULL: nothing samples. Read by handlers */
	uint8_t *data;
	uint64_t data_bytes;
	uint32_t stack_bytes;
	uint64_t period_ns, random;
	const struct python_layout *layout; /* NULL: none. Read by handlers */
	struct python_layout layout_copy;
	int signal; /* whose handler is ours; 0: none */
	unsigned n_ticks;
	nlink_t n_links;     /* of the folder of threads, before it was last read; it counts them */
	uint32_t n_slots;    /* that have ever been used */
	uint32_t n_left_out; /* threads for which there was no slot, as of the last scan */
	struct slot slots[MAX_SLOTS];
} sampler;

/* ---- In the handler ---- */

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	return clock_gettime(clock, &now) < 0 ? 0 : (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#if defined(__x86_64__)
enum { HAS_REGS = 1, STACK_REG = 7 };

/* By DWARF number. Source: System V ABI, AMD64 supplement, figure 3.36. */
static void take_regs(const ucontext_t *context, uint64_t to[SAMPLE_RING_MAX_REGS])
{
	static const int order[] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
				     REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP };

	for (unsigned i = 0; i < sizeof order / sizeof order[0]; i++)
		to[i] = (uint64_t)context->uc_mcontext.gregs[order[i]];
}
#else
enum { HAS_REGS = 0, STACK_REG = 0 };

static void take_regs(const ucontext_t *context, uint64_t to[SAMPLE_RING_MAX_REGS])
{
	(void)context;
	(void)to;
}
#endif

/* A thread's stack ends where libc keeps what it knows of it; the main thread's lies elsewhere, higher. */
static uint32_t stack_size(struct frames_room *room, uint64_t sp)
{
	uint64_t end = (uint64_t)pthread_self(), n = sampler.stack_bytes;

	if (end > sp && end - sp < n)
		n = end - sp;
	return (uint32_t)(frames_readable(room, sp, n) & ~(uint64_t)7);
}

/* The place of a record of that size, from its position on. False: there is no room. */
static bool reserve(struct sample_ring *ring, uint32_t n_bytes, uint64_t *ret)
{
	uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_RELAXED);

	for (;;) {
		uint64_t used = head - __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
		uint64_t rest = sampler.data_bytes - (head & (sampler.data_bytes - 1));
		uint64_t padding = rest < n_bytes ? rest : 0;

		if (used > sampler.data_bytes || sampler.data_bytes - used < padding + n_bytes)
			return false;
		if (!__atomic_compare_exchange_n(&ring->head, &head, head + padding + n_bytes, true, __ATOMIC_ACQ_REL,
						 __ATOMIC_RELAXED))
			continue;
		if (padding > 0) {
			struct sample_record_start *start =
				(struct sample_record_start *)(sampler.data + (head & (sampler.data_bytes - 1)));

			start->n_bytes = (uint32_t)padding;
			start->kind = SAMPLE_RECORD_PADDING;
			__atomic_store_n(&start->commit, sample_ring_commit(head), __ATOMIC_RELEASE);
		}
		*ret = head + padding;
		return true;
	}
}

static void write_sample(struct sample_ring *ring, struct slot *slot, const ucontext_t *context)
{
	uint64_t time_ns = clock_ns(CLOCK_MONOTONIC), used_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID), position,
		 regs[SAMPLE_RING_MAX_REGS] = { 0 };
	const struct python_layout *layout = __atomic_load_n(&sampler.layout, __ATOMIC_ACQUIRE);
	const struct python_record *python = NULL;
	uint32_t python_bytes = 0, stack_bytes, n_bytes;
	struct sample_record *record;

	take_regs(context, regs);
	frames_begin(slot->frames);
	if (layout)
		python_bytes = frames_read(slot->frames, layout, slot->tid, &python);
	stack_bytes = stack_size(slot->frames, regs[STACK_REG]);
	n_bytes = sample_ring_align((uint32_t)sizeof *record + python_bytes + stack_bytes);
	if (!reserve(ring, n_bytes, &position)) {
		__atomic_fetch_add(&ring->n_dropped, 1, __ATOMIC_RELAXED);
		return; /* the next sample has its time */
	}
	record = (struct sample_record *)(sampler.data + (position & (sampler.data_bytes - 1)));
	record->start.n_bytes = n_bytes;
	record->start.kind = SAMPLE_RECORD_SAMPLE;
	record->time_ns = time_ns;
	record->weight_ns = used_ns > slot->sampled_ns ? used_ns - slot->sampled_ns : 0;
	record->tid = slot->tid;
	record->cpu = (uint32_t)sched_getcpu();
	record->python_bytes = python_bytes;
	record->stack_bytes = stack_bytes;
	memcpy(record->regs, regs, sizeof regs);
	if (python_bytes > 0)
		memcpy(record + 1, python, python_bytes);
	memcpy((uint8_t *)(record + 1) + python_bytes, (const void *)(uintptr_t)regs[STACK_REG], stack_bytes);
	/* This clock takes a tenth of the handler's time. */
	record->handler_ns = slot->n_samples++ % SAMPLE_RING_MEASURED == SAMPLE_RING_MEASURED / 2
				     ? (uint32_t)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - used_ns) * SAMPLE_RING_MEASURED
				     : 0;
	__atomic_store_n(&record->start.commit, sample_ring_commit(position), __ATOMIC_RELEASE);
	slot->sampled_ns = used_ns;
}

static void take_sample(unsigned i, const ucontext_t *context)
{
	struct slot *slot = &sampler.slots[i];
	struct sample_ring *ring;

	if (__atomic_exchange_n(&slot->busy, 1, __ATOMIC_SEQ_CST))
		return;
	ring = __atomic_load_n(&sampler.ring, __ATOMIC_SEQ_CST);
	if (ring && slot->tid == (int32_t)syscall(SYS_gettid))
		write_sample(ring, slot, context);
	__atomic_store_n(&slot->busy, 0, __ATOMIC_SEQ_CST);
}

/* A signal from elsewhere without a handler of the program: it ends the process, as it would without the agent. */
static void take_foreign(int signal)
{
	const struct sigaction by_default = { .sa_handler = SIG_DFL };

	(void)sigaction(signal, &by_default, NULL);
	(void)syscall(SYS_tgkill, getpid(), (pid_t)syscall(SYS_gettid), signal);
}

static void handle_signal(int signal, siginfo_t *info, void *context)
{
	int saved = errno;

	if (info->si_code != SI_TIMER)
		take_foreign(signal);
	else if ((unsigned)info->si_value.sival_int < MAX_SLOTS)
		take_sample((unsigned)info->si_value.sival_int, context);
	errno = saved;
}

/* ---- The signal ---- */

static bool is_ours(int signal)
{
	struct sigaction now;

	return signal != 0 && sigaction(signal, NULL, &now) == 0 && now.sa_flags & SA_SIGINFO &&
	       now.sa_sigaction == handle_signal;
}

static bool is_free(int signal)
{
	struct sigaction now;

	return sigaction(signal, NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL;
}

/* From the end, where programs take theirs least. */
static const char *take_signal(void)
{
	struct sigaction ours = { .sa_sigaction = handle_signal, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK };

	if (is_ours(sampler.signal))
		return NULL;
	sigfillset(&ours.sa_mask);
	for (int signal = SIGRTMAX; signal >= SIGRTMIN; signal--) {
		if (!is_free(signal))
			continue;
		sampler.signal = signal; /* first: a child that another thread forks meanwhile gives it back */
		if (sigaction(signal, &ours, NULL) == 0)
			return NULL;
	}
	sampler.signal = 0;
	return "the program has handlers for all real-time signals";
}

/* Lines of a "status" file: sets of signals. 0: it has ended, or is hidden. */
static uint64_t signal_set(const char *status, const char *key)
{
	const char *at = strstr(status, key);

	return at ? strtoull(at + strlen(key), NULL, 16) : 0;
}

static bool read_status(int tid, char to[MAX_STATUS_BYTES])
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof path, "/proc/self/task/%d/status", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, to, MAX_STATUS_BYTES - 1) : -1;
	if (fd >= 0)
		close(fd);
	to[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* Whether a thread has the signal in one of its sets: "SigBlk:", "SigPnd:". */
static bool has_signal(int tid, const char *key)
{
	char status[MAX_STATUS_BYTES];

	return read_status(tid, status) && signal_set(status, key) >> (sampler.signal - 1) & 1;
}

static bool any_has_it_pending(void)
{
	DIR *folder = opendir("/proc/self/task");
	struct dirent *entry;
	bool any = !folder;

	while (folder && !any && (entry = readdir(folder)) != NULL)
		any = atoi(entry->d_name) > 0 && has_signal(atoi(entry->d_name), "SigPnd:");
	if (folder)
		closedir(folder);
	return any;
}

/* Returns whether it still is ours. */
static bool give_signal_back(void)
{
	const struct sigaction by_default = { .sa_handler = SIG_DFL };

	if (is_ours(sampler.signal) && any_has_it_pending())
		return true;
	if (is_ours(sampler.signal))
		(void)sigaction(sampler.signal, &by_default, NULL);
	sampler.signal = 0;
	return false;
}

/* ---- Timers ---- */

static clockid_t cpu_clock(int tid)
{
	return (clockid_t)(~(unsigned)tid << 3 | CPU_CLOCK_OF_THREAD);
}

/* xorshift64: threads that began together are not to be sampled together. */
static uint64_t next_random(void)
{
	uint64_t x = sampler.random;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return sampler.random = x;
}

static struct timespec to_timespec(uint64_t ns)
{
	return (struct timespec){ (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };
}

/* System calls: in older libraries these functions are in another one. Negative errno. */
static int start_timer(struct slot *slot)
{
	struct sigevent event = {
		.sigev_notify = SIGEV_THREAD_ID,
		.sigev_signo = sampler.signal,
		.sigev_value.sival_int = (int)(slot - sampler.slots),
	};
	const struct itimerspec times = {
		.it_value = to_timespec(1 + next_random() % sampler.period_ns),
		.it_interval = to_timespec(sampler.period_ns),
	};

#ifdef sigev_notify_thread_id
	event.sigev_notify_thread_id = slot->tid;
#else
	event._sigev_un._tid = slot->tid;
#endif
	if (syscall(SYS_timer_create, cpu_clock(slot->tid), &event, &slot->timer) < 0)
		return -errno;
	slot->has_timer = true;
	return syscall(SYS_timer_settime, slot->timer, 0, &times, NULL) < 0 ? -errno : 0;
}

static void stop_timer(struct slot *slot)
{
	if (slot->has_timer)
		(void)syscall(SYS_timer_delete, slot->timer);
	slot->has_timer = false;
}

/* Of a thread that has ended, and whose number may be another's by now, the timer never expires. */
static bool is_alive(const struct slot *slot)
{
	struct itimerspec left;

	return !slot->has_timer || (syscall(SYS_timer_gettime, slot->timer, &left) == 0 &&
				    (left.it_value.tv_sec != 0 || left.it_value.tv_nsec != 0));
}

static bool wait_for_handler(const struct slot *slot)
{
	const struct timespec a_while = { .tv_nsec = 100000 };

	for (unsigned i = 0; i < PATIENCE_MS * 10; i++) {
		if (!__atomic_load_n(&slot->busy, __ATOMIC_SEQ_CST))
			return true;
		nanosleep(&a_while, NULL);
	}
	return false;
}

/* ---- Threads ---- */

static bool is_agents(int tid)
{
	return tid == __atomic_load_n(&agent.listener, __ATOMIC_SEQ_CST) ||
	       tid == __atomic_load_n(&agent.worker, __ATOMIC_SEQ_CST);
}

static struct slot *find_slot(int tid)
{
	for (uint32_t i = 0; i < sampler.n_slots; i++)
		if (sampler.slots[i].tid == tid)
			return &sampler.slots[i];
	return NULL;
}

static struct slot *free_slot(void)
{
	struct slot *slot = find_slot(0);
	void *memory;

	if (!slot && sampler.n_slots == MAX_SLOTS)
		return NULL;
	if (!slot)
		slot = &sampler.slots[sampler.n_slots];
	if (!slot->frames) {
		memory = mmap(NULL, frames_room_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (memory == MAP_FAILED)
			return NULL;
		slot->frames = memory;
	}
	if (slot == &sampler.slots[sampler.n_slots])
		sampler.n_slots++;
	return slot;
}

static void leave_thread(struct slot *slot)
{
	stop_timer(slot);
	if (wait_for_handler(slot)) /* otherwise the slot stays in use: its thread does not run */
		slot->tid = 0;
}

/* A thread that has not run since its mask was read has the same one. Returns whether it blocks the signal. */
static bool reads_blocked(struct slot *slot)
{
	uint64_t used_ns = clock_ns(cpu_clock(slot->tid));

	if (used_ns != 0 && used_ns == slot->mask_ns)
		return slot->is_blocked;
	slot->mask_ns = used_ns; /* before its mask: what it does meanwhile is seen at the next look */
	return has_signal(slot->tid, "SigBlk:");
}

static void arm(struct slot *slot)
{
	slot->is_blocked = reads_blocked(slot);
	if (!slot->is_blocked && start_timer(slot) < 0) {
		stop_timer(slot);
		slot->refused_ticks = REFUSED_AGAIN_TICKS;
	}
}

/* @is_new: it has started since sampling did, and all of its time counts. */
static void meet_thread(int tid, bool is_new)
{
	struct slot *slot = free_slot();

	if (!slot) {
		sampler.n_left_out++;
		return;
	}
	slot->sampled_ns = is_new ? 0 : clock_ns(cpu_clock(tid));
	slot->mask_ns = 0;
	slot->is_found = true;
	slot->refused_ticks = 0;
	frames_forget(slot->frames);
	__atomic_store_n(&slot->tid, tid, __ATOMIC_SEQ_CST);
	arm(slot);
}

/* It has been met before. */
static void see_thread(struct slot *slot, bool is_slow_tick)
{
	slot->is_found = true;
	if (slot->has_timer && is_slow_tick && reads_blocked(slot)) {
		slot->is_blocked = true;
		stop_timer(slot);
	} else if (!slot->has_timer && (slot->is_blocked ? is_slow_tick : slot->refused_ticks-- == 0)) {
		slot->sampled_ns = clock_ns(cpu_clock(slot->tid)); /* the CPU time used meanwhile is in no sample */
		arm(slot);
	}
}

static void count_threads(struct sample_ring *ring)
{
	uint32_t n = 0, n_refused = sampler.n_left_out, n_blocked = 0;

	for (uint32_t i = 0; i < sampler.n_slots; i++) {
		n += sampler.slots[i].tid != 0;
		n_blocked += sampler.slots[i].tid != 0 && sampler.slots[i].is_blocked;
		n_refused += sampler.slots[i].tid != 0 && !sampler.slots[i].has_timer && !sampler.slots[i].is_blocked;
	}
	ring->n_threads = n;
	ring->n_blocked = n_blocked;
	ring->n_refused = n_refused;
}

/* Threads that have ended are left. Returns whether there are none, and would have been seen: all others have timers. */
static bool leave_ended(void)
{
	bool is_complete = sampler.n_left_out == 0, is_dead;

	for (uint32_t i = 0; i < sampler.n_slots; i++) {
		struct slot *slot = &sampler.slots[i];

		if (slot->tid == 0)
			continue;
		is_dead = !is_alive(slot);
		is_complete &= slot->has_timer && !is_dead;
		if (is_dead)
			leave_thread(slot);
	}
	return is_complete;
}

/*
 * Whether the folder of threads has as many as when it was last asked. To read their numbers takes far longer.
 * Source: proc_task_getattr() of fs/proc/base.c, Linux 6.12: its links are 2 + threads.
 */
static bool has_as_many_threads(void)
{
	nlink_t before = sampler.n_links;
	struct stat st;

	sampler.n_links = stat("/proc/self/task", &st) == 0 ? st.st_nlink : 0;
	return sampler.n_links > 2 && sampler.n_links == before;
}

static void scan(bool is_first)
{
	bool is_slow_tick = sampler.n_ticks++ % SLOW_TICKS == 0;
	bool none_has_ended = leave_ended(), are_as_many = has_as_many_threads();
	struct dirent *entry;
	DIR *folder;

	if (none_has_ended && are_as_many && !is_slow_tick)
		return; /* they are the same */
	folder = opendir("/proc/self/task");
	if (!folder)
		return;
	sampler.n_left_out = 0;
	for (uint32_t i = 0; i < sampler.n_slots; i++)
		sampler.slots[i].is_found = false;
	while ((entry = readdir(folder)) != NULL) {
		int tid = atoi(entry->d_name);
		struct slot *slot = tid > 0 ? find_slot(tid) : NULL;

		if (tid <= 0 || is_agents(tid))
			continue;
		if (slot)
			see_thread(slot, is_slow_tick);
		else
			meet_thread(tid, !is_first);
	}
	closedir(folder);
	for (uint32_t i = 0; i < sampler.n_slots; i++)
		if (sampler.slots[i].tid != 0 && !sampler.slots[i].is_found)
			leave_thread(&sampler.slots[i]);
	count_threads(sampler.ring);
}

/* ---- The ring ---- */

static uint64_t ring_bytes(void)
{
	long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t n_bytes = MIN_RING_BYTES;

	while (n_bytes < (uint64_t)n_cpus * RING_BYTES_PER_CPU && n_bytes < SAMPLE_RING_MAX_BYTES)
		n_bytes *= 2;
	return n_bytes;
}

/* Not executable, where the kernel knows that, and may insist on it. Source: mfd_noexec.rst, Linux 6.12. */
static int make_memory(void)
{
	const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING, noexec_seal = 8;
	int fd = (int)syscall(SYS_memfd_create, "probing-samples", flags | noexec_seal);

	return fd >= 0 || errno != EINVAL ? fd : (int)syscall(SYS_memfd_create, "probing-samples", flags);
}

/* No page of it is touched for the first time in a handler, and a forked child does not have it. */
static int make_ring(struct sample_ring **ret)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	uint64_t data_bytes = ring_bytes(), n_bytes = SAMPLE_RING_HEADER_BYTES + data_bytes;
	int fd = make_memory();
	struct sample_ring *ring;

	if (fd < 0 || ftruncate(fd, (off_t)n_bytes) < 0 || fcntl(fd, F_ADD_SEALS, seals) < 0)
		goto fail;
	ring = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (ring == MAP_FAILED)
		goto fail;
	(void)madvise(ring, n_bytes, MADV_DONTFORK);
	ring->version = SAMPLE_RING_VERSION;
	ring->data_bytes = data_bytes;
	ring->magic = SAMPLE_RING_MAGIC;
	sampler.data = (uint8_t *)ring + SAMPLE_RING_HEADER_BYTES;
	sampler.data_bytes = data_bytes;
	*ret = ring;
	return fd;
fail:
	if (fd >= 0)
		close(fd);
	return -1;
}

static bool wait_for_handlers(void)
{
	bool have_ended = true;

	for (uint32_t i = 0; i < sampler.n_slots; i++)
		have_ended &= wait_for_handler(&sampler.slots[i]);
	return have_ended;
}

const char *sampler_start(uint64_t period_ns, uint32_t stack_bytes, int *ret_ring)
{
	struct sample_ring *ring = NULL;
	const char *why;
	int fd;

	if (sampler.ring)
		return "another recorder samples it already";
	if (!wait_for_handlers())
		return "a thread is stopped while it writes a sample";
	if (!HAS_REGS)
		return "sampling is not supported on this processor yet";
	why = take_signal();
	if (why)
		return why;
	fd = make_ring(&ring);
	if (fd < 0) {
		(void)give_signal_back();
		return "it cannot have memory to share (memfd_create)";
	}
	ring->signal = (uint32_t)sampler.signal;
	sampler.period_ns = period_ns;
	sampler.stack_bytes = stack_bytes;
	sampler.random = clock_ns(CLOCK_MONOTONIC) | 1;
	sampler.n_ticks = 0;
	for (uint32_t i = 0; i < sampler.n_slots; i++)
		sampler.slots[i].tid = 0;
	__atomic_store_n(&sampler.ring, ring, __ATOMIC_SEQ_CST);
	scan(true);
	*ret_ring = fd;
	return NULL;
}

static void end_sampling(enum sample_ring_state state)
{
	struct sample_ring *ring = sampler.ring;

	if (!ring)
		return;
	for (uint32_t i = 0; i < sampler.n_slots; i++)
		stop_timer(&sampler.slots[i]);
	__atomic_store_n(&sampler.ring, NULL, __ATOMIC_SEQ_CST);
	__atomic_store_n(&sampler.layout, NULL, __ATOMIC_SEQ_CST);
	__atomic_store_n(&ring->state, state, __ATOMIC_SEQ_CST);
	if (!wait_for_handlers())
		return; /* it stays mapped for the thread that does not run */
	(void)munmap(ring, SAMPLE_RING_HEADER_BYTES + sampler.data_bytes);
	for (uint32_t i = 0; i < sampler.n_slots; i++) /* zeros: nothing is known */
		(void)madvise(sampler.slots[i].frames, frames_room_bytes(), MADV_DONTNEED);
}

void sampler_stop(void)
{
	end_sampling(SAMPLE_RING_STOPPED);
	(void)give_signal_back();
}

bool sampler_runs(void)
{
	return sampler.ring != NULL;
}

bool sampler_watch(const struct python_layout *layout)
{
	__atomic_store_n(&sampler.layout, NULL, __ATOMIC_SEQ_CST);
	if (!wait_for_handlers())
		return false;
	sampler.layout_copy = *layout;
	sampler.layout_copy.calls_for_new = 0;
	__atomic_store_n(&sampler.layout, &sampler.layout_copy, __ATOMIC_SEQ_CST);
	return true;
}

unsigned sampler_tick_ms(void)
{
	uint64_t periods_ms = sampler.period_ns / 1000000 * TICK_PERIODS;

	if (!sampler.ring || periods_ms < SAMPLER_MIN_TICK_MS)
		return SAMPLER_MIN_TICK_MS;
	return periods_ms > SAMPLER_MAX_TICK_MS ? (unsigned)SAMPLER_MAX_TICK_MS : (unsigned)periods_ms;
}

bool sampler_tick(void)
{
	if (!sampler.ring)
		return sampler.signal != 0 && give_signal_back();
	if (is_ours(sampler.signal))
		scan(false);
	else
		end_sampling(SAMPLE_RING_YIELDED);
	return true;
}

void sampler_reset(void)
{
	const struct sigaction by_default = { .sa_handler = SIG_DFL };

	sampler.ring = NULL;
	sampler.layout = NULL;
	for (uint32_t i = 0; i < sampler.n_slots; i++) {
		sampler.slots[i].has_timer = false;
		sampler.slots[i].busy = 0;
		sampler.slots[i].tid = 0;
	}
	if (is_ours(sampler.signal))
		(void)sigaction(sampler.signal, &by_default, NULL);
	sampler.signal = 0;
}
