-- The memory of a process: of a running process now, in a recording once a second. A MB is 1048576 bytes.
CREATE VIEW memory_usage(
  timestamp,                              -- REAL [seconds since 1970] UTC
  rss_mb,                                 -- REAL [MB] resident memory, shared pages included
  vms_mb,                                 -- REAL [MB] addresses it has, used or not
  memory_mb,                              -- REAL [MB] its own: memory of no file, in memory or swapped out
  shared_mb,                              -- REAL [MB] of rss_mb: files, and memory made to be shared
  swap_mb,                                -- REAL [MB] swapped out
  peak_rss_mb,                            -- REAL [MB] peak of rss_mb; in a recording: of its rows so far
  pss_mb,                                 -- REAL [MB] proportional resident memory (Pss); NULL: no permission, or a recording
  private_mb,                             -- REAL [MB] private resident memory; NULL: no permission, or a recording
  pid                                     -- INTEGER the process
) AS
  SELECT timestamp, rss / 1048576.0, virtual / 1048576.0, (anonymous + swap) / 1048576.0, (rss - anonymous) / 1048576.0,
         swap / 1048576.0, max(rss) OVER (PARTITION BY pid ORDER BY timestamp) / 1048576.0, NULL, NULL, pid
  FROM process_usage;
