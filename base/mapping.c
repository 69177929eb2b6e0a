/* SPDX-License-Identifier: MIT */
/* mapping.c - see mapping.h.
 *
 * The handler searches a list without a lock: the faulting thread uses the mapping, so that entry does not change
 * meanwhile. Others may; a sequence number, odd during a change, reveals that. Entries are reused and never freed, so
 * the list is valid at any time.
 *
 * Everything from the faulting page to the end of the mapping becomes zeros at once: the rest of a truncated file is
 * missing as well, and a mapping splits into two parts at most, however many faults follow.
 *
 * Source: mmap(2) on SIGBUS; sigaction(2), BUS_ADRERR; signal-safety(7), by which mmap(2) is one system call and
 * takes no lock.
 */
#include "base/mapping.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"

struct file_mapping {
	atomic_uint sequence; /* odd: changing */
	_Atomic uintptr_t start;
	atomic_size_t n_bytes; /* whole pages; 0: free slot */
	atomic_bool is_cut;
	size_t n_file_bytes;
	bool is_own;               /* created and unmapped here */
	struct file_mapping *next; /* constant once in the list */
};

static struct file_mapping *_Atomic mappings;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction before; /* changes only while our handler is not installed */
static uintptr_t page_bytes;

/* Initial-exec, so that the signal handler need not call the dynamic loader. */
static _Thread_local volatile unsigned guards __attribute__((tls_model("initial-exec")));
static _Thread_local volatile unsigned n_cut __attribute__((tls_model("initial-exec")));
static _Thread_local volatile bool hands_on __attribute__((tls_model("initial-exec")));

/* ---- In the signal handler ---- */

/* The mapping that contains an address, and its end; NULL: none. */
static struct file_mapping *find(uintptr_t address, uintptr_t *ret_end)
{
	for (struct file_mapping *mapping = atomic_load(&mappings); mapping; mapping = mapping->next) {
		unsigned sequence = atomic_load(&mapping->sequence);
		uintptr_t start = atomic_load(&mapping->start);
		size_t n_bytes = atomic_load(&mapping->n_bytes);

		if (sequence % 2 != 0 || atomic_load(&mapping->sequence) != sequence)
			continue;
		if (address < start || address - start >= n_bytes)
			continue;
		*ret_end = start + n_bytes;
		return mapping;
	}
	return NULL;
}

