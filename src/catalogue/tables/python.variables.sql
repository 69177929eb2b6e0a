-- A value of a variable that `probing attach --config` watches, when it differs from the last one seen: the last 10000. Of a
-- running process.
CREATE VIRTUAL TABLE python.variables(
  timestamp   REAL NOT NULL,              -- [seconds since 1970] when it was read
  tid         INTEGER,                    -- the thread that runs the function; NULL: a variable of a module, or Python before 3.8
  func        TEXT NOT NULL,              -- the function or module, as in the file of probes
  name        TEXT NOT NULL,              -- of the variable
  value       ANY                         -- a number, or a text: repr(), or the type and shape of an object; NULL: None
);
