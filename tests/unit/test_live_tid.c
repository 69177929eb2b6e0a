/* SPDX-License-Identifier: MIT */
/* test_live_tid.c - a process whose main thread has ended: its memory, files and mounts are found by the threads that go on. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/address_space.h"
#include "base/proc.h"
#include "base/remote.h"
#include "base/util.h"

enum { NO_PROCESS = 0x7ffffff0, N_THREADS = 3, PATIENCE_MS = 10000 };

/* The command to a thread of the child, one byte. */
enum { WORD_END = 'e', WORD_EXEC = 'x' };

struct orphan {
	pid_t pid;
	pid_t tids[N_THREADS];
	int words[N_THREADS][2]; /* to each of its threads */
	int main_words[2];
	int told[2]; /* the threads' numbers */
};

static uint64_t value = 1;

struct thread {
	struct orphan *orphan;
	int index;
};

static void *live(void *data)
{
	const struct thread *thread = data;
	pid_t tid = (pid_t)syscall(SYS_gettid);
	char word = 0;

	if (write(thread->orphan->told[1], &tid, sizeof tid) != sizeof tid ||
	    read(thread->orphan->words[thread->index][0], &word, 1) != 1)
		_exit(1);
	if (word == WORD_EXEC)
		execl("/bin/sleep", "sleep", "1000", (char *)NULL);
	syscall(SYS_exit, 0); /* the thread alone: the last one's return would be the end of a test program */
	return NULL;
}

/* In the child. Start threads one by one, so that their numbers arrive in order. */
static void *be_orphan(struct orphan *orphan)
{
	static struct thread threads[N_THREADS];
	pthread_t ignored;
	char word;

	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed assertion must not leave it behind */
	value = 42;
	for (int i = 0; i < N_THREADS; i++) {
		threads[i] = (struct thread){ orphan, i };
		if (pthread_create(&ignored, NULL, live, &threads[i]) != 0 ||
		    read(orphan->main_words[0], &word, 1) != 1)
			_exit(1);
	}
	if (read(orphan->main_words[0], &word, 1) != 1)
		_exit(1);
	pthread_exit(NULL);
}

static void begin(struct orphan *orphan)
{
	assert_int_equal(pipe(orphan->main_words), 0);
	assert_int_equal(pipe(orphan->told), 0);
	for (int i = 0; i < N_THREADS; i++)
		assert_int_equal(pipe(orphan->words[i]), 0);
	orphan->pid = fork();
	assert_true(orphan->pid >= 0);
	if (orphan->pid == 0)
		be_orphan(orphan);
	for (int i = 0; i < N_THREADS; i++) {
		assert_int_equal(read(orphan->told[0], &orphan->tids[i], sizeof(pid_t)), sizeof(pid_t));
		assert_int_equal(write(orphan->main_words[1], "n", 1), 1);
	}
}

static bool has_ended(pid_t pid, pid_t tid)
{
	struct proc_stat stat;

	return proc_stat_read(pid, tid, &stat) < 0 || stat.state == 'Z';
}

static void await_end(pid_t pid, pid_t tid)
{
	for (int i = 0; i < PATIENCE_MS && !has_ended(pid, tid); i++)
		usleep(1000);
	assert_true(has_ended(pid, tid));
}

static void end_main(struct orphan *orphan)
{
	assert_int_equal(write(orphan->main_words[1], "e", 1), 1);
	await_end(orphan->pid, orphan->pid);
}

static void tell(struct orphan *orphan, pid_t tid, char word)
{
	for (int i = 0; i < N_THREADS; i++)
		if (orphan->tids[i] == tid)
			assert_int_equal(write(orphan->words[i][1], &word, 1), 1);
}

static void kill_it(struct orphan *orphan)
{
	kill(orphan->pid, SIGKILL);
	assert_int_equal(waitpid(orphan->pid, NULL, 0), orphan->pid);
}

static void done(struct orphan *orphan)
{
	for (int end = 0; end < 2; end++) {
		close(orphan->main_words[end]);
		close(orphan->told[end]);
		for (int i = 0; i < N_THREADS; i++)
			close(orphan->words[i][end]);
	}
}

