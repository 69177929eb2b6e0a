-- A function: Python, native or kernel; or a task, or the reason of a wait.
CREATE TABLE function(
  function   INTEGER PRIMARY KEY,         -- its number
  name       TEXT NOT NULL,               -- qualified (Python), demangled (native), as Python calls it (builtins); 'task ...' of asyncio tasks, '[sleep]' and others of waits
  symbol     TEXT,                        -- linkage name, if it differs
  kind       TEXT NOT NULL,               -- python | native | kernel | task | wait | unsampled
  role       TEXT,                        -- builtin: a C function Python can call; internal: interpreter-internal functions
  file       TEXT,                        -- source file
  first_line INTEGER,                     -- where it begins in file
  module     INTEGER REFERENCES module    -- NULL: Python, or generated code
);
