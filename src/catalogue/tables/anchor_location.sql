-- Where an interpreter's functions were found to keep what their Python frames are known by. The same
-- for all recordings of one build.
CREATE TABLE anchor_location(
  module    INTEGER NOT NULL REFERENCES module, -- the interpreter
  address   INTEGER NOT NULL,             -- of the function, in the module
  holds     TEXT NOT NULL,                -- anchor: leads to its frames; bytecode, next: point into what runs; frame: the innermost
  is_leaf   INTEGER NOT NULL,             -- 1: where the function is innermost; 0: where it has called something
  below_cfa INTEGER,                      -- [bytes] from the canonical frame address down to it; NULL: it is in a register
  register  INTEGER,                      -- DWARF number; NULL: it is on the stack
  agreed    INTEGER NOT NULL,             -- how often it was what memory showed ...
  tries     INTEGER NOT NULL,             -- ... of so many times
  PRIMARY KEY(module, address, holds, is_leaf)
) WITHOUT ROWID;
