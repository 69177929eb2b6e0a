-- Samples as operations, with start and duration.
CREATE VIEW profiling_data(
  timestamp,                              -- REAL [seconds since 1970] of the sample
  operation_name,                         -- TEXT innermost function, without interpreter-internal functions
  duration_ms                             -- REAL [ms] time of the sample, on or off CPU; NULL: run.unit is count, so it has events and no time
) AS
  SELECT timestamp, COALESCE(named_frame.name, '[no stack]'), CASE WHEN EXISTS (SELECT 1 FROM run WHERE unit = 'count') THEN NULL ELSE weight / 1e6 END
  FROM sample LEFT JOIN stack_function USING(stack) LEFT JOIN named_frame USING(frame);
