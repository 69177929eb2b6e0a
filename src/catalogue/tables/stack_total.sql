-- All samples of a thread with the same stack, added up.
CREATE TABLE stack_total(
  pid       INTEGER NOT NULL,             -- the process
  tid       INTEGER NOT NULL,             -- the thread
  stack     INTEGER NOT NULL,             -- innermost frame's stack; 0: none
  samples   INTEGER NOT NULL,             -- number of samples
  weight INTEGER NOT NULL,             -- [ns] see sample
  PRIMARY KEY(pid, tid, stack)
) WITHOUT ROWID;
