/* SPDX-License-Identifier: MIT */
/* bench/unwind.c - what a native frame costs, on real dumps of a running process.
 *
 * Records registers and stack copies of a process with src/capture, keeps them
 * in memory, then unwinds the same dumps with unwind/native and with libdwfl
 * (one Dwfl kept), so that the ratio of the two is of one run. The process
 * must go on living meanwhile: its maps and its vdso are read.
 *
 * Times are CPU time of the measuring thread: other programs on the machine
 * disturb them through the caches only. Prints one JSON object.
 */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/util.h"
#include "bench/dumps.h"
#include "tests/unit/dwfl_oracle.h"
#include "unwind/native/native.h"
#include "unwind/native/walk.h" /* the pool of rows */

enum {
	N_WARM_UP = 64,
	N_ROUNDS = 9,            /* per measurement; the median counts */
	N_HOT_WALKS = 5000,      /* of one dump, per round */
	EVICT_BYTES = 512 << 20, /* larger than any cache */
};

/* State of our unwinder. */
struct ours {
	struct module_table *modules;
	struct address_space *space;
	struct native_unwinder *unwinder;
	struct native_process *process;
	struct native_stack stack;
};

struct spread {
	double median, lowest, highest;
};

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static struct spread spread_of(double *values, size_t n)
{
	qsort(values, n, sizeof *values, compare_doubles);
	return (struct spread){ values[n / 2], values[0], values[n - 1] };
}

/* ---- Measure ---- */

static void ours_done(struct ours *ours)
{
	native_stack_done(&ours->stack);
	native_process_free(ours->process);
	native_unwinder_free(ours->unwinder);
	address_space_free(ours->space);
	module_table_free(ours->modules);
	memset(ours, 0, sizeof *ours);
}

/* @ours: zeroed. */
static int ours_init(struct ours *ours, pid_t pid)
{
	int r;

	r = module_table_new(&ours->modules);
	if (r >= 0)
		r = address_space_new(pid, ours->modules, &ours->space);
	if (r >= 0)
		r = address_space_load(ours->space);
	if (r >= 0)
		r = native_unwinder_new(ours->modules, &ours->unwinder);
	if (r >= 0)
		r = native_process_new(ours->unwinder, ours->space, &ours->process);
	return r;
}

static uint64_t page_faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (uint64_t)usage.ru_minflt + (uint64_t)usage.ru_majflt;
}

/* Unwind every dump once; returns CPU time and number of frames. */
static int pass(struct ours *ours, const struct dumps *dumps, uint64_t *ret_ns, uint64_t *ret_frames)
{
	uint64_t start = cpu_ns(), n_frames = 0;

	for (size_t i = 0; i < dumps->n; i++) {
		int r;

		if (i + 1 < dumps->n)
			native_expect(ours->process, &dumps->samples[i + 1]);
		r = native_unwind(ours->process, &dumps->samples[i], NULL, &ours->stack);
		if (r < 0)
			return r;
		n_frames += ours->stack.n_frames;
	}
	*ret_ns = cpu_ns() - start;
	*ret_frames = n_frames;
	return 0;
}

/*
 * Fill the caches with other data. The touched lines of all dumps may be few enough to stay cached from round to round.
 */
static void evict(void)
{
	static uint8_t *other;
	uint64_t sum = 0;

	if (!other) {
		other = malloc(EVICT_BYTES);
		if (!other)
			return;
		memset(other, 1, EVICT_BYTES);
	}
	for (size_t i = 0; i < EVICT_BYTES; i += sizeof sum)
		sum += *(const volatile uint64_t *)(other + i);
	__asm__ volatile("" : : "r"(sum));
}

/* @evicts: each round starts with cold caches; otherwise with what the last round left. */
static int measure_streamed(struct ours *ours, const struct dumps *dumps, bool evicts, struct spread *ret)
{
	double values[N_ROUNDS];

	for (unsigned i = 0; i < N_ROUNDS; i++) {
		uint64_t ns, n_frames;
		int r;

		if (evicts)
			evict();
		r = pass(ours, dumps, &ns, &n_frames);
		if (r < 0)
			return r;
		values[i] = (double)ns / (double)n_frames;
	}
	*ret = spread_of(values, N_ROUNDS);
	return 0;
}

