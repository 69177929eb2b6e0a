-- A GPU at a moment, once a second: record --metrics. Of a running process: now. NVIDIA's library NVML reads it or, without NVIDIA's driver, AMD's ROCm SMI; without both there is no row.
CREATE TABLE IF NOT EXISTS gpu_metrics(
  timestamp          REAL NOT NULL,       -- [seconds since 1970] UTC
  device             INTEGER NOT NULL,    -- its number, as nvidia-smi counts
  gpu_util           INTEGER,             -- [percent] of the driver's last sample period in which a kernel ran; NULL: unknown, as with MIG
  memory_util        INTEGER,             -- [percent] of that period in which device memory was read or written
  memory_used_mb     REAL,                -- [MB] allocated device memory, of all processes; before driver 510 with the memory that the driver keeps for itself
  memory_total_mb    REAL,                -- [MB] device memory
  temperature_c      INTEGER,             -- [degrees Celsius] of the chip
  power_w            REAL,                -- [W] drawn by the board
  power_limit_w      REAL,                -- [W] the limit that the driver enforces
  energy_j           REAL,                -- [J] drawn since the driver was loaded
  sm_clock_mhz       INTEGER,             -- [MHz] of the multiprocessors
  memory_clock_mhz   INTEGER,             -- [MHz] of the memory
  throttled          INTEGER,             -- 1: power or heat holds the clock below its maximum
  throttle_reasons   TEXT,                -- reasons for the clock, with commas: idle, clock_setting, power_cap, hw_slowdown, sync_boost, thermal, hw_thermal, power_brake, display_clock
  pcie_received_mb_s REAL,                -- [MB/s] received over PCIe, in 20 ms
  pcie_sent_mb_s     REAL,                -- [MB/s] sent over PCIe, in 20 ms
  host               TEXT NOT NULL,       -- the machine
  PRIMARY KEY(timestamp, device, host)
) WITHOUT ROWID;
