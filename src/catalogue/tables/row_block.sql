-- Rows of a ring, one after the other and compressed: as many as the recorder read at a time.
CREATE TABLE row_block(
  row_block INTEGER PRIMARY KEY,          -- its number, in the order of reading
  row_table INTEGER NOT NULL,             -- its ring
  first_ns  INTEGER NOT NULL,             -- [ns] the earliest row, CLOCK_MONOTONIC
  last_ns   INTEGER NOT NULL,             -- [ns] the latest row
  rows      INTEGER NOT NULL,             -- their number
  data      BLOB NOT NULL                 -- the rows: docs/file-format.md
);
