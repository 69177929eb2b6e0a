-- Samples added up while they are unpacked: a row for all that agree in those columns that the query names.
-- sample_total(since, until) is of a time, since <= timestamp < until; NULL is no limit.
CREATE VIRTUAL TABLE sample_total(
  pid       INTEGER NOT NULL,             -- the process
  tid       INTEGER NOT NULL,             -- the thread
  cpu       INTEGER NOT NULL,             -- the CPU
  verdict   TEXT NOT NULL,                -- exact | verified | approximate | no_python | python
  stack_end TEXT NOT NULL,                -- complete | completed | truncated | no unwind info | bad memory | frame limit
  stack     INTEGER,                      -- innermost frame; NULL: nothing could be read
  gil       INTEGER,                      -- 1: the thread held the GIL; 0: it did not; NULL: not known
  gc        INTEGER,                      -- 1: and its interpreter collected garbage; 0: it did not; NULL: not known
  state     TEXT,                         -- as in sample
  samples   INTEGER NOT NULL,             -- how many
  weight INTEGER NOT NULL              -- [ns] what they weigh together; where run.unit is count: events
);
