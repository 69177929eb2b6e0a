-- Stalls for a resource (PSI) at a moment, once a second: record --metrics. Of a running process: now. Rows of the machine, and of the
-- cgroups of version 2 that recorded processes are in.
CREATE TABLE IF NOT EXISTS pressure(
  timestamp   REAL NOT NULL,              -- [seconds since 1970] UTC
  cgroup      TEXT NOT NULL,              -- its path; empty: the machine
  resource    TEXT NOT NULL,              -- cpu | memory | io
  some_ns     INTEGER,                    -- [ns] some task waited for it, since boot
  some_avg10  REAL,                       -- [percent] of the last 10 s in which some task waited
  some_avg60  REAL,                       -- [percent] of the last 60 s
  some_avg300 REAL,                       -- [percent] of the last 300 s
  full_ns     INTEGER,                    -- [ns] all tasks that could run waited, since boot; NULL: the kernel does not count it
  full_avg10  REAL,                       -- [percent] of the last 10 s in which all tasks waited
  full_avg60  REAL,                       -- [percent] of the last 60 s
  full_avg300 REAL,                       -- [percent] of the last 300 s
  host        TEXT NOT NULL,              -- the machine
  PRIMARY KEY(timestamp, cgroup, resource, host)
) WITHOUT ROWID;
