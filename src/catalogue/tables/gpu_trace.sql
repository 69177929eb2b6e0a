-- Sources of rows in gpu_kernel and similar tables: imported traces or summaries of a GPU profiler.
CREATE TABLE IF NOT EXISTS gpu_trace(
  trace   INTEGER PRIMARY KEY,            -- its number
  format  TEXT NOT NULL,                  -- nvprof | nsys | kineto
  file    TEXT NOT NULL,                  -- name of the imported file
  command TEXT,                           -- command line of the profiled program; NULL: unknown
  pid     INTEGER,                        -- its process; NULL: unknown
  started REAL                            -- [seconds since 1970] UTC, of start_ns 0; NULL: unknown
);
