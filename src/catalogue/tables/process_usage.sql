-- A process at a moment, once a second: record --metrics. Counters are totals since its start.
CREATE TABLE process_usage(
  pid           INTEGER NOT NULL,         -- the process
  timestamp     REAL NOT NULL,            -- [seconds since 1970] UTC
  rss           INTEGER,                  -- [bytes] resident memory, shared pages included
  anonymous     INTEGER,                  -- [bytes] of rss: memory of no file
  swap          INTEGER,                  -- [bytes] swapped out
  virtual       INTEGER,                  -- [bytes] addresses it has, used or not
  threads       INTEGER,                  -- number of its threads
  user_ns       INTEGER,                  -- [ns] CPU time in the program, of all threads, ended ones included
  system_ns     INTEGER,                  -- [ns] CPU time in the kernel, the same way
  major_faults  INTEGER,                  -- page faults that waited for storage
  read_bytes    INTEGER,                  -- [bytes] read from storage; NULL: no permission
  written_bytes INTEGER,                  -- [bytes] written to storage; NULL: no permission
  read_chars    INTEGER,                  -- [bytes] read by system calls, from files, pipes and terminals; NULL: the same
  written_chars INTEGER,                  -- [bytes] written by system calls, the same way
  PRIMARY KEY(timestamp, pid)
) WITHOUT ROWID;
