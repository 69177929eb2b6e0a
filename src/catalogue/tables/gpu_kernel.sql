-- A kernel that ran on a GPU; of a summary all launches of one.
CREATE TABLE IF NOT EXISTS gpu_kernel(
  kernel      INTEGER PRIMARY KEY,        -- its number
  trace       INTEGER NOT NULL REFERENCES gpu_trace, -- where this comes from
  name        TEXT NOT NULL,              -- of the function
  calls       INTEGER NOT NULL,           -- 1: one of them; of a summary all of that name, as one row
  duration_ns INTEGER NOT NULL,           -- [ns] how long it took; of a summary all together
  min_ns      INTEGER NOT NULL,           -- [ns] the shortest
  max_ns      INTEGER NOT NULL,           -- [ns] the longest
  start_ns    INTEGER,                    -- [ns] when it began, after the start of its trace; NULL: a summary
  grid_x      INTEGER,                    -- blocks of the grid; NULL: it is not said
  grid_y      INTEGER,                    -- blocks of the grid
  grid_z      INTEGER,                    -- blocks of the grid
  block_x     INTEGER,                    -- threads of a block; NULL: it is not said
  block_y     INTEGER,                    -- threads of a block
  block_z     INTEGER,                    -- threads of a block
  registers   INTEGER,                    -- of each thread; NULL: it is not said
  static_shared_bytes  INTEGER,           -- [bytes] shared memory of a block, by declaration; NULL: it is not said
  dynamic_shared_bytes INTEGER,           -- [bytes] shared memory of a block, by launch; NULL: it is not said
  device      TEXT,                       -- the GPU; NULL: it is not said
  context     INTEGER,                    -- number of its context; NULL: it is not said
  stream      INTEGER,                    -- number of its stream; NULL: it is not said
  correlation INTEGER                     -- the same number as the API call that launched it; NULL: it is not said
);
