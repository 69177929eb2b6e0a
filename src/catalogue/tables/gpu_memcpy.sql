-- Memory that a GPU copied or filled; in a summary all of one kind.
CREATE TABLE IF NOT EXISTS gpu_memcpy(
  memcpy      INTEGER PRIMARY KEY,        -- its number
  trace       INTEGER NOT NULL REFERENCES gpu_trace, -- its source, a row of gpu_trace
  name        TEXT NOT NULL,              -- in nvprof's form: [CUDA memcpy HtoD]
  kind        TEXT NOT NULL,              -- HtoD | DtoH | DtoD | HtoH | PtoP ... | memset
  calls       INTEGER NOT NULL,           -- 1: a single one; in a summary: number of those with that name
  duration_ns INTEGER NOT NULL,           -- [ns] its duration; in a summary the sum
  min_ns      INTEGER NOT NULL,           -- [ns] the shortest
  max_ns      INTEGER NOT NULL,           -- [ns] the longest
  start_ns    INTEGER,                    -- [ns] its start, counted from the start of its trace; NULL: a summary
  bytes       INTEGER,                    -- [bytes] size; NULL: unknown
  source      TEXT,                       -- Pageable | Pinned | Device ...; NULL: unknown
  destination TEXT,                       -- Pageable | Pinned | Device ...; NULL: unknown
  device      TEXT,                       -- the GPU; NULL: unknown
  context     INTEGER,                    -- number of its context; NULL: unknown
  stream      INTEGER,                    -- number of its stream; NULL: unknown
  correlation INTEGER                     -- equals that of the API call that started it; NULL: unknown
);
