-- Kernels that ran on GPUs, as imported; of a summary all launches of one are a row.
CREATE VIEW gpu.kernels(
  kernel,                                 -- INTEGER its number
  trace,                                  -- INTEGER where this comes from
  name,                                   -- TEXT of the function
  calls,                                  -- INTEGER 1: one of them; of a summary all of that name, as one row
  duration_ns,                            -- INTEGER [ns] how long it took; of a summary all together
  min_ns,                                 -- INTEGER [ns] the shortest
  max_ns,                                 -- INTEGER [ns] the longest
  start_ns,                               -- INTEGER [ns] when it began, after the start of its trace; NULL: a summary
  grid_x,                                 -- INTEGER blocks of the grid; NULL: it is not said
  grid_y,                                 -- INTEGER blocks of the grid
  grid_z,                                 -- INTEGER blocks of the grid
  block_x,                                -- INTEGER threads of a block; NULL: it is not said
  block_y,                                -- INTEGER threads of a block
  block_z,                                -- INTEGER threads of a block
  registers,                              -- INTEGER of each thread; NULL: it is not said
  static_shared_bytes,                    -- INTEGER [bytes] shared memory of a block, by declaration; NULL: it is not said
  dynamic_shared_bytes,                   -- INTEGER [bytes] shared memory of a block, by launch; NULL: it is not said
  device,                                 -- TEXT the GPU; NULL: it is not said
  context,                                -- INTEGER number of its context; NULL: it is not said
  stream,                                 -- INTEGER number of its stream; NULL: it is not said
  correlation                             -- INTEGER the same number as the API call that launched it; NULL: it is not said
) AS
  SELECT kernel, trace, name, calls, duration_ns, min_ns, max_ns, start_ns, grid_x, grid_y, grid_z, block_x,
         block_y, block_z, registers, static_shared_bytes, dynamic_shared_bytes, device, context, stream,
         correlation
  FROM gpu_kernel;
