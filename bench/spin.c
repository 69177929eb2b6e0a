/* bench/spin.c - how much of a thread's time goes elsewhere.
 *
 * A thread that does nothing but read the processor's counter sees everything
 * that takes the CPU from it as a gap between two readings. Gaps longer than
 * 0.7 us are summed; those of 400 us and more, mostly another task's time
 * slice, are left out of the second sum.
 */
#include <stdint.h>
#include <time.h>
#ifdef __x86_64__
#include <x86intrin.h>
#endif

struct gaps {
	double seconds, stolen, stolen_short; /* all in seconds */
	uint64_t n;
};

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

/* Ticks of the counter a second, over a tenth of one. */
static double ticks_a_second(void)
{
	double start = now();
	uint64_t ticks = counter();

	while (now() - start < 0.1)
		;
	return (double)(counter() - ticks) / (now() - start);
}

/* spin - run for so long and report what was taken. Callable from Python by ctypes. */
void spin(double seconds, struct gaps *ret)
{
	double rate = ticks_a_second();
	uint64_t smallest = (uint64_t)(0.7e-6 * rate), longest = (uint64_t)(400e-6 * rate);
	uint64_t start = counter(), end = start + (uint64_t)(seconds * rate), last = start;
	uint64_t stolen = 0, stolen_short = 0, n = 0;

	while (last < end) {
		uint64_t tick = counter(), gap = tick - last;

		if (gap > smallest) {
			stolen += gap;
			stolen_short += gap < longest ? gap : 0;
			n++;
		}
		last = tick;
	}
	*ret = (struct gaps){
		.seconds = (double)(last - start) / rate,
		.stolen = (double)stolen / rate,
		.stolen_short = (double)stolen_short / rate,
		.n = n,
	};
}
