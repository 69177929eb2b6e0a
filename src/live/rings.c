/* SPDX-License-Identifier: MIT */
/* rings.c - see rings.h; and python.rings, which describes the files.
 *
 * Files of one name are one table: a program may append rows with other columns later, and each set of columns has a file
 * of its own. A table has all columns of its files. Names come from the process: they are quoted in SQL, and never the name
 * of another table.
 */
#include "src/live/rings.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/util.h"
#include "src/live/tables.h"
#include "src/ring/ring.h"
#include "src/rows/rows.h"

enum {
	MAX_FILES = 256,
	MAX_VALUES = 1 << 25, /* of a table, 1 GB of memory */
	MAX_SENTENCE = 512,
};

/* A file, open. */
struct ring_files {
	int fd;
	unsigned long number;               /* in the order of their creation */
	char name[RING_NAME_BYTES];         /* in the file */
	struct ring_snapshot snapshot;      /* columns; no rows */
	uint16_t columns[RING_MAX_COLUMNS]; /* their places in the table */
};

/* ---- The folder ---- */

static void note_refusal(struct live *live, int error, const char *parent, uid_t uid)
{
	char why[MAX_SENTENCE], sentence[2 * MAX_SENTENCE];

	/* Another user's rings are nobody else's business, and mostly there are none. */
	if (error == -ENOENT || (error == -EACCES && uid != geteuid()))
		return;
	ring_folder_explain(error, parent, uid, why, sizeof why);
	snprintf(sentence, sizeof sentence, "the rings of process %d are not read: %s", (int)live->options.pid, why);
	live_note(live, sentence);
}

static int find_running(struct live *live, int *ret)
{
	CLEANUP(rows_place_done) struct rows_place place = { 0 };
	int r;

	r = rows_open_folder(live->options.pid, &place, ret);
	if (r < 0)
		note_refusal(live, r, place.parent ? place.parent : RING_PARENT, place.uid);
	return r;
}

/* For root: whichever user's process it was. */
static int find_of_any_user(const char *parent, pid_t pid, int *ret)
{
	CLEANUP(closedirp) DIR *list = opendir(parent);
	struct dirent *entry;
	unsigned uid;

	while (list && (entry = readdir(list)) != NULL)
		if (sscanf(entry->d_name, "probing-%u", &uid) == 1 &&
		    ring_folder_find(-1, parent, uid, pid, 0, ret) == 0)
			return 0;
	return -ENOENT;
}

static int find_ended(struct live *live, int *ret)
{
	const char *own = getenv("PROBING_DATA_DIR");
	const char *const parents[] = { own && own[0] == '/' ? own : RING_PARENT, RING_PARENT };
	int r = -ENOENT;

	for (size_t i = 0; i < N_ELEMENTS(parents) && r < 0; i++) {
		r = ring_folder_find(-1, parents[i], geteuid(), live->options.pid, 0, ret);
		if (r < 0)
			note_refusal(live, r, parents[i], geteuid());
		if (r == -ENOENT && geteuid() == 0)
			r = find_of_any_user(parents[i], live->options.pid, ret);
	}
	return r;
}

/* ---- Files ---- */

struct finding {
	struct live *live;
	struct live_rings *rings;
	size_t allocated;
	bool is_full;
};

static void note_file(struct live *live, const char *file, int error)
{
	char sentence[MAX_SENTENCE];

	snprintf(sentence, sizeof sentence, "a ring of process %d is not read: %.64s %s", (int)live->options.pid, file,
		 error == -EPROTONOSUPPORT ? "is of another version of probing" : "is damaged");
	live_note(live, sentence);
}

static int add_file(void *data, const char *file, int fd)
{
	struct finding *finding = data;
	struct live_rings *rings = finding->rings;
	struct ring_files *one;
	struct ring_snapshot snapshot;
	struct ring_source source;
	int r;

	if (rings->n_files == MAX_FILES) {
		finding->is_full = true;
		return 0;
	}
	r = ring_source_file(fd, &source);
	if (r == 0)
		r = ring_describe(&source, &snapshot);
	if (r < 0) {
		note_file(finding->live, file, r);
		return 0;
	}
	r = grow(&rings->files, rings->n_files, &finding->allocated, sizeof *rings->files);
	if (r < 0)
		return r;
	one = &rings->files[rings->n_files];
	*one = (struct ring_files){ .snapshot = snapshot };
	one->number = strtoul(file, NULL, 10);
	one->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (one->fd < 0)
		return -errno;
	snprintf(one->name, sizeof one->name, "%s", snapshot.name);
	rings->n_files++;
	return 0;
}

/* By name, and the older ones first: the table's columns come in the order in which the program used them. */
static int compare_files(const void *a, const void *b)
{
	const struct ring_files *one = a, *other = b;
	int order = sqlite3_stricmp(one->name, other->name);

	if (order != 0)
		return order;
	return (one->number > other->number) - (one->number < other->number);
}

