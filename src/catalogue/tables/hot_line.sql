-- Time by source line. A line counts once in a stack, even if it occurs several times.
CREATE VIEW hot_line(
  file,                                   -- TEXT source file; NULL: unknown
  line,                                   -- INTEGER executing line; NULL: unknown
  function,                               -- INTEGER number of its function; NULL: unknown
  name,                                   -- TEXT of its function, as in named_frame; [no stack]: samples without a readable stack
  kind,                                   -- TEXT python | native | kernel | task | wait
  module,                                 -- TEXT path of the file with the code
  self_samples,                           -- INTEGER samples in the line itself
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
      SELECT frame, min(frame) OVER (PARTITION BY function, name, module, line)
      FROM (SELECT frame.frame, function, name, named_frame.module, nullif(named_frame.line, 0) AS line
            FROM named_frame JOIN frame USING(frame)) ORDER BY frame),
    met(stack, key, is_self) AS (
      SELECT stack, key, max(position = 0) FROM stack_path JOIN place USING(frame) GROUP BY stack, key),
    sums(key, self_samples, self_weight, total_samples, total_weight) AS MATERIALIZED (
      SELECT key, sum(samples * is_self), sum(weight * is_self), sum(samples), sum(weight)
      FROM met JOIN total USING(stack) GROUP BY key
      UNION ALL
      SELECT NULL, samples, weight, samples, weight FROM total WHERE stack = 0)
  SELECT file, nullif(named_frame.line, 0), function, COALESCE(name, '[no stack]'), named_frame.kind, named_frame.module,
         self_samples, self_weight, total_samples, total_weight,
         100.0 * self_weight / (SELECT nullif(sum(weight), 0) FROM total),
         100.0 * total_weight / (SELECT nullif(sum(weight), 0) FROM total)
  FROM sums LEFT JOIN named_frame ON named_frame.frame = sums.key LEFT JOIN frame ON frame.frame = sums.key
  ORDER BY self_weight DESC, total_weight DESC, name, named_frame.line;
