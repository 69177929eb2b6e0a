#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Looks whether what is installed has the protections that meson.build asks for.

Usage: hardening_test.py BUILD   a build folder; its program, SQLite's extension and the agent are installed into a scratch folder
Exit status: 0 all is there, 1 something is not, 77 this build cannot have it (the last line says why).
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77


def skip(why):
    print("skip: " + why)
    sys.exit(SKIPPED)


def read(*arguments):
    return subprocess.run(["readelf", "-W"] + list(arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True,
                          text=True, env=dict(os.environ, LC_ALL="C")).stdout


def header(path, kind):
    """The line of a program header, None: there is none."""
    found = re.search(r"^ +%s .*$" % kind, read("-l", path), re.MULTILINE)
    return found and found.group(0)


def problems(path, is_program, checks_functions):
    dynamic, symbols, stack = read("-d", path), read("--dyn-syms", path), header(path, "GNU_STACK")
    if not header(path, "GNU_RELRO"):
        yield "no GNU_RELRO segment"
    if "BIND_NOW" not in dynamic:
        yield "symbols are bound late (BIND_NOW is missing), so relocations stay writable"
    if not stack or re.search(r" RWE? +0x\w+$", stack).group(0).split()[0] != "RW":
        yield "the stack is executable: %s" % stack
    if is_program and not (re.search(r"Type: +DYN", read("-h", path)) and re.search(r"FLAGS_1.* PIE", dynamic)):
        yield "no position-independent program"
    if "__stack_chk_fail" not in symbols:
        yield "no function has a stack protector"
    if checks_functions and not re.search(r" __\w+_chk(@|$)", symbols, re.MULTILINE):
        yield "no function of libc is a checked one (_FORTIFY_SOURCE)"


def arguments_of(build, source):
    with open(os.path.join(build, "compile_commands.json")) as commands:
        return next(entry["command"].split() for entry in json.load(commands) if entry["file"].endswith(source))


def missing_arguments(arguments):
    """Of those that leave no mark in the file that readelf would find for sure."""
    wanted = ["-fstack-clash-protection"]
    if os.uname().machine == "x86_64":
        wanted.append("-fcf-protection=full")
    return [argument for argument in wanted if argument not in arguments]


def show_control_flow(path):
    """The mark is there only if all of the toolchain's own objects have it, too."""
    if os.uname().machine == "x86_64" and not re.search(r"IBT, SHSTK", read("-n", path)):
        print("note: %s is not marked for CET: this toolchain's own startup objects are not" % os.path.basename(path))


def main():
    build = os.path.realpath(sys.argv[1])
    if not shutil.which("readelf"):
        skip("readelf is not installed")
    arguments = arguments_of(build, "src/cli/main.c")
    if any(argument.startswith("-fsanitize") for argument in arguments):
        skip("a sanitizer's build is not for installing")
    checks_functions = any(argument.startswith("-D_FORTIFY_SOURCE=") for argument in arguments)
    failures = ["no %s for the compiler" % argument for argument in missing_arguments(arguments)]
    with tempfile.TemporaryDirectory(prefix="probing-hardening.") as folder:
        subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--destdir", folder, "--quiet"], check=True,
                       stdin=subprocess.DEVNULL)
        found = [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names
                 if name in ("probing", "probing_sqlite.so", "libprobing-agent.so") and not os.path.islink(os.path.join(at, name))]
        found = [path for path in found if open(path, "rb").read(4) == b"\x7fELF"]
        if sorted(map(os.path.basename, found)) != ["libprobing-agent.so", "probing", "probing_sqlite.so"]:
            failures.append("installed were %s" % found)
        for path in found:
            failures += ["%s: %s" % (os.path.basename(path), problem)
                         for problem in problems(path, path.endswith("probing"), checks_functions)]
            show_control_flow(path)
    if not checks_functions:
        print("note: built without an optimiser, so without checked functions")
    print("\n".join(failures) or "ok")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
