/* SPDX-License-Identifier: MIT */
/*
 * store.c - the life of a recording file: created, filled batch by batch, finished.
 *
 * Invariants:
 * 1. A new file in place of the old one has the whole schema or is removed
 *    again; then the old file is back.
 * 2. After store_commit() has returned 0, its rows survive any end of this
 *    process: SQLite's write-ahead log is in the kernel's hands by then.
 *    (Not a crash of the machine: the log is synced at checkpoints only.)
 * 3. A batch is complete or absent. SQLite may roll a transaction back by itself
 *    (full disk, no memory); the following rows must not become
 *    transactions of their own, so the batch remembers that and refuses them.
 * 4. A file that is finished, or changed and checkpointed, has a checksum (checksum.c).
 * 5. A finished file has no log beside it, unless a reader
 *    was active: then the log remains, and is part of the recording.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "src/catalogue/catalogue.h"
#include "src/store/files.h"
#include "src/store/metric_table.h"
#include "src/store/series_private.h"
#include "src/store/vfs.h"

enum {
	BUSY_MS = 1000,             /* wait this long for another process's lock */
	FINISH_BUSY_MS = 300,       /* at the end: giving up loses nothing */
	GIVE_BACK_BYTES = 16 << 20, /* of the pages of rows that have moved into blocks */
};

#define TEXT_OF(number) TEXT_OF_(number)
#define TEXT_OF_(number) #number

static const char setup_sql[] = "PRAGMA page_size = " TEXT_OF(
	STORE_PAGE_BYTES) ";"
			  "PRAGMA auto_vacuum = INCREMENTAL;" /* only an empty file can be switched */
			  "PRAGMA synchronous = OFF;"
			  "PRAGMA journal_mode = WAL;"
			  "PRAGMA cache_size = -4096;";

/*
 * Set the ids in the transaction that creates the tables: if the process is killed before, the database stays empty
 * instead of half a recording.
 */
static const char identity_sql[] = "PRAGMA application_id = " TEXT_OF(
	STORE_APPLICATION_ID) ";"
			      "PRAGMA user_version = " TEXT_OF(STORE_SCHEMA_VERSION) ";";

/* A reader that blocks the checkpoint is no error. */
static int unless_busy(int r)
{
	return r == -EBUSY ? 0 : r;
}

/* Checkpoint and truncate the log; -EBUSY: another process reads. */
static int checkpoint(sqlite3 *db)
{
	return store_errno(db, sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL));
}

static int create_schema(sqlite3 *db)
{
	int r;

	r = store_exec(db, setup_sql);
	if (r == 0)
		r = store_exec(db, "BEGIN");
	if (r == 0)
		r = store_exec(db, identity_sql);
	if (r == 0)
		r = store_exec(db, catalogue_schema_sql);
	if (r == 0)
		r = store_exec(db, "COMMIT");
	if (r == 0) /* from here on the file itself is an empty recording */
		r = unless_busy(checkpoint(db));
	if (r == 0) /* samples need not wait for fsync */
		r = store_exec(db, "PRAGMA synchronous = NORMAL");
	return r;
}

/* Close all files; keep the place, which is needed to remove them. */
static void close_files(struct store *store)
{
	writer_finalize(store);
	sqlite3_close(TAKE(store->db));
	series_free(TAKE(store->series));
	write_vfs_dismiss(store->place.folder);
	closep(&store->lock_fd);
	store->lock_fd = -1;
}

static int connect(const char *name, sqlite3 **ret)
{
	sqlite3 *db = NULL;
	int code, r;

	code = sqlite3_open_v2(name, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
			       WRITE_VFS);
	if (code == SQLITE_OK)
		code = sqlite3_busy_timeout(db, BUSY_MS);
	if (code == SQLITE_OK)
		code = series_register(db);
	if (code == SQLITE_OK) {
		*ret = db;
		return 0;
	}
	r = db ? store_errno(db, code) : -ENOMEM;
	sqlite3_close(db);
	return r;
}

