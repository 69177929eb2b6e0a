-- Calling-context tree: a row is a stack, its parent the stack of the caller.
CREATE TABLE stack(
  stack  INTEGER PRIMARY KEY,             -- its number
  parent INTEGER REFERENCES stack,        -- NULL: outermost frame
  frame  INTEGER NOT NULL REFERENCES frame, -- its innermost
  depth  INTEGER NOT NULL                 -- 0: outermost
);
