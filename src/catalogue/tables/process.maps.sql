-- A piece of the process' memory, and how much of it is there. Of a running process.
CREATE VIRTUAL TABLE process.maps(
  start       INTEGER NOT NULL,           -- first address; those of the upper half of all are negative
  end         INTEGER NOT NULL,           -- the address behind it
  size        INTEGER NOT NULL,           -- [bytes] how large
  permissions TEXT NOT NULL,              -- r read, w write, x execute, then p private or s shared
  offset      INTEGER NOT NULL,           -- [bytes] where in the file it begins
  device      TEXT NOT NULL,              -- of the file, MAJOR:MINOR
  inode       INTEGER NOT NULL,           -- of the file; 0: there is none
  path        TEXT,                       -- the file, '[heap]' and the like; NULL: anonymous memory
  rss         INTEGER,                    -- [bytes] in memory; NULL: the kernel does not tell
  pss         INTEGER,                    -- [bytes] in memory, what several share divided among them
  private     INTEGER,                    -- [bytes] in memory that nobody else has
  anonymous   INTEGER,                    -- [bytes] in memory that are of no file
  swap        INTEGER                     -- [bytes] swapped out
);
