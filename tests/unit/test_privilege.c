/* SPDX-License-Identifier: MIT */
/* Privileges that are given up are gone, of the thread that gives them up. Run by an ordinary user, who has none, the sets
 * stay empty. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/privilege.h"
#include "base/util.h"

/* Return the exit status of a child process that runs this. */
static int in_child(int (*run)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(run());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int keep_one(void)
{
	uint64_t wanted = CAPABILITY(CAP_SYS_PTRACE), had = privilege_effective();

	if (privilege_drop(wanted) < 0)
		return 1;
	return privilege_effective() == (had & wanted) ? 0 : 2;
}

static void test_keeps_what_is_named(void **state)
{
	(void)state;
	assert_int_equal(in_child(keep_one), 0);
}

static int drop_all_and_ask_back(void)
{
	if (privilege_drop(0) < 0 || privilege_effective() != 0)
		return 1;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_PTRACE, 0, 0) == 0)
		return 2;
	return privilege_drop(CAPABILITY(CAP_SYS_PTRACE)) == 0 && privilege_effective() == 0 ? 0 : 3;
}

static void test_cannot_be_had_back(void **state)
{
	(void)state;
	assert_int_equal(in_child(drop_all_and_ask_back), 0);
}

static int empty_the_bounding_set(void)
{
	if (prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN, 0, 0, 0) != 1 || !(privilege_effective() & CAPABILITY(CAP_SETPCAP)))
		return 0; /* an ordinary user may not change it */
	if (privilege_drop(CAPABILITY(CAP_SYS_PTRACE)) < 0)
		return 1;
	return prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN, 0, 0, 0) == 0 &&
			       prctl(PR_CAPBSET_READ, CAP_SYS_PTRACE, 0, 0, 0) == 1
		       ? 0
		       : 2;
}

static void test_programs_get_no_more(void **state)
{
	(void)state;
	assert_int_equal(in_child(empty_the_bounding_set), 0);
}

static int lock(void)
{
	return privilege_lock() == 0 && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : 1;
}

static void test_locks(void **state)
{
	(void)state;
	assert_int_equal(in_child(lock), 0);
	assert_int_equal(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 0);
}

static int become_nobody(void)
{
	uid_t before = geteuid();
	int r = privilege_become_nobody();

	if (before != 0)
		return r == -EPERM && geteuid() == before ? 0 : 1;
	if (r == -EPERM)
		return 0; /* root of a container, without CAP_SETUID */
	return geteuid() == 65534 && getegid() == 65534 && getgroups(0, NULL) == 0 && setuid(0) < 0 &&
			       privilege_effective() == 0
		       ? 0
		       : 2;
}

static void test_becomes_nobody(void **state)
{
	(void)state;
	assert_int_equal(in_child(become_nobody), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keeps_what_is_named),  cmocka_unit_test(test_cannot_be_had_back),
		cmocka_unit_test(test_programs_get_no_more), cmocka_unit_test(test_locks),
		cmocka_unit_test(test_becomes_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
