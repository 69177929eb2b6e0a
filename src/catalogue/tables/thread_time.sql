-- The time of each thread: on a CPU, and waiting.
CREATE VIEW thread_time(
  pid,                                    -- INTEGER its process
  tid,                                    -- INTEGER its number
  thread,                                 -- TEXT its name; NULL: unknown
  process,                                -- TEXT its process' name; NULL: unknown
  samples,                                -- INTEGER how many
  cpu_ns,                                 -- INTEGER [ns] on a CPU; if run.unit is count: number of events
  waiting_ns,                             -- INTEGER [ns] waiting, for a CPU or for something else; 0 in recordings of mode cpu
  share                                   -- REAL [percent] of all threads' time
) AS
  WITH sums(pid, tid, samples, cpu_ns, waiting_ns) AS MATERIALIZED (
    SELECT pid, tid, sum(samples), sum(CASE WHEN frame.kind IS 'wait' THEN 0 ELSE weight END),
           sum(CASE WHEN frame.kind IS 'wait' THEN weight ELSE 0 END)
    FROM stack_total LEFT JOIN stack USING(stack) LEFT JOIN frame USING(frame) GROUP BY pid, tid)
  SELECT sums.pid, sums.tid, thread.name, process.name, samples, cpu_ns, waiting_ns,
         100.0 * (cpu_ns + waiting_ns) / (SELECT nullif(sum(cpu_ns + waiting_ns), 0) FROM sums)
  FROM sums LEFT JOIN thread ON thread.pid = sums.pid AND thread.tid = sums.tid
  LEFT JOIN process ON process.pid = sums.pid
  ORDER BY cpu_ns + waiting_ns DESC, sums.pid, sums.tid;