/* ---- Tables ---- */

static int make_columns(struct ring_files *files, size_t n_files, struct live_ring *ret)
{
	int r;

	r = program_table_begin(files[0].name, &ret->described);
	for (size_t i = 0; i < n_files; i++)
		for (size_t j = 0; j < files[i].snapshot.n_columns && r == 0; j++)
			r = program_table_add(&ret->described, files[i].snapshot.columns[j].name,
					      rows_type_name(files[i].snapshot.columns[j].type), &files[i].columns[j]);
	if (r == 0)
		program_table_end(&ret->described);
	return r;
}

static int make_tables(struct live_rings *rings)
{
	size_t allocated = 0;
	int r = 0;

	if (rings->n_files > 0)
		qsort(rings->files, rings->n_files, sizeof *rings->files, compare_files);
	for (size_t i = 0, n; i < rings->n_files && r == 0; i += n) {
		struct live_ring *table;

		for (n = 1;
		     i + n < rings->n_files && sqlite3_stricmp(rings->files[i].name, rings->files[i + n].name) == 0;)
			n++;
		r = grow(&rings->tables, rings->n_tables, &allocated, sizeof *rings->tables);
		if (r < 0)
			return r;
		table = &rings->tables[rings->n_tables++];
		*table = (struct live_ring){ .files = rings->files + i, .n_files = n };
		r = make_columns(rings->files + i, n, table);
	}
	return r;
}

int live_rings_find(struct live *live, bool has_ended, struct live_rings *ret)
{
	struct live_rings rings = { 0 };
	struct finding finding = { .live = live, .rings = &rings };
	CLEANUP(closep) int folder = -1;
	int r;

	r = has_ended ? find_ended(live, &folder) : find_running(live, &folder);
	r = r < 0 ? 0 : ring_folder_each(folder, add_file, &finding);
	if (finding.is_full)
		live_note(live, "the process has more than 256 rings: the others are not read");
	if (r == 0)
		r = make_tables(&rings);
	if (r < 0)
		live_rings_done(&rings);
	else
		*ret = rings;
	return r;
}

const struct live_ring *live_rings_variables(const struct live_rings *rings)
{
	for (size_t i = 0; i < rings->n_tables; i++)
		if (strcmp(rings->tables[i].described.name, "probing_variables") == 0)
			return &rings->tables[i];
	return NULL;
}

void live_rings_done(struct live_rings *rings)
{
	for (size_t i = 0; i < rings->n_tables; i++)
		program_table_done(&rings->tables[i].described);
	for (size_t i = 0; i < rings->n_files; i++)
		close(rings->files[i].fd);
	free(rings->tables);
	free(rings->files);
	*rings = (struct live_rings){ 0 };
}

/* ---- Rows ---- */

struct place_of_row {
	uint64_t time_ns;
	uint32_t file, row;
};

static int older_first(const void *a, const void *b)
{
	const struct place_of_row *one = a, *other = b;

	if (one->time_ns != other->time_ns)
		return one->time_ns < other->time_ns ? -1 : 1;
	if (one->file != other->file)
		return one->file < other->file ? -1 : 1;
	return (one->row > other->row) - (one->row < other->row);
}

static void put_value(struct live_rows *rows, const struct ring_value *value)
{
	switch (value->kind) {
	case RING_IS_INTEGER:
		live_integer(rows, value->integer);
		break;
	case RING_IS_REAL:
		live_real(rows, value->real);
		break;
	case RING_IS_TEXT:
		live_bytes(rows, value->text, value->n_text);
		break;
	default:
		live_null(rows);
	}
}

static void put_row(struct live_rows *rows, const struct live_ring *ring, const struct ring_snapshot *snapshot,
		    const struct place_of_row *at, pid_t pid)
{
	const struct ring_files *file = &ring->files[at->file];
	struct ring_value values[PROGRAM_MAX_COLUMNS] = { 0 };

	for (size_t i = 0; i < snapshot->n_columns && i < file->snapshot.n_columns; i++)
		if (file->columns[i] < ring->described.n_columns)
			ring_cell(snapshot, at->row, i, &values[file->columns[i]]);
	live_real(rows, ((double)at->time_ns + (double)snapshot->realtime_offset_ns) / 1e9);
	for (size_t i = 1; i + PROGRAM_N_HIDDEN < ring->described.n_columns; i++)
		put_value(rows, &values[i]);
	live_integer(rows, (int64_t)at->time_ns);
	live_integer(rows, pid);
}

