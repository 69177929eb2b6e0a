-- GPUs of the machine, of a running process or a recording. Without the NVIDIA driver there is no row.
CREATE VIEW gpu.devices(
  device,                                 -- INTEGER its number, as nvidia-smi counts
  name,                                   -- TEXT the product
  uuid,                                   -- TEXT GPU-..., as in CUDA_VISIBLE_DEVICES
  driver,                                 -- TEXT version of the driver
  memory_total_mb,                        -- REAL [MB] device memory
  minor,                                  -- INTEGER of its file /dev/nvidiaN
  host                                    -- TEXT the machine
) AS
  SELECT device, name, uuid, driver, memory_total_mb, minor, host FROM gpu_device;