/*
 * Unwind every dump once with a new unwinder each time, including opening files and compiling rows. Leaves ours warm.
 */
static int measure_first(struct ours *ours, pid_t pid, const struct dumps *dumps, struct spread *ret,
			 uint64_t *ret_faults)
{
	enum { ROUNDS = 5 };
	double values[ROUNDS];

	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t ns, n_frames, n_faults;
		int r;

		ours_done(ours);
		r = ours_init(ours, pid);
		n_faults = page_faults();
		if (r >= 0)
			r = pass(ours, dumps, &ns, &n_frames);
		if (r < 0)
			return r;
		*ret_faults = page_faults() - n_faults;
		values[i] = (double)ns / (double)n_frames;
	}
	*ret = spread_of(values, ROUNDS);
	return 0;
}

/* ---- Cost of memory alone ---- */

/* Positions of the return addresses found in each dump: any unwinder must read them. */
struct footprint {
	uint32_t *offsets; /* relative to the dump's start, dump after dump */
	size_t n, allocated;
	size_t *ends; /* end of each dump in offsets */
};

static void footprint_done(struct footprint *footprint)
{
	free(footprint->offsets);
	free(footprint->ends);
}

static int add_footprint(const struct native_stack *stack, struct footprint *footprint)
{
	const struct sample *sample = stack->sample;

	for (size_t i = 0; i < stack->n_frames; i++) {
		uint64_t offset = stack->frames[i].cfa - sizeof(uint64_t) - sample->regs.value[MACHINE_REG_SP];
		int r;

		if (stack->frames[i].cfa == 0 || offset >= sample->stack_bytes)
			continue;
		r = grow(&footprint->offsets, footprint->n, &footprint->allocated, sizeof *footprint->offsets);
		if (r < 0)
			return r;
		footprint->offsets[footprint->n++] = (uint32_t)offset;
	}
	return 0;
}

/* @ret: zeroed; call footprint_done() also after an error. */
static int find_footprint(struct ours *ours, const struct dumps *dumps, struct footprint *ret)
{
	int r = 0;

	ret->ends = calloc(dumps->n, sizeof *ret->ends);
	if (!ret->ends)
		return -ENOMEM;
	for (size_t i = 0; i < dumps->n && r >= 0; i++) {
		r = native_unwind(ours->process, &dumps->samples[i], NULL, &ours->stack);
		if (r >= 0)
			r = add_footprint(&ours->stack, ret);
		ret->ends[i] = ret->n;
	}
	return r;
}

/* Read a dump's words at known positions, while prefetching those of the next dump. */
static void read_words(const struct dumps *dumps, const struct footprint *footprint, size_t dump)
{
	size_t start = dump > 0 ? footprint->ends[dump - 1] : 0, end = footprint->ends[dump];

	for (size_t i = end; dump + 1 < dumps->n && i < footprint->ends[dump + 1]; i++)
		__builtin_prefetch(dumps->samples[dump + 1].stack + footprint->offsets[i]);
	for (size_t i = start; i < end; i++)
		(void)*(const volatile uint8_t *)(dumps->samples[dump].stack + footprint->offsets[i]);
}

/* Read all lines up to the dump's last word in order, with a useful prefetch distance. */
static void read_lines(const struct dumps *dumps, const struct footprint *footprint, size_t dump)
{
	enum { LINE_BYTES = 64, PREFETCH_BYTES = 4096, BEGINNING_BYTES = 2048 };
	size_t start = dump > 0 ? footprint->ends[dump - 1] : 0, end = footprint->ends[dump];
	const uint8_t *stack = dumps->samples[dump].stack;

	for (size_t offset = 0; dump + 1 < dumps->n && offset < BEGINNING_BYTES; offset += LINE_BYTES)
		__builtin_prefetch(dumps->samples[dump + 1].stack + offset);
	for (size_t offset = 0; start < end && offset <= footprint->offsets[end - 1]; offset += LINE_BYTES) {
		__builtin_prefetch(stack + offset + PREFETCH_BYTES);
		(void)*(const volatile uint8_t *)(stack + offset);
	}
}

