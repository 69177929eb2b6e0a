-- A collective or message of torch.distributed, from an imported dump of PyTorch's Flight Recorder.
CREATE TABLE IF NOT EXISTS comm_flight(
  flight      INTEGER PRIMARY KEY,        -- its row
  dump        TEXT NOT NULL,              -- name of the imported file
  rank        INTEGER,                    -- rank of the dump, by the file's name; NULL: unknown
  record      INTEGER,                    -- number of the operation in its process
  op          TEXT NOT NULL,              -- all_reduce, broadcast, send ...
  backend     TEXT,                       -- nccl, gloo; NULL: unknown
  src_rank    INTEGER,                    -- of a message: rank of the sender; NULL: unknown
  dst_rank    INTEGER,                    -- of a message: rank of the receiver; NULL: unknown
  bytes       INTEGER,                    -- [bytes] of the input tensors; NULL: unknown
  "group"     TEXT,                       -- process group
  seq         INTEGER,                    -- number of the collective, or of the message, in its group
  is_message  INTEGER NOT NULL,           -- 1: send or recv; 0: a collective
  state       TEXT NOT NULL,              -- scheduled | started | completed, as torch saw it
  is_ended    INTEGER NOT NULL,           -- 1: it has completed, or torch no longer waits for it
  created     REAL NOT NULL,              -- [seconds since 1970] when it was called
  started     REAL,                       -- [seconds since 1970] when torch saw that it had started; NULL: it did not
  completed   REAL,                       -- [seconds since 1970] when torch saw that it had completed; NULL: it did not
  latency_ms  REAL,                       -- [ms] time on the GPU; NULL: unknown (TORCH_NCCL_ENABLE_TIMING)
  timeout_ms  INTEGER,                    -- [ms] after which torch gives it up; NULL: unknown
  shapes      TEXT,                       -- of the input tensors, as JSON; long ones are cut
  dtypes      TEXT,                       -- of the input tensors, as JSON; long ones are cut
  file        TEXT,                       -- file of the innermost frame outside of torch; NULL: unknown
  line        INTEGER,                    -- its line; NULL: unknown
  func        TEXT                        -- its function; NULL: unknown
);
