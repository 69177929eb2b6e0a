-- Every frame with a name, even before it is resolved.
CREATE VIEW named_frame(
  frame,                                  -- INTEGER its number
  kind,                                   -- TEXT python | native | kernel | task | wait
  name,                                   -- TEXT of its function; libfoo.so+0x1234 if the function is unknown
  role,                                   -- TEXT builtin: a C function Python can call; internal: interpreter-internal functions
  file,                                   -- TEXT source file
  line,                                   -- INTEGER executing line
  module,                                 -- TEXT path of the file with the code
  is_eval,                                -- INTEGER 1: interpreter loop that runs the Python frames it calls
  inlined_into                            -- INTEGER this function's code was inlined into that frame's
) AS
  SELECT frame.frame, frame.kind,
         COALESCE(function.name,
                  CASE frame.kind
                    WHEN 'native' THEN COALESCE(replace(module.path, rtrim(module.path, replace(module.path, '/', '')), ''), '[anonymous]')
                                       || CASE WHEN module.path IS NULL THEN '' ELSE printf('+0x%x', frame.address) END
                    ELSE '[' || frame.kind || ']' END),
         function.role, function.file, frame.line, module.path,
         frame.is_eval, frame.inlined_into
  FROM frame LEFT JOIN function USING(function)
  LEFT JOIN module ON module.module = COALESCE(frame.module, function.module);
