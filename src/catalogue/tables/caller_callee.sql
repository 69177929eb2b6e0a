-- Callers and callees, with the time of the calls. A pair counts once in a stack, even if it occurs several times.
CREATE VIEW caller_callee(
  caller,                                 -- TEXT name of the calling function; NULL: none, the root of the stack
  callee,                                 -- TEXT name of the called one
  caller_function,                        -- INTEGER its number; NULL: none, or unknown
  callee_function,                        -- INTEGER its number; NULL: unknown
  samples,                                -- INTEGER samples in the callee and its callees, called by the caller
  weight                               -- INTEGER [ns] their weight; if run.unit is count: number of events
) AS
  WITH
    total(stack, samples, weight) AS MATERIALIZED (
      SELECT stack, sum(samples), sum(weight) FROM stack_total GROUP BY stack ORDER BY stack),
    place(frame, key) AS MATERIALIZED (
      SELECT frame, COALESCE(function, -min(frame) OVER (PARTITION BY function, name, named_frame.module))
      FROM named_frame JOIN frame USING(frame) ORDER BY frame),
    call(stack, callee, caller) AS (
      SELECT stack, key, lead(key) OVER (PARTITION BY stack ORDER BY position)
      FROM stack_path JOIN place USING(frame)),
    sums(caller, callee, samples, weight) AS MATERIALIZED (
      SELECT caller, callee, sum(samples), sum(weight)
      FROM (SELECT DISTINCT stack, caller, callee FROM call) JOIN total USING(stack) GROUP BY caller, callee),
    known(key, function, name) AS MATERIALIZED (
      SELECT key, function, name FROM place JOIN named_frame USING(frame) JOIN frame USING(frame) GROUP BY key)
  SELECT upper.name, lower.name, upper.function, lower.function, samples, weight
  FROM sums JOIN known AS lower ON lower.key = sums.callee LEFT JOIN known AS upper ON upper.key = sums.caller
  ORDER BY weight DESC, callee, caller;
