-- A function: Python, native or kernel; or a task, or what a thread waits for.
CREATE TABLE function(
  function   INTEGER PRIMARY KEY,         -- its number
  name       TEXT NOT NULL,               -- qualified (Python), demangled (native), as Python calls it (builtins); 'task ...' of asyncio tasks, '[sleep]' and the like of waits
  symbol     TEXT,                        -- linkage name, where it differs
  kind       TEXT NOT NULL,               -- python | native | kernel | task | wait | unsampled
  role       TEXT,                        -- builtin: a C function Python can call; internal: interpreter-internal functions
  file       TEXT,                        -- source file
  first_line INTEGER,                     -- where it begins in file
  module     INTEGER REFERENCES module    -- NULL: Python, or generated code
);
