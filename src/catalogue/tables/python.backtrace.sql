-- The stack of each thread, a row for each frame, innermost first. In a recording the last one. In a running process
-- the current one: probing stops each thread for about a millisecond.
CREATE VIEW python.backtrace(
  tid,                                    -- INTEGER the thread
  thread,                                 -- TEXT its name
  ip,                                     -- INTEGER native code: address in its module, of a running process in that; NULL: Python, or unknown
  file,                                   -- TEXT source file; if unknown, the file with the code
  func,                                   -- TEXT name of the function
  lineno,                                 -- INTEGER executing line
  depth,                                  -- INTEGER 0: innermost
  frame_type                              -- TEXT Python | Native | Kernel; Task and Wait stand for no code
) AS
  WITH RECURSIVE
    last(pid, tid, stack, timestamp) AS MATERIALIZED (
      SELECT pid, tid, stack, max(timestamp) FROM sample GROUP BY pid, tid),
    path(pid, tid, parent, frame, is_eval, depth) AS (
      SELECT pid, tid, parent, frame, is_eval, 0 FROM last JOIN stack USING(stack) JOIN frame USING(frame)
      UNION ALL
      SELECT pid, tid, CASE WHEN frame.inlined_into IS NULL THEN caller.parent ELSE path.parent END,
             COALESCE(frame.inlined_into, caller.frame),
             CASE WHEN frame.inlined_into IS NULL THEN place.is_eval ELSE path.is_eval END, path.depth + 1
      FROM path JOIN frame ON frame.frame = path.frame
      LEFT JOIN stack AS caller ON frame.inlined_into IS NULL AND caller.stack = path.parent
      LEFT JOIN frame AS place ON place.frame = caller.frame
      WHERE COALESCE(frame.inlined_into, caller.frame) IS NOT NULL)
  SELECT path.tid, thread.name, CASE WHEN frame.kind IN ('native', 'kernel') THEN frame.address END,
         COALESCE(named_frame.file, named_frame.module), named_frame.name, nullif(named_frame.line, 0),
         row_number() OVER (PARTITION BY path.pid, path.tid ORDER BY path.depth) - 1,
         upper(substr(frame.kind, 1, 1)) || substr(frame.kind, 2)
  FROM path JOIN named_frame USING(frame) JOIN frame USING(frame)
  LEFT JOIN thread ON thread.pid = path.pid AND thread.tid = path.tid
  WHERE NOT path.is_eval AND named_frame.role IS NOT 'internal'
  ORDER BY path.pid, path.tid, path.depth;
