-- A process group, as an imported dump of PyTorch's Flight Recorder has it: a row for each dump and group.
CREATE TABLE IF NOT EXISTS comm_flight_group(
  flight_group   INTEGER PRIMARY KEY,     -- its row
  dump           TEXT NOT NULL,           -- name of the imported file
  rank           INTEGER,                 -- rank of the dump, by the file's name; NULL: unknown
  "group"        TEXT NOT NULL,           -- process group
  description    TEXT,                    -- of the group: default_pg; NULL: none
  ranks          TEXT,                    -- its ranks, as a JSON array; NULL: unknown
  last_enqueued  INTEGER,                 -- number of the last operation that was enqueued; NULL: unknown
  last_started   INTEGER,                 -- number of the last one that has started; NULL: unknown
  last_completed INTEGER                  -- number of the last one that has completed; NULL: unknown
);
