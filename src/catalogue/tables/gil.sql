-- Time of each thread with, without and waiting for the GIL, as far as known.
CREATE VIEW gil(
  pid,                                    -- INTEGER its process
  tid,                                    -- INTEGER its number
  thread,                                 -- TEXT its name; NULL: unknown
  held_ns,                                -- INTEGER [ns] the thread held the GIL
  free_ns,                                -- INTEGER [ns] it did not, nor did it wait for it
  waiting_ns,                             -- INTEGER [ns] it waited for the GIL; NULL: run.mode is neither wall nor offcpu
  unknown_ns,                             -- INTEGER [ns] time for which this is unknown
  held_share                              -- REAL [percent] of the known time
) AS
  WITH sums(pid, tid, held_ns, free_ns, waiting_ns, unknown_ns) AS MATERIALIZED (
    SELECT pid, tid, sum(weight * (gil IS 1)), sum(weight * (gil IS 0 AND state IS NOT 'gil')),
           CASE WHEN count(state) > 0 THEN sum(weight * (state IS 'gil')) END,
           sum(weight * (gil IS NULL AND state IS NOT 'gil'))
    FROM sample GROUP BY pid, tid)
  SELECT sums.pid, sums.tid, thread.name, held_ns, free_ns, waiting_ns, unknown_ns,
         100.0 * held_ns / nullif(held_ns + free_ns + COALESCE(waiting_ns, 0), 0)
  FROM sums LEFT JOIN thread ON thread.pid = sums.pid AND thread.tid = sums.tid
  ORDER BY held_ns DESC, sums.pid, sums.tid;
