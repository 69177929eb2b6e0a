/* SPDX-License-Identifier: MIT */
/* Rings: what is written is read; what is being written, or was spoilt, is not; many writers, some of which are killed. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "src/ring/layout.h"

static const struct ring_retention keep_all = { .days = 1000, .max_bytes = UINT64_MAX };

static const struct ring_column columns[] = {
	{ .name = "count", .type = RING_INTEGER },
	{ .name = "loss", .type = RING_REAL },
	{ .name = "either", .type = RING_NUMBER },
	{ .name = "text", .type = RING_TEXT, .bytes = 12 },
};

/* A scratch folder, and rings' folder in it. */
struct place {
	char parent[64];
	int folder;
};

static void place_init(struct place *place)
{
	strcpy(place->parent, "/tmp/test-ring.XXXXXX");
	assert_non_null(mkdtemp(place->parent));
	assert_int_equal(ring_folder_make(place->parent, &keep_all, &place->folder), 0);
}

static void place_done(struct place *place)
{
	char command[128];

	close(place->folder);
	snprintf(command, sizeof command, "rm -rf %s", place->parent);
	assert_int_equal(system(command), 0);
}

static struct ring *make_ring(const struct place *place, uint64_t n_rows)
{
	const struct ring_description description = {
		.name = "table", .columns = columns, .n_columns = N_ELEMENTS(columns), .n_rows = n_rows
	};
	struct ring *ring = NULL;

	assert_int_equal(ring_create(place->folder, &description, &ring), 0);
	return ring;
}