static struct spread measure_reading(const struct dumps *dumps, const struct footprint *footprint,
				     void (*read)(const struct dumps *, const struct footprint *, size_t))
{
	double values[N_ROUNDS];

	for (unsigned i = 0; i < N_ROUNDS; i++) {
		uint64_t start;

		evict();
		start = cpu_ns();
		for (size_t k = 0; k < dumps->n; k++)
			read(dumps, footprint, k);
		values[i] = (double)(cpu_ns() - start) / (double)footprint->n;
	}
	return spread_of(values, N_ROUNDS);
}

/* Find a complete stack of the usual depth, to unwind repeatedly. */
static int find_usual(struct ours *ours, const struct dumps *dumps, double usual_frames, size_t *ret)
{
	double best = 1e9;

	for (size_t i = 0; i < dumps->n; i++) {
		double distance;
		int r = native_unwind(ours->process, &dumps->samples[i], NULL, &ours->stack);

		if (r < 0)
			return r;
		distance = (double)ours->stack.n_frames - usual_frames;
		distance = distance < 0 ? -distance : distance;
		if (distance < best && ours->stack.end == STACK_COMPLETE) {
			best = distance;
			*ret = i;
		}
	}
	return 0;
}

static int measure_hot(struct ours *ours, const struct sample *sample, struct spread *ret)
{
	double values[N_ROUNDS];

	for (unsigned i = 0; i < N_ROUNDS; i++) {
		uint64_t start = cpu_ns();

		for (unsigned k = 0; k < N_HOT_WALKS; k++) {
			int r = native_unwind(ours->process, sample, NULL, &ours->stack);

			if (r < 0)
				return r;
		}
		values[i] = (double)(cpu_ns() - start) / N_HOT_WALKS / (double)ours->stack.n_frames;
	}
	*ret = spread_of(values, N_ROUNDS);
	return 0;
}

static struct spread measure_libdwfl(struct oracle *oracle, const struct dumps *dumps, bool evicts)
{
	enum { ROUNDS = 3 };
	double values[ROUNDS];

	oracle->want_sp = false;
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t start, n_frames = 0;

		if (evicts)
			evict();
		start = cpu_ns();
		for (size_t k = 0; k < dumps->n; k++) {
			oracle_unwind(oracle, &dumps->samples[k], NULL);
			n_frames += oracle->n_frames;
		}
		values[i] = (double)(cpu_ns() - start) / (double)n_frames;
	}
	return spread_of(values, ROUNDS);
}

/* ---- Compare ---- */

struct agreement {
	uint64_t n_frames, n_equal;  /* of the longer stack; equal pc and sp */
	uint64_t n_compared;         /* samples */
	uint64_t n_guessed;          /* samples skipped, with code without CFI */
	uint64_t n_all, n_all_equal; /* frames of all samples, including skipped ones */
	uint64_t by_end[STACK_N_ENDS];
};

/*
 * Skip what libdwfl only guesses from the frame pointer: code without CFI (a JIT's), and rules that lead below the
 * stack pointer, outside the dump.
 */
static bool is_comparable(const struct native_stack *ours)
{
	for (size_t i = 0; i < ours->n_frames; i++)
		if (ours->frames[i].without_cfi)
			return false;
	return ours->end != STACK_BAD_MEMORY && ours->end != STACK_NO_UNWIND_INFO;
}

static void compare(const struct native_stack *ours, const struct oracle *theirs, struct agreement *agreement)
{
	size_t n = MIN(ours->n_frames, theirs->n_frames), n_equal = 0;

	while (n_equal < n && ours->frames[n_equal].pc == theirs->frames[n_equal].pc &&
	       ours->frames[n_equal].sp == theirs->frames[n_equal].sp)
		n_equal++;
	agreement->by_end[ours->end]++;
	agreement->n_all += MAX(ours->n_frames, theirs->n_frames);
	agreement->n_all_equal += n_equal;
	if (!is_comparable(ours)) {
		agreement->n_guessed++;
		return;
	}
	agreement->n_frames += MAX(ours->n_frames, theirs->n_frames);
	agreement->n_equal += n_equal;
	agreement->n_compared++;
}

