-- Each sample with its innermost function and what the program did: its step, and the spans that were open.
CREATE VIEW sample_function(
  timestamp,                              -- REAL [seconds since 1970] of the sample
  pid,                                    -- INTEGER the process
  tid,                                    -- INTEGER the thread
  step,                                   -- INTEGER as in sample
  span,                                   -- TEXT as in sample
  phase,                                  -- TEXT as in sample
  func,                                   -- TEXT innermost function, without interpreter-internal functions
  file,                                   -- TEXT its source file
  line,                                   -- INTEGER executing line
  weight,                                 -- INTEGER [ns] time this sample stands for; if run.unit is count: number of events
  stack,                                  -- INTEGER the stack; NULL: none
  torch_module,                           -- TEXT as in sample
  torch_stage,                            -- TEXT as in sample
  host,                                   -- TEXT as in sample
  rank,                                   -- INTEGER as in sample
  local_rank                              -- INTEGER as in sample
) AS
  SELECT timestamp, pid, tid, step, span, phase, COALESCE(named_frame.name, '[no stack]'), named_frame.file, named_frame.line,
         weight, sample.stack, torch_module, torch_stage, sample.host, sample.rank, sample.local_rank
  FROM sample LEFT JOIN stack_function ON stack_function.stack = sample.stack LEFT JOIN named_frame USING(frame);
