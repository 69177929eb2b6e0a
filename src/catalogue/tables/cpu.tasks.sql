-- A thread of the process: its CPU, and the reason of its wait. Of a running process.
CREATE VIRTUAL TABLE cpu.tasks(
  tid                  INTEGER NOT NULL,  -- the thread
  name                 TEXT NOT NULL,     -- the operating system's name, 15 bytes at most
  state                TEXT NOT NULL,     -- R running or runnable, S sleeping, D uninterruptible, T stopped, t traced, Z ended, I idle
  cpu                  INTEGER NOT NULL,  -- the CPU it runs on, or ran on last
  user_seconds         REAL NOT NULL,     -- [seconds] CPU time in the program
  system_seconds       REAL NOT NULL,     -- [seconds] CPU time in the kernel
  voluntary_switches   INTEGER,           -- how often it left a CPU to wait
  involuntary_switches INTEGER,           -- how often it was preempted
  wchan                TEXT,              -- function of the kernel that it sleeps in; NULL: none, or hidden
  syscall              TEXT,              -- system call that it is in; NULL: none, running, or hidden
  priority             INTEGER NOT NULL,  -- the kernel's: 20 plus nice; below 0: of real time
  nice                 INTEGER NOT NULL,  -- -20: most CPU time, 19: least
  policy               TEXT,              -- other | fifo | rr | batch | idle | deadline
  started              REAL NOT NULL      -- [seconds since 1970] UTC
);
