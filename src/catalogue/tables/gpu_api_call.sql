-- A call of the CUDA runtime or driver, on a CPU; in a summary all calls of one function.
CREATE TABLE IF NOT EXISTS gpu_api_call(
  api_call    INTEGER PRIMARY KEY,        -- its number
  trace       INTEGER NOT NULL REFERENCES gpu_trace, -- its source, a row of gpu_trace
  name        TEXT NOT NULL,              -- of the function: cudaLaunchKernel
  calls       INTEGER NOT NULL,           -- 1: a single one; in a summary: number of those with that name
  duration_ns INTEGER NOT NULL,           -- [ns] its duration; in a summary the sum
  min_ns      INTEGER NOT NULL,           -- [ns] the shortest
  max_ns      INTEGER NOT NULL,           -- [ns] the longest
  start_ns    INTEGER,                    -- [ns] its start, counted from the start of its trace; NULL: a summary
  pid         INTEGER,                    -- the process; NULL: unknown
  tid         INTEGER,                    -- the thread; NULL: unknown
  result      INTEGER,                    -- return value, 0: success; NULL: unknown
  correlation INTEGER                     -- equals that of the kernel or copy that it started; NULL: unknown
);
