-- A kernel that ran on a GPU; in a summary all launches of one kernel.
CREATE TABLE IF NOT EXISTS gpu_kernel(
  kernel      INTEGER PRIMARY KEY,        -- its number
  trace       INTEGER NOT NULL REFERENCES gpu_trace, -- its source, a row of gpu_trace
  name        TEXT NOT NULL,              -- of the function
  calls       INTEGER NOT NULL,           -- 1: a single one; in a summary: number of those with that name
  duration_ns INTEGER NOT NULL,           -- [ns] its duration; in a summary the sum
  min_ns      INTEGER NOT NULL,           -- [ns] the shortest
  max_ns      INTEGER NOT NULL,           -- [ns] the longest
  start_ns    INTEGER,                    -- [ns] its start, counted from the start of its trace; NULL: a summary
  grid_x      INTEGER,                    -- blocks of the grid; NULL: unknown
  grid_y      INTEGER,                    -- blocks of the grid
  grid_z      INTEGER,                    -- blocks of the grid
  block_x     INTEGER,                    -- threads of a block; NULL: unknown
  block_y     INTEGER,                    -- threads of a block
  block_z     INTEGER,                    -- threads of a block
  registers   INTEGER,                    -- of each thread; NULL: unknown
  static_shared_bytes  INTEGER,           -- [bytes] shared memory of a block, by declaration; NULL: unknown
  dynamic_shared_bytes INTEGER,           -- [bytes] shared memory of a block, by launch; NULL: unknown
  device      TEXT,                       -- the GPU; NULL: unknown
  context     INTEGER,                    -- number of its context; NULL: unknown
  stream      INTEGER,                    -- number of its stream; NULL: unknown
  correlation INTEGER                     -- equals that of the API call that launched it; NULL: unknown
);
