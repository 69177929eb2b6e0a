-- One recording. The recorder writes ended and clean when it finishes. A file whose recorder was killed
-- has ended NULL and clean 0, and holds all up to the last flush.
CREATE TABLE run(
  run           INTEGER PRIMARY KEY,      -- 1
  started       REAL NOT NULL,            -- [seconds since 1970] UTC
  ended         REAL,                     -- [seconds since 1970] end of sampling; NULL: in progress, or the recorder was killed
  clean         INTEGER NOT NULL DEFAULT 0, -- 1: it ended without an error
  command       TEXT NOT NULL,            -- command line of the recorded program
  pid           INTEGER NOT NULL,         -- the recorded process; its children have rows in process
  mode          TEXT NOT NULL,            -- cpu: CPU time; wall: time on and off CPU; offcpu: time off CPU; event: an event other than time; imported: from another profiler
  hz            REAL NOT NULL,            -- [1/s] 0: sampled by period
  stack_source  TEXT NOT NULL,            -- reader of Python frames: bpf: inside the sampling interrupt; wakeup: directly after the sample; poll: on a timer, without native frames; agent: by the sampled thread itself; none: no samples were taken (--metrics-only); of imports the format
  python        TEXT,                     -- version of the first interpreter found; NULL: none
  kernel_frames INTEGER NOT NULL,         -- 1: time inside the kernel is included
  host          TEXT NOT NULL,            -- its name
  kernel        TEXT NOT NULL,            -- uname -r
  cpus          INTEGER NOT NULL,         -- online CPUs
  probing       TEXT NOT NULL,            -- version that wrote the file
  event         TEXT NOT NULL DEFAULT 'cpu-clock', -- the sampling event; the values of a tracepoint are in the table of its name
  unit          TEXT NOT NULL DEFAULT 'ns', -- of weight: ns, nanoseconds; count, number of that event
  period        INTEGER,                  -- a sample at every Nth event; NULL: at a frequency
  cpu_model     TEXT,                     -- the processor's own name; NULL: unknown
  clock_offset  REAL,                     -- [seconds] that its clock was ahead of the clock of the machine that ran probing cluster record; times are corrected; NULL: not measured
  clock_error   REAL                      -- [seconds] limit of that measurement's error; NULL: not measured
);
