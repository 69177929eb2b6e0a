-- A process that was seen.
CREATE TABLE process(
  pid        INTEGER PRIMARY KEY,         -- as probing saw it: of its own PID namespace
  parent_pid INTEGER,                     -- who made it; NULL: not known
  name       TEXT NOT NULL,               -- comm
  command    TEXT NOT NULL,               -- command line, '' where it was gone
  python     TEXT,                        -- version of its interpreter; NULL: none found
  started    REAL NOT NULL,               -- [seconds since 1970] its fork, where that was seen, else when it was met
  ended      REAL                         -- [seconds since 1970] its exit, where that was seen, else when it was missed
);
