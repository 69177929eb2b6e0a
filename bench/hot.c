/* SPDX-License-Identifier: MIT */
/* hot.c - runs one of probing's hot paths, for bench/instructions.py to count its instructions.
 *
 * Usage: bench_hot NAME ROOT [--planted | --seconds N]   ROOT: of the project's sources
 *        bench_hot --list    names, a line each
 *        bench_hot --build   what it was built with: counts are of that
 *
 * What is counted is between the first call of measured() and its return; what comes before, a first
 * run included, is not. --planted does a tenth more there, as if the path had become slower; --seconds goes
 * on for so long, to be recorded.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "bench/hot.h"

static const struct hot *const all[] = { &hot_unwind, &hot_stitch, &hot_intern, &hot_encode, &hot_decode, &hot_query };

/* callgrind starts counting at this name. */
__attribute__((noinline)) int measured(const struct hot *hot, void *data, unsigned rounds);
int measured(const struct hot *hot, void *data, unsigned rounds)
{
	int r = 0;

	for (unsigned i = 0; i < rounds && r >= 0; i++)
		r = hot->run(data);
	return r;
}

static int run_for(const struct hot *hot, void *data, double seconds)
{
	uint64_t end = monotonic_ns() + (uint64_t)(seconds * 1e9);
	int r = 0;

	while (r >= 0 && monotonic_ns() < end)
		r = measured(hot, data, hot->rounds / 10);
	return r;
}

/* @seconds 0: run once, and @more_rounds more. */
static int run_hot(const struct hot *hot, const char *root, unsigned more_rounds, double seconds)
{
	void *data = NULL;
	int r;

	r = hot->prepare(root, &data);
	if (r >= 0)
		r = hot->run(data);
	if (r >= 0)
		r = seconds > 0 ? run_for(hot, data, seconds) : measured(hot, data, hot->rounds + more_rounds);
	if (data)
		hot->done(data);
	if (r < 0)
		fprintf(stderr, "bench_hot: %s: %s\n", hot->name, strerror(-r));
	return r < 0;
}

static const struct hot *find(const char *name)
{
	for (size_t i = 0; i < N_ELEMENTS(all); i++)
		if (strcmp(all[i]->name, name) == 0)
			return all[i];
	return NULL;
}

int main(int argc, char **argv)
{
	const struct hot *hot = argc >= 3 ? find(argv[1]) : NULL;

	if (argc == 2 && strcmp(argv[1], "--build") == 0)
		return puts(HOT_BUILD) < 0;
	if (argc == 2 && strcmp(argv[1], "--list") == 0) {
		for (size_t i = 0; i < N_ELEMENTS(all); i++)
			puts(all[i]->name);
		return 0;
	}
	if (hot && argc == 3)
		return run_hot(hot, argv[2], 0, 0);
	if (hot && argc == 4 && strcmp(argv[3], "--planted") == 0)
		return run_hot(hot, argv[2], hot->rounds / 10, 0);
	if (hot && argc == 5 && strcmp(argv[3], "--seconds") == 0 && atof(argv[4]) > 0)
		return run_hot(hot, argv[2], 0, atof(argv[4]));
	fprintf(stderr, "usage: bench_hot --list | --build | NAME ROOT [--planted | --seconds N]\n");
	return 2;
}
