-- Time in which a GPU had no work: each gap, divided by what the host did meanwhile. From traces of torch.profiler.
CREATE TABLE IF NOT EXISTS gpu_idle(
  idle        INTEGER PRIMARY KEY,        -- its number
  trace       INTEGER NOT NULL REFERENCES gpu_trace, -- its source, a row of gpu_trace
  device      TEXT NOT NULL,              -- the GPU
  start_ns    INTEGER NOT NULL,           -- [ns] start of the gap, counted from the start of its trace
  gap_ns      INTEGER NOT NULL,           -- [ns] the whole gap
  duration_ns INTEGER NOT NULL,           -- [ns] the part of the gap that the host spent in this function; sums to gap_ns
  function    TEXT,                       -- what the thread did that launched the next work; NULL: nothing that was traced
  python      TEXT,                       -- innermost Python function of that thread; NULL: unknown (with_stack)
  launched    INTEGER NOT NULL,           -- 1: the next work was launched before the gap began, so the host was not late
  next        TEXT,                       -- the kernel or copy that ended the gap; NULL: the trace ended
  pid         INTEGER,                    -- the process
  tid         INTEGER                     -- the thread; NULL: unknown
);
