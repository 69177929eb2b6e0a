-- Steps of torch.profiler, as imported.
CREATE VIEW torch.steps(
  step,                                   -- INTEGER its row
  trace,                                  -- INTEGER its source, a row of gpu_trace
  number,                                 -- INTEGER the profiler's number
  start_ns,                               -- INTEGER [ns] its start, counted from the start of its trace
  duration_ns,                            -- INTEGER [ns] its duration on the host
  gpu_busy_ns,                            -- INTEGER [ns] during which at least one GPU worked
  pid,                                    -- INTEGER the process
  tid                                     -- INTEGER the thread
) AS
  SELECT step, trace, number, start_ns, duration_ns, gpu_busy_ns, pid, tid
  FROM torch_step;
