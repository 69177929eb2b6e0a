-- Operations of torch and ranges that the program named, as imported from torch.profiler.
CREATE VIEW torch.ops(
  op,                                     -- INTEGER its number
  trace,                                  -- INTEGER its source, a row of gpu_trace
  name,                                   -- TEXT aten::addmm; of a range: its name in the program
  kind,                                   -- TEXT op | annotation
  start_ns,                               -- INTEGER [ns] its start, counted from the start of its trace
  duration_ns,                            -- INTEGER [ns] its duration on the host
  self_ns,                                -- INTEGER [ns] the same without what it called
  gpu_ns,                                 -- INTEGER [ns] kernels and copies that it launched, without those of operations within it
  step,                                   -- INTEGER number of the profiler's step in which it began; NULL: in none
  python,                                 -- TEXT innermost Python function around it; NULL: unknown (with_stack)
  shapes,                                 -- TEXT shapes of its inputs as JSON; NULL: unknown (record_shapes)
  sequence,                               -- INTEGER equal for an operation and its backward; NULL: none
  pid,                                    -- INTEGER the process
  tid                                     -- INTEGER the thread
) AS
  SELECT op, trace, name, kind, start_ns, duration_ns, self_ns, gpu_ns, step, python, shapes, sequence, pid, tid
  FROM torch_op;
