#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""How often ci/regression.py fails a job without a change, and finds one that was made.

    bench/ci.py [--pairs N] [--percent P] [--scale S] [OPTION OF regression.py...]

A pair stores a baseline of fixtures/slower.py and checks a second run of it with P percent more work in one function (default: 0, an A/A pair).
Prints how many pairs ended with which result, and the 95 % interval of the share that failed.
"""
import argparse
import collections
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from gate import interval

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PYTHON = "/usr/bin/python3"


def check(folder, percent, scale, options):
    subprocess.run([sys.executable, os.path.join(ROOT, "ci", "regression.py"), "--store", "store", *options, "--", PYTHON,
                    os.path.join(ROOT, "fixtures", "slower.py"), str(percent), "--scale", str(scale)], cwd=folder, stdout=subprocess.DEVNULL)
    with open(os.path.join(folder, "probing-ci", "result")) as result:
        return result.read().strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--percent", type=float, default=0)
    parser.add_argument("--scale", type=float, default=1)
    arguments, options = parser.parse_known_args()
    os.environ.setdefault("PROBING_BINARY", os.path.join(ROOT, "build", "src", "cli", "probing"))
    results = collections.Counter()
    for _ in range(arguments.pairs):
        with tempfile.TemporaryDirectory(prefix="probing-ci.") as folder:
            if check(folder, 0, arguments.scale, ["--update"] + options) != "first":
                sys.exit("the first run had a baseline")
            results[check(folder, arguments.percent, arguments.scale, options)] += 1
    print(", ".join("%s: %d" % pair for pair in sorted(results.items())))
    print("%d of %d failed: %.0f to %.0f %%" % (results["regressed"], arguments.pairs, *interval(results["regressed"], arguments.pairs)))


if __name__ == "__main__":
    main()
