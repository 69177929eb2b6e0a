-- A rank of a distributed job, a missing one, or a host that did not answer. Of `probing cluster query` and `probing cluster nodes`.
CREATE VIRTUAL TABLE cluster.nodes(
  host        TEXT,                       -- name of its machine; NULL: of a missing rank
  addr        TEXT,                       -- the machine as --hosts named it; NULL: this one
  rank        INTEGER,                    -- number in its job; NULL: unknown, or a host that did not answer
  local_rank  INTEGER,                    -- number on its machine; NULL: unknown
  world_size  INTEGER,                    -- ranks of its job; NULL: unknown
  role_name   TEXT,                       -- role that torchrun gave it; NULL: none
  job         TEXT,                       -- its job, as --job takes it; NULL: unknown
  pid         INTEGER,                    -- the process, on its machine; NULL: there is none
  status      TEXT NOT NULL,              -- running, stopped, traced, gone, not permitted, too slow, failed, missing, unreachable
  problem     TEXT,                       -- why it was not read; NULL: it was
  timestamp   REAL                        -- [seconds since 1970] when it was read; NULL: it was not
);
