/* SPDX-License-Identifier: MIT */
/* rate.c - see rate.h. A bucket is the time at which it will be full again (the generic cell rate algorithm, ITU-T I.371). */
#include "src/serve/rate.h"

#include <netinet/in.h>
#include <string.h>

#include "base/util.h"

enum { KIND_OTHER = 1, KIND_V4, KIND_V6, PREFIX_BYTES = 8 };

void rate_init(struct rate *rate)
{
	memset(rate->clients, 0, sizeof rate->clients);
	pthread_mutex_init(&rate->lock, NULL);
}

/* A mapped address is the IPv4 address itself: a socket of both families shows it so. */
static void make_key(const struct sockaddr *address, uint8_t key[17])
{
	const struct in6_addr *v6;

	memset(key, 0, 17);
	key[0] = KIND_OTHER;
	if (!address)
		return;
	v6 = &((const struct sockaddr_in6 *)address)->sin6_addr;
	if (address->sa_family == AF_INET) {
		key[0] = KIND_V4;
		memcpy(key + 1, &((const struct sockaddr_in *)address)->sin_addr, 4);
	} else if (address->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(v6)) {
		key[0] = KIND_V4;
		memcpy(key + 1, v6->s6_addr + 12, 4);
	} else if (address->sa_family == AF_INET6) {
		key[0] = KIND_V6;
		memcpy(key + 1, v6->s6_addr, PREFIX_BYTES);
	}
}

/* Its place; a new one takes a free place, or that of the client that was silent for longest. */
static struct rate_client *find(struct rate *rate, const uint8_t key[17])
{
	struct rate_client *oldest = &rate->clients[0];

	for (size_t i = 0; i < RATE_CLIENTS; i++) {
		struct rate_client *client = &rate->clients[i];

		if (memcmp(client->key, key, sizeof client->key) == 0)
			return client;
		if (client->last_ms < oldest->last_ms)
			oldest = client;
	}
	*oldest = (struct rate_client){ 0 };
	memcpy(oldest->key, key, sizeof oldest->key);
	return oldest;
}

static bool take(uint64_t *full_ms, uint64_t each_ms, uint64_t burst, uint64_t now_ms, uint64_t *ret_ms)
{
	uint64_t next = MAX(*full_ms, now_ms) + each_ms;

	if (next > now_ms + burst * each_ms) {
		*ret_ms = next - (now_ms + burst * each_ms);
		return false;
	}
	*full_ms = next;
	return true;
}

bool rate_take(struct rate *rate, const struct sockaddr *address, bool is_known, uint64_t now_ms, uint64_t *ret_ms)
{
	struct rate_client *client;
	uint8_t key[17];
	bool may;

	make_key(address, key);
	pthread_mutex_lock(&rate->lock);
	client = find(rate, key);
	client->last_ms = now_ms;
	may = is_known ? take(&client->known_ms, RATE_KNOWN_MS, RATE_KNOWN_BURST, now_ms, ret_ms)
		       : take(&client->other_ms, RATE_OTHER_MS, RATE_OTHER_BURST, now_ms, ret_ms);
	pthread_mutex_unlock(&rate->lock);
	return may;
}
