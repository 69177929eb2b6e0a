/* SPDX-License-Identifier: MIT */
/*
 * read_vfs.c - a SQLite VFS that reads a database and its log, and can change nothing.
 *
 * SQLite's own VFS writes even for a read-only connection: it creates the index of the log (NAME-shm) or
 * maps an existing one, which another user may have planted or may truncate meanwhile. Here
 *
 * 1. every file is opened read-only, without following links and without waiting (FIFOs), and must be regular;
 *    a file beside the database counts only if beside_belongs() accepts it;
 * 2. nothing is created, written, truncated or removed: there is no code for it;
 * 3. the index of the log is made in private memory, from the log. SQLite does that by itself if xShmMap returns
 *    SQLITE_READONLY_CANTINIT (wal.c, walBeginShmUnreliable), and checks in each transaction whether the log has grown;
 * 4. a concurrent recorder must neither checkpoint its log into the database below a reader nor write the
 *    log from its start again. Both take locks on bytes of NAME-shm, so a reader holds these (OFD locks, shared,
 *    through a read-only descriptor) for its transaction: byte 123 (WAL_READ_LOCK(0)) keeps the database unchanged,
 *    byte 127 (WAL_READ_LOCK(4)) the log. Without a NAME-shm there is no writer;
 * 5. a recorder whose log is completely checkpointed may have decided already to write it from its start again. Only
 *    NAME-shm shows that, by another salt than the log's. Such a log is read as an empty one;
 * 6. so is a log whose first transaction since then is not complete. SQLite would make an index for it, and never see
 *    that transaction complete (wal.c, walIndexRecover() keeps no checksum of a log without one). It makes the index
 *    before it requests a lock, so the locks are taken as soon as it requests the log's size. If the writer was killed
 *    then, the log itself shows that it has no complete transaction (log_check.c).
 *
 * Temporary files (sorting) are SQLite's usual ones.
 * Source: SQLite 3.40, os_unix.c "Shared memory", wal.c, pager.h "Locking bytes"; sqlite.org/walformat.html.
 */
#include "src/store/vfs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "src/store/beside.h"

/* Positions of SQLite's locks: in a database from 1 GiB on, in NAME-shm inside the index header. */
#define PENDING_BYTE INT64_C(0x40000000)
enum { PENDING_BYTES = 1, RESERVED_AT = 1, SHARED_AT = 2, SHARED_BYTES = 510 };
enum { INDEX_LOCKS = 120, READ_LOCK_0 = 3, READ_LOCK_4 = 7, LIVE_LOCK = 8 };

/*
 * Offsets in NAME-shm and in the log: the salt, which changes each time the log starts again, and the number of
 * complete frames.
 */
enum {
	INDEX_BYTES = 48,
	IS_MADE_IN_INDEX = 12,
	FRAMES_IN_INDEX = 16,
	SALT_IN_INDEX = 32,
	SALT_IN_LOG = 16,
	SALT_BYTES = 8
};

struct read_file {
	sqlite3_file base;
	const char *name;        /* owned by SQLite while the file is open */
	int fd;                  /* -1: the file does not exist and reads as empty */
	int index_fd;            /* database only: NAME-shm, for locks; -1: none */
	int lock;                /* SQLITE_LOCK_... */
	int error;               /* errno of the last failed call */
	struct read_file *other; /* the database's log or the log's database; NULL: not open */
	bool is_log;
	bool is_old;  /* a log that is completely in the database */
	bool has_log; /* a database with a locked log */
	struct {      /* a log without a writer, the last time that it was read for a complete transaction */
		bool is_known, has_transaction;
		off_t n_bytes;
		struct timespec changed;
	} checked;
};

static sqlite3_vfs *usual_vfs(void)
{
	return sqlite3_vfs_find(NULL);
}

/* ---- Find files ---- */

/* Returns a descriptor or negative errno; -ENXIO: no regular file. */
static int open_regular(const char *name, struct stat *ret)
{
	CLEANUP(closep) int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);

	if (fd < 0 || fstat(fd, ret) < 0)
		return errno == ELOOP ? -ENXIO : -errno;
	return S_ISREG(ret->st_mode) ? TAKE_FD(fd) : -ENXIO;
}