static pid_t living(pid_t pid)
{
	pid_t tid = 0;

	assert_int_equal(proc_live_tid(pid, &tid), 0);
	return tid;
}

static void one_that_lives_is_found(void **state)
{
	struct orphan orphan;
	struct proc_stat stat;
	pid_t tid, none = 7;

	(void)state;
	assert_int_equal(living(getpid()), getpid());
	assert_int_equal(proc_live_tid(NO_PROCESS, &none), -ESRCH);
	begin(&orphan);
	assert_int_equal(living(orphan.pid), orphan.pid);
	end_main(&orphan);
	for (int i = 0; i < N_THREADS; i++) {
		assert_int_equal(proc_stat_read(orphan.pid, 0, &stat), 0);
		assert_int_equal(stat.state, 'Z');
		assert_false(proc_has_ended(&stat));
		tid = living(orphan.pid);
		assert_false(has_ended(orphan.pid, tid));
		tell(&orphan, tid, WORD_END);
		await_end(orphan.pid, tid);
	}
	assert_int_equal(proc_stat_read(orphan.pid, 0, &stat), 0);
	assert_true(proc_has_ended(&stat));
	assert_int_equal(proc_live_tid(orphan.pid, &none), -ESRCH);
	kill_it(&orphan);
	assert_int_equal(proc_live_tid(orphan.pid, &none), -ESRCH);
	assert_int_equal(none, 7);
	done(&orphan);
}

