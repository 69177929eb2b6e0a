-- Exact counts of the recording: samples, lost, throttled, dropped, ...
CREATE TABLE counter(
  name  TEXT PRIMARY KEY,                 -- of what
  value INTEGER NOT NULL                  -- how many
) WITHOUT ROWID;
