/* SPDX-License-Identifier: MIT */
/* test_remote.c - reads of this process, of a child, of a stranger and of a buffer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/remote.h"
#include "base/util.h"

enum { N_PAGES = 8, N_MANY_PARTS = 300 };

/* Readable pages, of which byte i holds pattern(i), and a hole after them. */
struct ground {
	uint8_t *bytes;
	size_t n_bytes;
};

static uint8_t pattern(size_t i)
{
	return (uint8_t)(1 + i % 251);
}

static struct ground make_ground(void)
{
	size_t page = (size_t)getpagesize();
	struct ground ground = { .n_bytes = N_PAGES * page };

	ground.bytes = mmap(NULL, ground.n_bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(ground.bytes != MAP_FAILED);
	assert_int_equal(mprotect(ground.bytes + ground.n_bytes, page, PROT_NONE), 0);
	for (size_t i = 0; i < ground.n_bytes; i++)
		ground.bytes[i] = pattern(i);
	return ground;
}

static void free_ground(struct ground *ground)
{
	munmap(ground->bytes, ground->n_bytes + (size_t)getpagesize());
}

static struct remote *open_self(void)
{
	struct remote *remote;

	assert_int_equal(remote_open_process(getpid(), &remote), 0);
	return remote;
}

static void reads_stop_at_a_hole(void **state)
{
	static const size_t tails[] = { 1, 100, 4096, 4097, 20000 };
	CLEANUP(remote_freep) struct remote *remote = open_self();
	struct ground ground = make_ground();
	uint8_t *to = malloc(2 * ground.n_bytes);

	(void)state;
	assert_non_null(to);
	for (size_t i = 0; i < N_ELEMENTS(tails); i++) {
		size_t offset = ground.n_bytes - tails[i];
		struct raddr from = RADDR((uintptr_t)ground.bytes + offset);

		assert_int_equal(remote_read_some(remote, from, to, ground.n_bytes), tails[i]);
		assert_memory_equal(to, ground.bytes + offset, tails[i]);
		assert_int_equal(remote_read(remote, from, to, tails[i]), 0);
		assert_int_equal(remote_read(remote, from, to, tails[i] + 1), -EFAULT);
	}
	free(to);
	free_ground(&ground);
}

static void unreadable_ground_is_an_error(void **state)
{
	CLEANUP(remote_freep) struct remote *remote = open_self();
	struct ground ground = make_ground();
	struct raddr hole = RADDR((uintptr_t)ground.bytes + ground.n_bytes);
	struct raddr pointer = RADDR(77);
	char to[64];

	(void)state;
	assert_int_equal(remote_read_some(remote, hole, to, sizeof to), -EFAULT);
	assert_int_equal(remote_read_some(remote, RADDR_NULL, to, sizeof to), -EFAULT);
	assert_int_equal(remote_read_some(remote, RADDR(UINT64_MAX - 3), to, sizeof to), -EFAULT);
	assert_int_equal(remote_read_some(remote, RADDR(1ULL << 63), to, sizeof to), -EFAULT);
	assert_int_equal(remote_read_some(remote, hole, to, SIZE_MAX), -EFAULT);
	assert_int_equal(remote_read_some(remote, RADDR((uintptr_t)to), to, 0), -EFAULT);
	assert_int_equal(remote_read(remote, hole, to, 0), 0);
	assert_int_equal(remote_read_pointer(remote, hole, &pointer), -EFAULT);
	assert_int_equal(pointer.value, 77);
	free_ground(&ground);
}

static void pointers_are_read_whole(void **state)
{
	CLEANUP(remote_freep) struct remote *remote = open_self();
	uint64_t there = 0x1122334455667788;
	struct raddr pointer;

	(void)state;
	assert_int_equal(remote_read_pointer(remote, RADDR((uintptr_t)&there), &pointer), 0);
	assert_int_equal(pointer.value, there);
}

/* Parts of 16 bytes from all over the ground; the one numbered @bad leads away. */
static int read_many(struct remote *remote, const struct ground *ground, size_t bad, struct raddr away,
		     uint8_t (*to)[16])
{
	struct remote_part parts[N_MANY_PARTS];

	memset(to, 0, N_MANY_PARTS * sizeof *to);
	for (size_t i = 0; i < N_MANY_PARTS; i++) {
		parts[i].from = RADDR((uintptr_t)ground->bytes + i * 100);
		parts[i].to = to[i];
		parts[i].n_bytes = sizeof *to;
		if (i == bad)
			parts[i].from = away;
	}
	return remote_read_parts(remote, parts, N_MANY_PARTS);
}

static void leading_whole_parts_are_counted(void **state)
{
	static const size_t bads[] = { 0, 1, 63, 64, 65, 128, N_MANY_PARTS - 1, N_MANY_PARTS };
	CLEANUP(remote_freep) struct remote *process = open_self();
	CLEANUP(remote_freep) struct remote *buffer = NULL;
	struct ground ground = make_ground();
	struct raddr start = RADDR((uintptr_t)ground.bytes);
	/* Half of a part lies before the hole: read in part is not read. */
	struct raddr aways[] = { RADDR_NULL, raddr_add(start, (int64_t)ground.n_bytes - 8) };
	uint8_t to[N_MANY_PARTS][16];

	(void)state;
	assert_int_equal(remote_open_buffer(start, ground.bytes, ground.n_bytes, &buffer), 0);
	for (size_t i = 0; i < N_ELEMENTS(bads); i++) {
		for (size_t k = 0; k < N_ELEMENTS(aways); k++) {
			assert_int_equal(read_many(process, &ground, bads[i], aways[k], to), bads[i]);
			for (size_t n = 0; n < bads[i]; n++)
				assert_memory_equal(to[n], ground.bytes + n * 100, sizeof to[n]);
			assert_int_equal(read_many(buffer, &ground, bads[i], aways[k], to), bads[i]);
		}
	}
	free_ground(&ground);
}

static void empty_parts_are_whole(void **state)
{
	CLEANUP(remote_freep) struct remote *remote = open_self();
	uint64_t here = 5, there = 0;
	struct remote_part parts[] = {
		{ RADDR_NULL, &there, 0 },
		{ RADDR((uintptr_t)&here), &there, sizeof there },
		{ RADDR_NULL, &there, 0 },
		{ RADDR_NULL, &there, sizeof there },
	};

	(void)state;
	assert_int_equal(remote_read_parts(remote, parts, 0), 0);
	assert_int_equal(remote_read_parts(remote, parts, N_ELEMENTS(parts)), 3);
	assert_int_equal(there, 5);
}

static void a_child_is_read_until_it_is_gone(void **state)
{
	CLEANUP(remote_freep) struct remote *remote = NULL;
	volatile uint64_t value = 1;
	struct remote_part part;
	uint64_t seen = 0;
	int ready[2];
	pid_t child;
	char byte;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		/* A failed assertion must not leave it behind. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		value = 42;
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(remote_open_process(child, &remote), 0);
	assert_int_equal(remote_read(remote, RADDR((uintptr_t)&value), &seen, sizeof seen), 0);
	assert_int_equal(seen, 42);
	assert_int_equal(value, 1);

	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	part = (struct remote_part){ RADDR((uintptr_t)&value), &seen, sizeof seen };
	assert_int_equal(remote_read(remote, part.from, &seen, sizeof seen), -ESRCH);
	assert_int_equal(remote_read_parts(remote, &part, 1), 0);
	close(ready[0]);
	close(ready[1]);
}

/* In a child, so that root can step down to a user who may not read its parent. */
static int read_without_permission(const uint64_t *value)
{
	CLEANUP(remote_freep) struct remote *remote = NULL;
	pid_t other = getuid() == 0 ? getppid() : 1;
	uint64_t seen;
	int r;

	if (getuid() == 0 && setresuid(65534, 65534, 65534) < 0)
		return -errno;
	r = remote_open_process(other, &remote);
	if (r < 0)
		return r;
	return remote_read(remote, RADDR((uintptr_t)value), &seen, sizeof seen);
}

static void a_strangers_memory_is_refused(void **state)
{
	uint64_t value = 1;
	int status;
	pid_t child;

	(void)state;
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(-read_without_permission(&value));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), EPERM);
}

