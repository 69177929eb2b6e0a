/* SPDX-License-Identifier: MIT */
/* follow.c - reads the rings of a process while it writes them; see rows.h.
 *
 * The folder stays open, so the last rows of a process can be read after its end. Each look reads what came since the
 * last one; what a ring evicted in between is lost, and counted.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "src/rows/rows.h"

enum {
	MAX_RINGS = 256,
	MAX_ROW_OVERHEAD = 16, /* bytes of a packed row beyond its cells, at most */
	MAX_CELL_OVERHEAD = 8,
};

void rows_follower_init(struct rows_follower *follower, pid_t pid, uint64_t start, bool is_new)
{
	*follower = (struct rows_follower){
		.pid = pid, .folder = -1, .is_new = is_new, .start = start ?: ring_start_time(pid)
	};
}

void rows_follower_done(struct rows_follower *follower)
{
	free(follower->rings);
	closep(&follower->folder);
	follower->rings = NULL;
	follower->n_rings = follower->n_allocated = 0;
	follower->folder = -1;
}

static bool is_known(const struct rows_follower *follower, unsigned long number)
{
	for (size_t i = 0; i < follower->n_rings; i++)
		if (follower->rings[i].number == number && !follower->rings[i].is_gone)
			return true;
	return false;
}

/* The number of a ring that was removed may be another one's now. */
static bool is_same(const struct rows_ring *ring, const struct ring_snapshot *now)
{
	const struct ring_snapshot *was = &ring->described;
	bool is = strcmp(was->name, now->name) == 0 && was->n_columns == now->n_columns &&
		  was->n_slots == now->n_slots && now->head >= ring->cursor.head;

	for (size_t i = 0; i < was->n_columns && is; i++)
		is = strcmp(was->columns[i].name, now->columns[i].name) == 0 &&
		     was->columns[i].type == now->columns[i].type &&
		     was->columns[i].cell_bytes == now->columns[i].cell_bytes;
	return is;
}

static ino_t inode_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 ? 0 : st.st_ino;
}

/* One that is gone, or a new one. -ENOSPC: there are too many. */
static int get_place(struct rows_follower *follower, struct rows_ring **ret)
{
	int r;

	for (size_t i = 0; i < follower->n_rings; i++)
		if (follower->rings[i].is_gone) {
			*ret = &follower->rings[i];
			return 0;
		}
	if (follower->n_rings == MAX_RINGS)
		return -ENOSPC;
	r = grow(&follower->rings, follower->n_rings, &follower->n_allocated, sizeof *follower->rings);
	if (r >= 0)
		*ret = &follower->rings[follower->n_rings++];
	return r;
}

static int add_ring(void *data, const char *file, int fd)
{
	struct rows_follower *follower = data;
	struct ring_snapshot described;
	struct ring_source source;
	struct rows_ring *ring;
	int r;

	if (is_known(follower, strtoul(file, NULL, 10)))
		return 0;
	if (ring_source_file(fd, &source) < 0 || ring_describe(&source, &described) < 0)
		return 0; /* of another version, or damaged */
	if (described.start_time < follower->since)
		return 0;
	r = get_place(follower, &ring);
	if (r < 0)
		return r;
	*ring = (struct rows_ring){ .described = described, .number = strtoul(file, NULL, 10) };
	ring->cursor.from_start = follower->is_new;
	ring->inode = inode_of(fd);
	return 0;
}

static int find_rings(struct rows_follower *follower)
{
	int r = ring_folder_each(follower->folder, add_ring, follower);

	follower->is_new = true; /* of rings that come now no row was before */
	return r == -ENOMEM ? r : 0;
}

int rows_find(struct rows_follower *follower, struct rows_place *place)
{
	CLEANUP(rows_place_done) struct rows_place found = { 0 };
	int r = 0;

	if (follower->folder < 0)
		r = rows_open_folder(follower->pid, &found, &follower->folder);
	if (found.parent) {
		rows_place_done(place);
		*place = found;
		found.parent = NULL;
	}
	if (r < 0) { /* a folder that comes later is new */
		follower->is_new = true;
		return 0;
	}
	return find_rings(follower);
}

