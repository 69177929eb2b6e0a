-- Time by function. A recursive function counts once in a stack. Interpreter-internal
-- functions are left out: their time counts for the function that they run.
CREATE VIEW hot_function(
  function,                               -- INTEGER its number; NULL: unknown
  name,                                   -- TEXT as in named_frame; [no stack]: samples without a readable stack
  kind,                                   -- TEXT python | native | kernel | task | wait
  file,                                   -- TEXT source file
  module,                                 -- TEXT path of the file with the code
  self_samples,                           -- INTEGER samples in the function itself
  self_weight,                                -- INTEGER [ns] their weight; if run.unit is count: number of events
  total_samples,                          -- INTEGER samples in it and its callees
  total_weight,                               -- INTEGER [ns] their weight
  self_share,                             -- REAL [percent] of the weight of the whole recording
  total_share                             -- REAL [percent] of the weight of the whole recording
) AS
  WITH
    total(stack, samples, weight) AS MATERIALIZED (
      SELECT stack, sum(samples), sum(weight) FROM stack_total GROUP BY stack ORDER BY stack),
    place(frame, key) AS MATERIALIZED (
      SELECT frame, COALESCE(function, -min(frame) OVER (PARTITION BY function, name, named_frame.module))
      FROM named_frame JOIN frame USING(frame) ORDER BY frame),
    met(stack, key, is_self) AS (
      SELECT stack, key, max(position = 0) FROM stack_path JOIN place USING(frame) GROUP BY stack, key),
    sums(key, self_samples, self_weight, total_samples, total_weight) AS MATERIALIZED (
      SELECT key, sum(samples * is_self), sum(weight * is_self), sum(samples), sum(weight)
      FROM met JOIN total USING(stack) GROUP BY key
      UNION ALL
      SELECT NULL, samples, weight, samples, weight FROM total WHERE stack = 0),
    known(key, function, name, kind, file, module) AS MATERIALIZED (
      SELECT key, function, name, named_frame.kind, file, named_frame.module
      FROM place JOIN named_frame USING(frame) JOIN frame USING(frame) GROUP BY key)
  SELECT function, COALESCE(name, '[no stack]'), kind, file, module,
         self_samples, self_weight, total_samples, total_weight,
         100.0 * self_weight / (SELECT nullif(sum(weight), 0) FROM total),
         100.0 * total_weight / (SELECT nullif(sum(weight), 0) FROM total)
  FROM sums LEFT JOIN known USING(key)
  ORDER BY self_weight DESC, total_weight DESC, name;
