/* SPDX-License-Identifier: MIT */
/* ring.h - tables in shared memory: written from inside a process, read from outside.
 *
 * A ring has a fixed number of rows; new rows evict the oldest. Any number of threads append without locks and without
 * waiting. Readers only read: they see whole rows, and never delay a writer. A ring is a file, so it can be read while
 * its process hangs and after it has ended. Only the process that created a ring writes to it.
 *
 * The writer is loaded into other processes: libc only.
 */
#ifndef PROBING_RING_H
#define PROBING_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	RING_MAX_COLUMNS = 64,
	RING_NAME_BYTES = 64,   /* of a table, its NUL included */
	RING_COLUMN_BYTES = 56, /* of a column's name, the same way */
	RING_MAX_CELL_BYTES = 4096,
	RING_ROWS_UNIT = 8, /* numbers of rows are multiples of it */
	RING_ROWS = 10000,  /* where nobody says another number */
	RING_MAX_FILE_BYTES = 128 << 20,
};

enum ring_type {
	RING_INTEGER = 1,
	RING_REAL,
	RING_NUMBER, /* each cell is an integer or a double */
	RING_TEXT,   /* UTF-8 */
};

struct ring_column {
	const char *name; /* UTF-8 without control characters */
	enum ring_type type;
	uint32_t bytes; /* of a text: longer ones are cut; rounded up to whole words. Unused for numbers */
};

struct ring_description {
	const char *name;
	const struct ring_column *columns;
	size_t n_columns;
	uint64_t n_rows; /* rounded up; 0: RING_ROWS */
};

struct ring_value {
	enum { RING_NULL, RING_IS_INTEGER, RING_IS_REAL, RING_IS_TEXT } kind;
	union {
		int64_t integer;
		double real;
		const char *text; /* n_text bytes; a NUL ends it, too */
	};
	size_t n_text;
};

/* ---- Writing ---- */

struct ring;

/*
 * ring_create - create the file of a ring, and map it.
 * @folder: the process' folder (ring_folder_make()); borrowed. The file gets the next free number as its name.
 * @ret:    ended with ring_close().
 * All memory is allocated at once: a full file system is an error here, never a signal in ring_append().
 * Errors: -EINVAL a name or size is not allowed; -ENOSPC; -ENOMEM; what openat(2), mmap(2) and posix_fallocate(3) report.
 */
int ring_create(int folder, const struct ring_description *description, struct ring **ret);

/* Unmap it; the file remains. NULL is allowed. */
void ring_close(struct ring *ring);

uint64_t ring_file_bytes(const struct ring *ring);

/* Remove the file; readers that have it open keep it. Negative errno. */
int ring_remove(const struct ring *ring, int folder);

/*
 * ring_append - append a row, with the time of now. Any thread; not a signal handler that interrupts it.
 * @values: one for each column. A value that its column has no type for becomes NULL and is counted.
 * Returns the row's number; RING_DROPPED: all slots tried were taken by writers that are stopped (counted).
 */
#define RING_DROPPED UINT64_MAX
uint64_t ring_append(struct ring *ring, const struct ring_value *values);

/* ring_append_at - the same with another time, CLOCK_MONOTONIC in ns: for a caller that has just read that clock. */
uint64_t ring_append_at(struct ring *ring, uint64_t time_ns, const struct ring_value *values);

/* ring_count_unfit - count values that the caller could not even make a struct ring_value of. */
void ring_count_unfit(struct ring *ring, uint64_t n);

/* ---- Reading ---- */

/* Bytes of a ring: of a file, or of the memory of this process. */
struct ring_source {
	int (*read)(const struct ring_source *source, uint64_t offset, void *to,
		    size_t n_bytes); /* all, or negative errno */
	uint64_t n_bytes;
	int fd;
	const uint64_t *words;
};

/* A file, by pread(2): one that becomes shorter is an error, not a signal. Negative errno. @fd: borrowed. */
int ring_source_file(int fd, struct ring_source *ret);
/* Mapped memory, word by word. @words: borrowed. */
void ring_source_memory(const void *words, uint64_t n_bytes, struct ring_source *ret);
/* A ring that this process writes to; borrowed. */
void ring_source_own(const struct ring *ring, struct ring_source *ret);

