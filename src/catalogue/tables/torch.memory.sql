-- Memory that torch allocated and freed, as imported from torch.profiler.
CREATE VIEW torch.memory(
  memory,                                 -- INTEGER its number
  trace,                                  -- INTEGER its source, a row of gpu_trace
  time_ns,                                -- INTEGER [ns] counted from the start of its trace
  bytes,                                  -- INTEGER [bytes] allocated; negative: freed
  allocated_bytes,                        -- INTEGER [bytes] in use on the device afterwards; NULL: unknown
  reserved_bytes,                         -- INTEGER [bytes] held by torch's allocator afterwards; NULL: unknown
  address,                                -- INTEGER of the block; NULL: unknown
  device,                                 -- TEXT cpu | cuda:0 ...
  op,                                     -- TEXT innermost operation, range or function around it; NULL: none
  pid,                                    -- INTEGER the process
  tid                                     -- INTEGER the thread
) AS
  SELECT memory, trace, time_ns, bytes, allocated_bytes, reserved_bytes, address, device, op, pid, tid
  FROM torch_memory;
