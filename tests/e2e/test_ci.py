# SPDX-License-Identifier: MIT
"""ci/: the regression check of a project, on a slowdown of a small program; and the templates, whose scripts run as a CI would run them."""
import json
import os
import shutil
import subprocess
import sys
import unittest

import probing_test as p

SAME_FOR_ALL_USERS = True
CI = os.path.join(p.ROOT, "ci")
SLOWER = os.path.join(p.FIXTURES, "slower.py")


def yaml():
    try:
        import yaml as module
    except ImportError:
        raise unittest.SkipTest("no Python module yaml")
    return module


class CiCase(p.Case):
    def environment(self, **more):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "CI_", "PROBING_"))}
        return dict(kept, **dict({"PROBING_BINARY": p.BINARY}, **more))

    def run_command(self, *command, status=0, cwd=None, **more):
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120,
                              env=self.environment(**more), cwd=cwd)
        self.assertEqual(status, done.returncode, done.stdout + done.stderr)
        return done

    def check(self, percent, *options, status=0, where=("--store", "store"), program=SLOWER, cwd=None, **more):
        """The script with small runs. Returns (result, comment)."""
        self.run_command(sys.executable, os.path.join(CI, "regression.py"), *where, "--runs", "10", *options, "--", p.DEBIAN_PYTHON, program,
                         str(percent), "--scale", "0.5", status=status, cwd=cwd, **more)
        out = os.path.join(cwd or ".", "probing-ci")
        with open(os.path.join(out, "result")) as result, open(os.path.join(out, "comment.md")) as comment:
            return result.read().strip(), comment.read()


class Script(CiCase):
    alone = True  # it compares times

    def test_first_then_slower(self):
        result, comment = self.check(0)
        self.assertEqual("first", result)
        self.assertIn("no baseline", comment)
        self.assertFalse(os.path.exists("store"))
        result, comment = self.check(0, "--update")
        self.assertEqual(("first", ["baseline.db"]), (result, os.listdir("store")))
        self.assertIn("This run is the baseline from now on", comment)
        before = os.stat("store/baseline.db").st_mtime_ns
        result, comment = self.check(200, "--update", status=1, GITHUB_OUTPUT="outputs", GITHUB_STEP_SUMMARY="summary")
        self.assertEqual("regressed", result)
        self.assertRegex(comment, r"(?s)^<!-- probing.*slower than the baseline.*REGRESSED.*planted.*change\.svg")
        self.assertEqual(before, os.stat("store/baseline.db").st_mtime_ns)  # a slow run is no baseline
        with open("outputs") as outputs, open("summary") as summary:
            self.assertEqual(("result=regressed\n", comment), (outputs.read(), summary.read()))
        with open("probing-ci/change.svg") as picture:
            self.assertIn("planted", picture.read())
        with open("probing-ci/junit.xml") as junit:
            self.assertIn("<failure", junit.read())

    def test_in_turn_with_a_base(self):
        """The same path in two checkouts."""
        for name in "base", "head":
            os.mkdir(name)
            shutil.copy(SLOWER, os.path.join(name, "app.py"))
        with open("head/app.py") as file:
            text = file.read()
        with open("head/app.py", "w") as file:
            file.write(text.replace("int(20000 *", "int(60000 *"))
        result, comment = self.check(0, where=("--base", "../base"), program="app.py", cwd="head", status=1)
        self.assertEqual("regressed", result)
        self.assertRegex(comment, r"in turn with the base")

    def test_command_of_any_signs(self):
        """A command is one line of code in the comment, whatever it contains; elsewhere in GitLab, a line "/close" is an order."""
        words = ["true", "``; @everyone", "\n/close\n\r\n", "<b>`"]
        self.run_command(sys.executable, os.path.join(CI, "regression.py"), "--store", "store", "--runs", "4", "--", *words)
        with open("probing-ci/comment.md") as comment:
            lines = comment.read().splitlines()
        self.assertIn("``` true ``; @everyone  /close    <b>` ```, 4 runs", lines)
        self.assertEqual([], [line for line in lines if line.startswith("/")])

    def test_mistakes(self):
        script = os.path.join(CI, "regression.py")
        for arguments, says in ((["--store", "s", "--runs", "3", "--", "true"], "--runs must be 4 or more"),
                                (["--store", "s"], "the command is missing"),
                                (["--base", "b", "--update", "--", "true"], "--update is for --store"),
                                (["--store", "s", "--name", "a>b", "--", "true"], "--name has letters"),
                                (["--store", "s", "--probing", "/nowhere", "--", "true"], "/nowhere cannot be run"),
                                (["--store", "s", "--", "false"], "probing bench ended with status 1")):
            done = self.run_command(sys.executable, script, *arguments, status=2)
            self.assertIn(says, done.stderr)


