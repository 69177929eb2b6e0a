-- A thread of the process: where it runs, and what it waits for. Of a running process.
CREATE VIRTUAL TABLE cpu.tasks(
  tid                  INTEGER NOT NULL,  -- the thread
  name                 TEXT NOT NULL,     -- as the system has it, 15 bytes at most
  state                TEXT NOT NULL,     -- R running or runnable, S sleeping, D not to be woken, T stopped, t traced, Z ended, I idle
  cpu                  INTEGER NOT NULL,  -- that it runs on, or ran on last
  user_seconds         REAL NOT NULL,     -- [seconds] CPU time in the program
  system_seconds       REAL NOT NULL,     -- [seconds] CPU time in the kernel
  voluntary_switches   INTEGER,           -- how often it left a CPU to wait
  involuntary_switches INTEGER,           -- how often another was given its CPU
  wchan                TEXT,              -- function of the kernel that it sleeps in; NULL: none, or nobody may know
  syscall              TEXT,              -- system call that it is in; NULL: none, it runs, or you may not know
  priority             INTEGER NOT NULL,  -- the kernel's: 20 plus nice; below 0: of real time
  nice                 INTEGER NOT NULL,  -- -20: most CPU time, 19: least
  policy               TEXT,              -- other | fifo | rr | batch | idle | deadline
  started              REAL NOT NULL      -- [seconds since 1970] UTC
);