static void files_are_read(void **state)
{
	CLEANUP(freep) char *empty = NULL, *maps = NULL, *command = NULL;
	char path[PROC_PATH_BYTES], plain[PROC_PATH_BYTES], program[4096];
	struct orphan orphan;
	struct stat ours, its;
	size_t n = 0;

	(void)state;
	begin(&orphan);
	proc_path(orphan.pid, "exe", path);
	snprintf(plain, sizeof plain, "/proc/%d/exe", (int)orphan.pid);
	assert_string_equal(path, plain);
	end_main(&orphan);
	assert_true(readlink(plain, program, sizeof program) < 0);
	proc_path(orphan.pid, "exe", path);
	assert_true(readlink(path, program, sizeof program) > 0);
	proc_path(orphan.pid, "root", path);
	assert_int_equal(stat("/", &ours), 0);
	assert_int_equal(stat(path, &its), 0);
	assert_int_equal(its.st_ino, ours.st_ino);

	snprintf(plain, sizeof plain, "/proc/%d/maps", (int)orphan.pid);
	assert_int_equal(read_file(plain, 1 << 20, &empty, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(proc_read(orphan.pid, "maps", 1 << 20, &maps, &n), 0);
	assert_int_equal(strlen(maps), n);
	assert_non_null(strstr(maps, "test_live_tid"));
	command = proc_text(orphan.pid, "cmdline", 4096);
	assert_non_null(strstr(command, "test_live_tid"));

	kill_it(&orphan);
	free(TAKE(maps));
	assert_int_equal(proc_read(orphan.pid, "maps", 1 << 20, &maps, &n), -ESRCH);
	assert_null(maps);
	done(&orphan);
}

/* Its mappings are known, and the files behind them are found. */
static void modules_are_opened(void **state)
{
	CLEANUP(module_table_freep) struct module_table *modules = NULL;
	CLEANUP(address_space_freep) struct address_space *space = NULL;
	struct orphan orphan;
	struct mapping *mapping;
	struct elf_file *elf;

	(void)state;
	begin(&orphan);
	end_main(&orphan);
	assert_int_equal(module_table_new(&modules), 0);
	assert_int_equal(address_space_new(orphan.pid, modules, &space), 0);
	assert_int_equal(address_space_load(space), 0);
	mapping = address_space_find(space, (uint64_t)(uintptr_t)&modules_are_opened);
	assert_non_null(mapping);
	assert_int_equal(module_elf(mapping->module, &elf), 0);
	kill_it(&orphan);
	done(&orphan);
}

static uint64_t read_value(struct remote *remote)
{
	uint64_t seen = 0;

	assert_int_equal(remote_read(remote, RADDR((uintptr_t)&value), &seen, sizeof seen), 0);
	return seen;
}

/* The same remote keeps working while threads end one after the other. */
static void memory_is_read(void **state)
{
	CLEANUP(remote_freep) struct remote *remote = NULL;
	struct orphan orphan;
	uint64_t seen = 0;
	struct remote_part parts[] = { { RADDR((uintptr_t)&value), &seen, sizeof seen },
				       { RADDR_NULL, &seen, sizeof seen } };

	(void)state;
	begin(&orphan);
	assert_int_equal(remote_open_process(orphan.pid, &remote), 0);
	assert_int_equal(read_value(remote), 42);
	end_main(&orphan);
	for (int i = 0; i < N_THREADS; i++) {
		assert_int_equal(read_value(remote), 42);
		seen = 0;
		assert_int_equal(remote_read_parts(remote, parts, N_ELEMENTS(parts)), 1);
		assert_int_equal(seen, 42);
		assert_int_equal(remote_read(remote, RADDR_NULL, &seen, sizeof seen), -EFAULT);
		/* The thread whose memory it reads by is one of those that end. */
		tell(&orphan, orphan.tids[i], WORD_END);
		await_end(orphan.pid, orphan.tids[i]);
	}
	assert_int_equal(remote_read(remote, RADDR((uintptr_t)&value), &seen, sizeof seen), -ESRCH);
	kill_it(&orphan);
	assert_int_equal(remote_read(remote, RADDR((uintptr_t)&value), &seen, sizeof seen), -ESRCH);
	done(&orphan);
}

static bool is_asleep(pid_t pid)
{
	CLEANUP(freep) char *name = proc_text(pid, "comm", 64);

	return name && strcmp(name, "sleep") == 0 && !has_ended(pid, pid);
}

/* A thread that calls exec takes the main thread's place, and its own number becomes free. */
static void an_exec_is_followed(void **state)
{
	CLEANUP(remote_freep) struct remote *remote = NULL;
	CLEANUP(freep) char *maps = NULL;
	struct orphan orphan;
	uint64_t start;
	char byte;

	(void)state;
	begin(&orphan);
	assert_int_equal(remote_open_process(orphan.pid, &remote), 0);
	end_main(&orphan);
	assert_int_equal(read_value(remote), 42);
	tell(&orphan, living(orphan.pid), WORD_EXEC);
	for (int i = 0; i < PATIENCE_MS && !is_asleep(orphan.pid); i++)
		usleep(1000);
	assert_int_equal(living(orphan.pid), orphan.pid);
	assert_int_equal(proc_read(orphan.pid, "maps", 1 << 20, &maps, NULL), 0);
	assert_non_null(strstr(maps, "sleep"));
	assert_int_equal(sscanf(maps, "%" SCNx64, &start), 1);
	assert_int_equal(remote_read(remote, RADDR(start), &byte, 1), 0);
	kill_it(&orphan);
	done(&orphan);
}

/* By another thread it takes one descriptor, which goes with the remote. */
static void descriptors_are_given_back(void **state)
{
	struct orphan orphan;
	int before, after;

	(void)state;
	begin(&orphan);
	end_main(&orphan);
	before = dup(STDERR_FILENO);
	close(before);
	for (int i = 0; i < 3; i++) {
		CLEANUP(remote_freep) struct remote *remote = NULL;

		assert_int_equal(remote_open_process(orphan.pid, &remote), 0);
		assert_int_equal(read_value(remote), 42);
	}
	after = dup(STDERR_FILENO);
	close(after);
	assert_int_equal(after, before);
	kill_it(&orphan);
	done(&orphan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_lives_is_found), cmocka_unit_test(files_are_read),
		cmocka_unit_test(modules_are_opened),      cmocka_unit_test(memory_is_read),
		cmocka_unit_test(an_exec_is_followed),     cmocka_unit_test(descriptors_are_given_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