/* What a ring was at one moment. */
struct ring_snapshot {
	char name[RING_NAME_BYTES];
	size_t n_columns;
	struct {
		char name[RING_COLUMN_BYTES];
		enum ring_type type;
		uint32_t cell_bytes;
	} columns[RING_MAX_COLUMNS];
	uint64_t n_slots;
	int64_t realtime_offset_ns;
	uint64_t start_time;
	int32_t pid;
	/* Counts; skipped, dropped and unfit as the writers say. */
	uint64_t head, skipped, dropped, unfit;
	uint64_t stuck;    /* slots that are being written; of an ended process: whose writers were killed */
	uint64_t replaced; /* rows evicted while they were read */
	size_t n_rows;     /* whole rows */
	/* Private: the numbers that were read, from the first on. */
	uint64_t first, end;
	size_t n_window;
	uint64_t *sequence; /* of each number's slot */
	uint32_t *places;   /* of each row in the window, oldest first */
	uint64_t *words;    /* the arrays behind the sequences, of the window */
};

/*
 * ring_describe - what the header says: name, columns, counts; no rows.
 * Errors: -EBADMSG it is no ring, or violates the rules; -EPROTONOSUPPORT another version; -ENODATA the file became
 * shorter; what read(2) reports.
 */
int ring_describe(const struct ring_source *source, struct ring_snapshot *ret);

/*
 * ring_read - whole rows as of one moment, oldest first. @ret: ended with ring_snapshot_done(). Errors: those of
 * ring_describe(); -ENOMEM.
 */
int ring_read(const struct ring_source *source, struct ring_snapshot *ret);

/* How far a reader that follows a ring has come. All zero: it begins with the oldest row. */
struct ring_cursor {
	bool from_start;  /* rows that were evicted before the first call are lost, too */
	bool is_begun;    /* private, as is what follows but n_lost */
	uint64_t next;    /* number of the next row */
	uint64_t head;    /* when it was read last */
	uint64_t skipped; /* numbers without a row that were accounted for */
	uint64_t n_lost;  /* rows that were evicted before they were read, or whose writers were stopped within them */
};

/*
 * ring_read_next - the same for the rows since the last call. A row that is being written, and those after it, are left
 * to the next call; one that is still being written then is lost.
 * @most: numbers to read at most.
 */
int ring_read_next(const struct ring_source *source, uint64_t most, struct ring_cursor *cursor,
		   struct ring_snapshot *ret);

void ring_snapshot_done(struct ring_snapshot *snapshot);

uint64_t ring_row_number(const struct ring_snapshot *snapshot, size_t row);
uint64_t ring_row_time_ns(const struct ring_snapshot *snapshot, size_t row); /* CLOCK_MONOTONIC */
/* @ret: a text is valid UTF-8 and borrows from the snapshot. */
void ring_cell(const struct ring_snapshot *snapshot, size_t row, size_t column, struct ring_value *ret);

/* ---- Folders ---- */

/*
 * Rings are in PARENT/probing-UID/PID.STARTTIME/N.ring. PARENT is $PROBING_DATA_DIR of the process, else /dev/shm.
 * A folder that is a link, is not the user's, or that others may enter, is refused.
 */
#define RING_PARENT "/dev/shm"

struct ring_retention {
	double days;        /* after its process is found to have ended a folder stays for so long */
	uint64_t max_bytes; /* of all ended processes; the oldest go first */
};

/*
 * ring_folder_make - the folder of this process, created if necessary; folders of ended processes beyond the retention
 * are removed.
 * @retention: NULL: none is removed.
 * @ret:       a descriptor. Errors: -ELOOP a link or no folder is in its place; -EPERM another user's, or open to others; what
 * mkdirat(2) and openat(2) report. ring_folder_explain() has the sentence.
 */
int ring_folder_make(const char *parent, const struct ring_retention *retention, int *ret);

/*
 * ring_folder_find - the folder of a process.
 * @root:   a folder's descriptor that parent is looked up in, as in a chroot; -1: the root.
 * @uid:    its owner.
 * @start:  its start time; 0: the latest process that had this PID.
 * Errors: -ENOENT there is none; those of ring_folder_make().
 */
int ring_folder_find(int root, const char *parent, uid_t uid, pid_t pid, uint64_t start, int *ret);

/* ring_folder_each - each ring in a folder, by its descriptor, which is borrowed for the call. Links, and files of other
 * owners, are passed over. Returns the first nonzero result of visit(); negative errno. */
int ring_folder_each(int folder, int (*visit)(void *data, const char *file, int fd), void *data);

/* ring_folder_explain - a clause for an error of the two above. */
void ring_folder_explain(int error, const char *parent, uid_t uid, char *to, size_t n_bytes);

/* ring_start_time - of a process in this PID namespace; 0: it has ended. Source: proc_pid_stat(5), field 22. */
uint64_t ring_start_time(pid_t pid);

#endif
