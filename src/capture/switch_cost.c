/* SPDX-License-Identifier: MIT */
/* switch_cost.c - overhead of recording a thread's switches.
 *
 * Two threads on one CPU exchange a byte: each turn is two switches and little else. The CPU time
 * of both is measured, so that other users of the CPU do not count, and the median of several
 * intervals. They exist before they are recorded, like threads of a real target: threads that inherit
 * their events swap contexts at less cost. The records fit into the rings: a lost record
 * would cost less than a written one.
 */
#include "src/capture/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"

enum { INTERVALS = 15, TURNS = 200, SWITCHES_A_TURN = 2, WORK = 3000, RING_BYTES = 1 << 19, N_PLAYERS = 2 };

enum phase { WITHOUT, RECORDED, N_PHASES };

struct game {
	int there[2], back[2];
	cpu_set_t cpu;
	/* Aligns both players and the measuring thread between phases and when the second player starts. */
	pthread_barrier_t barrier;
	struct player {
		struct game *game;
		pthread_t thread;
		int from, to;
		bool begins, failed;
		double used_ns[N_PHASES][INTERVALS];
	} players[N_PLAYERS];
};

/* Each switch evicts some of the cache, as real work does. */
static void work(void)
{
	for (volatile unsigned i = 0; i < WORK; i++)
		;
}

static bool hand_on(const struct player *player)
{
	char byte = 0;

	work();
	if (player->begins)
		return write(player->to, &byte, 1) == 1 && read(player->from, &byte, 1) == 1;
	return read(player->from, &byte, 1) == 1 && write(player->to, &byte, 1) == 1;
}

static void play_phase(struct player *player, enum phase phase)
{
	for (int i = 0; i < INTERVALS && !player->failed; i++) {
		double began = (double)thread_cpu_ns();

		for (int turn = 0; turn < TURNS && !player->failed; turn++)
			player->failed = !hand_on(player);
		player->used_ns[phase][i] = (double)thread_cpu_ns() - began;
	}
}

static void *play(void *data)
{
	struct player *player = data;
	struct game *game = player->game;

	/* If this fails, the threads may run on two CPUs and still switch. */
	(void)pthread_setaffinity_np(pthread_self(), sizeof game->cpu, &game->cpu);
	play_phase(player, WITHOUT);
	pthread_barrier_wait(&game->barrier);
	pthread_barrier_wait(&game->barrier);
	play_phase(player, RECORDED);
	return NULL;
}

static int by_value(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

/* Median CPU time from one switch to the next. */
static double median_ns(const struct game *game, enum phase phase)
{
	double both[INTERVALS];

	for (int i = 0; i < INTERVALS; i++)
		both[i] = game->players[0].used_ns[phase][i] + game->players[1].used_ns[phase][i];
	qsort(both, INTERVALS, sizeof *both, by_value);
	return both[INTERVALS / 2] / (TURNS * SWITCHES_A_TURN);
}

static void game_done(struct game *game)
{
	for (int i = 0; i < 2; i++) {
		closep(&game->there[i]);
		closep(&game->back[i]);
	}
	pthread_barrier_destroy(&game->barrier);
}

static int game_init(struct game *game)
{
	*game = (struct game){ .there = { -1, -1 }, .back = { -1, -1 } };
	CPU_ZERO(&game->cpu);
	CPU_SET((unsigned)MAX(sched_getcpu(), 0), &game->cpu);
	pthread_barrier_init(&game->barrier, NULL, N_PLAYERS + 1);
	if (pipe2(game->there, O_CLOEXEC) < 0 || pipe2(game->back, O_CLOEXEC) < 0)
		return -errno;
	game->players[0] = (struct player){ .game = game, .to = game->there[1], .from = game->back[0], .begins = true };
	game->players[1] = (struct player){ .game = game, .to = game->back[1], .from = game->there[0] };
	return 0;
}

static int start_players(struct game *game)
{
	int r;

	r = pthread_create(&game->players[0].thread, NULL, play, &game->players[0]);
	if (r != 0)
		return -r;
	r = pthread_create(&game->players[1].thread, NULL, play, &game->players[1]);
	if (r == 0)
		return 0;
	/* The first player waits in read(2) for data that never comes; read(2) is a cancellation point. */
	pthread_cancel(game->players[0].thread);
	pthread_join(game->players[0].thread, NULL);
	return -r;
}

int capture_switch_cost(const struct capture_options *options, enum capture_source source, double *ret_ns)
{
	CLEANUP(capture_freep) struct capture *capture = NULL;
	CLEANUP(game_done) struct game game;
	struct capture_options ours = *options;
	int r;

	ours.source = source;
	ours.ring_bytes = RING_BYTES;
	ours.no_wakeup = true;
	r = game_init(&game);
	if (r >= 0)
		r = start_players(&game);
	if (r < 0)
		return r;
	pthread_barrier_wait(&game.barrier);
	r = capture_attach(&ours, getpid(), &capture);
	pthread_barrier_wait(&game.barrier);
	for (int i = 0; i < N_PLAYERS; i++) {
		pthread_join(game.players[i].thread, NULL);
		if (r >= 0 && game.players[i].failed)
			r = -EIO;
	}
	if (r < 0)
		return r;

	*ret_ns = MAX(median_ns(&game, RECORDED) - median_ns(&game, WITHOUT), 0.0);
	return 0;
}
