-- A process.
CREATE TABLE process(
  pid        INTEGER PRIMARY KEY,         -- as probing saw it: of its own PID namespace
  parent_pid INTEGER,                     -- its parent; NULL: unknown
  name       TEXT NOT NULL,               -- comm
  command    TEXT NOT NULL,               -- command line, '' if the process had ended
  python     TEXT,                        -- version of its interpreter; NULL: none found
  started    REAL NOT NULL,               -- [seconds since 1970] its fork, if observed, otherwise its first sample
  ended      REAL,                        -- [seconds since 1970] its exit, if observed, otherwise when it was found missing
  host       TEXT,                        -- name of its machine
  rank       INTEGER,                     -- number in its distributed job, by RANK, SLURM_PROCID and the like in its environment; NULL: none
  local_rank INTEGER,                     -- number on its machine; NULL: unknown
  world_size INTEGER,                     -- ranks of its job; NULL: unknown
  job        TEXT                         -- its job, as probing cluster names it; NULL: unknown
);
