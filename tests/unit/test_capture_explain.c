/* SPDX-License-Identifier: MIT */
/* test_capture_explain.c - what is refused, and what is said then. */
#include "record_target.h"

#include <limits.h>
#include <pthread.h>
#include <sys/resource.h>

#include "src/capture/explain.h"

enum { NOBODY = 65534 };

static const struct capture_options usual = { .source = SOURCE_WAKEUP, .hz = 199, .stack_bytes = 4096 };

static void assert_says(int error, const struct explain_facts *facts, const char *words)
{
	char text[512];

	explain_format(error, facts, text, sizeof text);
	assert_true(strlen(text) > 20 && strlen(text) < sizeof text - 1);
	assert_null(strchr(text, '\n'));
	if (!strstr(text, words))
		fail_msg("\"%s\" does not name \"%s\"", text, words);
}

static void test_sentences(void **state)
{
	static const struct {
		int error;
		struct explain_facts facts;
		const char *words;
	} cases[] = {
		{ -EACCES,
		  { .paranoid = 3 },
		  "perf_event_paranoid is 3: run `sysctl kernel.perf_event_paranoid=2` as root, or "
		  "run probing as root" },
		{ -EACCES, { .paranoid = 3, .has_perfmon = true }, "CAP_PERFMON is not enough: run `sysctl" },
		{ -EACCES, { .paranoid = 3, .has_perfmon = true, .has_sys_admin = true }, "lockdown" },
		{ -EACCES, { .paranoid = 4 }, "perf_event_paranoid is 4" },
		{ -EPERM, { .paranoid = 2, .has_seccomp_filter = true }, "--cap-add PERFMON" },
		{ -ENOSYS, { .has_seccomp_filter = true }, "seccomp" },
		{ -ENOSYS, { .paranoid = 2 }, "CONFIG_PERF_EVENTS" },
		{ -EACCES,
		  { .pid = 7, .paranoid = 2, .uid = 1000, .target_is_foreign = true },
		  "process 7 belongs to uid 0 and you are uid 1000" },
		{ -EACCES, { .paranoid = 2, .target_is_foreign = true }, "or as root, or give it CAP_PERFMON" },
		{ -EACCES,
		  { .pid = 7, .paranoid = 4, .uid = 1000, .target_is_foreign = true },
		  "process 7 belongs to uid 0 and you are uid 1000: run probing as that user or as root" },
		{ -EACCES, { .pid = 7, .paranoid = 2, .target_is_protected = true }, "process 7 is protected" },
		{ -EACCES, { .has_perfmon = true, .in_user_namespace = true, .paranoid = 3 }, "user namespace" },
		{ -EPERM, { .has_perfmon = true, .paranoid = 2 }, "lockdown" },
		{ -ESRCH, { .pid = 7 }, "no process 7" },
		{ -EMFILE,
		  { .n_threads = 200, .n_cpus = 2, .n_descriptors_allowed = 100 },
		  "at most 100 are allowed: run `ulimit -n 466`" },
		{ -ENFILE, { .pid = 7 }, "fs.file-max" },
		{ -ENOBUFS, { .mlock_kib = 516 }, "perf_event_mlock_kb is 516" },
		{ -EINVAL, { .pid = 7 }, "65528" },
		{ -EIO, { .pid = 7 }, "Input/output error" },
	};

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(cases); i++)
		assert_says(cases[i].error, &cases[i].facts, cases[i].words);
}

static void test_sentence_is_cut_to_fit(void **state)
{
	char text[16];

	(void)state;
	memset(text, 'x', sizeof text);
	capture_explain(-ESRCH, 1, text, sizeof text);
	assert_int_equal(strlen(text), sizeof text - 1);
}

static void test_gathered_facts(void **state)
{
	struct explain_facts facts;

	(void)state;
	explain_gather(getpid(), &facts);
	assert_int_equal(facts.pid, getpid());
	assert_int_equal(facts.uid, getuid());
	assert_int_equal(facts.target_uid, getuid());
	assert_false(facts.target_is_foreign);
	assert_true(facts.n_threads >= 1);
	assert_int_equal(facts.n_cpus, sysconf(_SC_NPROCESSORS_ONLN));
	assert_true(facts.n_descriptors_allowed > 0);
	assert_true(facts.paranoid >= -1 && facts.paranoid <= 4);
}

