-- Samples, some thousands in a row, as compressed columns: docs/file-format.md. The table sample shows them.
CREATE TABLE sample_block(
  first     INTEGER PRIMARY KEY,          -- number of its first sample; the others follow it
  samples   INTEGER NOT NULL,             -- how many there are
  started   REAL NOT NULL,                -- [seconds since 1970] UTC: the earliest of their times
  ended     REAL NOT NULL,                -- [seconds since 1970] the latest
  weight INTEGER NOT NULL,             -- [ns] sum of their weights; if run.unit is count: number of events
  threads   BLOB,                         -- pid and tid, 4 bytes each, of each thread among them; NULL: many
  data      BLOB NOT NULL                 -- the columns
);
