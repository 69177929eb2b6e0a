-- Pauses: times without samples.
CREATE TABLE pause(
  started REAL PRIMARY KEY,               -- [seconds since 1970] UTC
  ended   REAL                            -- [seconds since 1970] NULL: it lasts, or the recorder was killed in it
) WITHOUT ROWID;
