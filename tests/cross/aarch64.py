#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What can be tested of aarch64 on another machine.

Usage: aarch64.py compile BUILD_ROOT    does the whole tree compile for it?
       aarch64.py signature             run signature.c under qemu
       aarch64.py record TEST           make fixtures/aarch64 anew, elsewhere, and run TEST on them
Needs gcc-aarch64-linux-gnu and libc6-dev-arm64-cross, the last two qemu-user
as well. Exit status 77, with the reason: they are not there.
"""
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COMPILER = "aarch64-linux-gnu-gcc"
QEMU = "qemu-aarch64"
FOLDERS = ["base", "unwind", "symbolize", "src", "tests/unit", "tests/cross", "fuzz", "bench"]
# Of AMD64 by intent: its tables, and tests whose targets are in its assembly.
OTHERS = {"machine_x86_64.c", "test_native.c", "test_native_row.c", "test_native_trampoline.c"}
# Of the kernel's own machine, whatever the processor.
OF_BPF = ".bpf.c"


def need(*tools):
    for tool in tools:
        if not shutil.which(tool):
            print("%s is not installed" % tool)
            sys.exit(77)


def sources(build_root):
    left_out = set(OTHERS)
    if not os.path.exists(os.path.join(build_root, "src/capture/frames_object.h")):
        left_out |= {"bpf.c", "bpf_switches.c"}  # built without them
    if not os.path.exists("/usr/include/traceevent/event-parse.h"):
        left_out.add("tracepoint_format.c")  # the same
    if os.path.exists(os.path.join(build_root, "src/http/libhttp.a.p/http_none.c.o")):
        left_out |= {"curl.c", "http.c"}  # the same
    for folder in FOLDERS:
        for path, _, files in os.walk(os.path.join(ROOT, folder)):
            yield from (os.path.join(path, f) for f in files
                        if f.endswith(".c") and not f.endswith(OF_BPF) and f not in left_out)


def compile_all(build_root):
    """Only the syntax: there are no libraries of that machine to link with, but the headers will do."""
    need(COMPILER)
    failed = n = 0
    multiarch = subprocess.run(["gcc", "-print-multiarch"], stdout=subprocess.PIPE, universal_newlines=True, check=True).stdout
    own_headers = os.path.join("/usr/include", multiarch.strip())  # libcurl's
    for source in sorted(sources(build_root)):
        n += 1
        failed += subprocess.run(
            [COMPILER, "-std=gnu17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-Wstrict-prototypes",
             "-Wmissing-prototypes", "-Wno-missing-field-initializers", "-fsyntax-only", "-I" + ROOT,
             "-I" + build_root, "-I" + os.path.join(build_root, "src/export"),
             "-DHOT_BUILD=\"\"", "-idirafter", "/usr/include", "-idirafter", own_headers, source], check=False).returncode != 0
    print("%d files, %d do not compile" % (n, failed))
    return 0 if n > 100 and failed == 0 else 1


def signature():
    need(COMPILER, QEMU)
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "signature")
        subprocess.run([COMPILER, "-O2", "-static", "-I" + ROOT, os.path.join(ROOT, "tests/cross/signature.c"),
                        "-o", program], check=True)
        return subprocess.run([QEMU, "-cpu", "max", program], timeout=60, check=False).returncode


def record(test):
    need(COMPILER, QEMU)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([os.path.join(ROOT, "fixtures/aarch64/record.py"), "--with-libc", "--to", folder],
                       check=True)
        return subprocess.run([test], env=dict(os.environ, PROBING_FIXTURES_AARCH64=folder),
                              timeout=60, check=False).returncode


if __name__ == "__main__":
    sys.exit({"compile": compile_all, "signature": signature, "record": record}[sys.argv[1]](*sys.argv[2:]))
