-- A code location. function is NULL until it is resolved.
CREATE TABLE frame(
  frame        INTEGER PRIMARY KEY,       -- its number
  kind         TEXT NOT NULL,             -- python | native | kernel | task | wait | unsampled
  function     INTEGER REFERENCES function, -- the innermost of several inlined ones
  line         INTEGER,                   -- executing line
  column       INTEGER,                   -- python, from 3.11: first byte of the executing expression in its line, from 1
  end_line     INTEGER,                   -- its last line
  end_column   INTEGER,                   -- its last byte in that line
  module       INTEGER REFERENCES module, -- native: the module with the code
  address      INTEGER,                   -- native: in the module's own address space, NULL in generated code; kernel: from the kernel's or a module's start, never absolute; python: bytes into the bytecode
  is_eval      INTEGER NOT NULL DEFAULT 0,-- 1: interpreter loop that runs the Python frames it calls
  without_cfi  INTEGER NOT NULL DEFAULT 0,-- 1: native: its caller was found by search or by the frame pointer
  inlined_into INTEGER REFERENCES frame   -- this function's code was inlined into that frame's
);
