# SPDX-License-Identifier: MIT
"""GPUs by NVML: of a running process and in recordings. A fixture with NVML's names stands in for drivers that fail."""
import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import time
import unittest

import probing_test as t
from probing_test import probing

SMI_FIELDS = ("index", "name", "uuid", "driver_version", "memory.total", "power.limit")

# Fills 1 GB of the device and multiplies matrices until it is killed.
BUSY = """
import torch
kept = torch.zeros(1 << 28, device="cuda")
a = torch.randn(4096, 4096, device="cuda")
torch.cuda.synchronize()
print("ready", flush=True)
while True:
    for _ in range(50):
        a @ a
    torch.cuda.synchronize()
"""
# The same by the CUDA driver alone, where no torch is: memory, and memory sets in place of kernels.
BUSY_BY_DRIVER = """
cuda = ctypes.CDLL("libcuda.so.1")
device, context, place = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
def call(name, *arguments):
    code = getattr(cuda, name)(*arguments)
    if code:
        raise SystemExit("%s: %d" % (name, code))
call("cuInit", 0)
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuCtxCreate_v2", ctypes.byref(context), 0, device)
call("cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(1 << 30))
print("ready", flush=True)
while True:
    for _ in range(200):
        call("cuMemsetD32_v2", place, 0, ctypes.c_size_t(1 << 28))
    call("cuCtxSynchronize")
"""


def smi(query="gpu", fields=SMI_FIELDS):
    found = subprocess.run(["nvidia-smi", "--query-%s=%s" % (query, ",".join(fields)), "--format=csv,noheader,nounits"],
                           stdout=subprocess.PIPE, check=True, text=True).stdout
    return [dict(zip(fields, (value.strip() for value in line.split(", ")))) for line in found.splitlines() if line]


def gpu_refusal():
    if not shutil.which("nvidia-smi"):
        return "no nvidia-smi"
    if subprocess.run(["nvidia-smi", "-L"], stdout=subprocess.PIPE, check=False).returncode != 0:
        return "nvidia-smi finds no GPU"
    return None


