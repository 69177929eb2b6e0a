-- Samples added up during decoding: one row for all that agree in the columns of the query.
-- sample_total(since, until) covers a time, since <= timestamp < until. NULL is no limit.
CREATE VIRTUAL TABLE sample_total(
  pid       INTEGER NOT NULL,             -- the process
  tid       INTEGER NOT NULL,             -- the thread
  cpu       INTEGER NOT NULL,             -- the CPU
  verdict   TEXT NOT NULL,                -- exact | verified | approximate | no_python | python
  stack_end TEXT NOT NULL,                -- complete | completed | truncated | no unwind info | bad memory | frame limit
  stack     INTEGER,                      -- innermost frame; NULL: none
  gil       INTEGER,                      -- 1: the thread held the GIL; 0: it did not; NULL: unknown
  gc        INTEGER,                      -- 1: and its interpreter collected garbage; 0: it did not; NULL: unknown
  state     TEXT,                         -- as in sample
  samples   INTEGER NOT NULL,             -- number of samples
  weight INTEGER NOT NULL              -- [ns] sum of their weights; if run.unit is count: number of events
);