static int measure_agreement(struct ours *ours, struct oracle *oracle, const struct dumps *dumps, struct agreement *ret)
{
	oracle->want_sp = true;
	for (size_t i = 0; i < dumps->n; i++) {
		int r = native_unwind(ours->process, &dumps->samples[i], NULL, &ours->stack);

		if (r < 0)
			return r;
		oracle_unwind(oracle, &dumps->samples[i], NULL);
		compare(&ours->stack, oracle, ret);
	}
	return 0;
}

/* ---- Half dumps ---- */

/* Number of equal frames of two stacks, from the leaf on. */
static size_t count_equal(const struct native_stack *stack, const struct native_stack *whole)
{
	size_t n = 0, max = MIN(stack->n_frames, whole->n_frames);

	while (n < max && stack->frames[n].pc == whole->frames[n].pc && stack->frames[n].sp == whole->frames[n].sp)
		n++;
	return n;
}

/*
 * With half of each dump, the share of found frames that are right. The halves' unwinder learns nothing from whole
 * dumps. Uses only dumps that reach the thread's start.
 */
static int measure_halves(struct ours *whole, struct ours *half, const struct dumps *dumps, double *ret)
{
	uint64_t n_frames = 0, n_right = 0;

	for (size_t i = 0; i < dumps->n; i++) {
		struct sample sample = dumps->samples[i];
		int r;

		r = native_unwind(whole->process, &sample, NULL, &whole->stack);
		sample.stack_bytes = sample.stack_bytes / 2 & ~(size_t)7;
		if (r >= 0)
			r = native_unwind(half->process, &sample, NULL, &half->stack);
		if (r < 0)
			return r;
		if (whole->stack.end != STACK_COMPLETE)
			continue;
		n_frames += half->stack.n_frames;
		n_right += count_equal(&half->stack, &whole->stack);
	}
	*ret = n_frames > 0 ? (double)n_right / (double)n_frames : 1;
	return 0;
}

/* ---- Report ---- */

static void print_spread(const char *name, const struct spread *spread)
{
	printf("\"%s\": [%.2f, %.2f, %.2f], ", name, spread->median, spread->lowest, spread->highest);
}

static void print_agreement(const struct agreement *agreement)
{
	printf("\"agreement\": %.6f, \"compared\": %" PRIu64 ", \"not_compared\": %" PRIu64,
	       (double)agreement->n_equal / (double)agreement->n_frames, agreement->n_compared, agreement->n_guessed);
	printf(", \"agreement_all\": %.6f", (double)agreement->n_all_equal / (double)agreement->n_all);
	for (unsigned i = 0; i < STACK_N_ENDS; i++)
		if (agreement->by_end[i] > 0)
			printf(", \"end_%s\": %" PRIu64, stack_end_name(i), agreement->by_end[i]);
}

static int replay(const struct dump_options *options, const struct dumps *dumps, struct ours *ours,
		  struct oracle *oracle)
{
	uint64_t warm_ns, n_frames, n_faults;
	struct spread first, streamed, shared, hot, libdwfl, libdwfl_shared, words, lines;
	CLEANUP(footprint_done) struct footprint footprint = { 0 };
	CLEANUP(ours_done) struct ours half = { 0 };
	const struct row_pool *pool = &ours->unwinder->pool;
	struct agreement agreement = { 0 };
	double halves = 0;
	size_t usual = 0;
	int r;