/* Open a file beside a database. -ENOENT: none belongs to it. */
static int open_beside(const char *name)
{
	CLEANUP(freep) char *path = strndup(name, strlen(name) - strlen(beside_suffix(name)));
	CLEANUP(closep) int fd = -1;
	struct stat database, file;

	if (!path)
		return -ENOMEM;
	if (lstat(path, &database) < 0)
		return -errno;
	fd = open_regular(name, &file);
	if (fd < 0)
		return fd == -ENXIO ? -ENOENT : fd;
	return beside_belongs(&database, &file) ? TAKE_FD(fd) : -ENOENT;
}

static int open_index(const char *name)
{
	CLEANUP(freep) char *index = NULL;
	int fd;

	if (asprintf(&index, "%s" BESIDE_SHM, name) < 0) {
		index = NULL;
		return -ENOMEM;
	}
	fd = open_beside(index);
	return fd == -ENOENT ? -1 : fd;
}

/* ---- Open files ---- */

static int close_file(sqlite3_file *base)
{
	struct read_file *file = (struct read_file *)base;

	if (file->other)
		file->other->other = NULL;
	closep(&file->fd);
	closep(&file->index_fd);
	return SQLITE_OK;
}

/* Bytes beyond the end read as zeros, and SQLite needs to know of a short read. */
static int read_bytes(sqlite3_file *base, void *to, int n, sqlite3_int64 offset)
{
	struct read_file *file = (struct read_file *)base;
	int done = 0;

	while (done < n && file->fd >= 0 && !file->is_old) {
		ssize_t got = pread(file->fd, (char *)to + done, (size_t)(n - done), offset + done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			file->error = errno;
			return SQLITE_IOERR_READ;
		}
		if (got == 0)
			break;
		done += (int)got;
	}
	if (done == n)
		return SQLITE_OK;
	memset((char *)to + done, 0, (size_t)(n - done));
	return SQLITE_IOERR_SHORT_READ;
}

static int refuse_write(sqlite3_file *base, const void *from, int n, sqlite3_int64 offset)
{
	(void)base;
	(void)from;
	(void)n;
	(void)offset;
	return SQLITE_READONLY;
}

static int refuse_truncate(sqlite3_file *base, sqlite3_int64 n)
{
	(void)base;
	(void)n;
	return SQLITE_READONLY;
}

static int sync_nothing(sqlite3_file *base, int flags)
{
	(void)base;
	(void)flags;
	return SQLITE_OK;
}

/*
 * Set an OFD lock, which closing another descriptor in this process does not release. Returns 0 or negative errno,
 * -EBUSY: another process holds it.
 */
static int set_lock(int fd, short type, int64_t start, int64_t n_bytes)
{
	struct flock range = { .l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = n_bytes };

	if (fcntl(fd, F_OFD_SETLK, &range) == 0)
		return 0;
	return errno == EAGAIN || errno == EACCES ? -EBUSY : -errno;
}

static int lock_code(struct read_file *file, int r)
{
	if (r == -EBUSY)
		return SQLITE_BUSY;
	if (r < 0)
		file->error = -r;
	return r < 0 ? SQLITE_IOERR_LOCK : SQLITE_OK;
}

/* A writer keeps new readers out by holding the pending byte. */
static int lock_file(sqlite3_file *base, int lock)
{
	struct read_file *file = (struct read_file *)base;
	int r;

	if (lock <= file->lock || file->fd < 0)
		return SQLITE_OK;
	if (lock > SQLITE_LOCK_SHARED)
		return SQLITE_READONLY;
	r = set_lock(file->fd, F_RDLCK, PENDING_BYTE, PENDING_BYTES);
	if (r < 0)
		return lock_code(file, r);
	r = set_lock(file->fd, F_RDLCK, PENDING_BYTE + SHARED_AT, SHARED_BYTES);
	set_lock(file->fd, F_UNLCK, PENDING_BYTE, PENDING_BYTES);
	if (r == 0)
		file->lock = SQLITE_LOCK_SHARED;
	return lock_code(file, r);
}

static int unlock_file(sqlite3_file *base, int lock)
{
	struct read_file *file = (struct read_file *)base;

	if (lock >= file->lock || file->fd < 0)
		return SQLITE_OK;
	file->lock = lock;
	return lock_code(file, set_lock(file->fd, F_UNLCK, PENDING_BYTE, SHARED_AT + SHARED_BYTES));
}

