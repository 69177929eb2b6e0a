# SPDX-License-Identifier: MIT
"""Which samples cannot have been, by what the fixtures know of themselves.

A judge is made of a recording and a fixture's truth, and says of each sample whether the
Python functions that it shows are those that were there: True, False, or None where nothing tells.
"""
import collections

import probing_test as t

CLAIM = ("verified", "exact")  # verdicts that claim to be right


class Judge:
    def __init__(self, recording, truth):
        self.recording, self.truth = recording, truth

    def samples(self, verdict=None):
        return [s for s in self.recording.samples if s.stack and verdict in (None, s.verdict)]

    def python(self, sample):
        return self.recording.python(sample.stack)

    def below(self, sample):
        """The frames below the last Python function, innermost first, with the library that each is in."""
        for frame in reversed(self.recording.path(sample.stack)):
            if frame.kind == "python":
                return
            yield frame, (frame.module or "").rsplit("/", 1)[-1]

    def judge(self):
        """Counts of (verdict, possible) where something tells, and the stacks that claim to be right and are not."""
        counts, wrong = collections.Counter(), []
        for sample in self.samples():
            possible = self.is_possible(sample)
            if possible is None:
                continue
            counts[sample.verdict, possible] += 1
            if not possible and sample.verdict in CLAIM:
                wrong.append([f.name for f in self.python(sample)] + ["|"] + [f.name for f, _ in self.below(sample)])
        return counts, wrong


class Calls(Judge):
    """truth_calls.py: native leaves say which function must be above them."""

    def witness(self, sample):
        for frame, module in self.below(sample):
            for key, caller in self.truth["callers"].items():
                if key.endswith(".") and module.startswith(key):
                    return caller
                if not key.endswith(".") and frame.role == "builtin" and t.same_name(frame.name, key):
                    return caller
        return None

    def is_possible(self, sample):
        witness = self.witness(sample)
        if witness is None or any("json" in (f.file or "") for f in self.python(sample)):
            return None
        if any(frame.name.endswith("deallocation") for frame, _ in self.below(sample)):
            return None  # what a function made is released by its caller
        claimed = [f.name for f in self.python(sample) if f.name in self.truth["functions"]]
        return claimed == [witness]


class Turns(Judge):
    """truth_turns.py: what is innermost says what the functions above it are, all of them."""

    def witness(self, sample):
        for frame, _ in self.below(sample):
            if frame.role == "builtin":
                for name in ("crc32", "adler32"):
                    if t.same_name(frame.name, name):
                        return name
        frames = self.python(sample)
        return frames[-1].name if frames and frames[-1].name in self.truth["chains"] else None

    def is_possible(self, sample):
        witness = self.witness(sample)
        if witness is None:
            return None
        claimed = [f.name for f in self.python(sample) if f.name in self.truth["functions"]]
        return claimed in self.truth["chains"][witness]

    def shares(self):
        """How many samples each of the functions has whose time is known."""
        names = (self.recording.python(s.stack)[-1:] for s in self.samples())
        return collections.Counter(frames[0].name for frames in names if frames and frames[0].name in self.truth["shares"])


class Tree(Judge):
    """flutter.py --mode tree: a function's name begins with its only caller's."""

    def is_possible(self, sample):
        names = [f.name for f in self.python(sample) if f.name.startswith(self.truth["prefix"])]
        if not names:
            return None
        return all(name[:-1] == caller for name, caller in zip(names, [self.truth["prefix"]] + names[:-1]))


class Reused(Judge):
    """flutter.py --mode reused: the library that the native part is in says which kind of function made it."""

    def is_possible(self, sample):
        made = below = None
        for frame in self.recording.path(sample.stack):
            module = (frame.module or "").rsplit("/", 1)[-1]
            if frame.kind == "python" and frame.name.startswith((self.truth["crc"], self.truth["sha"])):
                made, below = frame.name[:4], None
            elif made and module.startswith("libz."):
                below = self.truth["crc"]
            elif made and module.startswith("libcrypto."):
                below = self.truth["sha"]
        return made == below if below else None


# What is measured: name, fixture and its options, judge.
PROGRAMS = [
    ("calls", ("truth_calls.py",), Calls),
    ("shared", ("truth_turns.py", "--mode", "shared"), Turns),
    ("callbacks", ("truth_turns.py", "--mode", "callbacks"), Turns),
    ("deep", ("truth_turns.py", "--mode", "deep"), Turns),
    ("tree", ("flutter.py", "--mode", "tree"), Tree),
    ("reused", ("flutter.py", "--mode", "reused"), Reused),
]
