-- A mapping of the process, and its resident size. Of a running process.
CREATE VIRTUAL TABLE process.maps(
  start       INTEGER NOT NULL,           -- first address; addresses of the upper half are negative
  end         INTEGER NOT NULL,           -- the address behind it
  size        INTEGER NOT NULL,           -- [bytes] its size
  permissions TEXT NOT NULL,              -- r read, w write, x execute, then p private or s shared
  offset      INTEGER NOT NULL,           -- [bytes] offset in the file
  device      TEXT NOT NULL,              -- of the file, MAJOR:MINOR
  inode       INTEGER NOT NULL,           -- of the file; 0: there is none
  path        TEXT,                       -- the file, '[heap]' and others; NULL: anonymous memory
  rss         INTEGER,                    -- [bytes] in memory; NULL: unknown
  pss         INTEGER,                    -- [bytes] proportional resident memory (Pss)
  private     INTEGER,                    -- [bytes] private resident memory
  anonymous   INTEGER,                    -- [bytes] resident memory without a file
  swap        INTEGER                     -- [bytes] swapped out
);
