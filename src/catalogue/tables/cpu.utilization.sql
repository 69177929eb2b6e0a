-- A CPU of the machine, with its times since boot. Of a running process.
CREATE VIRTUAL TABLE cpu.utilization(
  cpu             INTEGER NOT NULL,       -- its number
  utilization     REAL NOT NULL,          -- share of the time in which it was not idle, 0 to 1
  user_seconds    REAL NOT NULL,          -- [seconds] in programs, guests included
  nice_seconds    REAL NOT NULL,          -- [seconds] in programs of less priority
  system_seconds  REAL NOT NULL,          -- [seconds] in the kernel
  idle_seconds    REAL NOT NULL,          -- [seconds] idle
  iowait_seconds  REAL NOT NULL,          -- [seconds] idle while waiting for a disk
  irq_seconds     REAL NOT NULL,          -- [seconds] serving interrupts
  softirq_seconds REAL NOT NULL,          -- [seconds] deferred work of interrupts
  steal_seconds   REAL NOT NULL           -- [seconds] taken by other machines on the same hardware
);