static void test_options_out_of_range(void **state)
{
	const struct capture_options cases[] = {
		{ .hz = 0, .stack_bytes = 4096 },
		{ .hz = -1, .stack_bytes = 4096 },
		{ .hz = 0.0 / 0.0, .stack_bytes = 4096 },
		{ .hz = 100001, .stack_bytes = 4096 },
		{ .hz = 99, .stack_bytes = 4095 },
		{ .hz = 99, .stack_bytes = 65536 },
		{ .hz = 99, .stack_bytes = 4096, .ring_bytes = 5000 },
		{ .hz = 99, .stack_bytes = 4096, .ring_bytes = 3 << 12 },
		{ .hz = 99, .stack_bytes = 4096, .ring_bytes = 1024 },
	};
	struct capture *capture = NULL;

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
		assert_int_equal(capture_attach(&cases[i], getpid(), &capture), -EINVAL);
		assert_int_equal(capture_launch(&cases[i], getpid(), &capture), -EINVAL);
		assert_null(capture);
	}
}

static void *wait_for_ever(void *argument)
{
	struct target_page *page = argument;

	__atomic_fetch_add(&page->ready, 1, __ATOMIC_ACQ_REL);
	pause();
	return NULL;
}

static void run_thirty_threads(struct target_page *page)
{
	for (int i = 0; i < 29; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, wait_for_ever, page) != 0)
			_exit(1);
	}
	wait_for_ever(page);
}

static void run_burning(struct target_page *page)
{
	store(&page->ready, 1);
	for (;;)
		;
}

