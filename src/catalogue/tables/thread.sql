-- A thread.
CREATE TABLE thread(
  pid     INTEGER NOT NULL,               -- its process
  tid     INTEGER NOT NULL,               -- its number, the pid for a process' first thread; 0: all threads that were ending and had none
  name    TEXT NOT NULL,                  -- Python's (threading.Thread.name), or the operating system's
  started REAL NOT NULL,                  -- [seconds since 1970] first seen
  ended   REAL,                           -- [seconds since 1970] exit seen
  PRIMARY KEY(pid, tid)
) WITHOUT ROWID;
