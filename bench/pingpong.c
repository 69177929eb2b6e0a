/* SPDX-License-Identifier: MIT */
/* pingpong.c - two threads that do little but wait for each other.
 *
 * Usage: pingpong SECONDS NANOSECONDS. A byte goes to and fro over two pipes, and whoever has it
 * computes for about NANOSECONDS first. Both are on one processor, where each turn is a switch from the one
 * to the other and nothing else. Prints, each 100 ms, the CPU time in nanoseconds that a turn
 * takes: what others do on that processor is not in it. bench/switches.py compares these.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

struct game {
	int there[2], back[2];
	unsigned long work;
};

static void compute(unsigned long rounds)
{
	for (volatile unsigned long i = 0; i < rounds; i++)
		;
}

static int by_value(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

/* The usual duration of a round: the fastest rounds may be mistimed or unrepresentative. */
static unsigned long rounds_of(double seconds)
{
	enum { TRIES = 201, ROUNDS = 20000 };
	double took[TRIES];

	for (int i = 0; i < TRIES; i++) {
		double began = now(CLOCK_MONOTONIC);

		compute(ROUNDS);
		took[i] = now(CLOCK_MONOTONIC) - began;
	}
	qsort(took, TRIES, sizeof *took, by_value);
	return (unsigned long)(seconds / took[TRIES / 2] * ROUNDS);
}

static void *echo(void *data)
{
	struct game *game = data;
	char byte;

	while (read(game->there[0], &byte, 1) == 1) {
		compute(game->work);
		if (write(game->back[1], &byte, 1) != 1)
			break;
	}
	return NULL;
}

static void play(struct game *game, double seconds)
{
	double end = now(CLOCK_MONOTONIC) + seconds, tell = now(CLOCK_MONOTONIC) + 0.1;
	double used = now(CLOCK_PROCESS_CPUTIME_ID);
	unsigned long n = 0;
	char byte = 0;

	while (now(CLOCK_MONOTONIC) < end) {
		for (int i = 0; i < 64; i++, n += 2) {
			compute(game->work);
			if (write(game->there[1], &byte, 1) != 1 || read(game->back[0], &byte, 1) != 1)
				return;
		}
		if (now(CLOCK_MONOTONIC) >= tell) {
			printf("%.0f\n", (now(CLOCK_PROCESS_CPUTIME_ID) - used) * 1e9 / (double)n);
			fflush(stdout);
			used = now(CLOCK_PROCESS_CPUTIME_ID);
			tell += 0.1;
			n = 0;
		}
	}
}

int main(int argc, char **argv)
{
	struct game game;
	pthread_t thread;
	cpu_set_t one;

	if (argc < 3 || pipe(game.there) < 0 || pipe(game.back) < 0)
		return 1;
	game.work = rounds_of(atof(argv[2]) / 1e9);
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	if (sched_setaffinity(0, sizeof one, &one) < 0 || pthread_create(&thread, NULL, echo, &game) != 0)
		return 1;
	play(&game, atof(argv[1]));
	return 0;
}
