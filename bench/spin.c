/* SPDX-License-Identifier: MIT */
/* bench/spin.c - how much of a thread's time goes elsewhere.
 *
 * A thread that does nothing but read the processor's counter sees everything
 * that takes the CPU from it as a gap between two readings. Gaps longer than
 * 0.7 us are summed; those of 400 us and more, mostly another task's time
 * slice, are left out of the second sum. The median is of those from 10 us on: shorter ones are mostly the kernel's own.
 */
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#ifdef __x86_64__
#include <x86intrin.h>
#endif

struct gaps {
	double seconds, stolen, stolen_short; /* all in seconds */
	uint64_t n;
	double median; /* of gaps from 10 to 400 us, in seconds */
};

enum { FIRST_BIN = 40, N_BINS = 1600, BINS_A_US = 4 };

void spin(double seconds, struct gaps *ret);

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static uint64_t counter(void)
{
#ifdef __x86_64__
	return __rdtsc();
#else /* aarch64 */
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
#endif
}

/* Counter ticks per second, measured over a tenth of a second. */
static double ticks_a_second(void)
{
	double start = now();
	uint64_t ticks = counter();

	while (now() - start < 0.1)
		;
	return (double)(counter() - ticks) / (now() - start);
}

/* Median of gaps by length: the end of the middle one's bin; 0: no gaps. */
static double median_of(const uint64_t *bins)
{
	uint64_t n = 0, below = 0;
	int i = FIRST_BIN;

	for (int k = FIRST_BIN; k < N_BINS; k++)
		n += bins[k];
	while (i < N_BINS && (below += bins[i++]) * 2 < n)
		;
	return n ? (double)i / (BINS_A_US * 1e6) : 0;
}

/* spin - run for a time and report stolen time. Callable from Python through ctypes. */
void spin(double seconds, struct gaps *ret)
{
	double rate = ticks_a_second();
	uint64_t smallest = (uint64_t)(0.7e-6 * rate), longest = (uint64_t)(400e-6 * rate);
	uint64_t start = counter(), end = start + (uint64_t)(seconds * rate), last = start;
	uint64_t stolen = 0, stolen_short = 0, n = 0, bins[N_BINS] = { 0 };
	double bins_a_tick = BINS_A_US * 1e6 / rate;

	while (last < end) {
		uint64_t tick = counter(), gap = tick - last;

		if (gap > smallest) {
			stolen += gap;
			stolen_short += gap < longest ? gap : 0;
			n++;
			if (gap < longest)
				bins[(size_t)((double)gap * bins_a_tick)]++;
		}
		last = tick;
	}
	*ret = (struct gaps){
		.seconds = (double)(last - start) / rate,
		.stolen = (double)stolen / rate,
		.stolen_short = (double)stolen_short / rate,
		.n = n,
		.median = median_of(bins),
	};
}
