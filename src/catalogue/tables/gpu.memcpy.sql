-- Memory that GPUs copied or filled, as imported; in a summary a row is all of one kind.
CREATE VIEW gpu.memcpy(
  memcpy,                                 -- INTEGER its number
  trace,                                  -- INTEGER its source, a row of gpu_trace
  name,                                   -- TEXT in nvprof's form: [CUDA memcpy HtoD]
  kind,                                   -- TEXT HtoD | DtoH | DtoD | HtoH | PtoP ... | memset
  calls,                                  -- INTEGER 1: a single one; in a summary: number of those with that name
  duration_ns,                            -- INTEGER [ns] its duration; in a summary the sum
  min_ns,                                 -- INTEGER [ns] the shortest
  max_ns,                                 -- INTEGER [ns] the longest
  start_ns,                               -- INTEGER [ns] its start, counted from the start of its trace; NULL: a summary
  bytes,                                  -- INTEGER [bytes] size; NULL: unknown
  source,                                 -- TEXT Pageable | Pinned | Device ...; NULL: unknown
  destination,                            -- TEXT Pageable | Pinned | Device ...; NULL: unknown
  device,                                 -- TEXT the GPU; NULL: unknown
  context,                                -- INTEGER number of its context; NULL: unknown
  stream,                                 -- INTEGER number of its stream; NULL: unknown
  correlation                             -- INTEGER equals that of the API call that started it; NULL: unknown
) AS
  SELECT memcpy, trace, name, kind, calls, duration_ns, min_ns, max_ns, start_ns, bytes, source,
         destination, device, context, stream, correlation
  FROM gpu_memcpy;
