/* SPDX-License-Identifier: MIT */
/*
 * recover.c - see recover.h.
 *
 * A recorder that is killed during its final checkpoint leaves a journal: half of the database is
 * new, and the journal has the old half. SQLite reads such a file only after it has written the old half back. That is
 * for the owner's next recorder; a reader copies both and does not change the originals.
 *
 * The owner of the journal may write to it meanwhile, so recover_copy() checks the copy. Whatever the journal contains,
 * SQLite can access only the copies (write_vfs.c).
 */
#include "src/store/recover.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/private_folder.h"
#include "base/util.h"
#include "src/store/beside.h"
#include "src/store/store_private.h"
#include "src/store/vfs.h"

enum { PIECE_BYTES = 16 << 20 };

#define COPY "copy.db"

/* Marks a journal that names a super-journal. Source: SQLite 3.40, pager.c, aJournalMagic. */
static const unsigned char super_magic[] = { 0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7 };

static int open_to_read(const char *name, struct stat *ret)
{
	CLEANUP(closep) int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);

	if (fd < 0 || fstat(fd, ret) < 0)
		return -errno;
	return S_ISREG(ret->st_mode) ? TAKE_FD(fd) : -ENXIO;
}

/* Share the blocks if the file system can, else copy the bytes. */
static int copy_bytes(int from, int to)
{
	CLEANUP(freep) char *piece = NULL;
	ssize_t n;

	if (ioctl(to, FICLONE, from) == 0)
		return 0;
	piece = malloc(PIECE_BYTES);
	if (!piece)
		return -ENOMEM;
	while ((n = read(from, piece, PIECE_BYTES)) > 0)
		for (ssize_t done = 0; done < n;) {
			ssize_t written = write(to, piece + done, (size_t)(n - done));

			if (written < 0)
				return -errno;
			done += written;
		}
	return n < 0 ? -errno : 0;
}

/* Returns a descriptor of the copy. */
static int copy_file(int from, int folder, const char *name)
{
	CLEANUP(closep) int to = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r;

	if (to < 0)
		return -errno;
	r = copy_bytes(from, to);
	return r < 0 ? r : TAKE_FD(to);
}

/* Check the copy, which no other process can change. */
static int check_journal(int fd)
{
	unsigned char last[sizeof super_magic];
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size < (off_t)sizeof last)
		return 0;
	if (pread(fd, last, sizeof last, st.st_size - (off_t)sizeof last) != sizeof last)
		return -EIO;
	return memcmp(last, super_magic, sizeof last) == 0 ? -EBADMSG : 0;
}

static int copy_journal(const char *path, const struct stat *database, int folder)
{
	CLEANUP(freep) char *journal = NULL;
	CLEANUP(closep) int from = -1, copy = -1;
	struct stat st;
	int r;

	if (asprintf(&journal, "%s" BESIDE_JOURNAL, path) < 0) {
		journal = NULL;
		return -ENOMEM;
	}
	from = open_to_read(journal, &st);
	if (from < 0)
		return from;
	if (!beside_belongs(database, &st))
		return -EACCES;
	copy = copy_file(from, folder, COPY BESIDE_JOURNAL);
	r = copy < 0 ? copy : check_journal(copy);
	if (r == -EBADMSG)
		store_notice("%s names another file, which a recorder never does: it is not rolled back", journal);
	return r;
}

/* Returns a descriptor of the database's copy. */
static int copy_pair(const char *path, int folder)
{
	CLEANUP(freep) char *target = realpath(path, NULL);
	CLEANUP(closep) int from = -1, copy = -1;
	struct stat database;
	int r;

	if (!target)
		return -errno;
	from = open_to_read(target, &database);
	if (from < 0)
		return from;
	copy = copy_file(from, folder, COPY);
	r = copy < 0 ? copy : copy_journal(target, &database, folder);
	return r < 0 ? r : TAKE_FD(copy);
}

static int open_in(int folder, const char *path, int (*open_name)(const char *name, sqlite3 **ret), sqlite3 **ret)
{
	CLEANUP(closep) int copy = copy_pair(path, folder);
	CLEANUP(freep) char *name = NULL;
	int r;

	r = copy < 0 ? copy : store_errno(NULL, write_vfs_register());
	if (r >= 0)
		r = write_vfs_admit(folder, COPY, copy, &name);
	if (r >= 0)
		r = open_name(name, ret);
	write_vfs_dismiss(folder); /* all files are open now */
	return r;
}

int recover_copy(const char *path, int (*open_name)(const char *name, sqlite3 **ret), sqlite3 **ret)
{
	const char *parent = getenv("TMPDIR");
	CLEANUP(closep)
	int fd = open(parent && parent[0] == '/' ? parent : "/var/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(private_folder_remove) struct private_folder folder = { 0 };
	int r;

	if (fd < 0)
		return -errno;
	r = private_folder_make(fd, "probing-copy.", &folder);
	if (r >= 0)
		r = open_in(folder.fd, path, open_name, ret);
	if (r >= 0)
		store_notice(
			"the last change of %s is incomplete: probing reads a copy without it; the file is unchanged",
			path);
	return r;
}
