-- A GPU of the machine: record --metrics. gpu.devices shows the same, also of a running process.
CREATE TABLE IF NOT EXISTS gpu_device(
  device          INTEGER NOT NULL,       -- its number, as nvidia-smi counts
  name            TEXT,                   -- the product
  uuid            TEXT,                   -- GPU-..., as in CUDA_VISIBLE_DEVICES
  driver          TEXT,                   -- version of the driver
  memory_total_mb REAL,                   -- [MB] device memory
  minor           INTEGER,                -- of its file /dev/nvidiaN; of AMD /dev/dri/renderDN
  host            TEXT NOT NULL,          -- the machine
  PRIMARY KEY(host, device)
) WITHOUT ROWID;
