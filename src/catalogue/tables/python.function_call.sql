-- A run of a function that `probing attach --config` times: the last 10000 of all these functions. Of a running process.
CREATE VIRTUAL TABLE python.function_call(
  timestamp   REAL NOT NULL,              -- [seconds since 1970] its end
  tid         INTEGER,                    -- the thread; NULL: Python before 3.8
  func        TEXT NOT NULL,              -- python.function_time.func
  duration_ns INTEGER NOT NULL,           -- [ns] real time, with the functions that it calls
  raised      INTEGER NOT NULL            -- 1: it ended with an exception
);
