-- A call of the CUDA runtime or driver, on a CPU; of a summary all calls of one function.
CREATE TABLE IF NOT EXISTS gpu_api_call(
  api_call    INTEGER PRIMARY KEY,        -- its number
  trace       INTEGER NOT NULL REFERENCES gpu_trace, -- where this comes from
  name        TEXT NOT NULL,              -- of the function: cudaLaunchKernel
  calls       INTEGER NOT NULL,           -- 1: one of them; of a summary all of that name, as one row
  duration_ns INTEGER NOT NULL,           -- [ns] how long it took; of a summary all together
  min_ns      INTEGER NOT NULL,           -- [ns] the shortest
  max_ns      INTEGER NOT NULL,           -- [ns] the longest
  start_ns    INTEGER,                    -- [ns] when it began, after the start of its trace; NULL: a summary
  pid         INTEGER,                    -- the process; NULL: it is not said
  tid         INTEGER,                    -- the thread; NULL: it is not said
  result      INTEGER,                    -- what it returned, 0: success; NULL: it is not said
  correlation INTEGER                     -- the same number as the kernel or copy it asked for; NULL: it is not said
);
