-- One row: the memory of the process, now; a MB is 1048576 bytes. Of a running process.
CREATE VIRTUAL TABLE memory_usage(
  timestamp   REAL NOT NULL,              -- [seconds since 1970] UTC
  rss_mb      REAL,                       -- [MB] resident memory, shared pages included
  vms_mb      REAL,                       -- [MB] addresses it has, used or not
  memory_mb   REAL,                       -- [MB] its own: memory of no file, in memory or swapped out
  shared_mb   REAL,                       -- [MB] of rss_mb: files, and memory made to be shared
  swap_mb     REAL,                       -- [MB] swapped out
  peak_rss_mb REAL,                       -- [MB] peak of rss_mb
  pss_mb      REAL,                       -- [MB] proportional resident memory (Pss); NULL: no permission
  private_mb  REAL                        -- [MB] private resident memory; NULL: no permission
);