/* Open exactly the locked file, not another one of the same name. */
static int open_database(struct store *store)
{
	CLEANUP(freep) char *name = NULL;
	int r;

	r = store_errno(NULL, write_vfs_register());
	if (r >= 0)
		r = write_vfs_admit(store->place.folder, store->place.name, store->lock_fd, &name);
	return r < 0 ? r : connect(name, &store->db);
}

static int fill_new(struct store *store)
{
	int r;

	r = open_database(store);
	if (r < 0)
		return r;
	r = create_schema(store->db);
	if (r < 0)
		return r;
	return writer_prepare(store);
}

#define NOWHERE ((struct place){ .folder = -1 })

/* A store without files. */
static struct store *new_store(void)
{
	struct store *store = calloc(1, sizeof *store);

	if (store) {
		store->lock_fd = -1;
		store->place = NOWHERE;
	}
	return store;
}

/* Create a file under the recorder's lock and fill it. Takes ownership of the place on success. */
static int create_new(struct place *place, int (*fill)(struct store *store), struct store **ret)
{
	CLEANUP(store_closep) struct store *store = new_store();
	int r;

	if (!store)
		return -ENOMEM;
	r = files_create(place, &store->lock_fd);
	if (r < 0)
		return r;
	store->place = *place;
	r = fill(store);
	if (r < 0) {
		/* Close before removing: SQLite writes its log on closing. */
		close_files(store);
		files_remove(place);
		store->place = NOWHERE;
		return r;
	}
	*place = NOWHERE;
	*ret = TAKE(store);
	return 0;
}

int store_create(const char *path, bool *ret_kept, struct store **ret)
{
	CLEANUP(place_done) struct place place = NOWHERE;
	bool kept = false;
	int r;

	r = place_find(path, &place);
	if (r >= 0)
		r = files_keep_old(&place, &kept);
	if (r < 0)
		return r;
	r = create_new(&place, fill_new, ret);
	if (r < 0) {
		/* Report the first error, even if restoring also fails. */
		if (kept)
			files_restore_old(&place);
		return r;
	}
	if (ret_kept)
		*ret_kept = kept;
	return 0;
}

/* The file gets its name only when it is complete, so no rollback is needed. */
static int fill_plain(struct store *store)
{
	static const char sql[] = "PRAGMA page_size = " TEXT_OF(
		STORE_PAGE_BYTES) "; PRAGMA journal_mode = OFF;"
				  "PRAGMA synchronous = OFF; PRAGMA application_id = " TEXT_OF(
					  STORE_APPLICATION_ID) ";"
								"PRAGMA user_version = " TEXT_OF(STORE_PLAIN_VERSION);
	int r;

	r = open_database(store);
	return r < 0 ? r : store_exec(store->db, sql);
}

int store_create_plain(const char *path, struct store **ret)
{
	CLEANUP(place_done) struct place place = NOWHERE;
	int r;

	r = place_find(path, &place);
	return r < 0 ? r : create_new(&place, fill_plain, ret);
}

int store_set_mode(struct store *store, mode_t mode)
{
	return files_set_mode(&store->place, store->lock_fd, mode);
}

/* Until the commit, keep all changed pages in memory. If the process is killed, the file stays as it was. */
static int open_for_change(struct store *store)
{
	struct stat st;
	int r;

	r = open_database(store);
	if (r >= 0 && fstat(store->lock_fd, &st) == 0 && st.st_uid != geteuid())
		/*
		 * The file's owner could truncate NAME-shm while we use it; exclusive mode keeps the index in our
		 * memory.
		 */
		r = store_exec(store->db, "PRAGMA locking_mode = EXCLUSIVE");
	if (r >= 0)
		r = reader_check(store->db);
	if (r >= 0)
		r = store_exec(store->db, "PRAGMA cache_spill = OFF");
	if (r >= 0)
		r = checksum_is_there(store, &store->has_checksum);
	if (r < 0)
		return r;
	return writer_prepare(store);
}

