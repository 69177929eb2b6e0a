-- The functions of every stack with samples, as in reports. It omits interpreter-internal functions, unless the stack has
-- no others. Inlined functions are frames of their own.
CREATE VIEW stack_path(
  stack,                                  -- INTEGER the stack
  position,                               -- INTEGER 0: innermost, 1: its caller ...
  frame                                   -- INTEGER the place, with its name in named_frame
) AS
  WITH RECURSIVE
    inlined(place, frame, rank, is_eval) AS (
      SELECT frame, frame, 0, is_eval FROM frame
      UNION ALL
      SELECT place, frame.inlined_into, rank + 1, inlined.is_eval FROM inlined JOIN frame USING(frame)
      WHERE frame.inlined_into IS NOT NULL AND rank < 100),
    shown(place, frame, rank) AS MATERIALIZED (
      SELECT place, frame, rank FROM inlined JOIN frame USING(frame) LEFT JOIN function USING(function)
      WHERE NOT inlined.is_eval AND role IS NOT 'internal' ORDER BY place),
    path(leaf, parent, frame, above) AS (
      SELECT stack, parent, frame, 0 FROM stack WHERE stack IN (SELECT stack FROM stack_total)
      UNION ALL
      SELECT leaf, stack.parent, stack.frame, above + 1 FROM path JOIN stack ON stack.stack = path.parent)
  SELECT leaf, row_number() OVER (PARTITION BY leaf ORDER BY above, rank) - 1, shown.frame
  FROM path JOIN shown ON shown.place = path.frame
  UNION ALL
  SELECT leaf.stack, 0, leaf.frame FROM stack AS leaf
  WHERE leaf.stack IN (SELECT stack FROM stack_total) AND NOT EXISTS (
    WITH RECURSIVE up(parent, frame) AS (
      SELECT leaf.parent, leaf.frame
      UNION ALL
      SELECT stack.parent, stack.frame FROM up JOIN stack ON stack.stack = up.parent)
    SELECT 1 FROM up JOIN shown ON shown.place = up.frame);
