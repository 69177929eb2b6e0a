-- Kernels and the calls that launched them: how long each waited for the GPU.
CREATE VIEW gpu.launches(
  trace,                                  -- INTEGER its source, a row of gpu_trace
  name,                                   -- TEXT the kernel
  call,                                   -- TEXT the function that launched it: cudaLaunchKernel
  launch_ns,                              -- INTEGER [ns] start of that call, counted from the start of its trace
  start_ns,                               -- INTEGER [ns] start of the kernel
  delay_ns,                               -- INTEGER [ns] from the one to the other
  duration_ns,                            -- INTEGER [ns] of the kernel
  device,                                 -- TEXT the GPU
  stream,                                 -- INTEGER number of the stream
  pid,                                    -- INTEGER the process
  tid                                     -- INTEGER the thread that launched it
) AS
  SELECT k.trace, k.name, a.name, a.start_ns, k.start_ns, k.start_ns - a.start_ns, k.duration_ns, k.device, k.stream,
         a.pid, a.tid
  FROM gpu_kernel AS k JOIN gpu_api_call AS a ON a.trace = k.trace AND a.correlation = k.correlation
  WHERE k.start_ns IS NOT NULL AND a.start_ns IS NOT NULL;