int store_open(const char *path, struct store **ret)
{
	CLEANUP(store_closep) struct store *store = NULL;
	struct stat st;
	int r;

	if (stat(path, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -ENXIO;
	store = new_store();
	if (!store)
		return -ENOMEM;
	r = place_find_file(path, &store->place);
	if (r >= 0)
		r = files_lock(&store->place, &store->lock_fd);
	if (r >= 0)
		r = open_for_change(store);
	if (r < 0)
		return r;

	*ret = TAKE(store);
	return 0;
}

int store_begin(struct store *store)
{
	int r;

	r = store_exec(store->db, "BEGIN IMMEDIATE");
	if (r < 0)
		return r;
	store->in_batch = true;
	store->batch_error = 0;
	r = store->has_checksum ? checksum_break(store) : 0;
	if (r < 0)
		store_rollback(store);
	return r;
}

void store_rollback(struct store *store)
{
	store->in_batch = false;
	store->batch_error = 0;
	store->blocks_from = 0; /* those that were dropped are back */
	series_forget(store);
	/*
	 * After an error SQLite may have rolled back itself. Ignore an error here: it follows from the first, and the
	 * log has no commit.
	 */
	if (!sqlite3_get_autocommit(store->db))
		store_exec(store->db, "ROLLBACK");
}

int store_commit(struct store *store)
{
	int r;

	r = store->batch_error;
	if (r == 0)
		r = series_flush(store);
	if (r == 0)
		r = metric_pack_due(store);
	if (r == 0)
		r = store_exec(store->db, "COMMIT");
	if (r < 0) {
		store_rollback(store);
		return r;
	}
	store->in_batch = false;
	return 0;
}

/* Merge database and log into one file. */
static int merge_log(struct store *store)
{
	int r;

	sqlite3_busy_timeout(store->db, FINISH_BUSY_MS);
	r = checkpoint(store->db);
	if (r < 0)
		return unless_busy(r);
	return unless_busy(store_exec(store->db, "PRAGMA journal_mode = DELETE"));
}

/*
 * Write the last samples as one block, and many rows of metrics as some, in a transaction of their own. If that fails, for example on a
 * full disk, they stay as they are.
 */
static void end_series(struct store *store)
{
	int r;

	if (store_begin(store) < 0)
		return;
	r = series_end(store);
	if (r >= 0)
		r = metric_pack_all(store);
	if (r < 0)
		store_rollback(store);
	else if (store_commit(store) == 0 && r > 0)
		(void)store_give_back(store, GIVE_BACK_BYTES); /* else the file has free pages, which does no harm */
}

/* At once, for a process that waits for the end to read the file: readers keep the log beside it. */
static int mark_and_seal(struct store *store, uint64_t ended_ns)
{
	int r;

	r = store_begin(store);
	if (r < 0)
		return r;
	r = writer_end_run(store, ended_ns);
	if (r == 0)
		r = checksum_make(store);
	if (r == 0)
		return store_commit(store);
	store_rollback(store);
	return r;
}

/* Perhaps only the log has no space left. */
static int mark_end(struct store *store, uint64_t ended_ns)
{
	int r = mark_and_seal(store, ended_ns);

	if (r < 0 && checkpoint(store->db) == 0)
		r = mark_and_seal(store, ended_ns);
	return r;
}

int store_finish(struct store *store, uint64_t ended_ns)
{
	int r = 0;

	if (store->in_batch)
		r = store_commit(store);
	if (r == 0)
		end_series(store);
	if (r == 0)
		r = mark_end(store, ended_ns);
	writer_finalize(store);
	if (r == 0)
		r = merge_log(store);
	store_close(store);
	return r;
}

int store_checkpoint(struct store *store)
{
	int r;

	r = store->has_checksum ? checksum_make(store) : 0;
	writer_finalize(store);
	return r < 0 ? r : merge_log(store);
}

int store_checksum(struct store *store)
{
	end_series(store);
	return checksum_make(store);
}

sqlite3 *store_connection(const struct store *store)
{
	return store->db;
}

void store_close(struct store *store)
{
	if (!store)
		return;
	close_files(store);
	place_done(&store->place);
	free(store);
}

void store_closep(struct store **store)
{
	store_close(*store);
}

bool store_is_written(const char *path)
{
	return files_is_locked(path);
}

int64_t store_bytes(const struct store *store)
{
	struct stat st;

	if (fstat(store->lock_fd, &st) < 0)
		return 0;
	return st.st_size + files_wal_bytes(sqlite3_db_filename(store->db, "main"));
}