/* If this lock is held, the journal beside the database is active and must not be rolled back. */
static int check_reserved(sqlite3_file *base, int *ret)
{
	struct read_file *file = (struct read_file *)base;
	struct flock range = {
		.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = PENDING_BYTE + RESERVED_AT, .l_len = 1
	};

	if (file->fd >= 0 && fcntl(file->fd, F_OFD_GETLK, &range) < 0) {
		file->error = errno;
		return SQLITE_IOERR_CHECKRESERVEDLOCK;
	}
	*ret = file->fd >= 0 && range.l_type != F_UNLCK;
	return SQLITE_OK;
}

static int control(sqlite3_file *base, int what, void *argument)
{
	struct read_file *file = (struct read_file *)base;

	switch (what) {
	case SQLITE_FCNTL_LAST_ERRNO:
		*(int *)argument = file->error;
		return SQLITE_OK;
	case SQLITE_FCNTL_LOCKSTATE:
		*(int *)argument = file->lock;
		return SQLITE_OK;
	case SQLITE_FCNTL_HAS_MOVED:
		*(int *)argument = 0;
		return SQLITE_OK;
	default:
		return SQLITE_NOTFOUND;
	}
}

static int sector_bytes(sqlite3_file *base)
{
	(void)base;
	return 4096;
}

static int characteristics(sqlite3_file *base)
{
	(void)base;
	return 0;
}

/* ---- Index of the log ---- */

static int map_index(sqlite3_file *base, int page, int n_bytes, int extend, void volatile **ret)
{
	(void)base;
	(void)page;
	(void)n_bytes;
	(void)extend;
	*ret = NULL;
	return SQLITE_READONLY_CANTINIT;
}

/* Another connection has NAME-shm open, so its contents are valid. */
static bool is_live(int index_fd)
{
	struct flock range = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = INDEX_LOCKS + LIVE_LOCK, .l_len = 1 };

	return fcntl(index_fd, F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
}

/* The caller holds the locks of lock_log(), so a log with complete frames cannot start again. There is a writer. */
static bool is_old_log(int index_fd, int log_fd)
{
	uint8_t index[INDEX_BYTES], log[SALT_BYTES];
	uint32_t n_frames;

	if (log_fd < 0 || pread(index_fd, index, sizeof index, 0) != sizeof index || !index[IS_MADE_IN_INDEX] ||
	    pread(log_fd, log, sizeof log, SALT_IN_LOG) != sizeof log)
		return false;
	memcpy(&n_frames, index + FRAMES_IN_INDEX, sizeof n_frames);
	return n_frames == 0 || memcmp(index + SALT_IN_INDEX, log, sizeof log) != 0;
}

/*
 * A killed recorder leaves a log that nobody writes any more, and each transaction of a reader asks for it: it is read again if
 * its size or time has changed. A time of the last seconds proves nothing, as two changes may have the same one.
 */
static bool has_transaction(struct read_file *log)
{
	time_t now = time(NULL);
	struct stat st;
	int r;

	if (fstat(log->fd, &st) < 0)
		return true;
	if (log->checked.is_known && log->checked.n_bytes == st.st_size &&
	    log->checked.changed.tv_sec == st.st_mtim.tv_sec && log->checked.changed.tv_nsec == st.st_mtim.tv_nsec)
		return log->checked.has_transaction;
	r = log_has_transaction(log->fd);
	log->checked.is_known = r >= 0 && st.st_mtim.tv_sec < now - 1;
	log->checked.has_transaction = r != 0;
	log->checked.n_bytes = st.st_size;
	log->checked.changed = st.st_mtim;
	return r != 0;
}

/* Without a writer the index proves nothing: somebody else may have left it. */
static bool is_empty_log(const struct read_file *file)
{
	int log_fd = file->other->fd;

	if (file->index_fd >= 0 && is_live(file->index_fd))
		return is_old_log(file->index_fd, log_fd);
	return log_fd >= 0 && !has_transaction(file->other);
}

static bool has_name(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_nlink > 0;
}

/*
 * The index may have been created or replaced since the database was opened. If both have lost their names
 * (src/top/temporary.c), the open one is right.
 */
