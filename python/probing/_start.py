# SPDX-License-Identifier: MIT
"""The start hook: what PROBING in the environment asks for, done when an interpreter starts.

    PROBING=0                   nothing
    PROBING=1, followed         the agent in this process
    PROBING=2, nested           and in its children
    PROBING=regex:PATTERN       where PATTERN is found in the script's name
    PROBING=SCRIPT.py           where the script is called so
    PROBING=init:SCRIPT[+MODE]  run SCRIPT first, then as MODE says (followed)

PROBING_RECORD=FILE[,retention=TIME][,max-size=BYTES][,frequency=HZ][,mode=NAME][,source=NAME] records the process beside that, from
now to its end, by a process of its own. %p, %h, %t and %r in FILE are the PID, the host, the time and the rank.

",KEY=VALUE" behind it sets keys of the configuration, as PROBING_SAMPLE_RATE and PROBING_RETENTION_DAYS do. Launchers (torchrun)
are left alone, and pass it on to what they start.

This runs before the program, in all of its interpreters: nothing is imported but where the agent is started, nothing is raised,
and one line goes to stderr. CPython 3.6 or newer; the file is also read without its package (../start/sitecustomize.py).
"""
import os
import sys

LAUNCHERS = ("torchrun", "accelerate", "deepspeed", "horovodrun", "torch.distributed.run", "torch.distributed.launch",
             "accelerate.commands.launch", "deepspeed.launcher.runner", "deepspeed.launcher.launch", "horovod.runner",
             "horovod.runner.launch")
TRACKERS = ("from multiprocessing.resource_tracker", "from multiprocessing.semaphore_tracker")
VARIABLES = (("PROBING_SAMPLE_RATE", "sample_rate"), ("PROBING_RETENTION_DAYS", "retention_days"),
             ("PROBING_TORCH_PROFILING", "torch.profiling"), ("PROBING_TRACE", "trace"), ("PROBING_TORCH_WATCH_VARS", "watch_vars"),
             ("PROBING_CRASH", "crash"))
WITHOUT_EFFECT = (  # variables of the older probing, and what to do instead
    ("PROBING_PORT", "probing opens no port: its commands take the PID %d"),
    ("PROBING_SERVER_ADDR", "probing opens no port: its commands take the PID %d"),
    ("PROBING_AUTH_TOKEN", "probing opens no port: only this user and root reach process %d"))
RECORD_KEYS = ("retention", "max-size", "frequency", "mode", "source")  # options of probing record
RECORD_HZ, RECORD_MS, RECORD_BYTES = "19", 20000, 8192
QUIET, LOUD = ("off", "error", "warn"), ("info", "debug", "trace")  # PROBING_LOGLEVEL, as src/cli/recording.c has them
FOLLOW_FORKS = 1  # src/agent/agent.h
WHY_BYTES = 1024  # src/config/config.h


class Mistake(Exception):
    pass


def _say(sentence):
    try:
        os.write(2, ("probing: %s\n" % sentence).encode("utf-8", "backslashreplace"))
    except OSError:
        pass


def script_of(words):
    """The name of the script, or module, of an interpreter's command line; "" for code of -c, which comes second."""
    at = 1
    while at < len(words):
        word = words[at]
        if word == "-" or not word.startswith("-"):
            return os.path.basename(word), ""
        if word in ("-W", "-X", "--check-hash-based-pycs"):
            at += 2
            continue
        if not word.startswith("--"):
            for i, letter in enumerate(word[1:], 1):
                rest = word[i + 1:] or (words[at + 1] if at + 1 < len(words) else "")
                if letter == "m":
                    return rest, ""
                if letter == "c":
                    return "", rest
                if letter in "WX":
                    break
        at += 1
    return "", ""


def split(value):
    """(mode, [KEY=VALUE])"""
    parts = value.split(",")
    assignments, rest = [], []  # a value may have commas in it
    while len(parts) > 1:
        rest.insert(0, parts.pop())
        name, equals, _ = rest[0].partition("=")
        if equals and name.replace("_", "a").replace(".", "a").replace("-", "a").isalpha():
            assignments.insert(0, ",".join(rest))
            rest = []
    return ",".join(parts + rest), assignments


