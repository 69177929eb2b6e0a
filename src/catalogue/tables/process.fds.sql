-- A file descriptor that the process has open. Of a running process.
CREATE VIRTUAL TABLE process.fds(
  fd       INTEGER NOT NULL,              -- its number
  target   TEXT NOT NULL,                 -- path, 'socket:[INODE]', 'pipe:[INODE]', 'anon_inode:[eventpoll]', ...
  kind     TEXT,                          -- file | folder | device | pipe | socket | memory | anonymous; NULL: unknown
  flags    TEXT,                          -- r, w or rw, then append, nonblock, direct, sync, directory, path, cloexec
  position INTEGER                        -- [bytes] current file offset
);