uint64_t rows_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return ((uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000) * (uint64_t)sysconf(_SC_CLK_TCK) / 1000;
}

/* A program that we started, and that has ended before it was looked at, had our environment. */
static const char *own_parent(void)
{
	const char *parent = getenv("PROBING_DATA_DIR");

	return parent && parent[0] == '/' ? parent : RING_PARENT;
}

int rows_find_ended(struct rows_follower *follower, const struct rows_place *place, uint64_t since)
{
	const char *parent = place->parent ?: own_parent();
	uid_t uid = place->parent ? place->uid : geteuid();

	if (ring_folder_find(-1, parent, uid, follower->pid, follower->start, &follower->folder) < 0)
		return 0;
	follower->since = follower->start > 0 ? 0 : since;
	return find_rings(follower);
}

const char *rows_type_name(enum ring_type type)
{
	return type == RING_INTEGER ? "INTEGER" : type == RING_REAL ? "REAL" : type == RING_TEXT ? "TEXT" : "ANY";
}

static struct row_value value_of(const struct ring_snapshot *snapshot, size_t row, size_t column)
{
	struct ring_value cell;

	ring_cell(snapshot, row, column, &cell);
	switch (cell.kind) {
	case RING_IS_INTEGER:
		return (struct row_value){ .kind = ROW_INTEGER, .integer = cell.integer };
	case RING_IS_REAL:
		return (struct row_value){ .kind = ROW_REAL, .real = cell.real };
	case RING_IS_TEXT:
		return (struct row_value){ .kind = ROW_TEXT, .text = cell.text, .n_text = cell.n_text };
	default:
		return (struct row_value){ .kind = ROW_NULL };
	}
}

static int put_rows(const struct ring_snapshot *snapshot, size_t n_columns, struct row_bytes *to)
{
	struct row_value values[RING_MAX_COLUMNS];
	int r = 0;

	for (size_t row = 0; row < snapshot->n_rows && r == 0; row++) {
		for (size_t i = 0; i < n_columns; i++)
			values[i] = i < snapshot->n_columns ? value_of(snapshot, row, i)
							    : (struct row_value){ .kind = ROW_NULL };
		r = row_put(to, ring_row_time_ns(snapshot, row), values, n_columns);
	}
	return r;
}

/* How many rows have at most ROWS_MAX_BYTES. */
static uint64_t most_rows(const struct ring_snapshot *described)
{
	uint64_t n_bytes = MAX_ROW_OVERHEAD;

	for (size_t i = 0; i < described->n_columns; i++)
		n_bytes += described->columns[i].cell_bytes + MAX_CELL_OVERHEAD;
	return MAX(ROWS_MAX_BYTES / n_bytes, (uint64_t)1);
}

/* Files are open only while they are read: hundreds of processes have thousands of rings. */
static int open_ring(int folder, const struct rows_ring *ring)
{
	char name[32];

	snprintf(name, sizeof name, "%lu.ring", ring->number);
	return openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

int rows_read(const struct rows_follower *follower, struct rows_ring *ring, struct row_bytes *ret)
{
	CLEANUP(closep) int fd = -1;
	struct ring_snapshot snapshot;
	struct ring_source source;
	int r;

	if (ring->is_gone)
		return 0;
	fd = open_ring(follower->folder, ring);
	if (fd < 0 && errno != ENOENT)
		return 0; /* too many files are open, perhaps: tried again */
	r = fd < 0 ? -ENOENT : ring_source_file(fd, &source);
	if (r >= 0)
		r = ring_describe(&source, &snapshot);
	if (r >= 0 && (inode_of(fd) != ring->inode || !is_same(ring, &snapshot)))
		r = -ENOENT;
	if (r >= 0)
		r = ring_read_next(&source, most_rows(&ring->described), &ring->cursor, &snapshot);
	if (r < 0) {
		ring->is_gone = r != -ENOMEM;
		return r == -ENOMEM ? r : 0;
	}
	r = put_rows(&snapshot, ring->described.n_columns, ret);
	ring->n_rows += snapshot.n_rows;
	ring->dropped = snapshot.dropped;
	ring->unfit = snapshot.unfit;
	ring_snapshot_done(&snapshot);
	return r;
}
