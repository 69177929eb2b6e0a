-- What probing bench measured: how long each run of its command took, recorded or only timed, in the order of time.
-- Of recordings that bench did not make it is empty.
CREATE TABLE bench_run(
  bench_run   INTEGER PRIMARY KEY,        -- its number
  run         INTEGER REFERENCES run,     -- its recording; NULL: it was only timed
  command     TEXT NOT NULL,              -- command line
  started     REAL NOT NULL,              -- [seconds since 1970] UTC
  wall        REAL,                       -- [seconds] from start to end; NULL: a recorded one whose end was not seen
  user        REAL,                       -- [seconds] CPU time outside of the kernel, with its children's; NULL: it was recorded
  sys         REAL,                       -- [seconds] CPU time inside the kernel; NULL: it was recorded
  max_rss     INTEGER,                    -- [bytes] most memory that one of its processes had; NULL: it was recorded
  exit_status INTEGER NOT NULL            -- as a shell has it: 128 and the signal where one ended it
);