def busy_command():
    for python in (t.DEBIAN_PYTHON, shutil.which("python3")):
        if python and subprocess.run([python, "-c", "import torch; torch.zeros(1, device='cuda')"],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0:
            return [python, "-c", BUSY]
    return [shutil.which("python3") or t.DEBIAN_PYTHON, "-c", BUSY_BY_DRIVER]


@contextlib.contextmanager
def busy():
    with subprocess.Popen(busy_command(), stdout=subprocess.PIPE, text=True) as process:
        try:
            if process.stdout.readline() != "ready\n":
                raise AssertionError("the program that uses the GPU has not started")
            yield process
        finally:
            process.kill()


def n_rows(path, table):
    """Of a recording that goes on."""
    try:
        with contextlib.closing(t.connect(path)) as db:
            return db.execute("SELECT count(*) FROM " + table).fetchone()[0]
    except sqlite3.Error:
        return 0


def rows(path, sql, **more):
    return json.loads(probing("sql", path, sql, "-f", "json", check=t.OK, **more).stdout)


@unittest.skipIf(gpu_refusal(), gpu_refusal())
class Gpu(t.Case):
    """On a GPU, beside nvidia-smi."""

    def test_devices(self):
        found = rows(os.getpid(), "SELECT * FROM gpu.devices ORDER BY device")
        wanted = smi()
        self.assertEqual(len(wanted), len(found))
        for smi_row, row in zip(wanted, found):
            self.assertEqual([int(smi_row["index"]), smi_row["name"], smi_row["uuid"], smi_row["driver_version"]],
                             [row["device"], row["name"], row["uuid"], row["driver"]])
            self.assertAlmostEqual(float(smi_row["memory.total"]), row["memory_total_mb"], delta=1)

    def test_an_idle_device(self):
        found = rows(os.getpid(), "SELECT * FROM gpu_metrics ORDER BY device")
        wanted = smi(fields=("index", "memory.used", "temperature.gpu", "power.draw", "clocks.max.sm", "clocks.max.mem", "enforced.power.limit"))
        self.assertEqual(len(wanted), len(found))
        for smi_row, row in zip(wanted, found):
            self.assertAlmostEqual(time.time(), row["timestamp"], delta=30)
            self.assertAlmostEqual(float(smi_row["temperature.gpu"]), row["temperature_c"], delta=5)
            self.assertAlmostEqual(float(smi_row["power.draw"]), row["power_w"], delta=max(20, 0.3 * row["power_w"]))
            self.assertAlmostEqual(float(smi_row["enforced.power.limit"]), row["power_limit_w"], delta=1)
            self.assertTrue(0 < row["sm_clock_mhz"] <= float(smi_row["clocks.max.sm"]), row)
            self.assertTrue(0 < row["memory_clock_mhz"] <= float(smi_row["clocks.max.mem"]), row)
            self.assertIn(row["throttled"], (0, 1))
            self.assertIsNotNone(row["throttle_reasons"])

    def test_a_busy_device(self):
        with busy() as process:
            time.sleep(1)
            listed = smi("compute-apps", ("pid", "used_memory"))
            used = float(smi(fields=("memory.used",))[0]["memory.used"])
            probing("record", "--pid", process.pid, "-d", 5, "-o", "out.db", check=t.OK)
            live = rows(process.pid, "SELECT * FROM gpu_metrics WHERE device = 0")[0]
            live_processes = rows(process.pid, "SELECT * FROM gpu_process_usage WHERE device = 0")
        found = rows("out.db", "SELECT * FROM gpu_metrics WHERE device = 0 ORDER BY timestamp")
        self.assertGreaterEqual(len(found), 3)
        self.assertLessEqual(len(found), 6)
        for row in found[1:] + [live]:
            self.assertGreater(row["gpu_util"], 50)
            self.assertTrue(1024 < row["memory_used_mb"] < row["memory_total_mb"], row)
            self.assertAlmostEqual(used, row["memory_used_mb"], delta=64)
            self.assertGreater(row["sm_clock_mhz"], 0)
        spent = found[-1]["energy_j"] - found[0]["energy_j"]
        took = found[-1]["timestamp"] - found[0]["timestamp"]
        mean = sum(row["power_w"] for row in found) / len(found)
        self.assertAlmostEqual(mean, spent / took, delta=0.5 * mean)
        self.assertGreater(rows("out.db", "SELECT avg(gpu_util) AS mean FROM gpu_metrics WHERE timestamp > now() - 60")[0]["mean"], 50)
        self.assertEqual(len(smi()), rows("out.db", "SELECT count(*) AS n FROM gpu.devices WHERE name IS NOT NULL")[0]["n"])
        # In a container the driver may list no process, or the host's numbers: nvidia-smi shows the same.
        self.assertEqual({int(row["pid"]) for row in listed}, {row["pid"] for row in live_processes})
        if str(process.pid) in {row["pid"] for row in listed}:
            own = rows("out.db", "SELECT avg(memory_used_mb) AS mb FROM gpu_process_usage WHERE pid = %d" % process.pid)[0]
            self.assertGreater(own["mb"], 1024)


class Driver(t.Case):
    """With the fixture in place of the driver's library."""
    light = True
    NIGHTLY_FOR_USERS = True  # a library of the driver answers everybody alike

    @staticmethod
    def environment(mode="ok", folder="nvml"):
        return dict(os.environ, LD_LIBRARY_PATH=os.path.join(t.BUILT_FIXTURES, folder), NVML_FIXTURE=mode)

    def record(self, mode, table, n, folder="nvml"):
        """Until a table has n rows: on a busy machine that takes more than a second each. Returns what the recorder says."""
        with subprocess.Popen(["sleep", "1000"]) as target:
            try:
                with t.recorder("--pid", target.pid, "-o", "out.db", env=self.environment(mode, folder)) as recorder:
                    t.wait_until(lambda: n_rows("out.db", table) >= n, 120, "%d rows of %s" % (n, table))
                    status, _, said = t.stop_politely(recorder, timeout_s=60)
            finally:
                target.kill()
        self.assertEqual(t.OK, status, said)
        return said

    def test_live(self):
        environment = self.environment()
        for row in rows(os.getpid(), "SELECT * FROM gpu_metrics", env=environment):
            self.assertEqual([40, 30, 20480, 81920, 345.5, 1, "power_cap,thermal"],
                             [row[name] for name in ("gpu_util", "memory_util", "memory_used_mb", "memory_total_mb", "power_w",
                                                     "throttled", "throttle_reasons")])
            self.assertEqual([None, None, os.uname().nodename], [row[name] for name in ("temperature_c", "sm_clock_mhz", "host")])
        self.assertEqual([{"device": 0, "name": "Fixture", "driver": "999.1", "uuid": None},
                          {"device": 1, "name": "Fixture", "driver": "999.1", "uuid": None}],
                         rows(os.getpid(), "SELECT device, name, driver, uuid FROM gpu.devices", env=environment))
        self.assertEqual([{"memory_used_mb": 3072, "sm_util": 25}, {"memory_used_mb": None, "sm_util": None}],
                         rows(os.getpid(), "SELECT memory_used_mb, sm_util FROM gpu_process_usage WHERE device = 1 ORDER BY pid",
                              env=environment))

    def test_in_a_recording(self):
        began = time.monotonic()
        self.assertNotIn("GPU", self.record("ok", "gpu_metrics", 6))
        took_s = time.monotonic() - began
        found = rows("out.db", "SELECT device, count(*) AS n, count(DISTINCT timestamp) AS times, avg(gpu_util) AS busy FROM gpu_metrics"
                               " WHERE timestamp > now() - 60 GROUP BY device")
        self.assertEqual([0, 1], [row["device"] for row in found])
        for row in found:
            self.assertTrue(3 <= row["n"] == row["times"] <= took_s + 2, row)  # one a second, one at the beginning, one at the end
            self.assertEqual(40, row["busy"])
        self.assertEqual(2, rows("out.db", "SELECT count(*) AS n FROM gpu.devices")[0]["n"])
        self.assertGreaterEqual(rows("out.db", "SELECT count(*) AS n FROM gpu_metrics JOIN machine_usage USING (timestamp)")[0]["n"], 2)

    def test_merge_compact_and_retention(self):
        self.record("ok", "gpu_metrics", 4)
        n = rows("out.db", "SELECT count(*) AS n FROM gpu_metrics")[0]["n"]
        probing("compact", "out.db", "-o", "compact.db", check=t.OK)
        self.assertEqual(n, rows("compact.db", "SELECT count(*) AS n FROM gpu_metrics")[0]["n"])
        os.rename("out.db", "first.db")
        self.record("ok", "gpu_metrics", 4)
        n += rows("out.db", "SELECT count(*) AS n FROM gpu_metrics")[0]["n"]
        probing("merge", "first.db", "out.db", "-o", "merged.db", check=t.OK)
        self.assertEqual(n, rows("merged.db", "SELECT count(*) AS n FROM gpu_metrics")[0]["n"])
        self.assertEqual(2, rows("merged.db", "SELECT count(*) AS n FROM gpu.devices")[0]["n"])
        self.assertEqual([], rows("merged.db", "SELECT * FROM gpu_process_usage"))  # of processes that are in no recording
        with t.fixture("demo.py") as target:
            probing("record", "--pid", target.pid, "-F", 499, "--retention", 1, "-d", 5, "-o", "kept.db", check=t.OK,
                    env=self.environment())
        kept = rows("kept.db", "SELECT (SELECT min(timestamp) FROM sample) sample, min(timestamp) gpu, count(*) n FROM gpu_metrics")[0]
        self.assertGreaterEqual(kept["gpu"], kept["sample"])
        self.assertGreater(kept["n"], 0)

    def test_an_old_driver(self):
        found = rows(os.getpid(), "SELECT gpu_util, memory_used_mb, throttled, throttle_reasons FROM gpu_metrics",
                     env=self.environment(folder="nvml_few"))
        self.assertEqual([dict.fromkeys(("gpu_util", "memory_used_mb", "throttled", "throttle_reasons"))] * 2, found)

    def test_a_lost_device(self):
        self.assertNotIn("GPU", self.record("lost", "gpu_metrics", 4))
        found = rows("out.db", "SELECT DISTINCT device, gpu_util, power_w FROM gpu_metrics")
        self.assertEqual([{"device": n, "gpu_util": None, "power_w": None} for n in (0, 1)], found)

    def test_no_driver(self):
        said = probing("sql", os.getpid(), "SELECT * FROM gpu_metrics", "-f", "json", check=t.OK, env=self.environment("no_driver"))
        self.assertEqual([], json.loads(said.stdout))
        self.assertIn("NVML fails in nvmlInit: Driver Not Loaded", said.stderr)
        self.assertNotIn("GPU", self.record("no_driver", "process_usage", 2))
        self.assertEqual([], rows("out.db", "SELECT * FROM gpu_metrics"))

    @unittest.skipIf(gpu_refusal() is None, "this machine has a GPU")
    def test_no_library(self):
        said = probing("sql", os.getpid(), "SELECT * FROM gpu.devices", "-f", "json", check=t.OK)
        self.assertEqual([], json.loads(said.stdout))
        self.assertIn("libnvidia-ml.so.1", said.stderr)

    @unittest.skipIf(gpu_refusal() is None, "this machine has a GPU")
    def test_amd(self):
        """By ROCm SMI, where there is no NVIDIA driver. What it does not know stays NULL."""
        environment = self.environment(folder="rocm")
        numbers = ("device", "gpu_util", "memory_util", "memory_used_mb", "memory_total_mb", "temperature_c", "power_w", "energy_j", "sm_clock_mhz", "throttled")
        self.assertEqual([[0, 61, None, 3072, 65536, 47, 212.5, 31, None, None], [1] + [None] * 9],
                         [[row[name] for name in numbers] for row in rows(os.getpid(), "SELECT * FROM gpu_metrics ORDER BY device", env=environment)])
        self.assertEqual([["Fixture of AMD", "GPU-000000001234abcd", "0.8.5"], ["Fixture of AMD", None, "0.8.5"]],
                         [list(row.values()) for row in rows(os.getpid(), "SELECT name, uuid, driver FROM gpu.devices ORDER BY device", env=environment)])
        self.assertNotIn("GPU", self.record("ok", "gpu_metrics", 4, folder="rocm"))
        self.assertEqual([{"device": 0, "busy": 61}], rows("out.db", "SELECT device, avg(gpu_util) AS busy FROM gpu_metrics WHERE device = 0 GROUP BY device"))
        said = probing("sql", os.getpid(), "SELECT * FROM gpu_metrics", "-f", "json", check=t.OK, env=dict(environment, ROCM_FIXTURE="none"))
        self.assertEqual([], json.loads(said.stdout))
        self.assertIn("there is no NVIDIA driver here", said.stderr)

    def test_a_driver_that_hangs(self):
        self.record("hang", "process_usage", 3)
        self.assertEqual([], rows("out.db", "SELECT * FROM gpu_metrics"))

    def test_a_driver_that_hangs_later(self):
        self.assertIn("GPUs were not read to the end: NVML has not answered for", self.record("hang_later", "process_usage", 14))
        self.assertEqual(4, rows("out.db", "SELECT count(*) AS n FROM gpu_metrics")[0]["n"])

    def test_a_driver_that_crashes(self):
        self.assertIn("GPUs were not read to the end: NVML ended the process", self.record("crash_later", "process_usage", 6))
        self.assertEqual(4, rows("out.db", "SELECT count(*) AS n FROM gpu_metrics")[0]["n"])

    def test_the_process_ends_with_the_recorder(self):
        with t.recorder("-o", "out.db", "--", "sleep", "1000", env=self.environment()) as recorder:
            readers = []
            t.wait_until(lambda: readers.extend(pid for pid in t.children_of(recorder.pid) if t.comm_of(pid) == "probing-gpu")
                         or readers)

            def status_of():
                with open("/proc/%d/status" % readers[0]) as status:
                    return dict(line.split(":", 1) for line in status.read().splitlines())
            # It has its name first.
            t.wait_until(lambda: (status_of()["NoNewPrivs"].strip(), set(status_of()["CapPrm"].strip())) == ("1", {"0"}), 30, "its confinement")
            status = status_of()
            self.assertEqual(["0" * 16] * 2, [status["Cap" + kind].strip() for kind in ("Eff", "Prm")])
            self.assertEqual("1", status["NoNewPrivs"].strip())
            if os.geteuid() == 0:  # nobody else may look at the files of a process that others cannot trace
                self.assertEqual({"0", "1", "2", "3"}, set(os.listdir("/proc/%d/fd" % readers[0])))
            recorder.send_signal(signal.SIGINT)
            recorder.wait()
            t.wait_until(lambda: not os.path.exists("/proc/%d" % readers[0]))

    def test_metrics_0_starts_no_process(self):
        with subprocess.Popen([t.BINARY, "record", "--metrics", "0", "-o", "out.db", "--", "sleep", "2"], stderr=subprocess.DEVNULL,
                              env=self.environment()) as recorder:
            time.sleep(1)
            self.assertNotIn("probing-gpu", {t.comm_of(pid) for pid in t.children_of(recorder.pid)})
