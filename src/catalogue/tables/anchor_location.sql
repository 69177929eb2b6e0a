-- Where an interpreter's functions keep the anchors of their Python frames, as learnt while recording. The same
-- for all recordings of one build.
CREATE TABLE anchor_location(
  module    INTEGER NOT NULL REFERENCES module, -- the interpreter
  address   INTEGER NOT NULL,             -- of the function, in the module
  holds     TEXT NOT NULL,                -- anchor: points to its frames; bytecode, next: point into the running bytecode; frame: the innermost frame
  is_leaf   INTEGER NOT NULL,             -- 1: while the function is the leaf; 0: while it calls another one
  below_cfa INTEGER,                      -- [bytes] from the canonical frame address down to it; NULL: it is in a register
  register  INTEGER,                      -- DWARF number; NULL: it is on the stack
  agreed    INTEGER NOT NULL,             -- number of readings that confirmed it ...
  tries     INTEGER NOT NULL,             -- ... of this number of readings
  PRIMARY KEY(module, address, holds, is_leaf)
) WITHOUT ROWID;
