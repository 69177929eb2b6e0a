/* pingpong.c - two threads that do little but wait for each other.
 *
 * Usage: pingpong SECONDS NANOSECONDS. A byte goes to and fro over two pipes, and whoever has it
 * computes for NANOSECONDS first. Both are on one processor, where each turn is a switch from the one
 * to the other and nothing else. Prints the turns of each 100 ms. bench/switches.py compares them.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

struct game {
	int there[2], back[2];
	double work;
};

static void compute(double seconds)
{
	double end = now() + seconds;

	while (seconds > 0 && now() < end)
		;
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
	double end = now() + seconds, tell = now() + 0.1;
	unsigned long n = 0;
	char byte = 0;

	while (now() < end) {
		for (int i = 0; i < 64; i++, n += 2) {
			compute(game->work);
			if (write(game->there[1], &byte, 1) != 1 || read(game->back[0], &byte, 1) != 1)
				return;
		}
		if (now() >= tell) {
			printf("%lu\n", n);
			fflush(stdout);
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
	game.work = atof(argv[2]) / 1e9;
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	if (sched_setaffinity(0, sizeof one, &one) < 0 || pthread_create(&thread, NULL, echo, &game) != 0)
		return 1;
	play(&game, atof(argv[1]));
	return 0;
}
