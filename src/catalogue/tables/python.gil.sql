-- A Python thread, and its use of the GIL: sums over some readings within a fifth of a second. Of a running process; its threads run on.
CREATE VIRTUAL TABLE python.gil(
  tid       INTEGER NOT NULL,             -- the thread
  thread    TEXT NOT NULL,                -- its name
  readings  INTEGER NOT NULL,             -- number of readings of its state
  held      INTEGER NOT NULL,             -- readings in which it held the GIL
  waited    INTEGER NOT NULL              -- readings in which it waited for the GIL
);
