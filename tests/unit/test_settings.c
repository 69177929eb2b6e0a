/* SPDX-License-Identifier: MIT */
/* Test the agent's configuration: readers and forked children get a whole one, while another thread changes it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/agent/private.h"
#include "src/agent/settings.h"

enum { N_FORKS = 200, N_READS = 2000 };

struct agent_state agent;

static struct config many[2];
static bool has_ended;
static unsigned n_changes, n_signals;

static void fill(struct config *config, char letter)
{
	memset(config, 0, sizeof *config);
	for (unsigned i = 0; i < CONFIG_MAX_KEYS; i++) {
		config->values[i].is_set = true;
		config->values[i].number = letter;
		memset(config->values[i].text, letter, CONFIG_MAX_TEXT - 1);
	}
}

static bool is_one_of_the_two(const struct config *config)
{
	const struct config *its = &many[config->values[0].text[0] == 'b'];
	bool is_same = true;

	for (unsigned i = 0; i < CONFIG_MAX_KEYS; i++)
		is_same &= config->values[i].number == its->values[i].number &&
			   memcmp(config->values[i].text, its->values[i].text, CONFIG_MAX_TEXT) == 0;
	return is_same;
}

static void *change(void *unused)
{
	(void)unused;
	for (unsigned i = 0; !__atomic_load_n(&has_ended, __ATOMIC_SEQ_CST); i++) {
		settings_set(&many[i % 2]);
		__atomic_add_fetch(&n_changes, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static int fork_and_look(void)
{
	int status = -1;
	pid_t child = fork();

	if (child == 0) {
		struct config seen;

		settings_get(&seen); /* it would wait for ever if another thread's lock had been inherited */
		_exit(is_one_of_the_two(&seen) ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static int start_changes(void **state)
{
	static pthread_t thread;

	fill(&many[0], 'a');
	fill(&many[1], 'b');
	settings_set(&many[0]);
	has_ended = false;
	*state = &thread;
	return pthread_create(&thread, NULL, change, NULL);
}

static int end_changes(void **state)
{
	__atomic_store_n(&has_ended, true, __ATOMIC_SEQ_CST);
	return pthread_join(*(pthread_t *)*state, NULL);
}

static void a_child_has_one_of_the_two(void **state)
{
	(void)state;
	for (unsigned i = 0; i < N_FORKS; i++) {
		unsigned before = __atomic_load_n(&n_changes, __ATOMIC_SEQ_CST);

		assert_int_equal(fork_and_look(), 0);
		while (__atomic_load_n(&n_changes, __ATOMIC_SEQ_CST) == before)
			usleep(100);
	}
}

static void a_reader_has_one_of_the_two(void **state)
{
	struct config seen;

	(void)state;
	for (unsigned i = 0; i < N_READS; i++) {
		settings_get(&seen);
		assert_true(is_one_of_the_two(&seen));
	}
}

/* A handler that forks, of a thread that changes the configuration itself. */
static void fork_in_handler(int number)
{
	int status = -1;
	pid_t child = fork();

	(void)number;
	if (child == 0)
		_exit(0);
	if (waitpid(child, &status, 0) == child && status == 0)
		__atomic_add_fetch(&n_signals, 1, __ATOMIC_SEQ_CST);
}

static void *send_signals(void *to)
{
	while (__atomic_load_n(&n_signals, __ATOMIC_SEQ_CST) < N_FORKS) {
		(void)pthread_kill(*(pthread_t *)to, SIGUSR1);
		usleep(100);
	}
	return NULL;
}

static void a_signal_handler_may_fork(void **state)
{
	struct sigaction action = { .sa_handler = fork_in_handler, .sa_flags = SA_RESTART };
	pthread_t sender, self = pthread_self();

	(void)state;
	n_signals = 0;
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	assert_int_equal(pthread_create(&sender, NULL, send_signals, &self), 0);
	for (unsigned i = 0; __atomic_load_n(&n_signals, __ATOMIC_SEQ_CST) < N_FORKS; i++)
		settings_set(&many[i % 2]);
	assert_int_equal(pthread_join(sender, NULL), 0);
	signal(SIGUSR1, SIG_IGN);
}

static void assignments_and_forks(void **state)
{
	char why[CONFIG_MAX_WHY];
	struct config config;
	sigset_t mask, after;

	(void)state;
	memset(&agent.config, 0, sizeof agent.config);
	assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &mask), 0);
	assert_int_equal(settings_assign("follow_forks=on", why), 0);
	assert_true(settings_follow_forks());
	assert_true(settings_assign("follow_forks=perhaps", why) < 0);
	assert_true(settings_follow_forks());
	assert_int_equal(settings_assign("trace=a.b", why), 0);
	settings_forget_applied();
	settings_get(&config);
	assert_null(config_text(&config, &config_trace));
	assert_true(config_is_on(&config, &config_follow_forks));
	assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &after), 0);
	for (int number = 1; number <= SIGRTMAX; number++)
		assert_int_equal(sigismember(&mask, number), sigismember(&after, number));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_child_has_one_of_the_two, start_changes, end_changes),
		cmocka_unit_test_setup_teardown(a_reader_has_one_of_the_two, start_changes, end_changes),
		cmocka_unit_test(a_signal_handler_may_fork),
		cmocka_unit_test(assignments_and_forks),
	};

	pthread_atfork(settings_before_fork, settings_after_fork, settings_after_fork);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
