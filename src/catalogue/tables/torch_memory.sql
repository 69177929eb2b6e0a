-- Memory that torch allocated or freed, from a trace of torch.profiler with profile_memory.
CREATE TABLE IF NOT EXISTS torch_memory(
  memory          INTEGER PRIMARY KEY,    -- its number
  trace           INTEGER NOT NULL REFERENCES gpu_trace, -- its source, a row of gpu_trace
  time_ns         INTEGER NOT NULL,       -- [ns] counted from the start of its trace
  bytes           INTEGER NOT NULL,       -- [bytes] allocated; negative: freed
  allocated_bytes INTEGER,                -- [bytes] in use on the device afterwards; NULL: unknown
  reserved_bytes  INTEGER,                -- [bytes] held by torch's allocator afterwards; NULL: unknown
  address         INTEGER,                -- of the block; NULL: unknown
  device          TEXT NOT NULL,          -- cpu | cuda:0 ...
  op              TEXT,                   -- innermost operation, range or function around it; NULL: none
  pid             INTEGER,                -- the process
  tid             INTEGER                 -- the thread
);