static int find_index(struct read_file *file)
{
	if (file->index_fd >= 0 && (has_name(file->index_fd) || !has_name(file->fd)))
		return 0;
	closep(&file->index_fd);
	file->index_fd = open_index(file->name);
	if (file->index_fd >= -1)
		return 0;
	file->error = -file->index_fd;
	file->index_fd = -1;
	return -file->error;
}

static int unlock_log(struct read_file *file)
{
	file->has_log = false;
	return file->index_fd < 0 ? 0 : set_lock(file->index_fd, F_UNLCK, INDEX_LOCKS, SQLITE_SHM_NLOCK);
}

static int lock_log(struct read_file *file)
{
	int r = find_index(file);

	file->has_log = r == 0;
	if (file->other)
		file->other->is_old = false;
	if (r == 0 && file->index_fd >= 0)
		r = set_lock(file->index_fd, F_RDLCK, INDEX_LOCKS + READ_LOCK_0, 1);
	if (r == 0 && file->index_fd >= 0)
		r = set_lock(file->index_fd, F_RDLCK, INDEX_LOCKS + READ_LOCK_4, 1);
	if (r < 0)
		(void)unlock_log(file);
	else if (file->other)
		file->other->is_old = is_empty_log(file);
	return r;
}

/* SQLite requests only READ_LOCK_0 here, shared; the head of this file explains the other. */
static int lock_index(sqlite3_file *base, int first, int n, int flags)
{
	struct read_file *file = (struct read_file *)base;

	if (first != READ_LOCK_0 || n != 1 || !(flags & SQLITE_SHM_SHARED))
		return flags & SQLITE_SHM_UNLOCK ? SQLITE_OK : SQLITE_BUSY;
	if (flags & SQLITE_SHM_LOCK)
		return lock_code(file, lock_log(file));
	return lock_code(file, unlock_log(file));
}

/* A log that cannot be locked is about to change: treat it as empty; SQLite checks it again later. */
static int file_bytes(sqlite3_file *base, sqlite3_int64 *ret)
{
	struct read_file *file = (struct read_file *)base, *database = file->is_log ? file->other : NULL;
	struct stat st = { 0 };

	if (database && !database->has_log && lock_log(database) < 0)
		file->is_old = true;
	if (file->fd >= 0 && fstat(file->fd, &st) < 0) {
		file->error = errno;
		return SQLITE_IOERR_FSTAT;
	}
	*ret = file->is_old ? 0 : st.st_size;
	return SQLITE_OK;
}

static void barrier(sqlite3_file *base)
{
	(void)base;
	__sync_synchronize();
}

static int unmap_index(sqlite3_file *base, int removes)
{
	(void)base;
	(void)removes;
	return SQLITE_OK;
}

static const sqlite3_io_methods methods = {
	.iVersion = 2,
	.xClose = close_file,
	.xRead = read_bytes,
	.xWrite = refuse_write,
	.xTruncate = refuse_truncate,
	.xSync = sync_nothing,
	.xFileSize = file_bytes,
	.xLock = lock_file,
	.xUnlock = unlock_file,
	.xCheckReservedLock = check_reserved,
	.xFileControl = control,
	.xSectorSize = sector_bytes,
	.xDeviceCharacteristics = characteristics,
	.xShmMap = map_index,
	.xShmLock = lock_index,
	.xShmBarrier = barrier,
	.xShmUnmap = unmap_index,
};

/* ---- Open ---- */

static int open_database(const char *name, struct read_file *file)
{
	struct stat st;

	file->fd = open_regular(name, &st);
	if (file->fd < 0)
		return file->fd;
	file->index_fd = open_index(name);
	if (file->index_fd >= -1)
		return 0;
	closep(&file->fd);
	return file->index_fd;
}

static int open_log(const char *name, struct read_file *file)
{
	struct read_file *database = (struct read_file *)sqlite3_database_file_object(name);
	int fd = open_beside(name);

	if (fd < 0 && fd != -ENOENT)
		return fd;
	file->fd = MAX(fd, -1);
	file->is_log = true;
	file->other = database;
	database->other = file;
	return 0;
}

/* SQLite reads the journal to see whether it has contents. */
static int open_journal(const char *name, struct read_file *file)
{
	file->fd = open_beside(name);
	return file->fd < 0 ? file->fd : 0;
}

