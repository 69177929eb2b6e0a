-- Who calls whom, and what the call costs. A pair counts once in a stack, however often it is in it.
CREATE VIEW caller_callee(
  caller,                                 -- TEXT name of the calling function; NULL: nobody, the stack begins here
  callee,                                 -- TEXT name of the called one
  caller_function,                        -- INTEGER its number; NULL: none, or no function is known
  callee_function,                        -- INTEGER its number; NULL: no function is known
  samples,                                -- INTEGER samples in the callee, called by the caller, and in what it called
  weight                               -- INTEGER [ns] their weight; where run.unit is count: events
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
