-- The machine at a moment, once a second: record --metrics. Counters are totals of all CPUs and devices since boot.
CREATE TABLE machine_usage(
  host              TEXT NOT NULL,        -- its name
  timestamp         REAL NOT NULL,        -- [seconds since 1970] UTC
  user_ns           INTEGER,              -- [ns] in programs, of any priority
  system_ns         INTEGER,              -- [ns] in the kernel, interrupts included
  idle_ns           INTEGER,              -- [ns] idle
  iowait_ns         INTEGER,              -- [ns] idle while waiting for a disk
  steal_ns          INTEGER,              -- [ns] taken by other machines on the same hardware
  memory            INTEGER,              -- [bytes] its memory
  available         INTEGER,              -- [bytes] of memory: available without swapping
  swap_used         INTEGER,              -- [bytes] swapped out
  read_bytes        INTEGER,              -- [bytes] read from block devices
  written_bytes     INTEGER,              -- [bytes] written to block devices
  received_bytes    INTEGER,              -- [bytes] received by all network interfaces but loopback
  sent_bytes        INTEGER,              -- [bytes] sent by them
  cpu_stalled_ns    INTEGER,              -- [ns] some task waited for a CPU (PSI); NULL: the kernel does not count it
  memory_stalled_ns INTEGER,              -- [ns] some task waited for memory; NULL: the same
  io_stalled_ns     INTEGER,              -- [ns] some task waited for I/O; NULL: the same
  PRIMARY KEY(timestamp, host)
) WITHOUT ROWID;