	r = measure_first(ours, options->pid, dumps, &first, &n_faults);
	/* Failing searches for return addresses become less and less frequent. */
	for (unsigned i = 0; i < N_WARM_UP && r >= 0; i++)
		r = pass(ours, dumps, &warm_ns, &n_frames);
	if (r >= 0)
		r = measure_streamed(ours, dumps, true, &streamed);
	if (r >= 0)
		r = measure_streamed(ours, dumps, false, &shared);
	if (r >= 0)
		r = find_usual(ours, dumps, (double)n_frames / (double)dumps->n, &usual);
	if (r >= 0)
		r = measure_hot(ours, &dumps->samples[usual], &hot);
	if (r >= 0)
		r = find_footprint(ours, dumps, &footprint);
	if (r >= 0)
		r = ours_init(&half, options->pid);
	if (r >= 0)
		r = measure_halves(ours, &half, dumps, &halves);
	if (r >= 0)
		r = oracle_open(oracle, options->pid);
	if (r >= 0)
		r = measure_agreement(ours, oracle, dumps, &agreement);
	if (r < 0)
		return r;
	libdwfl = measure_libdwfl(oracle, dumps, true);
	libdwfl_shared = measure_libdwfl(oracle, dumps, false);
	words = measure_reading(dumps, &footprint, read_words);
	lines = measure_reading(dumps, &footprint, read_lines);

	printf("{\"samples\": %zu, \"lost\": %" PRIu64 ", \"dump_mb\": %.1f, \"frames\": %" PRIu64 ", ", dumps->n,
	       dumps->n_lost, (double)dumps->n_bytes / 1e6, n_frames);
	printf("\"places\": %zu, \"rows\": %zu, ", pool->n_compiled, pool->n);
	print_spread("streamed_ns", &streamed);
	print_spread("hot_ns", &hot);
	print_spread("words_ns", &words);
	print_spread("lines_ns", &lines);
	print_spread("libdwfl_ns", &libdwfl);
	print_spread("shared_ns", &shared);
	print_spread("libdwfl_shared_ns", &libdwfl_shared);
	print_spread("first_ns", &first);
	printf("\"first_faults\": %" PRIu64 ", \"new_place_us\": %.2f, ", n_faults,
	       (first.median - streamed.median) * (double)n_frames / 1e3 / (double)pool->n_compiled);
	print_agreement(&agreement);
	printf(", \"halves\": %.6f}\n", halves);
	return 0;
}

static int parse_option(int key, char *argument, struct argp_state *state)
{
	struct dump_options *options = state->input;

	switch (key) {
	case 'd':
		options->seconds = strtod(argument, NULL);
		return 0;
	case 'F':
		options->hz = strtod(argument, NULL);
		return 0;
	case 's':
		options->stack_bytes = strtoul(argument, NULL, 10);
		return 0;
	case ARGP_KEY_ARG:
		options->pid = (pid_t)strtol(argument, NULL, 10);
		return 0;
	case ARGP_KEY_END:
		return options->pid > 0 ? 0 : (argp_usage(state), EINVAL);
	}
	return ARGP_ERR_UNKNOWN;
}

int main(int argc, char **argv)
{
	static const struct argp_option known[] = {
		{ "duration", 'd', "SECONDS", 0, "Record for so long (8)", 0 },
		{ "frequency", 'F', "HZ", 0, "Samples a second (999)", 0 },
		{ "stack-bytes", 's', "N", 0, "Stack to copy (16384)", 0 },
		{ 0 },
	};
	static const struct argp argp = { known, parse_option, "PID", "Measure unwinding.", 0, 0, 0 };
	struct dump_options options = { .seconds = 8, .hz = 999, .stack_bytes = 16384 };
	struct oracle oracle = { 0 };
	struct dumps dumps = { 0 };
	struct ours ours = { 0 };
	int r;

	argp_parse(&argp, argc, argv, 0, NULL, &options);
	r = dumps_init(&dumps);
	if (r >= 0)
		r = dumps_record(&options, &dumps);
	if (r >= 0 && dumps.n == 0)
		r = -ENODATA;
	if (r >= 0)
		r = ours_init(&ours, options.pid);
	if (r >= 0)
		r = replay(&options, &dumps, &ours, &oracle);
	if (r < 0)
		fprintf(stderr, "bench_unwind: %s\n", strerror(-r));
	oracle_close(&oracle);
	ours_done(&ours);
	dumps_done(&dumps);
	return r < 0;
}
