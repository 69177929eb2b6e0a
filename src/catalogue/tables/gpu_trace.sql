-- Where rows of gpu_kernel and the like come from: a trace or a summary of a GPU profiler that was imported.
CREATE TABLE IF NOT EXISTS gpu_trace(
  trace   INTEGER PRIMARY KEY,            -- its number
  format  TEXT NOT NULL,                  -- nvprof | nsys
  file    TEXT NOT NULL,                  -- name of the file that was read
  command TEXT,                           -- what was profiled; NULL: it does not say
  pid     INTEGER,                        -- its process; NULL: it does not say
  started REAL                            -- [seconds since 1970] UTC, of start_ns 0; NULL: it does not say
);
