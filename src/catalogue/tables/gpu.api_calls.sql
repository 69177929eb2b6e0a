-- Calls of the CUDA runtime and driver, as imported; of a summary all calls of one function are a row.
CREATE VIEW gpu.api_calls(
  api_call,                               -- INTEGER its number
  trace,                                  -- INTEGER where this comes from
  name,                                   -- TEXT of the function: cudaLaunchKernel
  calls,                                  -- INTEGER 1: one of them; of a summary all of that name, as one row
  duration_ns,                            -- INTEGER [ns] how long it took; of a summary all together
  min_ns,                                 -- INTEGER [ns] the shortest
  max_ns,                                 -- INTEGER [ns] the longest
  start_ns,                               -- INTEGER [ns] when it began, after the start of its trace; NULL: a summary
  pid,                                    -- INTEGER the process; NULL: it is not said
  tid,                                    -- INTEGER the thread; NULL: it is not said
  result,                                 -- INTEGER what it returned, 0: success; NULL: it is not said
  correlation                             -- INTEGER the same number as the kernel or copy it asked for; NULL: it is not said
) AS
  SELECT api_call, trace, name, calls, duration_ns, min_ns, max_ns, start_ns, pid, tid, result, correlation
  FROM gpu_api_call;
