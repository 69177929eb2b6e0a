-- A sample: the stack of a thread at one moment. Decoded from sample_block by probing, or by its
-- extension probing_sqlite; rowid is its number. Values of a tracepoint follow as further columns.
CREATE VIRTUAL TABLE sample(
  timestamp REAL NOT NULL,                -- [seconds since 1970] UTC; of a wait: when the thread left the CPU
  pid       INTEGER NOT NULL,             -- the process
  tid       INTEGER NOT NULL,             -- the thread
  cpu       INTEGER NOT NULL,             -- the CPU it ran on
  weight INTEGER NOT NULL,             -- [ns] time this sample stands for, on or off CPU; if run.unit is count: number of events
  verdict   TEXT NOT NULL,                -- exact | verified | approximate | no_python | python
  stack_end TEXT NOT NULL,                -- complete | completed | truncated | no unwind info | bad memory | frame limit
  stack     INTEGER,                      -- innermost frame; NULL: none
  gil       INTEGER,                      -- 1: the thread held the GIL; 0: it did not; NULL: unknown
  gc        INTEGER,                      -- 1: and its interpreter collected garbage; 0: it did not; NULL: unknown
  state     TEXT,                         -- running | runnable | sleep | lock | gil | io | child | blocked | await (an asyncio task, record --tasks); NULL if run.mode is neither wall nor offcpu: all ran
  event     TEXT,                         -- the sampling event: run.event
  idle      INTEGER NOT NULL,             -- 1: the thread waited; 0: it ran, or was ready to run
  step      INTEGER,                      -- probing.step() that the thread was in, else its process; NULL: none. Of the rows in row_block, as are:
  span      TEXT,                         -- innermost open probing.span() of the thread; NULL: none
  phase     TEXT,                         -- outermost open one: of the thread, or, if it never has any, of the thread that calls step(); NULL: none
  torch_module TEXT,                      -- innermost module, optimizer or data loader of torch_trace whose pass the thread was in: layer3.0.conv2; NULL: none
  torch_stage TEXT,                       -- of that pass: forward | backward | step | data; NULL: none
  host      TEXT,                         -- machine of the process, as in process
  rank      INTEGER,                      -- rank of the process in its distributed job, as in process; NULL: none
  local_rank INTEGER                      -- its number on its machine; NULL: unknown
);
