#!/usr/bin/env python3
"""
koine task and daemon, with a real koined whose claude is a shell: a prompt is what it runs. And
the methods behind them, where a command line cannot go.
"""
import contextlib
import fcntl
import json
import os
import re
import signal
import socket
import struct
import subprocess
import termios
import time

from harness import (KOINE, PATIENCE, SERVER, Daemon, Failure, Folder, check, installed, main, post, request, same,
                     wait_until)
from test_chat_cli import Done, Running, Terminal, koine, of
from vt import Screen

CLAUDE = """#!/bin/sh
# claude -p [--agent NAME] -- PROMPT
[ "$1" = -p ] || exit 99
[ "$2" = -- ] || AGENT=$3
export AGENT
for prompt; do :; done
exec /bin/sh -c "$prompt"
"""

# Waits for a file, as long as that takes.
UNTIL = "while [ ! -e %s ]; do sleep 0.02; done"


class World:
    """A daemon, a folder with its claude, and koine in it."""

    def __init__(self, *args, **opts):
        self.args = args
        self.opts = opts

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        self.folder = self.stack.enter_context(Folder())
        os.mkdir(self.folder("bin"))
        with open(self.folder("bin", "claude"), "w") as f:
            f.write(CLAUDE)
        os.chmod(self.folder("bin", "claude"), 0o755)
        path = self.folder("bin") + ":" + os.environ["PATH"]
        self.daemon = self.stack.enter_context(
            Daemon(*[a.replace("FOLDER", self.folder.path) for a in self.args],
                   env={"PATH": path}, **self.opts))
        self.env = of(self.daemon)
        return self

    def __exit__(self, *exc):
        return self.stack.__exit__(*exc)

    def path(self, name):
        return self.folder(name)

    def touch(self, name):
        with open(self.folder(name), "w"):
            pass
        return self.folder(name)

    def __call__(self, *args, stdin=b"", code=0, cwd=None, env=None):
        """koine task ARGS"""
        return self.koine("task", *args, stdin=stdin, code=code, cwd=cwd, env=env)

    def koine(self, *args, stdin=b"", code=0, cwd=None, env=None):
        done = subprocess.run([KOINE, *args], input=stdin, capture_output=True, timeout=PATIENCE,
                              env=env or self.env, cwd=cwd or self.folder.path)
        result = Done(done.returncode, done.stdout, done.stderr)
        same(result.code, code, "exit code of %r (%r, %r)" % (args, result.out, result.err))
        return result

    def add(self, *args, **opts):
        return self("add", *args, **opts).out.strip()

    def json(self, *args, **opts):
        return json.loads(self(*args, "--json", **opts).out)

    def state(self, task):
        return self.json("show", task)["state"]

    def until(self, task, state):
        wait_until(lambda: self.state(task) == state, "%s to be %s" % (task, state))


# ---- adding, listing, showing ----


def test_a_task_is_added_and_shown():
    with World() as w:
        same(w("list").out.split(), ["ID", "STATE", "AGE", "TIME", "PROMPT"], "titles alone")
        # Where it ran is said if that can be elsewhere.
        host = socket.gethostname() + " +" if SERVER else ""
        same(w.add("echo", "hello", "there"), "task-0000", "id")
        same(w("wait", "0").out, "", "nothing to say of what went well")
        same(w("log", "0").out, "hello there\n", "output")
        lines = w("list").out.splitlines()
        check(re.fullmatch(r"task-0000  completed +\d+s +\d+s +0  %secho hello there" % host, lines[1]),
              "%r", lines)
        shown = w("show", "task-0000").out
        for part in ("state         completed (0s)\n", "exit status   0\n",
                     "Prompt:\necho hello there\n", "Result:\nhello there\n"):
            check(part in shown, "no %r in %r", part, shown)


def test_a_prompt_may_come_from_stdin_and_may_begin_with_a_dash():
    with World() as w:
        same(w.add("-", stdin=b"echo from\necho stdin"), "task-0000", "id")
        w("wait", "0")
        same(w("log", "0").out, "from\nstdin\n", "output")
        w("add", "--wait", "--", "-x", "--json", code=2)
        same(w.json("show", "1")["prompt"], "-x --json", "prompt")
        check("requires PROMPT" in w("add", code=64).err, "without one")
        check("NUL" in w("add", "-", stdin=b"a\0b", code=1).err, "a NUL")


def test_a_task_runs_where_and_with_what_was_said():
    with World() as w:
        os.mkdir(w.path("there"))
        task = w.add("-d", "there", "-e", "ONE=1", "--env", "TWO=a=b", "--claude-agent", "helper", "--wait",
                     'pwd; echo "$ONE $TWO $AGENT"')
        same(w("log", task).out.split("\n"), [os.path.realpath(w.path("there")), "1 a=b helper", ""],
             "output")
        shown = w.json("show", task)
        same((shown["env"], shown["agent"]), (["ONE", "TWO"], "helper"), "values are not told")
        check("No such file" in w("add", "-d", "nowhere", "x", code=66).err, "a folder")
        check("--env novalue: your environment" in w("add", "-e", "novalue", "x", code=64).err,
              "no value")
        for option, value, accepted in (("--timeout", "5x", "TIME, such as 90, 10m, 2h or 7d"),
                                        ("--retry", "-1", "N, a positive integer"),
                                        ("--priority", "high", "N, a number")):
            said = w("add", option, value, "x", code=64).err
            check("invalid %s '%s': expected %s\n" % (option, value, accepted) in said, "%r", said)
        check("agent not found" in w("add", "-r", "nobody", "x", code=1).err, "no runner")


def test_lists_are_filtered_and_are_json():
    with World() as w:
        for group in ("a", "b", "b"):
            w.add("-g", group, "--wait", "true")
        w.add("--delay", "1h", "later")
        same([t["id"] for t in w.json("list")],
             ["task-0003", "task-0002", "task-0001", "task-0000"], "newest first")
        same([t["id"] for t in w.json("list", "-g", "b")], ["task-0002", "task-0001"], "a group")
        same([t["id"] for t in w.json("list", "--state", "queued")], ["task-0003"], "a state")
        same(len(w.json("list", "-n", "2")), 2, "a limit")
        check("invalid --state 'lost': expected queued, running" in w("list", "--state", "lost", code=64).err, "no state")
        same(w.json("stats"), {"total": 4, "queued": 1, "running": 0, "completed": 3, "failed": 0,
                               "cancelled": 0}, "stats")
        same(w("stats").out.split(), ["queued", "1", "running", "0", "completed", "3", "failed",
                                      "0", "cancelled", "0", "total", "4"], "stats for people")
        same([(g["group"], g["completed"]) for g in w.json("groups")], [("a", 1), ("b", 2)],
             "groups")
        check("GROUP" in w("groups").out, "titles")
        w("cancel", "3")