static int put_rows(struct live_rows *rows, const struct live_ring *ring, const struct ring_snapshot *snapshots,
		    pid_t pid)
{
	CLEANUP(freep) struct place_of_row *order = NULL;
	size_t n = 0;

	for (size_t i = 0; i < ring->n_files; i++)
		n += snapshots[i].n_rows;
	order = calloc(n + 1, sizeof *order);
	if (!order)
		return -ENOMEM;
	n = 0;
	for (uint32_t i = 0; i < ring->n_files; i++)
		for (uint32_t row = 0; row < snapshots[i].n_rows; row++)
			order[n++] = (struct place_of_row){ ring_row_time_ns(&snapshots[i], row), i, row };
	if (ring->n_files > 1)
		qsort(order, n, sizeof *order, older_first);
	for (size_t i = 0; i < n; i++)
		put_row(rows, ring, &snapshots[order[i].file], &order[i], pid);
	return 0;
}

/* Report the values that the program appended and that the ring could not take. */
static void note_losses(struct live *live, const struct live_ring *ring, const struct ring_snapshot *snapshots)
{
	unsigned long long n_dropped = 0, n_unfit = 0;
	char sentence[MAX_SENTENCE];

	for (size_t i = 0; i < ring->n_files; i++) {
		n_dropped += snapshots[i].dropped;
		n_unfit += snapshots[i].unfit;
	}
	if (n_dropped + n_unfit == 0)
		return;
	snprintf(sentence, sizeof sentence,
		 "%.64s: %llu values are NULL, as their columns have another type; %llu rows were dropped",
		 ring->described.name, n_unfit, n_dropped);
	live_note(live, sentence);
}

static int read_file_rows(struct live *live, const struct ring_files *file, struct ring_snapshot *ret)
{
	struct ring_source source;
	int r;

	r = ring_source_file(file->fd, &source);
	if (r == 0)
		r = ring_read(&source, ret);
	if (r == -EBADMSG || r == -ENODATA)
		snprintf(live->why, sizeof live->why, "the ring %.64s of process %d is damaged", file->name,
			 (int)live->options.pid);
	return r;
}

static uint64_t bytes_of(const struct ring_snapshot *snapshot)
{
	uint64_t n_bytes = 0;

	for (size_t i = 0; i < snapshot->n_columns; i++)
		n_bytes += snapshot->columns[i].cell_bytes;
	return n_bytes * snapshot->n_slots;
}

/* A program may have many files of one name, and large ones that take it no memory: not so much of the reader's. */
static int check_size(struct live *live, const struct live_ring *ring)
{
	uint64_t n_bytes = 0, n_values = 0;

	for (size_t i = 0; i < ring->n_files; i++) {
		n_bytes += bytes_of(&ring->files[i].snapshot);
		n_values += ring->files[i].snapshot.n_slots * ring->described.n_columns;
	}
	if (n_bytes <= RING_MAX_FILE_BYTES && n_values <= MAX_VALUES)
		return 0;
	snprintf(
		live->why, sizeof live->why,
		"the rings of %.64s are too large together: %llu MB, and %llu million values with those that are missing",
		ring->described.name, (unsigned long long)(n_bytes >> 20), (unsigned long long)(n_values / 1000000));
	return -EFBIG;
}

int live_ring_read(struct live *live, const struct live_ring *ring, struct live_rows *rows)
{
	struct ring_snapshot *snapshots = calloc(ring->n_files, sizeof *snapshots);
	int r = snapshots ? check_size(live, ring) : -ENOMEM;

	for (size_t i = 0; i < ring->n_files && r == 0; i++)
		r = read_file_rows(live, &ring->files[i], &snapshots[i]);
	if (r == 0)
		r = put_rows(rows, ring, snapshots, live->options.pid);
	if (r == 0)
		note_losses(live, ring, snapshots);
	for (size_t i = 0; snapshots && i < ring->n_files; i++)
		ring_snapshot_done(&snapshots[i]);
	free(snapshots);
	return r;
}

/* ---- python.rings ---- */

static void put_file(struct live_rows *rows, const struct ring_files *file, const struct ring_snapshot *now)
{
	uint64_t n_window = MIN(now->head, now->n_slots);

	live_bytes(rows, file->name, strlen(file->name));
	live_integer(rows, (int64_t)now->n_columns);
	live_integer(rows, (int64_t)now->n_slots);
	live_integer(rows, (int64_t)now->n_rows);
	live_integer(rows, (int64_t)(now->head - now->skipped));
	live_integer(rows, (int64_t)(now->head - n_window));
	live_integer(rows, (int64_t)now->skipped);
	live_integer(rows, (int64_t)now->dropped);
	live_integer(rows, (int64_t)now->unfit);
	live_integer(rows, (int64_t)now->stuck);
}

static int read_rings(struct live *live, struct live_rows *rows)
{
	int r = 0;

	for (size_t i = 0; i < live->rings.n_files && r == 0; i++) {
		struct ring_snapshot snapshot;

		r = read_file_rows(live, &live->rings.files[i], &snapshot);
		if (r < 0)
			break;
		put_file(rows, &live->rings.files[i], &snapshot);
		ring_snapshot_done(&snapshot);
	}
	return r;
}

const struct live_table live_python_rings = {
	.schema = "python",
	.name = "rings",
	.read = read_rings,
	.outlives_process = true,
};
