-- A range named by the program with NVTX; in a summary all of one name.
CREATE TABLE IF NOT EXISTS gpu_range(
  range       INTEGER PRIMARY KEY,        -- its number
  trace       INTEGER NOT NULL REFERENCES gpu_trace, -- its source, a row of gpu_trace
  name        TEXT NOT NULL,              -- its name in the program
  calls       INTEGER NOT NULL,           -- 1: a single one; in a summary: number of those with that name
  duration_ns INTEGER NOT NULL,           -- [ns] its duration; in a summary the sum
  min_ns      INTEGER NOT NULL,           -- [ns] the shortest
  max_ns      INTEGER NOT NULL,           -- [ns] the longest
  start_ns    INTEGER,                    -- [ns] its start, counted from the start of its trace; NULL: a summary
  pid         INTEGER,                    -- the process; NULL: unknown
  tid         INTEGER,                    -- the thread that began it; NULL: unknown
  domain      TEXT                        -- the domain of the name; NULL: the default one
);