def test_long_lists_come_in_pages():
    with World("--set", "tasks.queue=3000") as w, w.daemon.connect() as k:
        for i in range(0, 1100, 100):
            k.send(b"".join(request("task.add", {"prompt": "p%d" % n, "stash": True, "label": "ab"[n % 2]}) + b"\n"
                            for n in range(i, i + 100)))
            for _ in range(100):
                check(b"queued" in k.read_line(), "added")
        page = k.call("task.find", {"limit": 700})
        rest = k.call("task.find", {"limit": 700, "before": page["next"]})
        same(([t["id"] for t in page["tasks"]] + [t["id"] for t in rest["tasks"]], rest["next"]),
             (["task-%04d" % n for n in reversed(range(1100))], None), "two pages")
        # Whoever comes in between is on no page that was begun before.
        added = k.call("task.add", {"prompt": "new", "stash": True})["id"]
        again = k.call("task.find", {"limit": 700, "before": page["next"]})
        same([t["id"] for t in again["tasks"]], [t["id"] for t in rest["tasks"]], "the same again")
        found, before = [], 0
        while before is not None:
            some = k.call("task.find", {"limit": 100, "label": "a", "before": before})
            before = some["next"]
            found += [t["id"] for t in some["tasks"]]
        same(found, ["task-%04d" % n for n in reversed(range(0, 1100, 2))], "those with a label")
        same(k.call("task.find", {"limit": 1, "before": 1})["next"], None, "none before the first")
        check(b"'before' must be at least 0, not -1" in k.call_text(request("task.find", {"before": -1})), "negative")
        same([t["id"] for t in w.json("list", "-n", "5000")],
             [added] + ["task-%04d" % n for n in reversed(range(1100))], "one array")
        same(len(w.json("list", "-n", "1050")), 1050, "no more than wanted")
        same(len(w("list", "-n", "1050").out.splitlines()), 1052, "two tables")


def test_a_table_fits_its_terminal():
    with World() as w:
        w.add("-g", "group", "-p", "3", "--wait", "true " + "x" * 300)
        w.add("--wait", "true", "漢字" * 100)
        host = " HOST" if SERVER else ""
        for columns, titles in ((100, "ID STATE PRI AGE TIME EXIT GROUP%s PROMPT" % host),
                                (60, "ID STATE AGE TIME EXIT%s PROMPT" % host), (40, "ID STATE PROMPT")):
            with Terminal(w.env, "task", "list", columns=columns) as t:
                lines = t.leave().replace("\r", "").splitlines()
            same(lines[0].split(), titles.split(), "titles in %d" % columns)
            for line in lines:
                wide = sum(2 if ord(c) > 0x2fff else 1 for c in line)
                check(wide <= columns, "%d columns in %d: %r", wide, columns, line)
            check(lines[1].endswith("…"), "%r", lines[1])


def test_colours_tell_states():
    with World() as w:
        w.add("--wait", "true")
        w("add", "--wait", "exit 1", code=1)
        shown = w("list", "--color", "always").out
        check("\033[32mcompleted\033[0m" in shown, "%r", shown)
        check("\033[31mfailed" in shown, "%r", shown)
        check("\033[1mID" in shown, "%r", shown)


# ---- who runs it ----


def test_an_agent_that_is_not_configured_is_refused_with_a_hint():
    with World() as w:
        for args in ("--agent", "reviewer"), ("-r", "reviewer"):
            said = w("add", *args, "true", code=1).err
            check("agent not found: 'reviewer'" in said and "use --claude-agent" in said, "%r", said)
        check("use --claude-agent" in w("add", "--agent", "reviewer", "--runner", "claude", "true", code=64).err, "both")
        w("add", "--runner", "claude", "--claude-agent", "reviewer", "--agent", "claude", "true")


# ---- Ctrl-C ----


def catches_interrupts(pid):
    with open("/proc/%d/status" % pid) as f:
        return int(re.search(r"SigCgt:\s*(\w+)", f.read()).group(1), 16) >> signal.SIGINT - 1 & 1


