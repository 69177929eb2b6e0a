-- A step of torch.profiler: from one profiler.step() to the next.
CREATE TABLE IF NOT EXISTS torch_step(
  step        INTEGER PRIMARY KEY,        -- its row
  trace       INTEGER NOT NULL REFERENCES gpu_trace, -- its source, a row of gpu_trace
  number      INTEGER NOT NULL,           -- the profiler's number
  start_ns    INTEGER NOT NULL,           -- [ns] its start, counted from the start of its trace
  duration_ns INTEGER NOT NULL,           -- [ns] its duration on the host
  gpu_busy_ns INTEGER NOT NULL,           -- [ns] during which at least one GPU worked
  pid         INTEGER,                    -- the process
  tid         INTEGER                     -- the thread
);