static bool make_zeros(uintptr_t from, uintptr_t to)
{
	return mmap((void *)from, to - from, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED;
}

/* Replace the truncated part by zeros; in an unknown mapping, only the page. */
static bool mend(uintptr_t address)
{
	uintptr_t page = address & ~(page_bytes - 1), end = page + page_bytes;
	struct file_mapping *mapping = find(address, &end);

	if ((!mapping && guards == 0) || !make_zeros(page, end))
		return false;
	if (mapping)
		atomic_store(&mapping->is_cut, true);
	n_cut++;
	return true;
}

/* A fault repeats itself, but a signal of another process does not: raise it again. */
static void end_by(int number, const siginfo_t *info)
{
	(void)sigaction(number, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
	if (info->si_code <= 0)
		(void)raise(number);
}

/* Call the previous handler. If two handlers each consider the other the previous one, end here. */
static void hand_on(int number, siginfo_t *info, void *context)
{
	bool is_loop = hands_on;

	hands_on = true;
	if (!is_loop && (before.sa_flags & SA_SIGINFO))
		before.sa_sigaction(number, info, context);
	else if (!is_loop && before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
		before.sa_handler(number);
	else if (is_loop || before.sa_handler == SIG_DFL || info->si_code > 0)
		end_by(number, info);
	hands_on = is_loop;
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
	int error = errno;

	if (info->si_code != BUS_ADRERR || !mend((uintptr_t)info->si_addr))
		hand_on(number, info, context);
	errno = error;
}

/* ---- Outside of the handler ---- */

/* Install again if another handler has replaced ours. */
static void install(void)
{
	const struct sigaction action = { .sa_sigaction = on_bus_error,
					  .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART };
	struct sigaction now;

	pthread_mutex_lock(&lock);
	if (page_bytes == 0) /* a handler may be reading it */
		page_bytes = (uintptr_t)getpagesize();
	if (sigaction(SIGBUS, NULL, &now) == 0 && (!(now.sa_flags & SA_SIGINFO) || now.sa_sigaction != on_bus_error)) {
		before = now;
		(void)sigaction(SIGBUS, &action, NULL);
	}
	pthread_mutex_unlock(&lock);
}

static struct file_mapping *find_free(void)
{
	for (struct file_mapping *mapping = atomic_load(&mappings); mapping; mapping = mapping->next)
		if (atomic_load(&mapping->n_bytes) == 0)
			return mapping;
	return NULL;
}

static void set(struct file_mapping *mapping, uintptr_t start, size_t n_bytes)
{
	atomic_fetch_add(&mapping->sequence, 1);
	atomic_store(&mapping->start, start);
	atomic_store(&mapping->n_bytes, n_bytes);
	atomic_store(&mapping->is_cut, false);
	atomic_fetch_add(&mapping->sequence, 1);
}

static int add(void *bytes, size_t n_bytes, bool is_own, struct file_mapping **ret)
{
	struct file_mapping *mapping;
	size_t n_pages_bytes = (n_bytes + page_bytes - 1) & ~(page_bytes - 1);

	pthread_mutex_lock(&lock);
	mapping = find_free();
	if (!mapping) {
		mapping = calloc(1, sizeof *mapping);
		if (mapping) {
			mapping->next = atomic_load(&mappings);
			atomic_store(&mappings, mapping);
		}
	}
	if (mapping) {
		mapping->n_file_bytes = n_bytes;
		mapping->is_own = is_own;
		set(mapping, (uintptr_t)bytes, n_pages_bytes);
	}
	pthread_mutex_unlock(&lock);
	if (!mapping)
		return -ENOMEM;
	*ret = mapping;
	return 0;
}

int file_mapping_new(int fd, struct file_mapping **ret)
{
	struct stat st;
	void *bytes;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size <= 0)
		return -ENODATA;
	install();
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return -errno;
	r = add(bytes, (size_t)st.st_size, true, ret);
	if (r < 0)
		munmap(bytes, (size_t)st.st_size);
	return r;
}

int file_mapping_adopt(void *bytes, size_t n_bytes, struct file_mapping **ret)
{
	install();
	if (n_bytes == 0 || (uintptr_t)bytes % page_bytes != 0)
		return -EINVAL;
	return add(bytes, n_bytes, false, ret);
}

/* The entry goes first: once the pages are unmapped, another thread may map a file at their address. */
void file_mapping_free(struct file_mapping *mapping)
{
	bool is_own;
	void *bytes;
	size_t n_bytes;

	if (!mapping)
		return;
	bytes = (void *)atomic_load(&mapping->start);
	n_bytes = mapping->n_file_bytes;
	is_own = mapping->is_own;
	pthread_mutex_lock(&lock);
	set(mapping, 0, 0);
	pthread_mutex_unlock(&lock);
	if (is_own)
		munmap(bytes, n_bytes);
}

void file_mapping_freep(struct file_mapping **mapping)
{
	file_mapping_free(*mapping);
}

const void *file_mapping_bytes(const struct file_mapping *mapping, size_t *ret_bytes)
{
	*ret_bytes = mapping->n_file_bytes;
	return (const void *)atomic_load(&mapping->start);
}

bool file_mapping_is_cut(const struct file_mapping *mapping)
{
	return atomic_load(&mapping->is_cut);
}

void file_guard_enter(struct file_guard *guard)
{
	guard->n_cut = n_cut;
	guards++;
}

bool file_guard_leave(const struct file_guard *guard)
{
	guards--;
	return n_cut != guard->n_cut;
}

void file_guard_cut(void)
{
	n_cut++;
}
