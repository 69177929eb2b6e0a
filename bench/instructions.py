#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Counts the instructions of probing's own hot paths, and compares them with those of before.

Usage: instructions.py [--update | --planted NAME] BUILD
           BUILD: a build folder (release) with bench/bench_hot
       --update        write what is counted into bench/instructions.json, for this compiler
       --planted NAME  count this path alone, with a tenth more to do, as if it had become slower

callgrind counts them, in one path after the other, and only those of probing's own code: other
versions of libraries change nothing. Other compilers do, so the file has a table for each. Counts may be
2 % off either way: fewer are as much a reason to write the file anew, or what is lost later would not show.
Exit status: 0 all is as before, 1 it is not, 77 nobody can tell (the last line says why).
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
BASELINE = os.path.join(HERE, "instructions.json")
TOLERANCE = 0.02
SKIPPED = 77
LONGEST_S = 120


def skip(why):
    print(why)
    sys.exit(SKIPPED)


def output_of(program, *arguments):
    return subprocess.run([program, *arguments], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def own_instructions(path, program):
    """What a callgrind file says was executed in one program, its libraries left out."""
    total = 0
    is_own = is_call = False
    with open(path, errors="replace") as lines:
        for line in lines:
            if line.startswith("ob="):
                is_own = os.path.realpath(line[3:].strip()) == program
            elif line.startswith("calls="):
                is_call = True  # the next line is what was called: counted where it stands itself
            elif re.match(r"(0x[0-9a-f]+|\d+) \d+$", line):
                if is_own and not is_call:
                    total += int(line.split()[1])
                is_call = False
    return total


def count(program, name, planted):
    """Instructions between the first call of measured() and its return."""
    with tempfile.TemporaryDirectory(prefix="probing-instructions.") as folder:
        out = os.path.join(folder, "callgrind.out")
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=" + out, "--toggle-collect=measured",
                   "--compress-strings=no", "--compress-pos=no", "--log-file=" + os.path.join(folder, "log"),
                   program, name, ROOT] + (["--planted"] if planted else [])
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=LONGEST_S,
                              env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"})
        if done.returncode != 0:
            with open(os.path.join(folder, "log"), errors="replace") as log:
                sys.exit("%s: %s%s" % (name, done.stderr, log.read()))
        n = own_instructions(out, program)
    if n == 0:
        sys.exit("%s: callgrind counted nothing" % name)
    return n


def read_baseline():
    try:
        with open(BASELINE) as file:
            return json.load(file)
    except FileNotFoundError:
        return {}


def write_baseline(build, counts):
    baseline = read_baseline()
    baseline[build] = counts
    with open(BASELINE + ".new", "w") as file:
        json.dump(baseline, file, indent=1, sort_keys=True)
        file.write("\n")
    os.rename(BASELINE + ".new", BASELINE)


def compare(counts, before):
    """A table; the names of the paths that are not as before."""
    wrong = []
    print("%-10s %14s %14s %8s" % ("path", "before", "now", "change"))
    for name in sorted(set(counts) | set(before)):
        now, then = counts.get(name), before.get(name)
        change = now / then - 1 if now and then else None
        if change is None or abs(change) > TOLERANCE:
            wrong.append(name)
        print("%-10s %14s %14s %8s%s" % (name, then or "-", now or "-", "-" if change is None else "%+.2f %%" % (100 * change),
                                         "  <--" if name in wrong else ""))
    return wrong


def main():
    parser = argparse.ArgumentParser(description="Count the instructions of probing's hot paths.")
    parser.add_argument("--update", action="store_true", help="write bench/instructions.json")
    parser.add_argument("--planted", metavar="NAME", help="count this path alone, with a tenth more to do")
    parser.add_argument("build", help="a build folder")
    options = parser.parse_args()
    program = os.path.realpath(os.path.join(options.build, "bench", "bench_hot"))
    if not os.path.exists(program):
        sys.exit("%s is not there: build it first" % program)
    build = output_of(program, "--build")
    names = output_of(program, "--list").split()
    if options.planted and options.update:
        parser.error("what is planted is not to be kept")
    if options.planted and options.planted not in names:
        sys.exit("no path is called %s; there are %s" % (options.planted, ", ".join(names)))
    update = "bench/instructions.py --update %s" % options.build
    try:
        version = output_of("valgrind", "--version")
    except (OSError, subprocess.CalledProcessError):
        skip("valgrind is not installed (scripts/packages test installs it)")
    if "sanitized" in build.split():
        skip("%s counts its sanitizers" % options.build)
    baseline = read_baseline()
    if build not in baseline and not options.update:
        skip("no counts of %s are known; %s adds them" % (build, update))
    before = baseline.get(build, {})
    if options.planted:
        names, before = [options.planted], {options.planted: before.get(options.planted)}
    counts = {name: count(program, name, bool(options.planted)) for name in names}
    print("%s, by %s" % (build, version))
    wrong = compare(counts, before)
    if options.update:
        write_baseline(build, counts)
    elif wrong:
        print("not as before: %s; where that is meant, %s" % (", ".join(wrong), update))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
