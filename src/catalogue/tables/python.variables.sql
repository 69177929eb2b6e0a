-- Values of local variables. `probing config probing.watch_vars` adds each assignment (the last 32768). `probing attach --config` reads
-- them from time to time, and adds each value that differs from the one before (the last 10000). Of a running process;
-- the former also of one that has ended, and of a recording.
CREATE VIRTUAL TABLE python.variables(
  timestamp   REAL NOT NULL,              -- [seconds since 1970] when it was read
  step        INTEGER,                    -- number of probing.step() then; NULL: there was none, or attach --config read it
  func        TEXT NOT NULL,              -- the function or module, as it was named
  name        TEXT NOT NULL,              -- of the variable
  value       ANY,                        -- a number, or a text: repr(), or the type and shape of an object; NULL: None
  tid         INTEGER                     -- the thread that runs the function; NULL: a variable of a module, or Python before 3.8
);
