-- Time in which GPUs had no work, and what the host did meanwhile; as imported from torch.profiler.
CREATE VIEW gpu.idle(
  idle,                                   -- INTEGER its number
  trace,                                  -- INTEGER its source, a row of gpu_trace
  device,                                 -- TEXT the GPU
  start_ns,                               -- INTEGER [ns] start of the gap, counted from the start of its trace
  gap_ns,                                 -- INTEGER [ns] the whole gap
  duration_ns,                            -- INTEGER [ns] the part of the gap that the host spent in this function; sums to gap_ns
  function,                               -- TEXT what the thread did that launched the next work; NULL: nothing that was traced
  python,                                 -- TEXT innermost Python function of that thread; NULL: unknown (with_stack)
  launched,                               -- INTEGER 1: the next work was launched before the gap began, so the host was not late
  next,                                   -- TEXT the kernel or copy that ended the gap; NULL: the trace ended
  pid,                                    -- INTEGER the process
  tid                                     -- INTEGER the thread; NULL: unknown
) AS
  SELECT idle, trace, device, start_ns, gap_ns, duration_ns, function, python, launched, next, pid, tid
  FROM gpu_idle;
