#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Records probing's own hot paths with probing, and prints the functions in which their time goes.

Usage: own.py [--seconds N] [--rows N] BUILD [NAME...]
           BUILD: a build folder; NAME: a path of bench/bench_hot (default: each)
"""
import argparse
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)


def run(*command):
    """What it says on stdout; its stderr where it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit("%s: %s" % (" ".join(command), done.stderr.strip()))
    return done.stdout


def main():
    parser = argparse.ArgumentParser(description="Record probing's hot paths with probing.")
    parser.add_argument("--seconds", type=float, default=2, help="record each for so long (default: 2)")
    parser.add_argument("--rows", type=int, default=10, help="functions of each (default: 10)")
    parser.add_argument("build", help="a build folder")
    parser.add_argument("names", nargs="*", help="paths (default: each)")
    options = parser.parse_args()
    hot = os.path.join(options.build, "bench", "bench_hot")
    probing = os.path.join(options.build, "src", "cli", "probing")
    for program in (hot, probing):
        if not os.path.exists(program):
            sys.exit("%s is not there: build it first" % program)
    with tempfile.TemporaryDirectory(prefix="probing-own.") as folder:
        for name in options.names or run(hot, "--list").split():
            recording = os.path.join(folder, name + ".db")
            run(probing, "record", "-F", "999", "-o", recording, "--", hot, name, ROOT, "--seconds", str(options.seconds))
            print("==> %s\n%s" % (name, run(probing, "report", recording, "--function", "measured", "-n", str(options.rows))))


if __name__ == "__main__":
    main()
