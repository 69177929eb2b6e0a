-- Calls of the CUDA runtime and driver, as imported; in a summary a row is all calls of one function.
CREATE VIEW gpu.api_calls(
  api_call,                               -- INTEGER its number
  trace,                                  -- INTEGER its source, a row of gpu_trace
  name,                                   -- TEXT of the function: cudaLaunchKernel
  calls,                                  -- INTEGER 1: a single one; in a summary: number of those with that name
  duration_ns,                            -- INTEGER [ns] its duration; in a summary the sum
  min_ns,                                 -- INTEGER [ns] the shortest
  max_ns,                                 -- INTEGER [ns] the longest
  start_ns,                               -- INTEGER [ns] its start, counted from the start of its trace; NULL: a summary
  pid,                                    -- INTEGER the process; NULL: unknown
  tid,                                    -- INTEGER the thread; NULL: unknown
  result,                                 -- INTEGER return value, 0: success; NULL: unknown
  correlation                             -- INTEGER equals that of the kernel or copy that it started; NULL: unknown
) AS
  SELECT api_call, trace, name, calls, duration_ns, min_ns, max_ns, start_ns, pid, tid, result, correlation
  FROM gpu_api_call;
