/* SPDX-License-Identifier: MIT */
/* settings.c - see settings.h. The configuration itself is in struct agent_state, where probing reads it from outside. */
#include "src/agent/settings.h"

#include <pthread.h>
#include <signal.h>

#include "src/agent/private.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sigset_t mask_before; /* of the thread that holds the lock */
static bool is_following;    /* a copy of probing.follow_forks */

static void begin(void)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_mutex_lock(&lock);
	mask_before = before;
}

static void end(void)
{
	sigset_t before = mask_before;

	__atomic_store_n(&is_following, config_is_on(&agent.config, &config_follow_forks), __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&lock);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void settings_get(struct config *ret)
{
	begin();
	*ret = agent.config;
	end();
}

void settings_set(const struct config *config)
{
	begin();
	agent.config = *config;
	end();
}

int settings_assign(const char *assignment, char why[CONFIG_MAX_WHY])
{
	int r;

	begin();
	r = config_assign(&agent.config, assignment, why);
	end();
	return r;
}

void settings_forget_applied(void)
{
	begin();
	for (unsigned i = 0; i < n_config_keys; i++)
		if (config_keys[i]->module)
			agent.config.values[i].is_set = false;
	end();
}

bool settings_follow_forks(void)
{
	return __atomic_load_n(&is_following, __ATOMIC_SEQ_CST);
}

void settings_before_fork(void)
{
	begin();
}

void settings_after_fork(void)
{
	end();
}
