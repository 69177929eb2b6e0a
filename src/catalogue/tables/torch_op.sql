-- An operation of torch, or a range that the program named, from a trace of torch.profiler.
CREATE TABLE IF NOT EXISTS torch_op(
  op          INTEGER PRIMARY KEY,        -- its number
  trace       INTEGER NOT NULL REFERENCES gpu_trace, -- its source, a row of gpu_trace
  name        TEXT NOT NULL,              -- aten::addmm; of a range: its name in the program
  kind        TEXT NOT NULL,              -- op | annotation
  start_ns    INTEGER NOT NULL,           -- [ns] its start, counted from the start of its trace
  duration_ns INTEGER NOT NULL,           -- [ns] its duration on the host
  self_ns     INTEGER NOT NULL,           -- [ns] the same without what it called
  gpu_ns      INTEGER NOT NULL,           -- [ns] kernels and copies that it launched, without those of operations within it
  step        INTEGER,                    -- number of the profiler's step in which it began; NULL: in none
  python      TEXT,                       -- innermost Python function around it; NULL: unknown (with_stack)
  shapes      TEXT,                       -- shapes of its inputs as JSON; NULL: unknown (record_shapes)
  sequence    INTEGER,                    -- equal for an operation and its backward; NULL: none
  pid         INTEGER,                    -- the process
  tid         INTEGER                     -- the thread
);
