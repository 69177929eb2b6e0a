-- A block device at a moment, once a second: record --metrics. Of a running process: now. Counters are totals since boot; partitions have
-- rows beside their disk. Unused devices have none.
CREATE TABLE IF NOT EXISTS disk_usage(
  timestamp     REAL NOT NULL,            -- [seconds since 1970] UTC
  device        TEXT NOT NULL,            -- "sda", "nvme0n1p1"
  reads         INTEGER,                  -- completed reads
  read_bytes    INTEGER,                  -- [bytes] read
  read_ns       INTEGER,                  -- [ns] spent reading, summed over requests
  writes        INTEGER,                  -- completed writes
  written_bytes INTEGER,                  -- [bytes] written
  write_ns      INTEGER,                  -- [ns] spent writing, summed over requests
  in_flight     INTEGER,                  -- requests under way, now
  busy_ns       INTEGER,                  -- [ns] at least one request was under way
  host          TEXT NOT NULL,            -- the machine
  PRIMARY KEY(timestamp, device, host)
) WITHOUT ROWID;
