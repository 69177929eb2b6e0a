-- A sample: what a thread did, or waited for, at one moment. Unpacked out of sample_block by probing, or by its
-- extension probing_sqlite; rowid is its number. What a tracepoint told follows as further columns.
CREATE VIRTUAL TABLE sample(
  timestamp REAL NOT NULL,                -- [seconds since 1970] UTC; of a wait: when the thread left the CPU
  pid       INTEGER NOT NULL,             -- the process
  tid       INTEGER NOT NULL,             -- the thread
  cpu       INTEGER NOT NULL,             -- the CPU it ran on
  weight INTEGER NOT NULL,             -- [ns] time this sample stands for, on a CPU or waiting; where run.unit is count: how many events
  verdict   TEXT NOT NULL,                -- exact | verified | approximate | no_python | python
  stack_end TEXT NOT NULL,                -- complete | completed | truncated | no unwind info | bad memory | frame limit
  stack     INTEGER,                      -- innermost frame; NULL: nothing could be read
  gil       INTEGER,                      -- 1: the thread held the GIL; 0: it did not; NULL: not known
  gc        INTEGER,                      -- 1: and its interpreter collected garbage; 0: it did not; NULL: not known
  state     TEXT,                         -- running | runnable | sleep | lock | gil | io | child | blocked; NULL where run.mode is neither wall nor offcpu: all ran
  event     TEXT,                         -- what it was taken at: run.event
  idle      INTEGER NOT NULL              -- 1: the thread waited; 0: it ran, or could have run
);