/* The same with the parent's own descriptor, until the loan ends. */
static int read_what_is_lent(int fd, const uint64_t *value)
{
	CLEANUP(remote_freep) struct remote *remote = NULL;
	CLEANUP(remote_freep) struct remote *later = NULL;
	uint64_t seen[2] = { 0 }, hole;
	struct remote_part parts[] = {
		{ RADDR((uintptr_t)value), &seen[0], sizeof seen[0] },
		{ RADDR((uintptr_t)value), &seen[1], sizeof seen[1] },
		{ RADDR(8), &hole, sizeof hole },
	};
	pid_t other = getppid();

	if (setresuid(65534, 65534, 65534) < 0 || remote_lend(other, fd) < 0 || remote_open_process(other, &remote) < 0)
		return EIO;
	if (remote_read_parts(remote, parts, 3) != 2 || seen[0] != *value || seen[1] != *value)
		return EBADMSG;
	if (remote_read(remote, RADDR(8), &hole, sizeof hole) != -EFAULT)
		return EFAULT;
	if (remote_lend(other, -1) < 0 || remote_open_process(other, &later) < 0)
		return EIO;
	return -remote_read(later, RADDR((uintptr_t)value), &hole, sizeof hole);
}

static void lent_memory_needs_no_permission(void **state)
{
	uint64_t value = UINT64_C(0x123456789abcdef);
	int status, fd;
	pid_t child;

	(void)state;
	if (getuid() != 0)
		skip(); /* only root can step down */
	fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(read_what_is_lent(fd, &value));
	close(fd);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), EPERM);
}