/* Change limits and users in a child process, which answers with its exit status. */
static int in_child(int (*run)(pid_t target), pid_t target)
{
	int status;
	pid_t pid;

	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(run(target));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int attach_with_limit(pid_t target, rlim_t soft, rlim_t hard, enum capture_source source, struct capture **ret)
{
	struct capture_options options = usual;
	struct rlimit limit = { .rlim_cur = soft, .rlim_max = hard };

	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		return -errno;
	options.source = source;
	return capture_attach(&options, target, ret);
}

static int attach_with_few_descriptors(pid_t target)
{
	char text[512];
	struct capture *capture;
	int r;

	r = attach_with_limit(target, 24, 24, SOURCE_WAKEUP, &capture);
	if (r != -EMFILE)
		return 1;
	capture_explain(r, target, text, sizeof text);
	return strstr(text, "ulimit -n") && strstr(text, "30 threads") ? 0 : 2;
}

static int attach_below_soft_limit(pid_t target)
{
	struct capture_counts counts;
	struct capture *capture;

	if (attach_with_limit(target, 24, 4096, SOURCE_WAKEUP, &capture) < 0)
		return 1;
	capture_read_counts(capture, &counts);
	capture_free(capture);
	return counts.n_threads == 30 ? 0 : 2;
}

static void test_descriptor_limit(void **state)
{
	struct target target = target_start(run_thirty_threads);

	(void)state;
	wait_for(&target.page->ready, 30);
	capture_free(attach_or_skip(&usual, target.pid));
	assert_int_equal(in_child(attach_with_few_descriptors, target.pid), 0);
	assert_int_equal(in_child(attach_below_soft_limit, target.pid), 0);
	target_end(&target);
}

static bool become_ordinary(void)
{
	return getuid() != 0 || (setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
}

static int attach_to_foreign(pid_t target)
{
	char text[512], words[64];
	struct capture *capture;
	int r;

	if (!become_ordinary())
		return 1;
	r = capture_attach(&usual, target, &capture);
	if (r != -EACCES && r != -EPERM)
		return 2;
	capture_explain(r, target, text, sizeof text);
	snprintf(words, sizeof words, "process %d belongs to uid 0", (int)target);
	return strstr(text, words) && strstr(text, "or as root") ? 0 : 3;
}

static void test_process_of_another_user(void **state)
{
	struct target target = target_start(run_burning);
	/* An ordinary user takes one that is certainly root's. */
	pid_t foreign = getuid() == 0 ? target.pid : 1;

	(void)state;
	capture_free(attach_or_skip(&usual, target.pid));
	assert_int_equal(in_child(attach_to_foreign, foreign), 0);
	target_end(&target);
}

/*
 * A process that has changed its user is not dumpable until it says so, and
 * neither are its children.
 */
static pid_t start_own_child(bool dumpable)
{
	pid_t child;

	prctl(PR_SET_DUMPABLE, dumpable);
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			;
	}
	return child;
}

static int attach_to_protected(pid_t unused)
{
	struct capture *capture;
	char text[512];
	pid_t child;
	int r;

	(void)unused;
	if (!become_ordinary())
		return 1;
	child = start_own_child(false);
	r = capture_attach(&usual, child, &capture);
	capture_explain(r, child, text, sizeof text);
	kill(child, SIGKILL);
	if (r != -EACCES && r != -EPERM)
		return 2;
	return strstr(text, "protected") || strstr(text, "perf_event_paranoid") || strstr(text, "seccomp") ? 0 : 3;
}

static void test_protected_process(void **state)
{
	(void)state;
	assert_int_equal(in_child(attach_to_protected, 0), 0);
}

/* Exit status: 0 fine, 77 sampling is not for ordinary users here. */
static int sample_own_child(pid_t unused)
{
	unsigned n_samples = 0, n_kernel = 0;
	struct capture_event event;
	struct capture *capture;
	struct explain_facts facts;
	pid_t child;
	int r;

	(void)unused;
	if (!become_ordinary())
		return 1;
	child = start_own_child(true);
	explain_gather(child, &facts);
	r = capture_attach(&usual, child, &capture);
	if (r == -EACCES || r == -EPERM)
		return facts.paranoid >= 3 || facts.has_seccomp_filter ? 77 : 2;
	if (r < 0)
		return 3;
	for (int i = 0; i < 40 && n_samples < 5; i++) {
		sleep_ms(50);
		while (capture_next(capture, &event) > 0) {
			n_samples += event.type == CAPTURE_SAMPLE;
			n_kernel += event.type == CAPTURE_SAMPLE && event.sample.n_kernel_ips > 0;
		}
	}
	kill(child, SIGKILL);
	if (capture_has_kernel(capture) != (facts.paranoid < 2 || facts.has_perfmon))
		return 4;
	if (capture_ring_bytes(capture) < 64 << 10)
		return 5;
	if (n_samples < 5)
		return 6;
	return capture_has_kernel(capture) || n_kernel == 0 ? 0 : 7;
}

static void test_ordinary_user_samples_own_child(void **state)
{
	int status = in_child(sample_own_child, 0);

	(void)state;
	if (status == 77) {
		print_message("skipped: ordinary users may not sample on this machine\n");
		skip();
	}
	assert_int_equal(status, 0);
}

static int ask_for_large_rings(pid_t target)
{
	struct capture_options options = usual;
	struct capture *capture;
	struct rlimit limit = { 0, 0 };

	options.ring_bytes = 64 << 20;
	if (!become_ordinary() || setrlimit(RLIMIT_MEMLOCK, &limit) < 0)
		return 1;
	return capture_attach(&options, target, &capture) == -ENOBUFS ? 0 : 2;
}

static void test_rings_beyond_the_limit(void **state)
{
	struct target target = target_start(run_burning);
	struct explain_facts facts;

	(void)state;
	capture_free(attach_or_skip(&usual, target.pid));
	explain_gather(target.pid, &facts);
	if (facts.paranoid < 0 || facts.paranoid > 2) {
		print_message("skipped: perf_event_paranoid is %ld\n", facts.paranoid);
		skip();
	}
	assert_int_equal(in_child(ask_for_large_rings, target.pid), 0);
	target_end(&target);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sentences),
		cmocka_unit_test(test_sentence_is_cut_to_fit),
		cmocka_unit_test(test_gathered_facts),
		cmocka_unit_test(test_options_out_of_range),
		cmocka_unit_test(test_descriptor_limit),
		cmocka_unit_test(test_process_of_another_user),
		cmocka_unit_test(test_protected_process),
		cmocka_unit_test(test_ordinary_user_samples_own_child),
		cmocka_unit_test(test_rings_beyond_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
