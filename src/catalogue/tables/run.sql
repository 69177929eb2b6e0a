-- One recording. ended and clean are written when it finishes; a file whose
-- recorder was killed has ended NULL and clean 0, and holds all up to the last flush.
CREATE TABLE run(
  run           INTEGER PRIMARY KEY,      -- 1
  started       REAL NOT NULL,            -- [seconds since 1970] UTC
  ended         REAL,                     -- [seconds since 1970] when sampling did; names may have been looked up after it; NULL: it lasts, or its recorder was killed
  clean         INTEGER NOT NULL DEFAULT 0, -- 1: it ended by itself
  command       TEXT NOT NULL,            -- what was recorded: a command line
  pid           INTEGER NOT NULL,         -- of what was recorded; its children have rows in process
  mode          TEXT NOT NULL,            -- cpu: CPU time; wall: time, of threads that do not run, too; offcpu: of those alone; event: something else than time; imported: another profiler's
  hz            REAL NOT NULL,            -- [1/s] 0: samples were taken by period
  stack_source  TEXT NOT NULL,            -- interpreter memory is read, bpf: inside the sampling interrupt; wakeup: right after the sample; poll: at intervals, nothing else; of what was imported its format
  python        TEXT,                     -- version of the first interpreter found; NULL: none
  kernel_frames INTEGER NOT NULL,         -- 1: time inside the kernel was sampled as well
  host          TEXT NOT NULL,            -- its name
  kernel        TEXT NOT NULL,            -- uname -r
  cpus          INTEGER NOT NULL,         -- online CPUs
  probing       TEXT NOT NULL,            -- version that wrote the file
  event         TEXT NOT NULL DEFAULT 'cpu-clock', -- what samples were taken at; a tracepoint's values are in the table of its name
  unit          TEXT NOT NULL DEFAULT 'ns', -- of weight: ns, nanoseconds; count, how many of that event
  period        INTEGER,                  -- a sample at one event of so many; NULL: at a frequency
  cpu_model     TEXT                      -- the processor, as it calls itself; NULL: not known
);
