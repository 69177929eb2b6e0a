-- A ring of the process: a file with rows of one table that its program writes. Of a running process, or one that has ended.
CREATE VIRTUAL TABLE python.rings(
  name        TEXT NOT NULL,              -- of its table; several rings may belong to one
  columns     INTEGER NOT NULL,           -- their number, without the time
  size        INTEGER NOT NULL,           -- [rows] that fit into it
  rows        INTEGER NOT NULL,           -- [rows] that can be read now
  appended    INTEGER NOT NULL,           -- [rows] since it was created
  evicted     INTEGER NOT NULL,           -- [row numbers] that newer ones have replaced
  skipped     INTEGER NOT NULL,           -- [row numbers] without a row: another writer was in their slot
  dropped     INTEGER NOT NULL,           -- [rows] lost: many slots in a row were not free
  unfit       INTEGER NOT NULL,           -- [values] that are NULL, as their column has another type
  stuck       INTEGER NOT NULL            -- [rows] being written now; of a process that has ended: whose writers were killed
);