/* A read of them could wait for as long as their owner likes. */
static void other_files_cannot_be_lent(void **state)
{
	static const char *const paths[] = { "/proc/self/maps", "/proc/self/exe", "/dev/zero", "/proc" };
	int ends[2];

	(void)state;
	for (size_t i = 0; i < N_ELEMENTS(paths); i++) {
		int fd = open(paths[i], O_RDONLY | O_CLOEXEC);

		assert_true(fd >= 0);
		assert_int_equal(remote_lend(getppid(), fd), -EBADF);
		assert_int_equal(fcntl(fd, F_GETFD), -1); /* taken over all the same */
	}
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(remote_lend(getppid(), ends[0]), -EBADF);
	close(ends[1]);
	assert_int_equal(remote_lend(getppid(), open("/proc/self/mem", O_RDONLY | O_CLOEXEC)), 0);
	assert_int_equal(remote_lend(getppid(), -1), 0);
}

static void a_buffer_has_bounds(void **state)
{
	static const uint8_t bytes[] = "0123456789";
	const uint64_t start = UINT64_MAX - 10; /* the last byte has the highest address */
	CLEANUP(remote_freep) struct remote *remote = NULL;
	char to[32];

	(void)state;
	assert_int_equal(remote_open_buffer(RADDR(start), bytes, 11, &remote), 0);
	assert_int_equal(remote_read_some(remote, RADDR(start), to, sizeof to), 11);
	assert_memory_equal(to, bytes, 11);
	assert_int_equal(remote_read_some(remote, RADDR(start + 7), to, 2), 2);
	assert_memory_equal(to, "78", 2);
	assert_int_equal(remote_read_some(remote, RADDR(start - 1), to, 2), -EFAULT);
	assert_int_equal(remote_read_some(remote, RADDR(0), to, 1), -EFAULT);
	assert_int_equal(remote_read(remote, RADDR(start + 8), to, 3), 0);
	assert_string_equal(to, "89");
	assert_int_equal(remote_read(remote, RADDR(start + 8), to, 4), -EFAULT);
	remote_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_stop_at_a_hole),          cmocka_unit_test(unreadable_ground_is_an_error),
		cmocka_unit_test(pointers_are_read_whole),       cmocka_unit_test(leading_whole_parts_are_counted),
		cmocka_unit_test(empty_parts_are_whole),         cmocka_unit_test(a_child_is_read_until_it_is_gone),
		cmocka_unit_test(a_strangers_memory_is_refused), cmocka_unit_test(lent_memory_needs_no_permission),
		cmocka_unit_test(other_files_cannot_be_lent),    cmocka_unit_test(a_buffer_has_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
