-- Time that each thread spent collecting garbage, as far as known.
CREATE VIEW gc(
  pid,                                    -- INTEGER its process
  tid,                                    -- INTEGER its number
  thread,                                 -- TEXT its name; NULL: unknown
  samples,                                -- INTEGER samples in which it collected
  gc_ns,                                  -- INTEGER [ns] their weight
  known_ns,                               -- INTEGER [ns] time for which this is known
  share                                   -- REAL [percent] of that time
) AS
  WITH sums(pid, tid, samples, gc_ns, known_ns) AS MATERIALIZED (
    SELECT pid, tid, sum(gc IS 1), sum(weight * (gc IS 1)), sum(weight * (gc IS NOT NULL))
    FROM sample GROUP BY pid, tid)
  SELECT sums.pid, sums.tid, thread.name, samples, gc_ns, known_ns, 100.0 * gc_ns / nullif(known_ns, 0)
  FROM sums LEFT JOIN thread ON thread.pid = sums.pid AND thread.tid = sums.tid
  ORDER BY gc_ns DESC, sums.pid, sums.tid;
