-- A function that `probing attach --config` times: the sums of all its calls. Of a running process. A generator or
-- coroutine has a run between each two of its suspensions; of other functions a run is a call.
CREATE VIRTUAL TABLE python.function_time(
  func        TEXT NOT NULL,              -- its name, as in the file of probes
  calls       INTEGER NOT NULL,           -- calls that began
  runs        INTEGER NOT NULL,           -- runs that ended
  total_ns    INTEGER NOT NULL,           -- [ns] real time of these runs, with the functions that they call
  min_ns      INTEGER,                    -- [ns] shortest run; NULL: none has ended
  max_ns      INTEGER,                    -- [ns] longest run; NULL: none has ended
  raised      INTEGER NOT NULL            -- runs that ended with an exception
);
