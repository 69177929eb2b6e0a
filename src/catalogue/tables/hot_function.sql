-- Where the time went, by function. One that calls itself counts once in a stack. The interpreter's own
-- plumbing is left out: its time is that of the function it runs.
CREATE VIEW hot_function(
  function,                               -- INTEGER its number; NULL: no function is known
  name,                                   -- TEXT as in named_frame; [no stack]: samples whose stack could not be read
  kind,                                   -- TEXT python | native | kernel | task | wait
  file,                                   -- TEXT source file
  module,                                 -- TEXT path of the file with the code
  self_samples,                           -- INTEGER samples in the function itself
  self_ns,                                -- INTEGER [ns] their weight; where run.unit is count: events
  total_samples,                          -- INTEGER samples in it and in what it called
  total_ns,                               -- INTEGER [ns] their weight
  self_share,                             -- REAL [percent] of the weight of the whole recording
  total_share                             -- REAL [percent] of the weight of the whole recording
) AS
  WITH
    total(stack, samples, weight_ns) AS MATERIALIZED (
      SELECT stack, sum(samples), sum(weight_ns) FROM stack_total GROUP BY stack ORDER BY stack),
    place(frame, key) AS MATERIALIZED (
      SELECT frame, COALESCE(function, -min(frame) OVER (PARTITION BY function, name, named_frame.module))
      FROM named_frame JOIN frame USING(frame) ORDER BY frame),
    met(stack, key, is_self) AS (
      SELECT stack, key, max(position = 0) FROM stack_path JOIN place USING(frame) GROUP BY stack, key),
    sums(key, self_samples, self_ns, total_samples, total_ns) AS MATERIALIZED (
      SELECT key, sum(samples * is_self), sum(weight_ns * is_self), sum(samples), sum(weight_ns)
      FROM met JOIN total USING(stack) GROUP BY key
      UNION ALL
      SELECT NULL, samples, weight_ns, samples, weight_ns FROM total WHERE stack = 0),
    known(key, function, name, kind, file, module) AS MATERIALIZED (
      SELECT key, function, name, named_frame.kind, file, named_frame.module
      FROM place JOIN named_frame USING(frame) JOIN frame USING(frame) GROUP BY key)
  SELECT function, COALESCE(name, '[no stack]'), kind, file, module,
         self_samples, self_ns, total_samples, total_ns,
         100.0 * self_ns / (SELECT nullif(sum(weight_ns), 0) FROM total),
         100.0 * total_ns / (SELECT nullif(sum(weight_ns), 0) FROM total)
  FROM sums LEFT JOIN known USING(key)
  ORDER BY self_ns DESC, total_ns DESC, name;
