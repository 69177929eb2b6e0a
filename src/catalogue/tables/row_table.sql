-- A ring whose rows a program wrote: probing.log, event, step, span, ExternalTable. Rings of one name are one table of the
-- schema python (python.steps). docs/rings.md has more.
CREATE TABLE row_table(
  row_table INTEGER PRIMARY KEY,          -- its number
  pid       INTEGER NOT NULL,             -- the process that wrote them
  name      TEXT NOT NULL,                -- of the table
  realtime_offset_ns INTEGER NOT NULL,    -- [ns] CLOCK_REALTIME - CLOCK_MONOTONIC of the recording
  lost      INTEGER NOT NULL,             -- rows that the ring evicted before the recorder read them
  dropped   INTEGER NOT NULL,             -- rows for which the ring had no free slot
  unfit     INTEGER NOT NULL              -- values that became NULL, because their column has another type
);
