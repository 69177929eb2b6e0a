-- Ranges that the program named itself by NVTX, as imported.
CREATE VIEW gpu.ranges(
  range,                                  -- INTEGER its number
  trace,                                  -- INTEGER where this comes from
  name,                                   -- TEXT what the program calls it
  calls,                                  -- INTEGER 1: one of them; of a summary all of that name, as one row
  duration_ns,                            -- INTEGER [ns] how long it took; of a summary all together
  min_ns,                                 -- INTEGER [ns] the shortest
  max_ns,                                 -- INTEGER [ns] the longest
  start_ns,                               -- INTEGER [ns] when it began, after the start of its trace; NULL: a summary
  pid,                                    -- INTEGER the process; NULL: it is not said
  tid,                                    -- INTEGER the thread that began it; NULL: it is not said
  domain                                  -- TEXT the domain of the name; NULL: the default one
) AS
  SELECT range, trace, name, calls, duration_ns, min_ns, max_ns, start_ns, pid, tid, domain
  FROM gpu_range;
