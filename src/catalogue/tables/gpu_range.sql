-- A range that the program named itself, by NVTX; of a summary all of one name.
CREATE TABLE IF NOT EXISTS gpu_range(
  range       INTEGER PRIMARY KEY,        -- its number
  trace       INTEGER NOT NULL REFERENCES gpu_trace, -- where this comes from
  name        TEXT NOT NULL,              -- what the program calls it
  calls       INTEGER NOT NULL,           -- 1: one of them; of a summary all of that name, as one row
  duration_ns INTEGER NOT NULL,           -- [ns] how long it took; of a summary all together
  min_ns      INTEGER NOT NULL,           -- [ns] the shortest
  max_ns      INTEGER NOT NULL,           -- [ns] the longest
  start_ns    INTEGER,                    -- [ns] when it began, after the start of its trace; NULL: a summary
  pid         INTEGER,                    -- the process; NULL: it is not said
  tid         INTEGER,                    -- the thread that began it; NULL: it is not said
  domain      TEXT                        -- the domain of the name; NULL: the default one
);