def test_ctrl_c_says_what_continues():
    with World() as w:
        w.add("--label", "slow", "touch began; sleep 600")
        w.until("task-0000", "running")
        for args in ("wait", "0"), ("watch", "slow"), ("log", "-f", "0"):
            waits = subprocess.Popen([KOINE, "task", *args], env=w.env, cwd=w.folder.path,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            wait_until(lambda waits=waits: catches_interrupts(waits.pid), "the wait")
            waits.send_signal(signal.SIGINT)
            said = waits.communicate(timeout=PATIENCE)[1].decode()
            same(waits.returncode, -signal.SIGINT, "its end")
            check(" continues\n" in said and "koine task cancel %s" % ("'slow'" if "slow" in args else "task-0000") in said,
                  "%r", said)
        same(w.state("0"), "running", "the task")


# ---- labels ----


def test_a_unique_label_works_wherever_an_id_does():
    with World() as w:
        w.add("--label", "fetch", "--stash", "echo fetched")
        w.add("--label", "build it", "--after", "fetch", "echo built")
        same(w.json("show", "build it")["after"], ["task-0000"], "add --after")
        w("edit", "build it", "--after", "fetch", "--priority", "3")
        same(w.json("show", "1")["priority"], 3, "edit")
        same(w("enqueue", "fetch").out, "task-0000 enqueued\n", "the id is said")
        w("wait", "fetch", "build it")
        same((w("log", "fetch").out, w("watch", "build it").out), ("fetched\n", "built\n"), "output")
        w.add("--label", "slow", "sleep", "600")
        same(w("cancel", "slow").out, "task-0002 cancelled\n", "cancel")
        w("wait", "slow", code=130)
        same(w("retry", "slow").out, "task-0002 queued\n", "retry")
        w("cancel", "slow")
        w("wait", "slow", code=130)
        w("delete", "slow")
        check("Task not found: slow" in w("show", "slow", code=1).err, "deleted")
        w.add("--label", "fetch", "true")
        said = "koine: several tasks have the label 'fetch', such as task-0003 and task-0000; use an id\n"
        for command in "show", "log", "wait", "cancel", "delete", "watch", "retry":
            same(w(command, "fetch", code=1).err, said, command)
        same(w("add", "--after", "fetch", "true", code=1).err, said, "after")
        same(w("edit", "task-0001", "--after", "fetch", code=1).err, said, "after of another")


# ---- how they end ----


def test_the_exit_status_follows_the_task():
    with World() as w:
        w("add", "--wait", "true")
        done = w("add", "--wait", "echo no good >&2; exit 3", code=3)
        same(done.err, "koine: task-0001 failed: no good\n", "stderr")
        w("add", "--wait", "kill -SEGV $$", code=1)
        w("wait", "0")
        w("wait", "1", code=3)
        w("wait", "0", "1", "2", code=3)
        w("wait", "2", "1", code=1)
        w("wait", "1", "--status", "any")
        w("wait", "1", "--status", "success", code=3)
        check("not found" in w("wait", "77", code=1).err, "unknown")
        end = json.loads(w("wait", "1", "--json", code=3).out)
        same((end["id"], end["state"], end["exit_status"]), ("task-0001", "failed", 3), "as JSON")


def test_wait_waits():
    with World() as w:
        task = w.add(UNTIL % w.path("go"))
        with Running(w.env, "task", "wait", task) as k:
            w.until(task, "running")
            same(k.process.poll(), None, "it waits")
            w.touch("go")
            same(k.finish().code, 0, "exit code")


def test_cancel_ends_them_all():
    with World() as w:
        running = w.add("sleep 1000 & echo $!; wait")
        queued = w.add("--delay", "1h", "true")
        wait_until(lambda: w("log", running).out, "its child")
        child = int(w("log", running).out)
        with Running(w.env, "task", "wait", running) as k:
            same(w("cancel", running, "1").out, "task-0000 cancelled\ntask-0001 cancelled\n", "says")
            done = k.finish()
        same((done.code, done.err), (130, "koine: task-0000 was cancelled\n"), "the wait's end")
        same(w.state(queued), "cancelled", "queued")
        wait_until(lambda: not os.path.exists("/proc/%d" % child), "the child to be gone")
        again = w("cancel", "0", code=1)
        same(again.err, "koine: Task task-0000 is already cancelled\n", "the second time")
        # One that cannot be does not keep the others.
        other = w.add("--delay", "1h", "true")
        done = w("cancel", "0", "55", other, code=1)
        same(done.out, "task-0002 cancelled\n", "the rest")
        check("not found: task-0055" in done.err, "%r", done.err)


def test_retry_by_hand():
    with World() as w:
        script = "if [ -e %s ]; then echo well; else exit 4; fi" % w.path("ok")
        task = w("add", "--wait", script, code=4).out.strip()
        w.touch("ok")
        same(w("retry", "0").out, "task-0000 queued\n", "says")
        w("wait", task)
        check(w("log", task).out.endswith("well\n"), "output")
        check("task-0000" in (err := w("retry", "0", code=1).err) and "code" not in err,
              "a completed one: %r", err)
        err = w("retry", "0", "1", "--token-file", w.path("none"), code=66).err
        same(err.count("cannot read"), 1, "how often it dials")


def test_retries_with_a_growing_delay():
    with World() as w:
        script = "date +%%s%%N >> %s; [ $(wc -l < %s) -ge 3 ]" % ((w.path("times"),) * 2)
        task = w.add("--retry", "3", "--retry-delay", "100ms", "--wait", script)
        with open(w.path("times")) as f:
            first, second, third = [int(line) for line in f]
        shown = w.json("show", task)
        same((shown["attempts"], shown["max_attempts"]), (3, 4), "attempts")
        # At least; how much more is the machine's business. Jitter may take a half of it.
        check(second - first >= 45e6 and third - second >= 95e6, "%r", (first, second, third))
        check("completed 3/4" in w("list").out, "%r", w("list").out)
        check("attempts      3 of 4\n" in w("show", task).out, "all of it")


def test_a_timeout_ends_it():
    with World() as w:
        done = w("add", "--timeout", "200ms", "--wait", "sleep 1000", code=1)
        same(done.err, "koine: task-0000 failed: Task timed out after 200ms\n", "stderr")
        check("timeout" in w("show", "0").out, "all of it")


def test_what_comes_after_waits():
    with World() as w:
        first = w.add("-p", "1", (UNTIL % w.path("go")) + "; echo one >> %s" % w.path("order"))
        second = w.add("--after", first, "-p", "9", "echo two >> %s" % w.path("order"))
        third = w.add("--after", "1", "--after", "0", "echo three >> %s" % w.path("order"))
        w.until(first, "running")
        same((w.state(second), w.state(third)), ("queued", "queued"), "they wait")
        same(w.json("show", third)["after"], ["task-0001", "task-0000"], "what for")
        w.touch("go")
        w("wait", "0", "1", "2")
        with open(w.path("order")) as f:
            same(f.read().split(), ["one", "two", "three"], "order")
        # And fails with it.
        bad = w.add(UNTIL % w.path("bad") + "; exit 1")
        behind = w.add("--after", bad, "true")
        w.touch("bad")
        done = w("wait", behind, code=1)
        check("task-0003" in done.err, "%r", done.err)
        check("not found" in w("add", "--after", "99", "x", code=1).err, "unknown")


# ---- output ----


def test_follow_prints_as_it_comes():
    with World() as w:
        script = "echo one; %s; echo two; exit 7" % (UNTIL % w.path("go"))
        with Running(w.env, "task", "add", "--follow", script) as k:
            k.expect("one\n")
            w.touch("go")
            done = k.finish()
        same((done.code, done.out), (7, "one\ntwo\n"), "exit code and output")
        same(done.err.splitlines()[0], "task-0000", "the id is not in the output")
        again = w("watch", "0", code=7)
        same(again.out, "one\ntwo\n", "one that has ended")
        same(w("watch", "0", "-n", "1", code=7).out, "two\n", "from the last line on")
        rows = [json.loads(line) for line in w("watch", "0", "--json", code=7).out.splitlines()]
        same("".join(r["text"] for r in rows[:-1]), "one\ntwo\n", "as JSON")
        same(rows[-1]["state"], "failed", "the end as JSON")


def test_log_of_a_part_and_on():
    with World() as w:
        script = "seq 1 100; %s; echo end; exit 5" % (UNTIL % w.path("go"))
        task = w.add(script)
        wait_until(lambda: "100\n" in w("log", task).out, "its output")
        same(w("log", task, "-n", "2").out, "99\n100\n", "the last lines")
        same(w("log", task, "-n", "1000").out.split(), [str(n) for n in range(1, 101)], "all")
        with Running(w.env, "task", "log", "-f", "-n", "1", task) as k:
            k.expect("100\n")
            w.touch("go")
            done = k.finish()
        same((done.code, done.out), (0, "100\nend\n"), "followed")


def test_much_output_comes_whole():
    with World() as w:
        task = w.add("--wait", "seq 1 200000; printf 'no newline'")
        out = w("log", task).out
        same(out, "".join("%d\n" % n for n in range(1, 200001)) + "no newline", "output")
        same(w("watch", task).out, out, "followed")
        same(w("log", task, "-n", "1").out, "no newline", "the end")


def test_output_is_text_whatever_it_was():
    with World() as w:
        # A character in two halves, with a pause; bytes that are none.
        script = "printf 'a\\303'; %s; printf '\\244b\\377c\\342\\202'" % (UNTIL % w.path("go"))
        with Running(w.env, "task", "add", "--follow", script) as k:
            k.expect("a")
            w.touch("go")
            same(k.finish().out, "aäb\ufffdc\ufffd\ufffd", "followed")
        same(w("log", "0").out, "aäb\ufffdc\ufffd\ufffd", "read")


def test_on_a_terminal_only_colours_steer():
    with World() as w:
        w.add("--wait", "printf '\\033[31mred\\033[0m \\033[2J\\033]0;title\\007\\n'")
        env = {k: v for k, v in w.env.items() if k != "NO_COLOR"}
        with Terminal(env, "task", "log", "0") as t:
            shown = t.leave()
        check("\033[31mred\033[0m \\x1b[2J\\x1b]0;title\\x07" in shown, "%r", shown)
        same(w("log", "0").out, "\033[31mred\033[0m \033[2J\033]0;title\007\n", "in a pipe")


# ---- projects ----


def test_a_task_runs_where_one_stands_and_says_so():
    with World() as w:
        os.mkdir(w.path("here"))
        here = os.path.realpath(w.path("here"))
        task = w.add("--wait", 'pwd; echo "$PWD $KOINE_SOCKET"', cwd=here)
        same(w("log", task).out, "%s\n%s %s\n" % (here, here, w.daemon.socket_path), "where")
        check("directory     %s\n" % here in w("show", task).out, "what task get says")
        same(w.json("show", task)["cwd"], here, "the same as JSON")
        with w.daemon.connect() as c:
            same(ask(c, "task.get", {"taskId": task})["result"]["cwd"], here, "task.get")
        # A daemon elsewhere may not have it: a URL may be of another machine.
        url = w.env.copy()
        task = w("add", "--wait", "--url", w.daemon.address("unix"), "pwd", cwd=here, env=url).out
        same(w.json("show", task.strip())["cwd"], None, "by URL")


def test_work_that_nobody_can_do_is_not_taken_for_done():
    with World() as w:
        os.unlink(w.path(os.path.join("bin", "claude")))
        done = w("add", "--follow", "fix", "it", code=1)
        check("no agent is configured: install claude" in done.err, "%r", done.err)
        same(w.state("0"), "failed", "state")
        check("offline responder" in w("add", "-r", "recall", "-f", "fix", "it").out, "by name")


def test_what_a_task_adds_is_of_its_project():
    with Folder() as place:
        os.makedirs(place("app", ".aiwg"))
        os.makedirs(place("away"))
        app = os.path.realpath(place("app"))
        with World("--project", place("app")) as w:
            w.add("--wait", "cd '%s' && '%s' task add --wait pwd" % (place("away"), KOINE), cwd=app)
            found = w.json("list", "--all-projects")
            same([t["project"] for t in found], [app, app], "projects")
            away = os.path.realpath(place("away"))
            same(w("log", "1", cwd=app).out, away + "\n", "where it stood")


def test_the_project_is_where_one_stands():
    with Folder() as place:
        os.makedirs(place("app", ".aiwg"))
        os.makedirs(place("app", "deep", "er"))
        os.makedirs(place("other", ".aiwg"))
        app = os.path.realpath(place("app"))
        with World("--project", place("app")) as w:
            same(w.add("--wait", "pwd"), "task-0000", "of none")
            same(w.add("--wait", "pwd", cwd=place("app", "deep", "er")), "task-0000", "the first there")
            deep = os.path.join(app, "deep", "er") + "\n"
            same(w("log", "0", cwd=place("app")).out, deep, "it runs where one stood")
            same(w("log", "0", "--project", place("app")).out, deep, "the same, by name")
            same(w("log", "0").out, os.path.realpath(w.folder.path) + "\n", "the one of none")
            same([t["project"] for t in w.json("list", cwd=place("app"))], [app], "its own alone")
            same([t["project"] for t in w.json("list", "--all-projects")], [app, ""], "all")
            same(w("list", "--all-projects").out.split()[0], "PROJECT", "which")
            same(w.json("list", "--project", "", cwd=place("app"))[0]["project"], "", "of none")
            refused = w("add", "x", cwd=place("other"), code=1)
            check("start koined with --project" in refused.err,
                  "%r", refused.err)
            check("No such file" in w("list", "--project", place("no"), code=66).err, "none such")
            # On the socket that is about all, an id alone may be two tasks.
            with w.daemon.connect() as c:
                answer = ask(c, "task.show", {"id": "task-0000"})
                same(answer["error"]["data"], {"field": "project"}, "which one")
                same(ask(c, "task.get", {"taskId": "task-0000", "project": app})["result"]["project"],
                     app, "aiwg's method with a project")
                same(ask(c, "task.stats", {"project": app})["result"]["total"], 1, "stats")
                same(ask(c, "task.stats", {})["result"]["total"], 2, "stats of all")
            task = w.add("--wait", "--project", place("app"), "pwd")
            same(w("log", task, cwd=app).out, app + "\n", "a project that is named, from elsewhere")


# ---- watch ----


def resize(terminal, rows, columns):
    terminal.rows, terminal.columns = rows, columns
    fcntl.ioctl(terminal.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def frame_with(terminal, *texts):
    """The screen, as soon as it has them all, its rows joined by newlines."""
    end = time.monotonic() + PATIENCE
    while True:
        screen = Screen(terminal.rows, terminal.columns)
        screen.feed(terminal.all.decode(errors="ignore"))
        frame = "\n".join(screen.text())
        if all(t in frame for t in texts):
            return frame
        try:
            check(terminal.more(end), "it ended: %r", terminal.all[-2000:])
        except Failure as e:
            raise Failure("%r is not all in\n%s" % (texts, frame)) from e


def test_watch_shows_what_runs_and_what_waits():
    with World() as w:
        first = w.add("-g", "night", "echo working on it; %s" % (UNTIL % w.path("go")))
        w.add("--after", first, "true then")
        w.add("--delay", "1h", "true later")
        with Terminal(w.env, "task", "watch", columns=100) as t:
            frame = frame_with(t, "1 running  2 queued", "working on it", "after task-0000",
                               "    at ")
            check(re.search(r"task-0000 running +\d+s +night ", frame), "%r", frame)
            w.touch("go")
            frame_with(t, "0 running  1 queued  2 completed", "task-0001 completed")
            resize(t, 5, 30)
            frame = frame_with(t, "task-0002", "…")
            same([len(r) <= 30 for r in frame.split("\n")], [True] * 5, "rows")
            t.type("q")
            rest = t.leave()
        check("\033[?1049l" in rest and "\033[?25h" in rest, "the terminal is as it was: %r", rest)
        w("cancel", "2")


def test_watch_is_left_by_ctrl_c_and_gives_the_terminal_back():
    with World() as w:
        with Terminal(w.env, "task", "watch") as t:
            frame_with(t, "no tasks")
            check(not termios.tcgetattr(t.fd)[3] & termios.ICANON, "keys without Enter")
            t.type("\x03")
            check("\033[?1049l" in t.leave(), "the other screen is gone")
        with Terminal(w.env, "task", "watch") as t:
            frame_with(t, "no tasks")
            os.kill(t.pid, signal.SIGTERM)
            check("\033[?1049l" in t.leave(), "after SIGTERM, too")


def test_watch_needs_a_terminal_and_waits_for_the_daemon():
    with World() as w:
        check("requires a terminal" in w("watch", code=64).err, "without one")
        with Terminal(w.env, "task", "watch") as t:
            frame_with(t, "no tasks")
            w.daemon.stop()
            frame_with(t, "no tasks", "lost connection to koined")
            w.daemon.start()
            w.daemon.wait_ready()
            w.add("--delay", "1h", "true later")
            frame_with(t, "1 queued", "true later", "q quit")
            t.type("q")
            t.leave()


NODE = """
const net = require('net');
const socket = net.connect(process.argv[2]);
let rest = '';
let next = 1;
const heard = [];
function send(method, params) {
	socket.write(JSON.stringify({jsonrpc: '2.0', id: next++, method, params}) + '\\n');
}
socket.on('data', (part) => {
	const lines = (rest + part).split('\\n');
	rest = lines.pop();
	for (const line of lines) {
		const m = JSON.parse(line);
		if (m.method)
			console.log(m.method, m.params.taskId);
		else if (m.result && m.result.taskId)
			console.log('submitted', m.result.taskId);
		if (m.method === 'event.taskCompleted')
			send('task.get', {taskId: m.params.taskId});
		if (m.result && m.result.output !== undefined) {
			console.log('output', JSON.stringify(m.result.output));
			socket.end();
		}
	}
});
socket.on('connect', () => send('task.submit', {prompt: process.argv[3]}));
"""


def test_node_and_two_terminals_see_the_same_task():
    installed("node")
    with Folder() as place:
        os.makedirs(place("app", ".aiwg"))
        with open(place("client.js"), "w") as f:
            f.write(NODE)
        with World("--project", place("app")) as w:
            env = dict(w.env)
            script = "echo first; %s; echo second" % (UNTIL % w.path("go"))
            node = subprocess.Popen(["node", place("client.js"),
                                     place("app", ".aiwg", "daemon", "daemon.sock"), script],
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            try:
                wait_until(lambda: w.json("list", "--state", "running", cwd=place("app")),
                           "node's task")
                project = ("--project", place("app"))
                with Terminal(env, "task", "watch", *project) as one, \
                     Terminal(env, "task", "watch", "0", *project) as two:
                    two.expect("first")
                    frame_with(one, "1 running", "first")
                    w.touch("go")
                    two.expect("second")
                    two.leave()
                    frame_with(one, "1 completed")
                    one.type("q")
                    one.leave()
                out, err = node.communicate(timeout=PATIENCE)
            finally:
                if node.poll() is None:
                    node.kill()
                node.wait()
            same(err, b"", "node's stderr")
            said = out.decode().splitlines()
            same(said[0], "submitted task-0000", "the answer before what it causes")
            check("event.taskStarted task-0000" in said and "event.taskCompleted task-0000" in said,
                  "%r", said)
            same(said[-1], 'output "first\\nsecond\\n"', "what node reads")


# ---- the methods ----


def ask(client, method, params, id=7):
    """The answer, and nothing told before it."""
    client.send(request(method, params, id) + b"\n")
    return json.loads(client.read_line())


def test_pieces_of_output_go_on_where_the_last_ended():
    with World() as w, w.daemon.connect() as c:
        w.add("--wait", "printf 'häuser'")

        def piece(**params):
            got = ask(c, "task.output", {"id": "task-0000", **params})["result"]
            return got["offset"], got["next"], got["text"], got["end"], got["running"]

        same(piece(), (0, 7, "häuser", 7, False), "all")
        same(piece(max=2)[:3], (0, 2, "h\ufffd"), "a piece smaller than a character may be")
        same(piece(max=4), (0, 4, "häu", 7, False), "a part")
        same(piece(offset=4), (4, 7, "ser", 7, False), "the rest")
        same(piece(offset=-5)[:3], (3, 7, "user"), "from the end, at a whole character")
        same(piece(offset=100)[2], "", "behind the end")
        for bad in ({"max": 0}, {"max": 10 ** 7}, {"offset": "x"}, {"id": 3}):
            answer = ask(c, "task.output", {"id": "task-0000", **bad})
            same(answer["error"]["code"], -32602, "%r" % bad)
        same(ask(c, "task.output", {"id": "task-0009"})["error"]["code"], -32001, "unknown")


def test_bad_tasks_are_refused_with_the_field():
    with World() as w, w.daemon.connect() as c:
        rows = {
            "prompt": ({"prompt": ""}, {"prompt": 5}, {}),
            "after": ({"after": [1]}, {"after": ["x"] * 65}, {"after": {}}),
            "env": ({"env": {"A": 1}}, {"env": {"": "x"}}, {"env": {"A=B": "x"}}, {"env": []}),
            "cwd": ({"cwd": "relative"},),
            "priority": ({"priority": "high"},),
            "retries": ({"retries": 1001},),
            "project": ({"project": "/nowhere"},),
        }
        for field, bads in rows.items():
            for bad in bads:
                params = bad if field == "prompt" else {"prompt": "true", **bad}
                error = ask(c, "task.add", params)["error"]
                same((error["code"], error["data"]), (-32602, {"field": field}), "%r" % bad)
        for method in ("task.show", "task.wait", "task.follow", "task.retry"):
            same(ask(c, method, {"id": "task-0000"})["error"]["code"], -32001, method)
        same(ask(c, "task.find", {"state": "odd"})["error"]["data"], {"field": "state"}, "state")
        same(ask(c, "task.find", {"limit": -1})["error"]["data"], {"field": "limit"}, "limit")
        same(ask(c, "task.find", {})["result"]["tasks"], [], "none was added")


def test_waiting_can_be_cancelled_and_left():
    with World() as w:
        task = w.add(UNTIL % w.path("go"))
        for method in ("task.wait", "task.follow"):
            with w.daemon.connect() as c:
                c.send(request(method, {"id": task}, 1) + b"\n" +
                       request("rpc.cancel", {"id": 1}, 2) + b"\n")
                answers = {a["id"]: a for a in (json.loads(c.read_line()) for _ in range(2))}
                same(answers[1]["error"]["code"], -32800, "cancelled")
                same(answers[2]["result"], {"cancelled": True}, "and said so")
        # Who leaves without a word leaves nothing behind.
        for method in ("task.wait", "task.follow"):
            with w.daemon.connect() as c:
                c.send(request(method, {"id": task}, 1) + b"\n")
                wait_until(lambda: w.daemon.status()["calls_in_flight"] > 0, "the call")
        wait_until(lambda: w.daemon.status()["calls_in_flight"] == 0, "the calls to end")
        same(w.state(task), "running", "the task goes on")
        w.touch("go")
        w("wait", task)


def test_over_http_only_the_end_is_told():
    with World() as w:
        w.add("--wait", "echo hello")
        for method in (b"task.follow", b"task.wait"):
            with w.daemon.connect() as c:
                body = (b'{"jsonrpc":"2.0","id":1,"method":"%s","params":{"id":"task-0000"}}'
                        % method)
                result = json.loads(post(c, body).body)["result"]
                same((result["state"], result["exit_status"]), ("completed", 0), "answer")


def test_a_slow_follower_gets_it_all():
    with World("--set", "limits.queue_bytes=65536") as w, w.daemon.connect() as c:
        w.add("--wait", "seq 1 300000")
        c.send(request("task.follow", {"id": "task-0000"}, 1) + b"\n")
        # It does not read until the daemon has filled what there is between them.
        wait_until(lambda: w.daemon.status()["listeners"][0]["dropped"] > 0, "a full queue")
        text = ""
        at = 0
        while True:
            message = json.loads(c.read_line())
            if "id" in message:
                break
            same(message["params"]["offset"], at, "offset")
            at = message["params"]["next"]
            text += message["params"]["text"]
        same(message["result"]["state"], "completed", "the end")
        same(text, "".join("%d\n" % n for n in range(1, 300001)), "text")


def test_who_has_closed_its_half_is_told_the_end():
    with World() as w, w.daemon.connect() as c:
        task = w.add("echo begins; %s; echo ends" % (UNTIL % w.path("go")))
        c.send(request("task.follow", {"id": task}, 1) + b"\n")
        message = json.loads(c.read_line())
        same((message.get("method"), message["params"]["text"]), ("task.output", "begins\n"), "first")
        c.half_close()
        w.touch("go")
        answer = json.loads(c.read_line())
        same((answer.get("id"), answer["result"]["state"]), (1, "completed"), "the end")
        c.ended()


def test_in_a_batch_only_the_end_is_told():
    with World("--set", "limits.queue_bytes=65536") as w, w.daemon.connect() as c:
        w.add("--wait", "seq 1 100000")
        c.send(b"[" + request("task.follow", {"id": "task-0000"}, 1) + b"," +
               request("ping", None, 2) + b"]\n")
        first, second = json.loads(c.read_line())
        same((first["id"], first["result"]["state"]), (1, "completed"), "the end")
        same(second["id"], 2, "and what stands behind it")
        c.quiet()


# ---- the daemon, and automation ----


def test_stop_waits_until_it_is_gone():
    with World() as w:
        check("koined" in w.koine("daemon", "status").out, "status")
        same(w.koine("daemon", "stop").out, "koined has stopped\n", "says")
        same(w.daemon.process.wait(PATIENCE), 0, "exit status")
        check("koined is not running: no answer at" in w.koine("daemon", "stop", code=69).err, "again")


def test_stop_by_force_ends_what_runs():
    with World() as w:
        task = w.add("echo $$; trap '' TERM; sleep 1000 & wait; wait")
        wait_until(lambda: w("log", task).out, "its process")
        pid = int(w("log", task).out)
        w.koine("daemon", "stop", "--force")
        w.daemon.wait_exit()
        wait_until(lambda: not os.path.exists("/proc/%d" % pid), "the task's process to be gone")


def test_a_task_is_changed_until_it_begins():
    with World() as w:
        first = w.add("--stash", "echo", "old")
        second = w.add("--stash", "echo", "second")
        same(w("edit", "0", "-p", "5", "-l", "mine", "--prompt", "echo new", "--timeout", "90s").out,
             "task-0000 changed\n", "said")
        shown = w.json("show", "0")
        same((shown["priority"], shown["label"], shown["prompt"], shown["timeout"], shown["stashed"]),
             (5, "mine", "echo new", 90000, True), "all of it")
        w("edit", "0", "--timeout", "0")
        same(w.json("show", "0")["timeout"], w.json("show", "1")["timeout"], "the default again")
        same(w.json("edit", "0", "--label", "", "--after", "1"), {"id": first, "edited": True}, "json")
        same((w.json("show", "0")["label"], w.json("show", "0")["after"]), (None, [second]), "nothing")
        check("dependency cycle: task-0001 would depend on itself: task-0001 after task-0000 after task-0001" in
              w("edit", "1", "--after", "0", code=1).err, "a circle")
        w("edit", "0", "--no-after")
        same(w.json("show", "0")["after"], [], "without")
        w("enqueue", "0")
        w("wait", "0")
        same(w("log", "0").out, "new\n", "what ran")
        check("is already completed" in w("edit", "0", "-p", "1", code=1).err, "one that has ended")
        running = w.add(UNTIL % w.path("go"))
        w.until(running, "running")
        check("is running; only queued tasks can be edited" in w("edit", running, "-p", "1", code=1).err,
              "one that runs")
        w.touch("go")
        command = w.koine("run", "--stash", "--", "true").out.strip()
        check("is a command" in w("edit", command, "--prompt", "x", code=1).err, "a command")
        w("edit", command, "-p", "2")
        told = [json.loads(line)["data"] for line in
                w.koine("events", "-n", "50", "--json", "--type", "task.edited").out.splitlines()]
        same(told[0], {"task_id": first, "prompt": "echo new", "label": "mine"}, "told")
        for wrong, why in ((["--prompt", "x", "-e"], "not both"), (["--after", "1", "--no-after"], "not both")):
            check(why in w("edit", "1", *wrong, code=64).err, "%r", wrong)
        w("wait", running)


def test_a_prompt_is_changed_in_the_editor():
    with World() as w:
        w.add("--stash", "--", "echo old\necho lines")
        script = w.folder("editor")
        with open(script, "w") as f:
            f.write('#!/bin/sh\ncase $(stat -c %%a "$1") in 600) ;; *) exit 1 ;; esac\n'
                    'sed -i s/old/new/ "$1"\necho "$1" >%s\n' % w.folder("seen"))
        os.chmod(script, 0o755)
        env = dict(w.env, EDITOR=script, TMPDIR=w.folder.path)
        env.pop("VISUAL", None)
        same(w("edit", "0", env=env).out, "task-0000 changed\n", "said")
        same(w.json("show", "0")["prompt"], "echo new\necho lines", "changed")
        with open(w.folder("seen")) as f:
            check(not os.path.exists(f.read().strip()), "its file is gone")
        done = w("edit", "-e", "-p", "3", "0", env=env)
        check("no changes made" in done.err, "%r", done)
        # What was typed is not lost when it comes too late.
        with open(script, "a") as f:
            f.write('echo more >>"$1"\n%s task cancel 0\n' % KOINE)
        done = w("edit", "0", env=env, code=1)
        kept = re.search(r"your text is saved in (\S+)", done.err).group(1)
        with open(kept) as f:
            same(f.read(), "echo new\necho linesmore\n", "kept")
        os.unlink(kept)
        check("is cancelled" in w("edit", "0", env=env, code=1).err, "not even asked")


def test_commands_that_are_none():
    with World() as w:
        check("did you mean 'task list'" in w("lists", code=64).err, "a near one")
        for args in (("list", "x"), ("show",), ("log",), ("watch", "1", "2"), ("wait",),
                     ("cancel",), ("retry",), ("stats", "x"), ("delete",), ("delete", "--all", "1")):
            w(*args, code=64)
        for args in (("run",), ("list", "x"), ("enable", "a", "b")):
            w.koine("automation", *args, code=64)
        for name in ("add", "list", "show", "log", "watch", "wait", "cancel", "retry", "stats",
                     "groups", "watch"):
            check("Usage: koine task %s" % name in w(name, "--help").out, "help of %s", name)


def test_a_list_says_what_its_limit_hides():
    with World() as w:
        w("pause")
        for n in range(4):
            w.add("true", *(("-g", "g") if n else ()))
        said = lambda *args: w("list", *args).err.replace("all tasks are paused (resume: koine task resume)\n", "")
        same(said("-n", "3"), "3 of 4 (-n N for more)\n", "some")
        same(said("-n", "2", "--state", "queued"), "2 of 4 (-n N for more)\n", "of a state")
        same(said("-n", "2", "-g", "g"), "showing the first 2 (-n N for more)\n", "of a group")
        same((said("-n", "4"), said("-n", "3", "-g", "g"), said()), ("", "", ""), "all")
        w("resume")
        first = w.add("exit 1")
        w("wait", first, code=1)
        w("pause")
        same((said("-n", "1", "--state", "failed"), said("-n", "1", "--state", "skipped")), ("", ""), "all that failed")


def test_a_list_begins_with_what_is_open():
    with World() as w:
        running = w.add("-g", "g", UNTIL % w.path("go"))
        queued = w.add("--delay", "1h", "true")
        w.until(running, "running")
        done = [w.add("--wait", "true") for _ in range(3)]
        later = w.add("-g", "g", "--delay", "1h", "true")
        want = [running, later, queued, *reversed(done)]
        same([t["id"] for t in w.json("list")], want, "all")
        same([l.split()[0] for l in w("list").out.splitlines()[1:]], want, "the table")
        same([t["id"] for t in w.json("list", "-g", "g")], [running, later], "a group")
        same([t["id"] for t in w.json("list", "--state", "completed")], want[3:], "a state")
        with w.daemon.connect() as k:
            found, before = [], 0
            while before is not None:
                some = k.call("task.find", {"limit": 1, "open_first": True, "before": before})
                before = some["next"]
                found += [t["id"] for t in some["tasks"]]
            same(found, want, "pages of one")
            same([t["id"] for t in k.call("task.find")["tasks"]], sorted(want, reverse=True), "newest first without")
        open(w.path("go"), "w").close()


def test_a_waiting_task_says_why():
    with World("--set", "group.one.parallel=1", "--set", "tasks.project_parallel=2") as w:
        def why(task, **want):
            found = [t for t in w.json("list") if t["id"] == task][0]
            same(found.get("waits"), want or None, task)
            same(w.json("show", task).get("waits"), want or None, "get " + task)
            line = [l for l in w("list").out.splitlines() if l.startswith(task)][0]
            got = w("show", task).out.splitlines()[1]
            if any(found.get(word) for word in ("stashed", "paused")):
                check(want["text"] not in line, "the state says so: %r", line)
                check(re.search("^state +(stashed|paused)$", got), "%r", got)
            elif "until" in want:
                check(re.search(r"  at \d\d:\d\d  ", line), "%r", line)
                check(re.search(r"queued: at \d\d:\d\d$", got), "%r", got)
            elif want:
                check("  %s  " % want["text"] in line, "no %r in %r", want["text"], line)
                check(got.endswith(": " + want["text"]), "no %r in %r", want["text"], got)

        go, then = UNTIL % w.path("go"), UNTIL % w.path("then")
        first = w.add("-g", "one", go)
        w.until(first, "running")
        why(first)
        second = w.add("-g", "one", "true")
        why(second, **{"for": "group", "on": "one", "text": "group one has reached its limit of running tasks"})
        other = w.add(then)
        w.until(other, "running")
        third = w.add("true")
        why(third, **{"for": "project", "text": "the project has reached its limit of running tasks"})
        after = w.add("--after", first, "--after", other, "true")
        why(after, **{"for": "dependency", "on": first, "text": "after %s and 1 more" % first})
        stashed = w.add("--stash", "true")
        why(stashed, **{"for": "enqueue", "text": "until the task is enqueued"})
        delayed = w.add("--delay", "1h", "true")
        until = w.json("show", delayed)["not_before"]
        why(delayed, **{"for": "time", "until": until, "text": "at " + until})
        w("pause", "-g", "one")
        why(second, **{"for": "pause", "on": "one", "text": "group one is paused"})
        w("pause")
        why(third, **{"for": "pause", "text": "all tasks are paused"})
        w("resume")
        open(w.path("go"), "w").close()
        w.until(third, "completed")
        why(third)
        why(after, **{"for": "dependency", "on": other, "text": "after " + other})
        w("resume", "-g", "one")
        w.until(second, "completed")
        open(w.path("then"), "w").close()
        w.until(after, "completed")


def test_an_ended_task_shows_its_exit_status():
    with World() as w:
        w.add("--wait", "true")
        w("add", "--wait", "exit 7", code=7)
        w("add", "--wait", "kill -KILL $$", code=130)
        rows = [l.split() for l in w("list").out.splitlines()]
        at = rows[0].index("EXIT")
        same([r[at] for r in rows], ["EXIT", "137", "7", "0"], "exit status")
        again = w.add("--retry", "1", "--retry-delay", "1h", "exit 7")
        wait_until(lambda: w.json("show", again)["exit_status"] == 7, "the first attempt")
        line = [l for l in w("list").out.splitlines() if l.startswith(again)][0].split()
        same((line[2], line[5]), ("1/2", "-"), "the exit status of an attempt before")


def test_a_reload_says_what_it_took():
    with Folder() as folder:
        config = folder("koine.conf")

        def write(*lines):
            with open(config, "w") as f:
                f.write("\n".join(lines) + "\n")

        def rule(cron):
            return ["[rule tick]", "cron = " + cron, "command = true"]

        write(*rule("0 4 * * *"), "[group one]", "parallel = 1", "[tasks]", "queue = 50")
        with World("--config", config, announced=["rule is invalid, keeping its previous version", "rule skipped", "could not reload settings"]) as w:
            def reload(code=0):
                r = koine(w.env, "daemon", "reload", code=code)
                return r.out.splitlines(), r.err.splitlines()

            go = UNTIL % w.path("go")
            first, second = w.add("-g", "one", go), w.add("-g", "one", go)
            w.until(first, "running")
            same(reload(), (["koined has reloaded its settings"], []), "no changes")
            write(*rule("61 * * * *"), "[group one]", "parallel = 2", "[tasks]", "queue = 60")
            out, err = reload(78)
            same(out, ["koined has reloaded its settings", "applied: group.one.parallel (%s:5)" % config,
                       "at the next start: tasks.queue (%s:7)" % config], "settings")
            same(len(err), 1, "%r" % err)
            check(err[0].startswith("invalid: rule.tick.cron (%s:2): " % config), "%r", err)
            check(err[0].endswith("; koined keeps the previous version of the rule") and "61" in err[0], "%r", err)
            w.until(second, "running")
            with w.daemon.connect() as k:
                found = k.call("automation.rules")["rules"]
                same([(r["rule"], r["trigger"]["cron"]) for r in found], [("tick", "0 4 * * *")], "the rule")
                write(*rule("1 4 * * *"), "[rule new]", "cron = 61 * * * *", "command = true",
                      "[group one]", "parallel = 2")
                out, err = reload(78)
                same(out[1:], ["applied: rule.tick.cron (%s:2)" % config, "at the next start: tasks.queue"][:len(out) - 1],
                     "settings")
                check(len(err) == 1 and "rule.new.cron (%s:5)" % config in err[0] and
                      err[0].endswith("; koined skips the rule"), "%r", err)
                same([r["rule"] for r in k.call("automation.rules")["rules"]], ["tick"], "the rules")
                write("[rule tick]", "nonsense")
                out, err = reload(1)
                same(out, [], "nothing was read")
                check(config + ":2:" in err[0] and "the current settings remain in effect" in err[0], "%r", err)
                same([r["rule"] for r in k.call("automation.rules")["rules"]], ["tick"], "the old rules")
                write(*rule("1 4 * * *")[:2], "prompt = x", "[group two]", "", "parallel = 3")
                same(reload()[0][1:], ["applied: rule.tick.prompt (%s:3)" % config, "applied: rule.tick.command: removed",
                                       "applied: rule.new: removed", "applied: group.two (%s:6)" % config,
                                       "applied: group.one: removed",
                                       "at the next start: tasks.queue"], "what is gone")
                for wrong in "payload.x matches ((", "payload.x resembles y":
                    write("[rule tick]", "event = task.*", "command = true", "condition2 = " + wrong)
                    err = reload(78)[1]
                    check(err[0].startswith("invalid: rule.tick.condition2 (%s:4): condition2: " % config), "%r", err)
            open(w.path("go"), "w").close()


def test_a_reload_says_what_it_left_and_why():
    with Folder() as folder:
        config = folder("koine.conf")

        def reload(*lines, code=0):
            with open(config, "w") as f:
                f.write("\n".join(lines) + "\n")
            r = koine(w.env, "daemon", "reload", code=code)
            return r.out.splitlines()[1:] + r.err.splitlines()

        lines = ("[group one]", "parallel = 1", "[tasks]", "parallel = 9", "project_parallel = 2")
        with open(config, "w") as f:
            f.write("\n".join(lines))
        with World("--config", config, "--set", "tasks.parallel=7", announced=["could not reload settings"]) as w:
            over = "unchanged: tasks.parallel (%s:4): overridden by a command-line option or an environment variable" % config
            same(reload(*lines), [over], "overridden")
            w("parallel", "3", "-g", "one")
            by_hand = "unchanged: group.one.parallel (%s:2): set to 3 by `koine task parallel`" % config
            same(reload(*lines), [over, by_hand], "changed by hand")
            w("parallel", "8")
            all_by_hand = "unchanged: tasks.parallel: set to 8 by `koine task parallel`"
            same(reload(lines[0], "parallel = 2", *lines[2:]),
                 ["applied: group.one.parallel (%s:2)" % config, over, all_by_hand], "what the file says counts again")
            for wrong, said in ((("[policy p]", "tool = Bash"), "7: [policy p]: verdict is required"),
                                (("[agent p]", "kind = openai"), "7: [agent p]: kind openai requires url"),
                                (("[chat]", "agent = nobody"), "7: chat.agent = nobody: agent not found")):
                said = "koine: %s:%s" % (config, said)
                err = reload(*lines, *wrong, code=1)
                check(len(err) == 1 and err[0].startswith(said), "no %r in %r", said, err)


def test_limits_change_at_once():
    with World("--set", "group.one.parallel=1") as w:
        go = UNTIL % w.path("go")
        some = [w.add("-g", "one", go) for _ in range(2)]
        w.until(some[0], "running")
        same(w("parallel", "2", "-g", "one").out, "group one: at most 2 tasks at a time until koined restarts\n", "said")
        w.until(some[1], "running")
        other = [w.add("-g", "free", go)]
        w.until(other[0], "running")
        same(w.json("parallel", "1", "-g", "free"), {"group": "free", "parallel": 1, "was": 0}, "a new limit")
        w("parallel", "10", "-g", "one")
        waits = w.add("-g", "free", "--priority", "5", "true")
        same(w.json("parallel", "3"), {"group": None, "parallel": 3, "was": 16}, "of all")
        with w.daemon.connect() as k:
            check(b"at least 1" in k.call_text(request("task.parallel", {"parallel": 0})), "none at all")
            check(b"parallel must be between 0 and" in k.call_text(request("task.parallel", {"parallel": -1, "group": "g"})), "below 0")
        check("invalid number of tasks" in w("parallel", "x", code=64).err, "no number")
        same(w.json("show", waits)["waits"]["on"], "free", "why it waits")
        w("parallel", "0", "-g", "free")
        same(w.json("show", waits)["waits"]["for"], "project", "no limit of its own")
        open(w.path("go"), "w").close()
        w.until(waits, "completed")


if __name__ == "__main__":
    main(globals())
