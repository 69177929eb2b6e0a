-- The recording second by second. Seconds without a sample have no row.
CREATE VIEW timeline(
  second,                                 -- INTEGER [seconds] since the recording began: 0, 1, ...
  timestamp,                              -- REAL [seconds since 1970] its beginning
  samples,                                -- INTEGER how many
  threads,                                -- INTEGER threads with samples
  cpu_ns,                                 -- INTEGER [ns] on a CPU; if run.unit is count: number of events
  waiting_ns,                             -- INTEGER [ns] waiting, in the second in which the wait began
  gil_ns,                                 -- INTEGER [ns] a thread held the GIL; NULL: unknown for all samples
  gc_ns                                   -- INTEGER [ns] garbage was collected; NULL: unknown for all samples
) AS
  WITH begin(started) AS MATERIALIZED (SELECT min(started) FROM run)
  SELECT CAST(timestamp - started AS INTEGER), started + CAST(timestamp - started AS INTEGER),
         count(*), count(DISTINCT pid || '/' || tid),
         sum(CASE WHEN COALESCE(state, 'running') = 'running' THEN weight ELSE 0 END),
         sum(CASE WHEN COALESCE(state, 'running') IN ('running', 'await') THEN 0 ELSE weight END),
         sum(CASE WHEN gil IS NOT NULL THEN weight * gil END),
         sum(CASE WHEN gc IS NOT NULL THEN weight * gc END)
  FROM sample, begin GROUP BY 1 ORDER BY 1;
