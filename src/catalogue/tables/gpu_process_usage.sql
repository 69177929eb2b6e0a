-- A process on a GPU at a moment, once a second: record --metrics. Of a running process: now, all processes on the machine's GPUs.
CREATE TABLE IF NOT EXISTS gpu_process_usage(
  timestamp      REAL NOT NULL,           -- [seconds since 1970] UTC
  device         INTEGER NOT NULL,        -- the GPU, of gpu_metrics
  pid            INTEGER NOT NULL,        -- the process, recorded or not; in a container the driver may report the host's number
  memory_used_mb REAL,                    -- [MB] device memory of the process; NULL: the driver does not report it
  sm_util        INTEGER,                 -- [percent] of the time in which its kernels ran; NULL: the driver has no sample of it
  host           TEXT NOT NULL,           -- the machine
  PRIMARY KEY(timestamp, device, pid, host)
) WITHOUT ROWID;
