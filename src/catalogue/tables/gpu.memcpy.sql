-- Memory that GPUs copied or filled, as imported; of a summary all of one kind are a row.
CREATE VIEW gpu.memcpy(
  memcpy,                                 -- INTEGER its number
  trace,                                  -- INTEGER where this comes from
  name,                                   -- TEXT as nvprof has it: [CUDA memcpy HtoD]
  kind,                                   -- TEXT HtoD | DtoH | DtoD | HtoH | PtoP ... | memset
  calls,                                  -- INTEGER 1: one of them; of a summary all of that name, as one row
  duration_ns,                            -- INTEGER [ns] how long it took; of a summary all together
  min_ns,                                 -- INTEGER [ns] the shortest
  max_ns,                                 -- INTEGER [ns] the longest
  start_ns,                               -- INTEGER [ns] when it began, after the start of its trace; NULL: a summary
  bytes,                                  -- INTEGER [bytes] how much; NULL: it is not said
  source,                                 -- TEXT Pageable | Pinned | Device ...; NULL: it is not said
  destination,                            -- TEXT Pageable | Pinned | Device ...; NULL: it is not said
  device,                                 -- TEXT the GPU; NULL: it is not said
  context,                                -- INTEGER number of its context; NULL: it is not said
  stream,                                 -- INTEGER number of its stream; NULL: it is not said
  correlation                             -- INTEGER the same number as the API call that asked for it; NULL: it is not said
) AS
  SELECT memcpy, trace, name, kind, calls, duration_ns, min_ns, max_ns, start_ns, bytes, source,
         destination, device, context, stream, correlation
  FROM gpu_memcpy;
