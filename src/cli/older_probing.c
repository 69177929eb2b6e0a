/* SPDX-License-Identifier: MIT */
/* older_probing.c - see older_probing.h. */
#include "src/cli/older_probing.h"

#include <string.h>
#include <unistd.h>

#include "base/util.h"

struct word {
	const char *name; /* ends in '.': each name that begins so */
	const char *instead;
};

static const struct word verbs_gone[] = {
	{ "rdma", "probing reads no counters of RDMA; rdma statistic show (iproute2) prints them" },
};

static const struct word keys_gone[] = {
	{ "pprof.sample_freq", "set probing.sample_rate, in seconds, or give probing record --frequency HZ" },
	{ "server.", "probing opens no port in the process: run probing on its machine, with its PID" },
};

static const char *find(const struct word *words, size_t n_words, const char *name, size_t n_name)
{
	for (size_t i = 0; i < n_words; i++) {
		size_t n = strlen(words[i].name);
		bool is_prefix = words[i].name[n - 1] == '.';

		if ((is_prefix ? n_name >= n : n_name == n) && memcmp(words[i].name, name, n) == 0)
			return words[i].instead;
	}
	return NULL;
}

const char *older_verb(const char *name)
{
	return find(verbs_gone, N_ELEMENTS(verbs_gone), name, strlen(name));
}

const char *older_key(const char *name, size_t n_name)
{
	static const char prefix[] = "probing.";
	const size_t n_prefix = sizeof prefix - 1;

	if (n_name > n_prefix && memcmp(name, prefix, n_prefix) == 0) {
		name += n_prefix;
		n_name -= n_prefix;
	}
	return find(keys_gone, N_ELEMENTS(keys_gone), name, n_name);
}

bool older_is_remote(const char *word)
{
	const char *port = strrchr(word, ':');
	size_t n_port = port ? strlen(port + 1) : 0;

	return port > word && n_port >= 1 && n_port <= 5 && strspn(port + 1, "0123456789") == n_port &&
	       !strpbrk(word, "/ \t\n'\"(") && access(word, F_OK) < 0;
}
