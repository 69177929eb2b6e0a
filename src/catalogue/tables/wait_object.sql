-- Waits by their kind and their object: a file, a socket, a pipe, the holder of a lock.
CREATE VIEW wait_object(
  state,                                  -- TEXT kind of the wait, as in sample
  object,                                 -- TEXT as its frame names it, without the brackets; NULL: unknown, or none
  samples,                                -- INTEGER how many
  weight,                                 -- INTEGER [ns] their weight
  share                                   -- REAL [percent] of the weight of all waits
) AS
  WITH sums(state, object, samples, weight) AS MATERIALIZED (
    SELECT COALESCE(outer_function.name, inner_function.name),
           CASE WHEN outer_function.name IS NULL THEN NULL ELSE inner_function.name END, sum(samples), sum(weight)
    FROM stack_total JOIN stack USING(stack)
    JOIN frame ON frame.frame = stack.frame AND frame.kind = 'wait'
    JOIN function AS inner_function ON inner_function.function = frame.function
    LEFT JOIN stack AS outer_stack ON outer_stack.stack = stack.parent
    LEFT JOIN frame AS outer_frame ON outer_frame.frame = outer_stack.frame AND outer_frame.kind = 'wait'
    LEFT JOIN function AS outer_function ON outer_function.function = outer_frame.function
    GROUP BY 1, 2)
  SELECT substr(state, 2, length(state) - 2), substr(object, 2, length(object) - 2), samples, weight,
         100.0 * weight / (SELECT nullif(sum(weight), 0) FROM sums)
  FROM sums ORDER BY weight DESC, state, object;
