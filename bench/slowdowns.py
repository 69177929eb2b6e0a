#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""How often ci/regression.py finds slow-downs that real projects meet when they change how they call a library.

    bench/slowdowns.py [--runs N] [--aa N] [--only NAME,...]

Each case is a program in two forms, which differ in one way of calling a library. Two thirds of the time of the first form
are in code that stays. ci/regression.py runs both in turn, with its default rule, and then N times the first form against
itself (--aa, default: 2). Prints for each case how much longer the second form takes by the program's own clock, the
result, and whether the comment names the function that takes the time; then the share of comparisons without a change that failed,
with its 95 % interval. Needs the libraries of the cases (Debian: python3-yaml, -jinja2, -pandas, -numpy, -pygments, -sympy, -lxml, -dateutil, -attr);
a case without its library is named and left out.
"""
import argparse
import collections
import html
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from gate import interval

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PYTHON = "/usr/bin/python3"

# setup; before and after the change; a function that the change makes slower
Case = collections.namedtuple("Case", "setup before after function")
CASES = {
    "yaml: the loader in Python": Case(
        "import yaml\ntext = yaml.dump([{'name': str(i), 'values': [i, i / 3]} for i in range(10)])",
        "yaml.load(text, yaml.CSafeLoader)", "yaml.load(text, yaml.SafeLoader)", "scan_"),
    "json: output with indentation": Case(
        "import json\ndata = [{'name': str(i), 'values': [i, i / 3]} for i in range(50)]",
        "json.dumps(data)", "json.dumps(data, indent=1)", "_iterencode"),
    "datetime: strptime for ISO dates": Case(
        "import datetime\ntexts = ['2026-11-%02d' % day for day in range(1, 29)]",
        "[datetime.datetime.fromisoformat(text) for text in texts * 5]",
        "[datetime.datetime.fromisoformat(text) for text in texts * 4] + [datetime.datetime.strptime(text, '%Y-%m-%d') for text in texts]", "_strptime"),
    "jinja2: an environment for each page": Case(
        "import jinja2\nsource = '{% for x in xs %}<b>{{ x }}</b>{% endfor %}'\nkept = jinja2.Environment().from_string(source)",
        "kept.render(xs=range(30))", "jinja2.Environment().from_string(source).render(xs=range(30))", "from_string"),
    "pandas: rows as Series": Case(
        "import pandas\nframe = pandas.DataFrame({'a': range(100), 'b': range(100)})",
        "sum(row.a for row in frame.itertuples())", "sum(row.a for _, row in frame.iterrows())", "iterrows"),
    "pygments: the lexer is guessed": Case(
        "import pygments.lexers, pygments.formatters\ncode = 'def f(x):\\n    return x + 1\\n' * 10\n"
        "kept = pygments.lexers.get_lexer_by_name('python')",
        "list(kept.get_tokens(code))", "list(pygments.lexers.guess_lexer(code).get_tokens(code))", "guess_lexer"),
    "dateutil: any format of dates": Case(
        "import dateutil.parser\ntexts = ['2026-11-%02dT12:00:00' % day for day in range(1, 29)]",
        "[dateutil.parser.isoparse(text) for text in texts]", "[dateutil.parser.parse(text) for text in texts]", "_parse"),
    "attrs: validators": Case(
        "import attr\n@attr.s\nclass Point:\n    x = attr.ib(validator=attr.validators.instance_of(int))\n    y = attr.ib()",
        "attr.set_run_validators(False); [Point(i, i) for i in range(300)]",
        "attr.set_run_validators(True); [Point(i, i) for i in range(300)]", "__call__"),
    "csv: dictionaries for rows": Case(
        "import csv\nlines = ['a,b,c,d'] + ['%d,x,y,z' % i for i in range(300)]",
        "sum(int(row[0]) for row in list(csv.reader(lines))[1:])", "sum(int(row['a']) for row in csv.DictReader(lines))", "__next__"),
    "copy: deep instead of flat": Case(
        "import copy\ndata = {i: [i, str(i)] for i in range(50)}",
        "{key: list(value) for key, value in data.items()}", "copy.deepcopy(data)", "deepcopy"),
}
PROGRAM = """import time
%(setup)s
def rest():
    return sum(i * i %% 7 for i in range(%(rest)d))
