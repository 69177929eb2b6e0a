#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What a signal handler can call, by the machine code of the library that it is in.

Usage: signal_safe_test.py FILE FUNCTION ALLOWED[,ALLOWED...]
Follows all calls and jumps from FUNCTION on. Exit status: 0 all that is called in other libraries is allowed; 1 something else is, or
a pointer is called, and its callers are named; 77 there is no objdump, or the file is for another processor.
"""
import collections
import os
import re
import shutil
import subprocess
import sys


def functions(path):
    """{name: [(operation, what it names)]}: calls, jumps out of the function, and calls of pointers ("*...")."""
    listed = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], stdout=subprocess.PIPE, check=True, text=True,
                            env=dict(os.environ, LC_ALL="C")).stdout
    result, name = collections.defaultdict(list), None
    for line in listed.splitlines():
        start = re.match(r"[0-9a-f]+ <(\S+)>:$", line)
        if start:
            # Functions of one name, as static ones of two files may be, are looked at together.
            name = start[1]
            result[name]
            continue
        found = re.match(r"\s+[0-9a-f]+:\s+(?:bnd |notrack )*(call|j[a-z]+)q?\s+(\S+)(?:\s+<([^>+]+)(\+0x[0-9a-f]+)?>)?", line)
        if found and (found[3] is None or found[3] != name):
            result[name].append((found[1], found[3] or found[2]))
    return result


def main(path, first, allowed):
    if not shutil.which("objdump"):
        print("skip: objdump is not installed")
        return 77
    if os.uname().machine != "x86_64":
        print("skip: calls are looked for in code of x86-64 only")
        return 77
    code = functions(path)
    if not code.get(first):
        print("%s has no function %s that calls something" % (path, first))
        return 99  # an error also where a failure is expected
    seen, pending, outside, wrong = {first}, [first], set(), []
    while pending:
        caller = pending.pop()
        for operation, callee in code[caller]:
            name = callee.split("@")[0]
            if "*" in callee:
                if operation == "call":  # a jump of a table stays in its function
                    wrong.append("%s calls a pointer: %s" % (caller, callee))
            elif "@plt" in callee or callee not in code:
                outside.add(name)
                if name not in allowed:
                    wrong.append("%s calls %s" % (caller, name))
            elif callee not in seen:
                seen.add(callee)
                pending.append(callee)
    print("%s: %s" % (first, ", ".join(sorted(seen - {first}))))
    print("other libraries': %s" % ", ".join(sorted(outside)))
    print("\n".join(sorted(wrong)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], set(sys.argv[3].split(","))))
