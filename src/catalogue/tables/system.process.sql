-- A process of the machine that may be seen, whoever it belongs to. Of a running process.
CREATE VIRTUAL TABLE system.process(
  pid         INTEGER NOT NULL,           -- the process
  ppid        INTEGER NOT NULL,           -- its parent; 0: none that is seen from here
  name        TEXT NOT NULL,              -- as the system has it, 15 bytes at most
  state       TEXT NOT NULL,              -- R running or runnable, S sleeping, D not to be woken, T stopped, t traced, Z ended, I idle
  uid         INTEGER,                    -- effective
  user        TEXT,                       -- the name of that user; NULL: it has none here
  threads     INTEGER NOT NULL,           -- how many
  rss         INTEGER NOT NULL,           -- [bytes] memory that it occupies, what it shares included
  cpu_seconds REAL NOT NULL,              -- [seconds] CPU time since its start, user and kernel
  started     REAL NOT NULL,              -- [seconds since 1970] UTC
  python      TEXT,                       -- version, by the name of its program; NULL: not known by that
  command     TEXT NOT NULL               -- command line; '' of a thread of the kernel
);
