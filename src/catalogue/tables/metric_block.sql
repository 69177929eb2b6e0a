-- Older rows of a table of metrics (process_usage, machine_usage ...), compressed. probing shows them in that table, the stock sqlite3 does not.
CREATE TABLE metric_block(
  metric_block INTEGER PRIMARY KEY,       -- its number
  name      TEXT NOT NULL,                -- the table
  first     REAL NOT NULL,                -- [seconds since 1970] the earliest row
  last      REAL NOT NULL,                -- [seconds since 1970] the latest row
  rows      INTEGER NOT NULL,             -- their number
  data      BLOB NOT NULL                 -- the rows: docs/file-format.md
);
