-- A cgroup of a recorded process, or an ancestor of one, once a second: record --metrics. Of a running process: now.
-- Counters are totals since the group was made.
CREATE TABLE IF NOT EXISTS cgroup_usage(
  timestamp         REAL NOT NULL,        -- [seconds since 1970] UTC
  path              TEXT NOT NULL,        -- as /proc/PID/cgroup has it; "/" is the root, in a container its own group
  cpu_ns            INTEGER,              -- [ns] CPU time
  user_ns           INTEGER,              -- [ns] of it: in programs
  system_ns         INTEGER,              -- [ns] of it: in the kernel
  cpu_limit         REAL,                 -- CPUs it may use; NULL: no limit of its own
  periods           INTEGER,              -- periods of the limit in which it ran
  throttled_periods INTEGER,              -- of them: it was stopped, because its share was used up
  throttled_ns      INTEGER,              -- [ns] stopped for that, summed over CPUs
  memory            INTEGER,              -- [bytes] in use, page cache included
  memory_limit      INTEGER,              -- [bytes] limit; NULL: none of its own
  memory_high       INTEGER,              -- [bytes] above it, allocations are slowed; NULL: none, or version 1
  swap              INTEGER,              -- [bytes] swapped out; NULL: version 1, or no account of swap
  limit_hits        INTEGER,              -- times the memory limit was hit
  oom_kills         INTEGER,              -- processes that were killed for it
  tasks             INTEGER,              -- threads and processes in it
  tasks_limit       INTEGER,              -- NULL: no limit of its own
  read_bytes        INTEGER,              -- [bytes] read from block devices
  written_bytes     INTEGER,              -- [bytes] written to block devices
  host              TEXT NOT NULL,        -- the machine
  PRIMARY KEY(timestamp, path, host)
) WITHOUT ROWID;