class Templates(CiCase):
    alone = True

    def test_action(self):
        """Its check runs as a job does: inputs in the environment, results as outputs."""
        with open(os.path.join(CI, "action.yml")) as file:
            action = yaml().safe_load(file)
        self.assertEqual("composite", action["runs"]["using"])
        steps = {step.get("id") or step.get("uses", "").split("@")[0]: step for step in action["runs"]["steps"]}
        for step in action["runs"]["steps"]:
            self.assertNotIn("${{", step.get("run", ""), "an input must not be pasted into a script")
        inputs = {name: str(value.get("default", "")) for name, value in action["inputs"].items()}
        inputs.update(command="%s %s 0 --scale 0.5" % (p.DEBIAN_PYTHON, SLOWER), runs="4", probing=p.BINARY, update="true")
        environment = {name: inputs.get(value.split("inputs.")[-1].split(" ")[0], "") for name, value in steps["check"]["env"].items()}
        environment.update(SCRIPT=os.path.join(CI, "regression.py"), GITHUB_OUTPUT=os.path.abspath("outputs"))
        self.run_command("bash", "-e", "-o", "pipefail", "-c", steps["check"]["run"], **environment)
        with open("outputs") as outputs:
            self.assertEqual("result=first\nstatus=0\n", outputs.read())
        self.assertEqual([".probing-baseline", "outputs", "probing-ci"], sorted(os.listdir(".")))

    def test_comment(self):
        """The first one is written, later ones replace it, those of others stay; gh is a script that keeps what it is asked."""
        p.need_program("jq")
        with open(os.path.join(CI, "action.yml")) as file:
            step, = (step for step in yaml().safe_load(file)["runs"]["steps"] if step.get("id") == "comment")
        os.mkdir("bin")
        with open("bin/gh", "w") as file:
            file.write('#!/bin/sh\ncase "$*" in *--jq*) jq -r "$5" found ;; *) echo "$@" >>asked ;; esac\n')
        os.chmod("bin/gh", 0o755)
        os.mkdir("probing-ci")
        with open("probing-ci/comment.md", "w") as file:
            file.write("<!-- probing regression check: default -->\ntext\n")
        own, marker = "github-actions[bot]", "<!-- probing regression check: default -->"
        for found in [(5, "somebody", marker), (6, own, "text " + marker)], [(5, "somebody", marker), (7, own, marker), (9, own, marker)]:
            with open("found", "w") as file:
                json.dump([{"id": number, "user": {"login": login}, "body": body + "\ntext"} for number, login, body in found], file)
            self.run_command("bash", "-e", "-o", "pipefail", "-c", step["run"], PATH=os.path.abspath("bin") + ":" + os.environ["PATH"],
                             NUMBER="3", REPOSITORY="a/b")
        with open("asked") as asked:
            self.assertEqual("api --silent repos/a/b/issues/3/comments -F body=@probing-ci/comment.md\n"
                             "api --silent -X PATCH repos/a/b/issues/comments/7 -F body=@probing-ci/comment.md\n", asked.read())

    def test_gitlab(self):
        with open(os.path.join(CI, "gitlab.yml")) as file:
            job = yaml().safe_load(file)[".probing"]
        variables = dict(job["variables"], PROBING_COMMAND="%s %s 0 --scale 0.5" % (p.DEBIAN_PYTHON, SLOWER), PROBING_RUNS="4",
                         PROBING_SCRIPT=os.path.join(CI, "regression.py"), CI_COMMIT_BRANCH="main", CI_DEFAULT_BRANCH="main")
        self.run_command("bash", "-e", "-o", "pipefail", "-c", "\n".join(job["script"]), **variables)
        self.assertEqual(["baseline.db"], os.listdir(".probing-baseline"))
        self.assertEqual(["probing-ci"], job["artifacts"]["paths"])
        self.assertEqual(("$PROBING_CACHE", True), (job["cache"]["policy"], job["cache"]["unprotect"]))  # else a merge request finds no baseline
        policies = [dict(job["variables"], **rule.get("variables", {}))["PROBING_CACHE"] for rule in job["rules"]]
        self.assertEqual(["pull", "pull-push"], policies)


if __name__ == "__main__":
    unittest.main()