def changed():
    %(statement)s
for _ in range(%(times)d):
    changed()
    rest()
print(time.process_time())
"""
REST_S, CHANGED_S = 0.2, 0.1  # CPU time of the first form


def speed(setup, statement):
    """CPU seconds that a statement takes; None: a module of the setup is not here."""
    code = ("import time\n%s\ndef one():\n    %s\none()\nn, began = 0, time.process_time()\n"
            "while n < 3 or time.process_time() < began + 0.2:\n    one()\n    n += 1\nprint((time.process_time() - began) / n)" % (setup, statement))
    done = subprocess.run([PYTHON, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if "ModuleNotFoundError" in done.stderr:
        return None
    if done.returncode != 0:
        sys.exit(done.stderr)
    return float(done.stdout)


def write(folder, name, case, statement, times, n_rest):
    os.makedirs(os.path.join(folder, name))
    with open(os.path.join(folder, name, "work.py"), "w", encoding="utf-8") as file:
        file.write(PROGRAM % {"setup": case.setup, "statement": statement, "times": times, "rest": n_rest})


def compare(folder, base, head, runs):
    """The result of base against head, and the comment."""
    out = os.path.join(folder, "out")
    done = subprocess.run([sys.executable, os.path.join(ROOT, "ci", "regression.py"), "--base", os.path.join(folder, base), "--out", out, "--runs", str(runs),
                           "--", PYTHON, "work.py"], cwd=os.path.join(folder, head), stdout=subprocess.DEVNULL)
    if done.returncode not in (0, 1):
        sys.exit("regression.py ended with status %d" % done.returncode)
    with open(os.path.join(out, "result"), encoding="utf-8") as result, open(os.path.join(out, "comment.md"), encoding="utf-8") as comment:
        return result.read().strip(), html.unescape(comment.read())


def seconds(folder, name):
    return float(subprocess.run([PYTHON, "work.py"], cwd=os.path.join(folder, name), stdout=subprocess.PIPE, text=True, check=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--aa", type=int, default=2)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    os.environ.setdefault("PROBING_BINARY", os.path.join(ROOT, "build", "src", "cli", "probing"))
    step_s = speed("", "sum(i * i % 7 for i in range(1000))") / 1000
    alarms, n_found, n = collections.Counter(), 0, 0
    print("| change | program | result | names the function | without a change |\n|---|---|---|---|---|", flush=True)
    for name, case in CASES.items():
        if arguments.only and not any(name.startswith(one) for one in arguments.only.split(",")):
            continue
        one_s = speed(case.setup, case.before)
        if one_s is None:
            print("| %s | its library is not here | | | |" % name, flush=True)
            continue
        times = max(1, round(CHANGED_S / one_s))
        with tempfile.TemporaryDirectory(prefix="probing-slowdowns.") as folder:
            for form, statement in ("before", case.before), ("after", case.after):
                write(folder, form, case, statement, times, round(REST_S / step_s / times))
            longer = 100 * (seconds(folder, "after") / seconds(folder, "before") - 1)
            result, comment = compare(folder, "before", "after", arguments.runs)
            same = collections.Counter(compare(folder, "before", "before", arguments.runs)[0] for _ in range(arguments.aa))
        alarms += same
        n += 1
        n_found += result == "regressed"
        print("| %s | %+.0f %% | %s | %s | %s |" % (name, longer, result, "yes" if case.function in comment else "no",
                                                   ", ".join("%d %s" % (count, word) for word, count in sorted(same.items()))), flush=True)
    print("\n%d of %d found" % (n_found, n))
    if alarms:
        print("without a change %d of %d failed: %.0f to %.0f %%" % (
            alarms["regressed"], alarms.total(), *interval(alarms["regressed"], alarms.total())))


if __name__ == "__main__":
    main()