static int open_file(const struct place *place, const char *name)
{
	int fd = openat(place->folder, name, O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static int read_fd(int fd, struct ring_snapshot *ret)
{
	struct ring_source source;

	assert_int_equal(ring_source_file(fd, &source), 0);
	return ring_read(&source, ret);
}

static void read_all(const struct place *place, struct ring_snapshot *ret)
{
	int fd = open_file(place, "1.ring");

	assert_int_equal(read_fd(fd, ret), 0);
	close(fd);
}

static struct ring_value integer(int64_t value)
{
	return (struct ring_value){ .kind = RING_IS_INTEGER, .integer = value };
}

static struct ring_value real(double value)
{
	return (struct ring_value){ .kind = RING_IS_REAL, .real = value };
}

static struct ring_value text(const char *value)
{
	return (struct ring_value){ .kind = RING_IS_TEXT, .text = value, .n_text = strlen(value) };
}

static const struct ring_value null = { .kind = RING_NULL };

static uint64_t append(struct ring *ring, struct ring_value a, struct ring_value b, struct ring_value c,
		       struct ring_value d)
{
	const struct ring_value values[] = { a, b, c, d };

	return ring_append(ring, values);
}

static void assert_text(const struct ring_snapshot *snapshot, size_t row, const char *wanted)
{
	struct ring_value value;

	ring_cell(snapshot, row, 3, &value);
	assert_int_equal(value.kind, RING_IS_TEXT);
	assert_int_equal(value.n_text, strlen(wanted));
	assert_memory_equal(value.text, wanted, value.n_text);
}

/* ---- Values ---- */

static void values_come_back(void **state)
{
	struct ring_snapshot snapshot;
	struct ring_value value;
	struct place place;
	struct ring *ring;
	uint64_t before = monotonic_ns();

	(void)state;
	place_init(&place);
	ring = make_ring(&place, 10);
	assert_int_equal(append(ring, integer(-7), real(0.25), integer(INT64_MIN), text("a")), 0);
	assert_int_equal(append(ring, null, integer(3), real(0.5), null), 1);
	read_all(&place, &snapshot);
	assert_string_equal(snapshot.name, "table");
	assert_int_equal(snapshot.pid, getpid());
	assert_int_equal(snapshot.start_time, ring_start_time(getpid()));
	assert_int_equal(snapshot.n_columns, 4);
	assert_string_equal(snapshot.columns[1].name, "loss");
	assert_int_equal(snapshot.n_slots, 16); /* rounded up */
	assert_int_equal(snapshot.n_rows, 2);
	assert_true(ring_row_time_ns(&snapshot, 0) >= before);
	assert_true(ring_row_time_ns(&snapshot, 1) <= monotonic_ns());
	ring_cell(&snapshot, 0, 0, &value);
	assert_true(value.kind == RING_IS_INTEGER && value.integer == -7);
	ring_cell(&snapshot, 0, 1, &value);
	assert_true(value.kind == RING_IS_REAL && value.real == 0.25);
	ring_cell(&snapshot, 0, 2, &value);
	assert_true(value.kind == RING_IS_INTEGER && value.integer == INT64_MIN);
	assert_text(&snapshot, 0, "a");
	ring_cell(&snapshot, 1, 0, &value);
	assert_int_equal(value.kind, RING_NULL);
	ring_cell(&snapshot, 1, 1, &value);
	assert_true(value.kind == RING_IS_REAL && value.real == 3);
	ring_cell(&snapshot, 1, 2, &value);
	assert_true(value.kind == RING_IS_REAL && value.real == 0.5);
	ring_snapshot_done(&snapshot);
	ring_close(ring);
	place_done(&place);
}

static void what_does_not_fit_is_null_and_counted(void **state)
{
	struct ring_snapshot snapshot;
	struct ring_value value;
	struct place place;
	struct ring *ring;

	(void)state;
	place_init(&place);
	ring = make_ring(&place, 8);
	append(ring, real(2), text("b"), text("c"), integer(4));
	append(ring, real(2.5), real(0.0 / 0.0), real(1e300), text(""));
	read_all(&place, &snapshot);
	assert_int_equal(snapshot.unfit, 4);
	ring_cell(&snapshot, 0, 0, &value);
	assert_true(value.kind == RING_IS_INTEGER && value.integer == 2);
	for (size_t i = 1; i < 4; i++) {
		ring_cell(&snapshot, 0, i, &value);
		assert_int_equal(value.kind, RING_NULL);
	}
	ring_cell(&snapshot, 1, 0, &value);
	assert_int_equal(value.kind, RING_NULL);
	ring_cell(&snapshot, 1, 2, &value);
	assert_true(value.kind == RING_IS_REAL && value.real == 1e300);
	assert_text(&snapshot, 1, "");
	ring_snapshot_done(&snapshot);
	ring_close(ring);
	place_done(&place);
}

static void texts_are_cut_between_characters(void **state)
{
	struct ring_snapshot snapshot;
	struct place place;
	struct ring *ring;

	(void)state;
	place_init(&place);
	ring = make_ring(&place, 8); /* 12 bytes are 16 */
	append(ring, null, null, null, text("0123456789abcdef"));
	append(ring, null, null, null, text("0123456789abcdefg"));
	append(ring, null, null, null, text("0123456789abcde\xc3\xa9"));
	append(ring, null, null, null, text("0123456789abcd\xf0\x9f\x90\x8d"));
	append(ring, null, null, null, text("\xff\xc3\xa9\xed\xa0\x80\xc3"));
	append(ring, null, null, null,
	       (struct ring_value){ .kind = RING_IS_TEXT, .text = "before\0after", .n_text = 12 });
	read_all(&place, &snapshot);
	assert_int_equal(snapshot.n_rows, 6);
	assert_text(&snapshot, 0, "0123456789abcdef");
	assert_text(&snapshot, 1, "0123456789abcdef");
	assert_text(&snapshot, 2, "0123456789abcde");
	assert_text(&snapshot, 3, "0123456789abcd");
	assert_text(&snapshot, 4,
		    "?\xc3\xa9???"
		    "?");
	assert_text(&snapshot, 5, "before");
	ring_snapshot_done(&snapshot);
	ring_close(ring);
	place_done(&place);
}

static void new_rows_evict_the_oldest(void **state)
{
	struct ring_snapshot snapshot;
	struct ring_source source;
	struct ring_value value;
	struct place place;
	struct ring *ring;

	(void)state;
	place_init(&place);
	ring = make_ring(&place, 8);
	for (int i = 0; i < 29; i++)
		append(ring, integer(i), null, null, null);
	ring_source_own(ring, &source); /* the other source */
	assert_int_equal(ring_read(&source, &snapshot), 0);
	assert_int_equal(snapshot.n_rows, 8);
	assert_int_equal(snapshot.head, 29);
	for (size_t i = 0; i < 8; i++) {
		ring_cell(&snapshot, i, 0, &value);
		assert_int_equal(value.integer, 21 + (int64_t)i);
		assert_int_equal(ring_row_number(&snapshot, i), 21 + i);
	}
	ring_snapshot_done(&snapshot);
	ring_close(ring);
	place_done(&place);
}

static size_t read_more(const struct ring_source *source, uint64_t most, struct ring_cursor *cursor, int64_t first)
{
	struct ring_snapshot snapshot;
	struct ring_value value;
	size_t n;

	assert_int_equal(ring_read_next(source, most, cursor, &snapshot), 0);
	for (size_t i = 0; i < snapshot.n_rows; i++) {
		ring_cell(&snapshot, i, 0, &value);
		assert_int_equal(value.integer, first + (int64_t)i);
	}
	n = snapshot.n_rows;
	ring_snapshot_done(&snapshot);
	return n;
}

static void a_follower_gets_each_row_once(void **state)
{
	struct ring_cursor cursor = { 0 }, early = { .from_start = true };
	struct ring_source source;
	struct place place;
	struct ring *ring;

	(void)state;
	place_init(&place);
	ring = make_ring(&place, 8);
	ring_source_own(ring, &source);
	for (int i = 0; i < 12; i++)
		append(ring, integer(i), null, null, null);
	assert_int_equal(read_more(&source, UINT64_MAX, &cursor, 4), 8);
	assert_int_equal(cursor.n_lost, 0);
	assert_int_equal(read_more(&source, UINT64_MAX, &early, 4), 8);
	assert_int_equal(early.n_lost, 4);
	assert_int_equal(read_more(&source, UINT64_MAX, &cursor, 0), 0);
	for (int i = 12; i < 18; i++)
		append(ring, integer(i), null, null, null);
	assert_int_equal(read_more(&source, 4, &cursor, 12), 4); /* across the end of the arrays, and not all */
	assert_int_equal(read_more(&source, 4, &cursor, 16), 2);
	for (int i = 18; i < 36; i++)
		append(ring, integer(i), null, null, null);
	assert_int_equal(read_more(&source, UINT64_MAX, &cursor, 28), 8);
	assert_int_equal(cursor.n_lost, 10);
	ring_close(ring);
	place_done(&place);
}

struct fast_writer {
	struct ring *ring;
	bool ends;
};

static void *append_all_the_time(void *data)
{
	struct fast_writer *writer = data;

	for (int64_t i = 0; !__atomic_load_n(&writer->ends, __ATOMIC_RELAXED); i++)
		append(writer->ring, integer(i), null, null, null);
	return NULL;
}

/* Reading all 1000 rows takes longer than they last. */
static void a_reader_finds_rows_under_a_fast_writer(void **state)
{
	struct fast_writer writer = { 0 };
	struct ring_source source;
	struct ring_snapshot snapshot;
	struct place place;
	pthread_t thread;
	size_t n = 0;
	int fd;

	(void)state;
	place_init(&place);
	writer.ring = make_ring(&place, 1000);
	fd = open_file(&place, "1.ring");
	assert_int_equal(ring_source_file(fd, &source), 0);
	assert_int_equal(pthread_create(&thread, NULL, append_all_the_time, &writer), 0);
	do {
		assert_int_equal(ring_describe(&source, &snapshot), 0);
	} while (snapshot.head < 10000);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(ring_read(&source, &snapshot), 0);
		n += snapshot.n_rows;
		ring_snapshot_done(&snapshot);
	}
	__atomic_store_n(&writer.ends, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	print_message("%zu of 1000 rows at a time\n", n / 1000);
	assert_true(n / 1000 >= 50);
	close(fd);
	ring_close(writer.ring);
	place_done(&place);
}

/* ---- Slots of writers that were killed ---- */

static uint64_t *map_words(const struct place *place)
{
	int fd = open_file(place, "1.ring");
	struct stat st;
	void *map;

	assert_int_equal(fstat(fd, &st), 0);
	map = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(map != MAP_FAILED);
	close(fd);
	return map;
}

static void claimed_slots_are_passed_over(void **state)
{
	struct ring_snapshot snapshot;
	struct place place;
	struct ring *ring;
	uint64_t *sequence;

	(void)state;
	place_init(&place);
	ring = make_ring(&place, 8);
	sequence = map_words(&place) + RING_HEADER_BYTES / RING_WORD;
	sequence[2] = 2 * 2 + 1;  /* of a writer that was killed */
	sequence[5] = 2 * 13 + 2; /* of one that is a round ahead */
	for (int i = 0; i < 6; i++)
		append(ring, integer(i), null, null, null);
	assert_int_equal(sequence[2], 2 * 2 + 1);
	assert_int_equal(sequence[5], 2 * 13 + 2);
	read_all(&place, &snapshot);
	assert_int_equal(snapshot.n_rows, 6);
	assert_int_equal(snapshot.head, 8);
	assert_int_equal(snapshot.skipped, 2);
	assert_int_equal(snapshot.stuck, 1);
	ring_snapshot_done(&snapshot);
	ring_close(ring);
	place_done(&place);
}

static void a_follower_waits_once_for_a_row_in_flight(void **state)
{
	struct ring_cursor cursor = { .from_start = true };
	struct ring_source source;
	struct place place;
	struct ring *ring;
	uint64_t *sequence;

	(void)state;
	place_init(&place);
	ring = make_ring(&place, 8);
	ring_source_own(ring, &source);
	for (int i = 0; i < 5; i++)
		append(ring, integer(i), null, null, null);
	sequence = map_words(&place) + RING_HEADER_BYTES / RING_WORD;
	sequence[2] = 2 * 2 + 1; /* its writer is within the row */
	sequence[3] = 0;         /* its writer has the number only */
	assert_int_equal(read_more(&source, UINT64_MAX, &cursor, 0), 2);
	sequence[2] = 2 * 2 + 2;
	sequence[3] = 2 * 3 + 2;
	assert_int_equal(read_more(&source, UINT64_MAX, &cursor, 2), 3);
	assert_int_equal(cursor.n_lost, 0);
	append(ring, integer(5), null, null, null);
	append(ring, integer(6), null, null, null);
	sequence[5] = 2 * 5 + 1; /* a writer that is killed */
	assert_int_equal(read_more(&source, UINT64_MAX, &cursor, 5), 0);
	assert_int_equal(read_more(&source, UINT64_MAX, &cursor, 6), 1);
	assert_int_equal(cursor.n_lost, 1);
	for (int i = 7; i < 14; i++) /* the slot is passed over: no further loss */
		append(ring, integer(i), null, null, null);
	assert_int_equal(read_more(&source, UINT64_MAX, &cursor, 7), 7);
	assert_int_equal(cursor.n_lost, 1);
	ring_close(ring);
	place_done(&place);
}

static void a_ring_without_a_free_slot_drops_rows(void **state)
{
	struct ring_snapshot snapshot;
	struct place place;
	struct ring *ring;
	uint64_t *sequence;

	(void)state;
	place_init(&place);
	ring = make_ring(&place, 8);
	sequence = map_words(&place) + RING_HEADER_BYTES / RING_WORD;
	for (uint64_t i = 0; i < 8; i++)
		sequence[i] = 2 * i + 1;
	assert_true(append(ring, null, null, null, null) == RING_DROPPED);
	read_all(&place, &snapshot);
	assert_int_equal(snapshot.n_rows, 0);
	assert_int_equal(snapshot.dropped, 1);
	assert_int_equal(snapshot.stuck, 8);
	ring_snapshot_done(&snapshot);
	ring_close(ring);
	place_done(&place);
}

/* ---- Files that are no rings ---- */

static void expect(const struct place *place, size_t offset, const void *bytes, size_t n, int error)
{
	struct ring_snapshot snapshot;
	char before[64];
	int fd = open_file(place, "1.ring");

	assert_int_equal(pread(fd, before, n, (off_t)offset), n);
	assert_int_equal(pwrite(fd, bytes, n, (off_t)offset), n);
	assert_int_equal(read_fd(fd, &snapshot), error);
	assert_int_equal(pwrite(fd, before, n, (off_t)offset), n);
	close(fd);
}

#define EXPECT(field, value, error)                                                                                    \
	expect(&place, offsetof(struct ring_header, field), &(__typeof__(((struct ring_header *)0)->field)){ value },  \
	       sizeof(((struct ring_header *)0)->field), error)

static void spoilt_headers_are_refused(void **state)
{
	struct ring_snapshot snapshot;
	struct place place;
	int fd;

	(void)state;
	place_init(&place);
	ring_close(make_ring(&place, 8));
	EXPECT(magic, 1, -EBADMSG);
	EXPECT(version, 2, -EPROTONOSUPPORT);
	EXPECT(n_columns, 65, -EBADMSG);
	EXPECT(n_columns, 3, -EBADMSG);
	EXPECT(n_columns, UINT32_MAX, -EBADMSG);
	EXPECT(n_rows, 0, -EBADMSG);
	EXPECT(n_rows, 9, -EBADMSG);
	EXPECT(n_rows, 16, -EBADMSG);
	EXPECT(n_rows, UINT64_MAX - 7, -EBADMSG);
	EXPECT(n_rows, UINT64_C(1) << 61, -EBADMSG);
	EXPECT(file_bytes, 0, -EBADMSG);
	EXPECT(columns[0].type, 0, -EBADMSG);
	EXPECT(columns[0].type, 5, -EBADMSG);
	EXPECT(columns[0].cell_bytes, 16, -EBADMSG);
	EXPECT(columns[3].cell_bytes, 0, -EBADMSG);
	EXPECT(columns[3].cell_bytes, 9, -EBADMSG);
	expect(&place, offsetof(struct ring_header, name), "", 1, -EBADMSG);
	expect(&place, offsetof(struct ring_header, name), "a\nb", 4, -EBADMSG);
	expect(&place, offsetof(struct ring_header, name), "a\xff", 3, -EBADMSG);
	expect(&place, offsetof(struct ring_header, name),
	       "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", RING_NAME_BYTES, -EBADMSG);
	fd = open_file(&place, "1.ring");
	assert_int_equal(read_fd(fd, &snapshot), 0);
	ring_snapshot_done(&snapshot);
	assert_int_equal(ftruncate(fd, RING_HEADER_BYTES + 8), 0);
	assert_int_equal(read_fd(fd, &snapshot), -EBADMSG);
	assert_int_equal(ftruncate(fd, 100), 0);
	assert_int_equal(read_fd(fd, &snapshot), -EBADMSG);
	close(fd);
	place_done(&place);
}

static void a_file_that_becomes_shorter_is_an_error(void **state)
{
	struct ring_snapshot snapshot;
	struct ring_source source;
	struct place place;
	struct ring *ring;
	int fd;

	(void)state;
	place_init(&place);
	ring = make_ring(&place, 8);
	for (int i = 0; i < 8; i++)
		append(ring, integer(i), null, null, null);
	ring_close(ring);
	fd = open_file(&place, "1.ring");
	assert_int_equal(ring_source_file(fd, &source), 0);
	assert_int_equal(ftruncate(fd, RING_HEADER_BYTES + 8), 0);
	assert_int_equal(ring_read(&source, &snapshot), -ENODATA);
	close(fd);
	place_done(&place);
}

/* Sequences that no writer makes are no rows. */
static void spoilt_sequences_are_no_rows(void **state)
{
	static const uint64_t wrong[] = { UINT64_MAX, UINT64_MAX - 1, 2 * 9 + 2, 2 * 16 + 2, UINT64_C(1) << 63 };
	struct ring_snapshot snapshot;
	struct place place;
	struct ring *ring;
	uint64_t *sequence;

	(void)state;
	place_init(&place);
	ring = make_ring(&place, 8);
	append(ring, null, null, null, null);
	sequence = map_words(&place) + RING_HEADER_BYTES / RING_WORD;
	for (size_t i = 0; i < N_ELEMENTS(wrong); i++) {
		sequence[0] = wrong[i];
		read_all(&place, &snapshot);
		assert_int_equal(snapshot.n_rows, 0);
		ring_snapshot_done(&snapshot);
	}
	ring_close(ring);
	place_done(&place);
}

static void impossible_tables_are_refused(void **state)
{
	struct ring_column many[RING_MAX_COLUMNS + 1];
	struct ring *ring;
	struct place place;
	struct ring_description description = { .name = "t", .columns = many, .n_columns = 1 };

	(void)state;
	place_init(&place);
	for (size_t i = 0; i < N_ELEMENTS(many); i++)
		many[i] = (struct ring_column){ .name = "c", .type = RING_TEXT, .bytes = 8 };
	description.n_columns = RING_MAX_COLUMNS + 1;
	assert_int_equal(ring_create(place.folder, &description, &ring), -EINVAL);
	description.n_columns = 1;
	many[0].bytes = 0;
	assert_int_equal(ring_create(place.folder, &description, &ring), -EINVAL);
	many[0].bytes = UINT32_MAX;
	assert_int_equal(ring_create(place.folder, &description, &ring), -EINVAL);
	many[0].bytes = 4096;
	description.n_rows = 1 << 20;
	assert_int_equal(ring_create(place.folder, &description, &ring), -EINVAL);
	description.n_rows = 8;
	many[0].name = "a\nb";
	assert_int_equal(ring_create(place.folder, &description, &ring), -EINVAL);
	many[0].name = "c";
	description.name = "";
	assert_int_equal(ring_create(place.folder, &description, &ring), -EINVAL);
	place_done(&place);
}

/* ---- Folders ---- */

static void planted_folders_are_refused(void **state)
{
	char parent[] = "/tmp/test-ring.XXXXXX", name[128], target[128];
	int fd;

	(void)state;
	assert_non_null(mkdtemp(parent));
	snprintf(name, sizeof name, "%s/probing-%u", parent, geteuid());
	snprintf(target, sizeof target, "%s/elsewhere", parent);
	assert_int_equal(mkdir(target, 0700), 0);
	assert_int_equal(symlink(target, name), 0);
	assert_int_equal(ring_folder_make(parent, &keep_all, &fd), -ELOOP);
	assert_int_equal(ring_folder_find(-1, parent, geteuid(), getpid(), 0, &fd), -ELOOP);
	assert_int_equal(unlink(name), 0);
	assert_int_equal(mkdir(name, 0700), 0);
	assert_int_equal(chmod(name, 0750), 0);
	assert_int_equal(ring_folder_make(parent, &keep_all, &fd), -EPERM);
	assert_int_equal(ring_folder_find(-1, parent, geteuid(), getpid(), 0, &fd), -EPERM);
	assert_int_equal(chmod(name, 0700), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(name, 65534, 65534), 0);
		assert_int_equal(ring_folder_make(parent, &keep_all, &fd), -EPERM);
		assert_int_equal(ring_folder_find(-1, parent, 0, getpid(), 0, &fd), -EPERM);
	}
	assert_int_equal(rmdir(name), 0);
	assert_int_equal(rmdir(target), 0);
	assert_int_equal(rmdir(parent), 0);
}

static int count(void *data, const char *file, int fd)
{
	assert_true(fd >= 0 && strstr(file, ".ring"));
	++*(int *)data;
	return 0;
}

static void only_rings_are_visited(void **state)
{
	struct place place;
	int n = 0, fd;

	(void)state;
	place_init(&place);
	ring_close(make_ring(&place, 8));
	ring_close(make_ring(&place, 8));
	assert_int_equal(symlinkat("1.ring", place.folder, "7.ring"), 0);
	assert_int_equal(mkfifoat(place.folder, "8.ring", 0600), 0);
	fd = openat(place.folder, "9.new", O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(ring_folder_each(place.folder, count, &n), 0);
	assert_int_equal(n, 2);
	place_done(&place);
}

/* Folders of processes that have ended are found, stay, and are removed when their time is over, or their room. */
static void ended_processes_are_kept_and_removed(void **state)
{
	const struct ring_retention short_time = { .days = 1, .max_bytes = UINT64_MAX },
				    little_room = { .days = 1000, .max_bytes = 0 };
	const struct timespec two_days_ago[2] = { { .tv_sec = time(NULL) - 2 * 86400 },
						  { .tv_sec = time(NULL) - 2 * 86400 } };
	struct place place;
	int fd, status;
	pid_t child;

	(void)state;
	place_init(&place);
	for (int i = 0; i < 2; i++) {
		child = fork();
		if (child == 0)
			_exit(ring_folder_make(place.parent, &keep_all, &fd) == 0 &&
					      make_ring(&(struct place){ .folder = fd }, 8)
				      ? 0
				      : 1);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
		assert_int_equal(ring_folder_find(-1, place.parent, geteuid(), child, 0, &fd), 0);
		close(fd);
		assert_int_equal(ring_folder_make(place.parent, &short_time, &fd), 0); /* which marks it */
		close(fd);
		assert_int_equal(ring_folder_find(-1, place.parent, geteuid(), child, 0, &fd), 0);
		if (i == 0)
			assert_int_equal(utimensat(fd, "ended", two_days_ago, 0), 0);
		close(fd);
		assert_int_equal(ring_folder_make(place.parent, i == 0 ? &short_time : &little_room, &fd), 0);
		close(fd);
		assert_int_equal(ring_folder_find(-1, place.parent, geteuid(), child, 0, &fd), -ENOENT);
	}
	/* never of one that lives */
	assert_int_equal(ring_folder_find(-1, place.parent, geteuid(), getpid(), ring_start_time(getpid()), &fd), 0);
	close(fd);
	place_done(&place);
}

/* ---- Many writers, some of which are killed ---- */

enum {
	N_PROCESSES = 4, /* the second half is killed and replaced, again and again */
	N_THREADS = 4,
	N_KILLS = 12,
	N_WRITERS = N_PROCESSES * N_THREADS,
	N_STARTS = (N_PROCESSES + N_KILLS) * N_THREADS, /* of threads */
	STRESS_ROWS = 1024,
	N_REMEMBERED = 4096, /* more than there are rows */
	KILL_AFTER_MS = 60,
	DIES_AFTER = 3000, /* rows of a thread that is made to die within one */
};

/* What writers have appended, by themselves; in memory that all processes share. */
struct writer {
	uint64_t n;                     /* rows, over all processes that were this writer */
	uint64_t numbers[N_REMEMBERED]; /* of row k, at k % N_REMEMBERED */
};

static struct stress {
	struct writer writers[N_WRITERS];
	uint32_t ends;
	uint64_t n_read, n_replaced, n_wrong;
	struct ring *ring;
	int fd;
} * stress;

static const struct ring_column stress_columns[] = {
	{ .name = "writer", .type = RING_INTEGER },   { .name = "k", .type = RING_INTEGER },
	{ .name = "half", .type = RING_REAL },        { .name = "text", .type = RING_TEXT, .bytes = 48 },
	{ .name = "checksum", .type = RING_INTEGER },
};

static int64_t checksum_of(int64_t writer, int64_t k, double half, const char *text, size_t n_text)
{
	uint64_t hash = hash_bytes(HASH_START, &writer, sizeof writer);

	hash = hash_bytes(hash, &k, sizeof k);
	hash = hash_bytes(hash, &half, sizeof half);
	return (int64_t)hash_bytes(hash, text, n_text);
}

static void write_row(int64_t writer, int64_t k, const char *instead)
{
	double half = (double)k / 2;
	char text[48];
	int n = snprintf(text, sizeof text, "%lld wrote %0*lld", (long long)writer, (int)(k % 30) + 1, (long long)k);
	const struct ring_value values[] = {
		{ .kind = RING_IS_INTEGER, .integer = writer },
		{ .kind = RING_IS_INTEGER, .integer = k },
		{ .kind = RING_IS_REAL, .real = half },
		{ .kind = RING_IS_TEXT, .text = instead ? instead : text, .n_text = (size_t)n },
		{ .kind = RING_IS_INTEGER, .integer = checksum_of(writer, k, half, text, (size_t)n) },
	};
	uint64_t number = ring_append(stress->ring, values);

	if (number != RING_DROPPED) {
		stress->writers[writer].numbers[k % N_REMEMBERED] = number;
		__atomic_store_n(&stress->writers[writer].n, (uint64_t)k + 1, __ATOMIC_RELEASE);
	}
}

/* Returns the number of rows that are not as they were written, or not in their writer's order. */
static uint64_t judge(const struct ring_snapshot *snapshot)
{
	int64_t last_k[N_WRITERS];
	uint64_t n_wrong = 0;

	memset(last_k, 0xff, sizeof last_k);
	for (size_t row = 0; row < snapshot->n_rows; row++) {
		struct ring_value cells[5];
		int64_t writer;

		for (size_t i = 0; i < 5; i++)
			ring_cell(snapshot, row, i, &cells[i]);
		writer = cells[0].integer;
		if (writer < 0 || writer >= N_WRITERS || cells[1].integer <= last_k[writer] ||
		    checksum_of(writer, cells[1].integer, cells[2].real, cells[3].text, cells[3].n_text) !=
			    cells[4].integer)
			n_wrong++;
		else
			last_k[writer] = cells[1].integer;
		if (row > 0 && ring_row_number(snapshot, row) <= ring_row_number(snapshot, row - 1))
			n_wrong++;
	}
	return n_wrong;
}

static int read_until_end(const struct ring_source *source)
{
	struct ring_snapshot snapshot;

	while (!__atomic_load_n(&stress->ends, __ATOMIC_RELAXED)) {
		int r = ring_read(source, &snapshot);

		if (r < 0)
			return r;
		__atomic_fetch_add(&stress->n_read, snapshot.n_rows, __ATOMIC_RELAXED);
		__atomic_fetch_add(&stress->n_replaced, snapshot.replaced, __ATOMIC_RELAXED);
		__atomic_fetch_add(&stress->n_wrong, judge(&snapshot), __ATOMIC_RELAXED);
		ring_snapshot_done(&snapshot);
	}
	return 0;
}

/* One reader is a process of its own that reads the file, the other a thread beside writers. */
static pid_t start_reader(void)
{
	struct ring_source source;
	pid_t pid;

	assert_int_equal(ring_source_file(stress->fd, &source), 0);
	pid = fork();
	if (pid == 0)
		_exit(read_until_end(&source) < 0);
	assert_true(pid > 0);
	return pid;
}

static void *read_rows(void *unused)
{
	struct ring_source source;

	(void)unused;
	ring_source_own(stress->ring, &source);
	if (read_until_end(&source) < 0)
		_exit(2);
	return NULL;
}

struct thread {
	pthread_t thread;
	int64_t writer;
	const char *deadly; /* a text that ends the process when it is read; NULL: it lives on */
};

static void *write_rows(void *data)
{
	const struct thread *thread = data;
	/* A killed predecessor may have written the next row, and not counted it: its k is never used again. */
	int64_t first = (int64_t)stress->writers[thread->writer].n + 1;

	for (int64_t k = first; !__atomic_load_n(&stress->ends, __ATOMIC_RELAXED); k++)
		write_row(thread->writer, k, k - first == DIES_AFTER ? thread->deadly : NULL);
	return NULL;
}

/* @dies: one of its threads dies within a row. */
static void run_process(int process, bool dies)
{
	struct thread threads[N_THREADS];
	pthread_t reader;
	const char *deadly = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
	signal(SIGSEGV, SIG_DFL);
	for (int i = 0; i < N_THREADS; i++) {
		threads[i] = (struct thread){ .writer = process * N_THREADS + i,
					      .deadly = dies && i == 0 ? deadly : NULL };
		if (pthread_create(&threads[i].thread, NULL, write_rows, &threads[i]) != 0)
			_exit(1);
	}
	if (process == 0 && pthread_create(&reader, NULL, read_rows, NULL) != 0)
		_exit(1);
	for (int i = 0; i < N_THREADS; i++)
		pthread_join(threads[i].thread, NULL);
	if (process == 0)
		pthread_join(reader, NULL);
	_exit(0);
}

static pid_t start_process(int process, bool dies)
{
	pid_t pid = fork();

	if (pid == 0)
		run_process(process, dies);
	assert_true(pid > 0);
	return pid;
}

static void end_process(pid_t pid, bool may_be_killed)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true((WIFEXITED(status) && WEXITSTATUS(status) == 0) || (may_be_killed && WIFSIGNALED(status)));
}

static void kill_and_replace(pid_t writers[N_PROCESSES])
{
	for (int i = 0; i < N_KILLS; i++) {
		int victim = N_PROCESSES / 2 + i % (N_PROCESSES / 2);

		nanosleep(&(struct timespec){ .tv_nsec = KILL_AFTER_MS * 1000000 }, NULL);
		kill(writers[victim], SIGKILL);
		end_process(writers[victim], true);
		writers[victim] = start_process(victim, i % 3 == 0);
	}
}

/* Each row that a writer counted, and that is not evicted, is there. Returns the number of rows counted. */
static uint64_t find_lost(const struct ring_snapshot *snapshot)
{
	uint64_t oldest = snapshot->head - snapshot->n_slots, n_rows = 0;
	uint32_t *row_of = calloc(STRESS_ROWS, sizeof *row_of); /* of number - oldest; plus 1 */

	assert_non_null(row_of);
	for (size_t row = 0; row < snapshot->n_rows; row++)
		row_of[ring_row_number(snapshot, row) - oldest] = (uint32_t)row + 1;
	for (int64_t writer = 0; writer < N_WRITERS; writer++) {
		const struct writer *of = &stress->writers[writer];

		for (uint64_t k = of->n > N_REMEMBERED ? of->n - N_REMEMBERED : 0; k < of->n; k++) {
			uint64_t number = of->numbers[k % N_REMEMBERED];
			struct ring_value value;

			if (number < oldest || number == 0)
				continue;
			assert_true(number < snapshot->head);
			assert_true(row_of[number - oldest] > 0);
			ring_cell(snapshot, row_of[number - oldest] - 1, 0, &value);
			assert_int_equal(value.integer, writer);
		}
		n_rows += of->n;
	}
	free(row_of);
	return n_rows;
}

static void killed_writers_spoil_no_row(void **state)
{
	const struct ring_description description = {
		.name = "stress", .columns = stress_columns, .n_columns = 5, .n_rows = STRESS_ROWS
	};
	pid_t writers[N_PROCESSES], reader;
	struct ring_snapshot snapshot;
	struct place place;
	uint64_t n_counted;

	(void)state;
	place_init(&place);
	stress = mmap(NULL, sizeof *stress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(stress != MAP_FAILED);
	assert_int_equal(ring_create(place.folder, &description, &stress->ring), 0);
	stress->fd = open_file(&place, "1.ring");
	for (int i = 0; i < N_PROCESSES; i++)
		writers[i] = start_process(i, i == N_PROCESSES - 1);
	reader = start_reader();
	kill_and_replace(writers);
	__atomic_store_n(&stress->ends, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < N_PROCESSES; i++)
		end_process(writers[i], i >= N_PROCESSES / 2);
	end_process(reader, false);

	assert_int_equal(read_fd(stress->fd, &snapshot), 0);
	assert_int_equal(snapshot.replaced, 0);
	assert_int_equal(judge(&snapshot), 0);
	n_counted = find_lost(&snapshot);
	print_message("%llu rows, %llu skipped, %llu stuck; read %llu, %llu replaced meanwhile\n",
		      (unsigned long long)snapshot.head, (unsigned long long)snapshot.skipped,
		      (unsigned long long)snapshot.stuck, (unsigned long long)stress->n_read,
		      (unsigned long long)stress->n_replaced);
	assert_int_equal(stress->n_wrong, 0);
	assert_true(stress->n_read > 0 && snapshot.n_rows > 0);
	/* Some died within a row; none lost more than a slot for each of its threads. */
	assert_in_range(snapshot.stuck, 1, N_STARTS);
	/* Each number is a row that its writer counted (with one more at each start), was skipped, or is a killed thread's. */
	assert_in_range(snapshot.head - snapshot.skipped + N_STARTS, n_counted, n_counted + 2 * N_STARTS);
	ring_snapshot_done(&snapshot);
	ring_close(stress->ring);
	close(stress->fd);
	place_done(&place);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_come_back),
		cmocka_unit_test(what_does_not_fit_is_null_and_counted),
		cmocka_unit_test(texts_are_cut_between_characters),
		cmocka_unit_test(new_rows_evict_the_oldest),
		cmocka_unit_test(a_follower_gets_each_row_once),
		cmocka_unit_test(a_follower_waits_once_for_a_row_in_flight),
		cmocka_unit_test(a_reader_finds_rows_under_a_fast_writer),
		cmocka_unit_test(claimed_slots_are_passed_over),
		cmocka_unit_test(a_ring_without_a_free_slot_drops_rows),
		cmocka_unit_test(spoilt_headers_are_refused),
		cmocka_unit_test(a_file_that_becomes_shorter_is_an_error),
		cmocka_unit_test(spoilt_sequences_are_no_rows),
		cmocka_unit_test(impossible_tables_are_refused),
		cmocka_unit_test(planted_folders_are_refused),
		cmocka_unit_test(only_rings_are_visited),
		cmocka_unit_test(ended_processes_are_kept_and_removed),
		cmocka_unit_test(killed_writers_spoil_no_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
