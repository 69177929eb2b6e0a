-- Kernels that ran on GPUs, as imported; in a summary a row is all launches of one kernel.
CREATE VIEW gpu.kernels(
  kernel,                                 -- INTEGER its number
  trace,                                  -- INTEGER its source, a row of gpu_trace
  name,                                   -- TEXT of the function
  calls,                                  -- INTEGER 1: a single one; in a summary: number of those with that name
  duration_ns,                            -- INTEGER [ns] its duration; in a summary the sum
  min_ns,                                 -- INTEGER [ns] the shortest
  max_ns,                                 -- INTEGER [ns] the longest
  start_ns,                               -- INTEGER [ns] its start, counted from the start of its trace; NULL: a summary
  grid_x,                                 -- INTEGER blocks of the grid; NULL: unknown
  grid_y,                                 -- INTEGER blocks of the grid
  grid_z,                                 -- INTEGER blocks of the grid
  block_x,                                -- INTEGER threads of a block; NULL: unknown
  block_y,                                -- INTEGER threads of a block
  block_z,                                -- INTEGER threads of a block
  registers,                              -- INTEGER of each thread; NULL: unknown
  static_shared_bytes,                    -- INTEGER [bytes] shared memory of a block, by declaration; NULL: unknown
  dynamic_shared_bytes,                   -- INTEGER [bytes] shared memory of a block, by launch; NULL: unknown
  device,                                 -- TEXT the GPU; NULL: unknown
  context,                                -- INTEGER number of its context; NULL: unknown
  stream,                                 -- INTEGER number of its stream; NULL: unknown
  correlation                             -- INTEGER equals that of the API call that launched it; NULL: unknown
) AS
  SELECT kernel, trace, name, calls, duration_ns, min_ns, max_ns, start_ns, grid_x, grid_y, grid_z, block_x,
         block_y, block_z, registers, static_shared_bytes, dynamic_shared_bytes, device, context, stream,
         correlation
  FROM gpu_kernel;
