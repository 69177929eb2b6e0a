-- A column of a row_table.
CREATE TABLE row_column(
  row_table INTEGER NOT NULL,             -- its ring
  position  INTEGER NOT NULL,             -- from 0
  name      TEXT NOT NULL,                -- its name
  type      TEXT NOT NULL,                -- INTEGER | REAL | ANY (integers and reals) | TEXT
  PRIMARY KEY(row_table, position)
) WITHOUT ROWID;
