-- Runs of a command by probing bench, recorded or only timed, in the order of time.
-- Empty in other recordings.
CREATE TABLE bench_run(
  bench_run   INTEGER PRIMARY KEY,        -- its number
  run         INTEGER REFERENCES run,     -- its recording; NULL: only timed
  command     TEXT NOT NULL,              -- command line
  started     REAL NOT NULL,              -- [seconds since 1970] UTC
  wall        REAL,                       -- [seconds] from start to end; NULL: a recorded run without an observed end
  user        REAL,                       -- [seconds] CPU time outside the kernel, with its children's; NULL: recorded
  sys         REAL,                       -- [seconds] CPU time inside the kernel; NULL: recorded
  max_rss     INTEGER,                    -- [bytes] peak memory of one of its processes; NULL: recorded
  exit_status INTEGER NOT NULL            -- as in a shell: 128 plus the signal if one ended it
);
