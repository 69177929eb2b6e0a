-- A thread that was seen.
CREATE TABLE thread(
  pid     INTEGER NOT NULL,               -- its process
  tid     INTEGER NOT NULL,               -- its number, the pid for a process' first thread; 0: all that were about to end and had none any more
  name    TEXT NOT NULL,                  -- Python's (threading.Thread.name), or where it has none of its own as the operating system knows it
  started REAL NOT NULL,                  -- [seconds since 1970] first seen
  ended   REAL,                           -- [seconds since 1970] exit seen
  PRIMARY KEY(pid, tid)
) WITHOUT ROWID;
