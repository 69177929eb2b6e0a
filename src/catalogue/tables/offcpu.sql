-- Waits of threads, with the reason and the code that waits. In recordings of mode wall and offcpu.
CREATE VIEW offcpu(
  pid,                                    -- INTEGER the process
  tid,                                    -- INTEGER the thread
  thread,                                 -- TEXT its name; NULL: unknown
  state,                                  -- TEXT runnable | sleep | lock | gil | io | child | blocked
  name,                                   -- TEXT innermost function; NULL: no stack
  file,                                   -- TEXT its source file
  line,                                   -- INTEGER executing line
  samples,                                -- INTEGER rows of sample; one may stand for several waits
  weight,                              -- INTEGER [ns] duration of the waits
  longest_ns                              -- INTEGER [ns] the longest of them
) AS
  WITH sums(pid, tid, state, stack, samples, weight, longest_ns) AS MATERIALIZED (
    SELECT pid, tid, state, stack, count(*), sum(weight), max(weight) FROM sample
    WHERE state NOT IN ('running', 'await') GROUP BY pid, tid, state, stack)
  SELECT sums.pid, sums.tid, thread.name, state, named_frame.name, file, line,
         sum(samples), sum(weight), max(longest_ns)
  FROM sums LEFT JOIN thread ON thread.pid = sums.pid AND thread.tid = sums.tid
  LEFT JOIN stack_function ON stack_function.stack = sums.stack
  LEFT JOIN named_frame ON named_frame.frame = stack_function.frame
  GROUP BY sums.pid, sums.tid, state, named_frame.name, file, line
  ORDER BY sum(weight) DESC;
