-- The machines of the recording's runs: several in merged recordings.
CREATE VIEW cluster.node(
  host,                                   -- TEXT its name
  kernel,                                 -- TEXT uname -r, of the last run
  cpus,                                   -- INTEGER online CPUs, of the last run
  runs,                                   -- INTEGER number of its runs
  started,                                -- REAL [seconds since 1970] when its first run began
  ended                                   -- REAL [seconds since 1970] when its last run ended; NULL: one lasts, or its recorder was killed
) AS
  WITH newest(host, kernel, cpus, started) AS (SELECT host, kernel, cpus, max(started) FROM run GROUP BY host)
  SELECT newest.host, newest.kernel, newest.cpus, count(*), min(run.started),
         CASE WHEN count(*) = count(run.ended) THEN max(run.ended) END
  FROM newest JOIN run ON run.host = newest.host GROUP BY newest.host ORDER BY newest.host;
