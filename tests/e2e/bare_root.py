# SPDX-License-Identifier: MIT
"""A root file system of a Debian release with few packages, for the tests of what we install there."""
import subprocess
import unittest

import probing_test as p


def make(root, release, *packages):
    """Skips the test where that is not to be had. It takes a minute or more."""
    p.need_root()
    refusal = p.namespaces_refusal()
    if refusal:
        raise unittest.SkipTest(refusal)
    p.need_program("debootstrap")
    mirrors = subprocess.run([p.need_program("apt-get"), "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Label: Debian",
                              "Component: main"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    if not mirrors:
        raise unittest.SkipTest("apt has no Debian mirror among its sources")
    made = subprocess.run(["debootstrap", "--variant=minbase", "--include=" + ",".join(packages), release, root, min(mirrors)],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900)
    if made.returncode != 0:
        raise unittest.SkipTest("debootstrap made no root of %s: %s" % (release, made.stdout.strip().splitlines()[-1]))


def run(root, script, timeout_s=300):
    """What a shell's script says in that root, in namespaces of its own: what it mounts and starts ends with it."""
    enter = 'mount --bind "$1" "$1"\nmount -t proc proc "$1/proc"\ncp /etc/resolv.conf "$1/etc/"\nexec chroot "$1" sh -e -c "$2"\n'
    done = subprocess.run(p.UNSHARE + ["sh", "-e", "-c", enter, "sh", root, script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=timeout_s)
    if done.returncode != 0:
        raise AssertionError(done.stdout[-3000:])
    return done.stdout
