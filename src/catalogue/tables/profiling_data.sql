-- Samples as operations, with start and duration.
CREATE VIEW profiling_data(
  timestamp,                              -- REAL [seconds since 1970] of the sample
  operation_name,                         -- TEXT innermost function, without interpreter-internal functions
  duration_ms                             -- REAL [ms] time the sample stands for; where run.unit is count: millions of events
) AS
  SELECT timestamp, COALESCE(named_frame.name, '[no stack]'), weight / 1e6
  FROM sample LEFT JOIN stack_function USING(stack) LEFT JOIN named_frame USING(frame);
