-- A variable of the environment that the process was started with; os.environ may differ by now. Of a running process.
CREATE VIRTUAL TABLE process.envs(
  name  TEXT NOT NULL,                    -- the variable
  value TEXT                              -- NULL: without '='
);
