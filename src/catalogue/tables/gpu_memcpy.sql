-- Memory that a GPU copied or filled; of a summary all of one kind.
CREATE TABLE IF NOT EXISTS gpu_memcpy(
  memcpy      INTEGER PRIMARY KEY,        -- its number
  trace       INTEGER NOT NULL REFERENCES gpu_trace, -- where this comes from
  name        TEXT NOT NULL,              -- as nvprof has it: [CUDA memcpy HtoD]
  kind        TEXT NOT NULL,              -- HtoD | DtoH | DtoD | HtoH | PtoP ... | memset
  calls       INTEGER NOT NULL,           -- 1: one of them; of a summary all of that name, as one row
  duration_ns INTEGER NOT NULL,           -- [ns] how long it took; of a summary all together
  min_ns      INTEGER NOT NULL,           -- [ns] the shortest
  max_ns      INTEGER NOT NULL,           -- [ns] the longest
  start_ns    INTEGER,                    -- [ns] when it began, after the start of its trace; NULL: a summary
  bytes       INTEGER,                    -- [bytes] how much; NULL: it is not said
  source      TEXT,                       -- Pageable | Pinned | Device ...; NULL: it is not said
  destination TEXT,                       -- Pageable | Pinned | Device ...; NULL: it is not said
  device      TEXT,                       -- the GPU; NULL: it is not said
  context     INTEGER,                    -- number of its context; NULL: it is not said
  stream      INTEGER,                    -- number of its stream; NULL: it is not said
  correlation INTEGER                     -- the same number as the API call that asked for it; NULL: it is not said
);
