-- The same as gpu.summary, in nvprof's layout: times as text with a suitable unit.
CREATE VIEW gpu.nvprof(
  type,                                   -- TEXT GPU activities | API calls | NVTX ranges
  "time(%)",                              -- TEXT share of the time of its type
  time,                                   -- TEXT all together
  calls,                                  -- INTEGER how many
  avg,                                    -- TEXT on average
  min,                                    -- TEXT the shortest
  max,                                    -- TEXT the longest
  name                                    -- TEXT of the kernel, the copy, the function or the range
) AS
  WITH
    line(line, type, share, calls, name, total, avg, least, most) AS (
      SELECT row_number() OVER (), type, time_percent, calls, name, time_ns, avg_ns, min_ns, max_ns FROM gpu.summary),
    value(line, what, ns) AS (
      SELECT line, 1, total FROM line UNION ALL SELECT line, 2, avg FROM line
      UNION ALL SELECT line, 3, least FROM line UNION ALL SELECT line, 4, most FROM line),
    scaled(line, what, number, unit) AS (
      SELECT line, what, ns / CASE WHEN ns >= 1e9 THEN 1e9 WHEN ns >= 1e6 THEN 1e6 WHEN ns >= 1e3 THEN 1e3 ELSE 1.0 END,
             CASE WHEN ns >= 1e9 THEN 's' WHEN ns >= 1e6 THEN 'ms' WHEN ns >= 1e3 THEN 'us' ELSE 'ns' END
      FROM value),
    shown(line, what, text) AS (
      SELECT line, what, CASE WHEN unit = 'ns' THEN printf('%dns', number) WHEN number >= 100 THEN printf('%.2f', number) || unit
             WHEN number >= 10 THEN printf('%.3f', number) || unit ELSE printf('%.4f', number) || unit END
      FROM scaled)
  SELECT type, printf('%.2f%%', share), max(CASE what WHEN 1 THEN text END), calls, max(CASE what WHEN 2 THEN text END),
         max(CASE what WHEN 3 THEN text END), max(CASE what WHEN 4 THEN text END), name
  FROM line JOIN shown USING(line) GROUP BY line ORDER BY line;
