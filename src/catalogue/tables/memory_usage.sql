-- One row: the memory of the process, now; a MB is 1048576 bytes. Of a running process.
CREATE VIRTUAL TABLE memory_usage(
  timestamp   REAL NOT NULL,              -- [seconds since 1970] UTC
  rss_mb      REAL,                       -- [MB] in memory, what it shares included
  vms_mb      REAL,                       -- [MB] addresses it has, used or not
  memory_mb   REAL,                       -- [MB] its own: memory of no file, in memory or swapped out
  shared_mb   REAL,                       -- [MB] of rss_mb: files, and memory made to be shared
  swap_mb     REAL,                       -- [MB] swapped out
  peak_rss_mb REAL,                       -- [MB] the most that rss_mb was
  pss_mb      REAL,                       -- [MB] in memory, what several share divided among them; NULL: it may not be read
  private_mb  REAL                        -- [MB] in memory that nobody else has; NULL: it may not be read
);