def decide(mode, script):
    """None: not in this process; else whether its children are followed, too, and the mode in words."""
    if mode in ("1", "followed"):
        return False, "followed: this process only"
    if mode in ("2", "nested"):
        return True, "nested: this process and its children"
    if mode.startswith("regex:"):
        import re
        try:
            found = re.search(mode[len("regex:"):], script)
        except re.error as error:
            raise Mistake("PROBING=%s is not a regular expression: %s" % (mode, error))
        return (True, "%s matches %s" % (mode, script)) if found else None
    if mode.endswith(".py"):
        return (True, "the script is %s" % script) if script == os.path.basename(mode) else None
    raise Mistake("PROBING=%s means nothing: it is 0, 1, followed, 2, nested, regex:PATTERN, SCRIPT.py or init:SCRIPT[+MODE]"
                  % mode)


def library():
    here = os.path.dirname(os.path.abspath(__file__))
    name = "libprobing-agent.so"
    wanted = os.environ.get("PROBING_AGENT")
    candidates = [wanted] if wanted else [os.path.join(here, name), os.path.join(os.path.dirname(here), name)]
    for _ in range(0 if wanted else 6):
        here = os.path.dirname(here)
        for folder in ("lib", os.path.join("lib", os.uname().machine + "-linux-gnu"), "lib64"):
            candidates.append(os.path.join(here, folder, "probing", name))
    for path in candidates:
        if os.path.isfile(path):
            return path
    raise Mistake("the agent's library %s is not there: install probing again" % (wanted or name))


def start(assignments, follows):
    import ctypes
    try:
        agent = ctypes.CDLL(library())
    except OSError as error:
        raise Mistake("the agent cannot be loaded: %s" % error)
    why = ctypes.create_string_buffer(WHY_BYTES)
    for assignment in assignments:
        if agent.probing_agent_configure(assignment.encode("utf-8", "replace"), why) < 0:
            raise Mistake(why.value.decode("utf-8", "replace"))
    r = agent.probing_agent_start(FOLLOW_FORKS if follows else 0)
    if r < 0:
        raise Mistake("the agent could not be started: %s" % os.strerror(-r))
    return agent


def program():
    """The path of probing itself."""
    wanted = os.environ.get("PROBING_BINARY")
    here = os.path.dirname(os.path.abspath(__file__))
    candidates = [wanted] if wanted else []
    for _ in range(0 if wanted else 6):  # PREFIX/lib/python3.11/site-packages/probing, at most
        here = os.path.dirname(here)
        candidates.append(os.path.join(here, "bin", "probing"))
    if not wanted:
        candidates += [os.path.join(folder, "probing") for folder in os.environ.get("PATH", os.defpath).split(os.pathsep)]
    for path in candidates:
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise Mistake("the program %s is not there: install probing, or name it in PROBING_BINARY" % (wanted or "probing"))


def recording_path(template):
    """FILE without its placeholders."""
    import time
    values = {"p": str(os.getpid()), "h": os.uname().nodename.replace("/", "_"), "t": time.strftime("%Y%m%d-%H%M%S"),
              "r": os.environ.get("RANK") or "0", "%": "%"}
    path, at = "", 0
    while at < len(template):
        if template[at] == "%":
            at += 1
            if template[at:at + 1] not in values:
                raise Mistake("%%%s in PROBING_RECORD means nothing: it is %%p, %%h, %%t, %%r or %%%%" % template[at:at + 1])
            path += values[template[at]]
        else:
            path += template[at]
        at += 1
    is_shared = os.environ.get("RANK") and os.environ.get("WORLD_SIZE", "1") != "1"
    if is_shared and "%p" not in template and "%r" not in template:
        stem, extension = os.path.splitext(path)
        path = "%s.%s%s" % (stem, values["p"], extension)
    return os.path.abspath(path)


def record_command(value):
    """The words of the command that records this process, as PROBING_RECORD says."""
    template, assignments = split(value)
    if not template:
        raise Mistake("PROBING_RECORD=%s names no file" % value)
    given = {}
    for assignment in assignments:
        key, _, text = assignment.partition("=")
        key = key.replace("_", "-")
        if key not in RECORD_KEYS:
            raise Mistake("PROBING_RECORD has no key %s: the keys are %s" % (key, ", ".join(RECORD_KEYS)))
        given[key] = text
    if not os.environ.get("PROBING_SAMPLE_RATE"):
        given.setdefault("frequency", RECORD_HZ)
    words = [program(), "record", "--quiet", "--background", "--distinct", "--pid", str(os.getpid()), "-o", recording_path(template)]
    for key, text in sorted(given.items()):
        words.append("--%s=%s" % (key, text))
    return words


