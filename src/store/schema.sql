-- The file a recording is kept in. Any SQLite tool opens it; nothing here needs probing.
-- One row per line of documentation: "-- table.column: ..." is what DESCRIBE will print.

-- One recording. ended and clean are written when it finishes; a file whose
-- recorder was killed has ended NULL and clean 0, and holds all up to the last flush.
CREATE TABLE run(
  run           INTEGER PRIMARY KEY,
  started       REAL NOT NULL,            -- seconds since 1970 (UTC)
  ended         REAL,
  clean         INTEGER NOT NULL DEFAULT 0,
  command       TEXT NOT NULL,            -- what was recorded: a command line
  pid           INTEGER NOT NULL,
  mode          TEXT NOT NULL,            -- cpu: CPU time; wall: time, of threads that do not run, too; offcpu: of those alone; event: something else than time
  hz            REAL NOT NULL,            -- 0: samples were taken by period
  stack_source  TEXT NOT NULL,            -- interpreter memory is read, bpf: inside the sampling interrupt; read: after the wake-up; poll: at intervals, nothing else
  python        TEXT,                     -- version of the first interpreter found; NULL: none
  kernel_frames INTEGER NOT NULL,         -- 1: time inside the kernel was sampled as well
  host          TEXT NOT NULL,
  kernel        TEXT NOT NULL,            -- uname -r
  cpus          INTEGER NOT NULL,         -- online CPUs
  probing       TEXT NOT NULL,            -- version that wrote the file
  event         TEXT NOT NULL DEFAULT 'cpu-clock', -- what samples were taken at; a tracepoint's values are in the table of its name
  unit          TEXT NOT NULL DEFAULT 'ns', -- of weight_ns: ns, nanoseconds; count, how many of that event
  period        INTEGER                   -- a sample at one event of so many; NULL: at a frequency
);
CREATE TABLE process(
  pid        INTEGER PRIMARY KEY,
  parent_pid INTEGER,
  name       TEXT NOT NULL,               -- comm
  command    TEXT NOT NULL,               -- command line, '' where it was gone
  python     TEXT,                        -- version of its interpreter; NULL: none found
  started    REAL NOT NULL,               -- first seen
  ended      REAL                         -- exit seen
);
CREATE TABLE thread(
  pid     INTEGER NOT NULL,
  tid     INTEGER NOT NULL,               -- 0: all that were about to end and had no number any more
  name    TEXT NOT NULL,                  -- as the operating system knows it
  started REAL NOT NULL,
  ended   REAL,
  PRIMARY KEY(pid, tid)
) WITHOUT ROWID;
CREATE TABLE module(
  module   INTEGER PRIMARY KEY,
  path     TEXT NOT NULL,
  build_id TEXT                           -- hexadecimal; NULL: none or not readable
);
CREATE TABLE function(
  function   INTEGER PRIMARY KEY,
  name       TEXT NOT NULL,               -- qualified (Python), demangled (native), as Python calls it (builtins); 'task ...' of asyncio tasks, '[sleep]' and the like of waits
  symbol     TEXT,                        -- linkage name, where it differs
  kind       TEXT NOT NULL,               -- python | native | kernel | task | wait
  role       TEXT,                        -- builtin: a C function Python can call; glue: the interpreter's plumbing
  file       TEXT,                        -- source file
  first_line INTEGER,
  module     INTEGER REFERENCES module
);
-- A place in the code. function is NULL until its name has been looked up.
CREATE TABLE frame(
  frame        INTEGER PRIMARY KEY,
  kind         TEXT NOT NULL,             -- python | native | kernel | task | wait
  function     INTEGER REFERENCES function,
  line         INTEGER,                   -- executing line
  column       INTEGER,                   -- python, from 3.11: first byte of the executing expression in its line, from 1
  end_line     INTEGER,                   -- its last line
  end_column   INTEGER,                   -- its last byte in that line
  module       INTEGER REFERENCES module,
  address      INTEGER,                   -- native: in the module's own address space, NULL in generated code; python: bytes into the bytecode
  is_eval      INTEGER NOT NULL DEFAULT 0,-- 1: interpreter loop that runs the Python frames it calls
  without_cfi  INTEGER NOT NULL DEFAULT 0,-- 1: native: its caller was found by search or by the frame pointer
  inlined_into INTEGER REFERENCES frame   -- this function's code was inlined into that frame's
);
-- Calling-context tree: a row is a stack, its parent the stack of the caller.
CREATE TABLE stack(
  stack  INTEGER PRIMARY KEY,
  parent INTEGER REFERENCES stack,        -- NULL: outermost frame
  frame  INTEGER NOT NULL REFERENCES frame,
  depth  INTEGER NOT NULL                 -- 0: outermost
);
CREATE TABLE stack_total(
  pid       INTEGER NOT NULL,
  tid       INTEGER NOT NULL,
  stack     INTEGER NOT NULL,             -- innermost frame's stack; 0: nothing could be read
  samples   INTEGER NOT NULL,
  weight_ns INTEGER NOT NULL,             -- time they stand for, on a CPU or waiting; where run.unit is count: how many events
  PRIMARY KEY(pid, tid, stack)
) WITHOUT ROWID;
-- Samples, some thousands in a row, as compressed columns: docs/file-format.md. The table `sample` shows them,
-- to whoever has loaded the extension probing_sqlite.
CREATE TABLE sample_block(
  first     INTEGER PRIMARY KEY,          -- number of its first sample; the others follow it
  samples   INTEGER NOT NULL,             -- how many there are
  started   REAL NOT NULL,                -- the earliest of their times, seconds since 1970 (UTC)
  ended     REAL NOT NULL,                -- the latest
  weight_ns INTEGER NOT NULL,             -- what they weigh together
  threads   BLOB,                         -- pid and tid, 4 bytes each, of each thread among them; NULL: many
  data      BLOB NOT NULL                 -- the columns
);
-- lost, throttled, samples, ...: exact counts of the recording.
-- Where an interpreter's functions were found to keep what their Python frames are known by. The same
-- for all recordings of one build.
CREATE TABLE evaluation_place(
  module    INTEGER NOT NULL REFERENCES module, -- the interpreter
  address   INTEGER NOT NULL,             -- of the function, in the module
  holds     TEXT NOT NULL,                -- anchor: leads to its frames; bytecode, next: point into what runs; frame: the innermost
  is_leaf   INTEGER NOT NULL,             -- 1: where the function is innermost; 0: where it has called something
  below_cfa INTEGER,                      -- bytes from the canonical frame address down to it; NULL: it is in a register
  register  INTEGER,                      -- DWARF number; NULL: it is on the stack
  agreed    INTEGER NOT NULL,             -- how often it was what memory showed ...
  tries     INTEGER NOT NULL,             -- ... of so many times
  PRIMARY KEY(module, address, holds, is_leaf)
) WITHOUT ROWID;
-- When recording was paused: nothing is known of these times.
CREATE TABLE pause(
  started REAL PRIMARY KEY,               -- seconds since 1970 (UTC)
  ended   REAL                            -- NULL: it lasts, or the recorder was killed in it
) WITHOUT ROWID;
CREATE TABLE counter(
  name  TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) WITHOUT ROWID;

-- Every frame with a name, also while names are still being looked up.
CREATE VIEW named_frame AS
  SELECT frame.frame, frame.kind,
         COALESCE(function.name,
                  CASE frame.kind
                    WHEN 'native' THEN COALESCE(replace(module.path, rtrim(module.path, replace(module.path, '/', '')), ''), '[anonymous]')
                                       || CASE WHEN module.path IS NULL THEN '' ELSE printf('+0x%x', frame.address) END
                    ELSE '[' || frame.kind || ']' END) AS name,
         function.role, function.file, frame.line, module.path AS module,
         frame.is_eval, frame.inlined_into
  FROM frame LEFT JOIN function USING(function)
  LEFT JOIN module ON module.module = COALESCE(frame.module, function.module);
