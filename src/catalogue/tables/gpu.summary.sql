-- Time on GPUs and in CUDA calls: nvprof's summary, from summaries and from traces.
CREATE VIEW gpu.summary(
  type,                                   -- TEXT GPU activities | API calls | NVTX ranges
  time_percent,                           -- REAL [percent] of the time of its type
  time_ns,                                -- INTEGER [ns] all together
  calls,                                  -- INTEGER how many
  avg_ns,                                 -- REAL [ns] on average
  min_ns,                                 -- INTEGER [ns] the shortest
  max_ns,                                 -- INTEGER [ns] the longest
  name                                    -- TEXT of the kernel, the copy, the function or the range
) AS
  WITH
    span(rank, type, name, calls, duration_ns, min_ns, max_ns) AS (
      SELECT 1, 'GPU activities', name, calls, duration_ns, min_ns, max_ns FROM gpu_kernel
      UNION ALL SELECT 1, 'GPU activities', name, calls, duration_ns, min_ns, max_ns FROM gpu_memcpy
      UNION ALL SELECT 2, 'API calls', name, calls, duration_ns, min_ns, max_ns FROM gpu_api_call
      UNION ALL SELECT 3, 'NVTX ranges', name, calls, duration_ns, min_ns, max_ns FROM gpu_range),
    sums(rank, type, name, calls, duration_ns, min_ns, max_ns) AS (
      SELECT rank, type, name, sum(calls), sum(duration_ns), min(min_ns), max(max_ns) FROM span GROUP BY rank, name)
  SELECT type, 100.0 * duration_ns / nullif(sum(duration_ns) OVER (PARTITION BY rank), 0), duration_ns, calls,
         1.0 * duration_ns / nullif(calls, 0), min_ns, max_ns, name
  FROM sums ORDER BY rank, duration_ns DESC, name;
