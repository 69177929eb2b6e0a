-- Ranges named by the program with NVTX, as imported.
CREATE VIEW gpu.ranges(
  range,                                  -- INTEGER its number
  trace,                                  -- INTEGER its source, a row of gpu_trace
  name,                                   -- TEXT its name in the program
  calls,                                  -- INTEGER 1: a single one; in a summary: number of those with that name
  duration_ns,                            -- INTEGER [ns] its duration; in a summary the sum
  min_ns,                                 -- INTEGER [ns] the shortest
  max_ns,                                 -- INTEGER [ns] the longest
  start_ns,                               -- INTEGER [ns] its start, counted from the start of its trace; NULL: a summary
  pid,                                    -- INTEGER the process; NULL: unknown
  tid,                                    -- INTEGER the thread that began it; NULL: unknown
  domain                                  -- TEXT the domain of the name; NULL: the default one
) AS
  SELECT range, trace, name, calls, duration_ns, min_ns, max_ns, start_ns, pid, tid, domain
  FROM gpu_range;
