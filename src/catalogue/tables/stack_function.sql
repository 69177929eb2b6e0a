-- The innermost function of each stack, without interpreter-internal functions and wait frames.
CREATE VIEW stack_function(
  stack,                                  -- INTEGER the stack
  frame                                   -- INTEGER the place, with its name in named_frame
) AS
  WITH RECURSIVE
    hidden(frame) AS MATERIALIZED (
      SELECT frame FROM frame LEFT JOIN function USING(function)
      WHERE is_eval OR role IS 'internal' OR frame.kind = 'wait' ORDER BY frame),
    step(stack, parent, frame, is_eval) AS (
      SELECT stack, parent, frame, is_eval FROM stack JOIN frame USING(frame)
      UNION ALL
      SELECT step.stack, CASE WHEN frame.inlined_into IS NULL THEN caller.parent ELSE step.parent END,
             COALESCE(frame.inlined_into, caller.frame),
             CASE WHEN frame.inlined_into IS NULL THEN place.is_eval ELSE step.is_eval END
      FROM step JOIN frame ON frame.frame = step.frame
      LEFT JOIN stack AS caller ON frame.inlined_into IS NULL AND caller.stack = step.parent
      LEFT JOIN frame AS place ON place.frame = caller.frame
      WHERE (step.is_eval OR step.frame IN hidden) AND COALESCE(frame.inlined_into, caller.frame) IS NOT NULL),
    found(stack, frame) AS MATERIALIZED (
      SELECT stack, frame FROM step WHERE NOT is_eval AND frame NOT IN hidden ORDER BY stack)
  SELECT stack.stack, COALESCE(found.frame, stack.frame) FROM stack LEFT JOIN found USING(stack);
