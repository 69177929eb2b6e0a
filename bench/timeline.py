#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What the timeline of a long recording takes: the server's answers, and the frames of the page.

Usage: bench/timeline.py [BUILD_FOLDER] [--samples N] [--seconds S] [--from FILE]

Records fixtures/demo.py at 999 Hz for S seconds (default 20), or takes the recording named with --from, and repeats its samples with later times
until there are N (default 10 million). Then "probing timeline --requests" is asked for the whole recording and for shorter and shorter parts of it;
the first answer reads the recording. In Chromium, where there is one, the page zooms from the whole recording to a microsecond and back, one notch
of the wheel a frame. Times between frames are the browser's; without a GPU it draws by the CPU, too.
"""
import argparse
import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(ROOT, "tests", "browser"))
import devtools  # noqa: E402

PARTS = (1, 1e-1, 1e-2, 1e-3, 1e-4, 1e-6)
REPEATS = 5
NOTCHES = 150
ZOOM = """
new Promise(done => {
	const canvas = document.querySelector('.timeline canvas'), box = canvas.getBoundingClientRect(), gaps = [];
	let last = 0, n = 0;
	const step = now => {
		if (last)
			gaps.push(now - last);
		last = now;
		if (++n > 2 * %d)
			return done(gaps);
		canvas.dispatchEvent(new WheelEvent('wheel', {deltaY: n <= %d ? -60 : 60, clientX: box.x + box.width / 2, clientY: box.y + 90, cancelable: true}));
		requestAnimationFrame(step);
	};
	requestAnimationFrame(step);
})""" % (NOTCHES, NOTCHES)


def make(build, arguments, folder):
    probing, source, path = os.path.join(build, "src", "cli", "probing"), arguments.source, os.path.join(folder, "long.db")
    if not source:
        source = os.path.join(folder, "short.db")
        subprocess.run([probing, "record", "-q", "-F", "999", "-d", str(arguments.seconds), "-o", source, "--", "/usr/bin/python3",
                        os.path.join(ROOT, "fixtures", "demo.py"), "--seconds", str(arguments.seconds + 5)], check=True, stdout=subprocess.DEVNULL)
    shutil.copy(source, path)
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM sample_block")
    subprocess.run([os.path.join(build, "bench", "bench_series"), source, path, str(arguments.samples)], check=True)
    return path


class Worker:
    def __init__(self, probing, path):
        self.process = subprocess.Popen([probing, "timeline", "--requests", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, question):
        """Its answer, milliseconds, and bytes."""
        began = time.perf_counter()
        self.process.stdin.write(question.encode() + b"\n")
        self.process.stdin.flush()
        word, rest = self.process.stdout.readline().split(b" ", 1)
        if word != b"ok":
            raise SystemExit(rest.decode())
        body = self.process.stdout.read(int(rest))
        return json.loads(body), 1000 * (time.perf_counter() - began), len(body)

    def cpu_s(self):
        with open("/proc/%d/stat" % self.process.pid) as stat:
            fields = stat.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_mb(self):
        with open("/proc/%d/status" % self.process.pid) as status:
            lines = dict(line.split(":", 1) for line in status)
        return tuple(int(lines[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))


def time_answers(probing, path):
    worker = Worker(probing, path)
    answer, took, _ = worker.ask("pixels=1600")
    print("%.1f million samples, first answer: %.1f s, %.1f s of CPU time; memory %.0f MB, %.0f MB at most"
          % (answer["samples"] / 1e6, took / 1000, worker.cpu_s(), *worker.memory_mb()))
    begin, length = answer["begin_ns"], answer["end_ns"] - answer["begin_ns"]
    print("| part | length | best ms | worst ms | CPU ms | KB |\n|---|---|---|---|---|---|")
    for part in PARTS:
        times, before, size = [], worker.cpu_s(), 0
        for i in range(REPEATS):
            since = begin + (length - part * length) * i / REPEATS
            _, took, size = worker.ask("pixels=1600&depth=64&since=%.9f&until=%.9f" % (since / 1e9, (since + part * length) / 1e9))
            times.append(took)
        print("| %g | %.6g s | %.1f | %.1f | %.1f | %.0f |" % (part, part * length / 1e9, min(times), max(times),
                                                          1000 * (worker.cpu_s() - before) / REPEATS, size / 1000))
    worker.process.stdin.close()
    worker.process.wait()


def time_frames(probing, path):
    browser = devtools.find_browser()
    if browser is None:
        print("no frames: there is no Chromium here")
        return
    server = subprocess.Popen([probing, "serve", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        with devtools.opened(browser) as page:
            page.resize(1600, 1000)
            page.send("Page.navigate", url=server.stdout.readline().strip())
            page.until("document.querySelectorAll('nav a').length > 1")
            page.run("location.hash = '#view=timeline'")
            page.until("document.querySelectorAll('.timeline .names button').length > 0")
            page.settle()
            gaps = sorted(page.run(ZOOM))
            print("frames while zooming in and out: %d, median %.1f ms, 95 %% within %.1f ms, longest %.1f ms"
                  % (len(gaps), gaps[len(gaps) // 2], gaps[int(len(gaps) * 0.95)], gaps[-1]))
    finally:
        server.terminate()
        server.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", default=os.path.join(ROOT, "build"))
    parser.add_argument("--samples", type=int, default=10000000)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--from", dest="source")
    arguments = parser.parse_args()
    probing = os.path.join(os.path.abspath(arguments.build), "src", "cli", "probing")
    with tempfile.TemporaryDirectory() as folder:
        path = make(arguments.build, arguments, folder)
        time_answers(probing, path)
        time_frames(probing, path)


if __name__ == "__main__":
    main()
