/* SPDX-License-Identifier: MIT */
/* rate.h - how many requests each client of serve --listen may make.
 *
 * A client is an IPv4 address, or the /64 network of an IPv6 address, which one machine can fill. Requests with the token
 * and those without are counted apart, so that whoever guesses tokens from behind the same address locks nobody out. A table
 * of fixed size has the clients; of a full one the client that was silent for longest is forgotten.
 */
#ifndef PROBING_SERVE_RATE_H
#define PROBING_SERVE_RATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
	RATE_CLIENTS = 1024,
	RATE_KNOWN_BURST = 256, /* requests with the token at once */
	RATE_KNOWN_MS = 50,     /* then one in this time */
	RATE_OTHER_BURST = 16,  /* requests without it */
	RATE_OTHER_MS = 4000,
};

/* Tokens of a bucket, as the time that filling it from empty to here takes. */
struct rate_client {
	uint8_t key[17];             /* kind of address and its bytes; all zero: free */
	uint64_t known_ms, other_ms; /* when the buckets will be full */
	uint64_t last_ms;
};

struct rate {
	struct rate_client clients[RATE_CLIENTS];
	pthread_mutex_t lock;
};

void rate_init(struct rate *rate);

/*
 * rate_take - whether this client may make one more request now.
 * @address:  of the client; NULL and other families share one bucket.
 * @is_known: it has sent the token.
 * @now_ms:   of CLOCK_MONOTONIC; not 0.
 * @ret_ms:   if not, the time until it may.
 */
bool rate_take(struct rate *rate, const struct sockaddr *address, bool is_known, uint64_t now_ms, uint64_t *ret_ms);

#endif