static bool is_temporary(const char *name, int flags)
{
	return !name || flags & (SQLITE_OPEN_TEMP_DB | SQLITE_OPEN_TRANSIENT_DB | SQLITE_OPEN_TEMP_JOURNAL |
				 SQLITE_OPEN_SUBJOURNAL);
}

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *base, int flags, int *ret_flags)
{
	struct read_file *file = (struct read_file *)base;
	int r = -EACCES;

	(void)vfs;
	if (is_temporary(name, flags))
		return usual_vfs()->xOpen(usual_vfs(), name, base, flags, ret_flags);
	*file = (struct read_file){ .name = name, .fd = -1, .index_fd = -1 };
	if (flags & SQLITE_OPEN_MAIN_DB)
		r = open_database(name, file);
	else if (flags & SQLITE_OPEN_WAL && beside_suffix(name))
		r = open_log(name, file);
	else if (flags & SQLITE_OPEN_MAIN_JOURNAL && beside_suffix(name))
		r = open_journal(name, file);
	if (r < 0) {
		errno = -r;
		return SQLITE_CANTOPEN;
	}
	file->base.pMethods = &methods;
	if (ret_flags)
		*ret_flags = (flags & ~(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)) | SQLITE_OPEN_READONLY;
	return SQLITE_OK;
}

static int refuse_removal(sqlite3_vfs *vfs, const char *name, int syncs)
{
	(void)vfs;
	(void)name;
	(void)syncs;
	return SQLITE_READONLY;
}

/* Like SQLite's VFS, treat an empty file as missing. */
static int is_there(sqlite3_vfs *vfs, const char *name, int flags, int *ret)
{
	struct stat st;

	(void)vfs;
	*ret = flags != SQLITE_ACCESS_READWRITE && lstat(name, &st) == 0 && S_ISREG(st.st_mode) &&
	       (flags != SQLITE_ACCESS_EXISTS || st.st_size > 0) && (!beside_suffix(name) || beside_name_belongs(name));
	return SQLITE_OK;
}

/* Resolve links: the log lies beside the link's target. */
static int full_name(sqlite3_vfs *vfs, const char *name, int n_bytes, char *to)
{
	CLEANUP(freep) char *path = realpath(name, NULL);

	if (!path)
		return errno == ENOENT ? usual_vfs()->xFullPathname(vfs, name, n_bytes, to) : SQLITE_CANTOPEN;
	return snprintf(to, (size_t)n_bytes, "%s", path) < n_bytes ? SQLITE_OK : SQLITE_CANTOPEN;
}

static int random_bytes(sqlite3_vfs *vfs, int n, char *to)
{
	(void)vfs;
	return usual_vfs()->xRandomness(usual_vfs(), n, to);
}

static int wait_us(sqlite3_vfs *vfs, int us)
{
	(void)vfs;
	return usual_vfs()->xSleep(usual_vfs(), us);
}

static int time_days(sqlite3_vfs *vfs, double *ret)
{
	(void)vfs;
	return usual_vfs()->xCurrentTime(usual_vfs(), ret);
}

static int time_ms(sqlite3_vfs *vfs, sqlite3_int64 *ret)
{
	(void)vfs;
	return usual_vfs()->xCurrentTimeInt64(usual_vfs(), ret);
}

static int last_error(sqlite3_vfs *vfs, int n_bytes, char *to)
{
	(void)vfs;
	(void)n_bytes;
	(void)to;
	return errno;
}

int read_vfs_register(void)
{
	static sqlite3_vfs vfs = {
		.iVersion = 2,
		.mxPathname = PATH_MAX,
		.zName = READ_VFS,
		.xOpen = open_file,
		.xDelete = refuse_removal,
		.xAccess = is_there,
		.xFullPathname = full_name,
		.xRandomness = random_bytes,
		.xSleep = wait_us,
		.xCurrentTime = time_days,
		.xGetLastError = last_error,
		.xCurrentTimeInt64 = time_ms,
	};

	if (sqlite3_vfs_find(READ_VFS))
		return SQLITE_OK;
	if (!usual_vfs())
		return SQLITE_ERROR;
	vfs.szOsFile = MAX((int)sizeof(struct read_file), usual_vfs()->szOsFile);
	return sqlite3_vfs_register(&vfs, 0);
}