def end_recorder(pid):
    """The first process of a container takes all others with it when it ends."""
    import signal
    try:
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)  # an orphan, so its child
    except OSError:
        pass


def record(agent, value, is_loud):
    """Start the recorder, and wait until it records."""
    import ctypes
    words = [os.fsencode(word) for word in record_command(value)]
    out = ctypes.create_string_buffer(RECORD_BYTES)
    r = agent.probing_agent_spawn((ctypes.c_char_p * (len(words) + 1))(*words + [None]), RECORD_MS, out, ctypes.c_size_t(RECORD_BYTES))
    said = os.fsdecode(out.value).splitlines()
    pid, _, path = (said or [""])[-1].partition(" ")
    if r < 0 or not pid.isdigit():
        reasons = [line for line in said if line.startswith("probing: ")] or said or ["probing did not start"]
        raise Mistake(os.strerror(-r) if r < 0 else reasons[0].replace("probing: ", "", 1))
    if os.getpid() == 1:
        import atexit
        atexit.register(end_recorder, int(pid))
    if is_loud:
        _say("recording into %s (process %s)" % (path, pid))


def run_script(path):
    try:
        with open(path, "rb") as file:
            code = compile(file.read(), path, "exec")
        exec(code, {"__name__": "__probing_init__", "__file__": path, "__builtins__": __builtins__})
    except Exception:
        import traceback
        _say("init:%s failed:\n%s" % (path, traceback.format_exc().rstrip()))


def _command_line():
    with open("/proc/self/cmdline", "rb") as file:
        return [os.fsdecode(word) for word in file.read().split(b"\0")[:-1]]


def _activate(value):
    """Whether what this process starts is to have PROBING, too."""
    script, code = script_of(_command_line())
    if script in LAUNCHERS or code.startswith(TRACKERS):
        return True
    mode, assignments = split(value)
    if mode.startswith("init:"):
        path, _, mode = mode[len("init:"):].partition("+")
        run_script(path)
        mode = mode or "followed"
        if mode == "0":
            return False
    decision = decide(mode, script)
    if decision is None:
        return True
    for variable, key in VARIABLES:
        if os.environ.get(variable):
            assignments.insert(0, "%s=%s" % (key, os.environ[variable]))
    level = os.environ.get("PROBING_LOGLEVEL") or "info"
    if level not in QUIET + LOUD:
        raise Mistake("PROBING_LOGLEVEL=%s means nothing: it is %s" % (level, ", ".join(QUIET + LOUD)))
    agent = start(assignments, decision[0])
    if level in LOUD:
        _say("active in process %d (%s)" % (os.getpid(), decision[1]))
        for variable, instead in WITHOUT_EFFECT:
            if os.environ.get(variable):
                _say("%s has no effect: %s" % (variable, instead % os.getpid()))
    if os.environ.get("PROBING_RECORD"):
        try:
            record(agent, os.environ.pop("PROBING_RECORD"), level in LOUD)  # one recorder for its children, too
        except Mistake as mistake:
            _say("not recorded: %s" % mistake)
    return decision[0]


def begin():
    """Returns whether what this process starts is to have PROBING, too."""
    value = os.environ.get("PROBING", "")
    if hasattr(sys, "_probing_passes_on"):  # `probing run` of a Python that has the package: its hook comes by twice
        return sys._probing_passes_on
    if value in ("", "0"):
        if not value and os.environ.get("PROBING_TORCH_PROFILING", "off") != "off" and os.environ.get("PROBING_LOGLEVEL") not in QUIET:
            _say("PROBING_TORCH_PROFILING has no effect without the agent: set PROBING=1, too")
        return True
    sys._probing_passes_on = True
    try:
        sys._probing_passes_on = _activate(value)
    except Mistake as mistake:
        _say("not active: %s" % mistake)
    except Exception as error:
        _say("not active: %s: %s" % (type(error).__name__, error))
    if not sys._probing_passes_on:
        os.environ.pop("PROBING", None)
        os.environ.pop("PROBING_TORCH_PROFILING", None)
    return sys._probing_passes_on
