-- A visible process of the machine, of any user. Of a running process.
CREATE VIRTUAL TABLE system.process(
  pid         INTEGER NOT NULL,           -- the process
  ppid        INTEGER NOT NULL,           -- its parent; 0: none visible
  name        TEXT NOT NULL,              -- the operating system's name, 15 bytes at most
  state       TEXT NOT NULL,              -- R running or runnable, S sleeping, D uninterruptible, T stopped, t traced, Z ended, I idle
  uid         INTEGER,                    -- effective
  user        TEXT,                       -- the name of that user; NULL: none
  threads     INTEGER NOT NULL,           -- number of its threads
  rss         INTEGER NOT NULL,           -- [bytes] resident memory, shared pages included
  cpu_seconds REAL NOT NULL,              -- [seconds] CPU time since its start, user and kernel
  started     REAL NOT NULL,              -- [seconds since 1970] UTC
  python      TEXT,                       -- version, by the name of its program; NULL: unknown
  command     TEXT NOT NULL               -- command line; '' of a thread of the kernel
);
