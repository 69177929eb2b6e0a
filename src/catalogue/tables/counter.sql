-- Exact counts of the recording: samples, lost, throttled, dropped, ...
CREATE TABLE counter(
  name  TEXT PRIMARY KEY,                 -- its name
  value INTEGER NOT NULL                  -- its value
) WITHOUT ROWID;
