#!/usr/bin/env python3
"""
koine run: commands as tasks, without an agent. Their words, folder, environment and end; who may
run them; and what a kill -9 leaves.
"""
import os
import signal

from harness import KOINE, check, main, same, wait_until
from task_world import dead, end
from task_world import World as Folder_world
from test_aiwg import connect
from test_task_cli import World, ask

WORDS = ["a b", "it's", "$HOME", "", "*", "-n", "--json", "\n", "`id`", "\u00fc\u202e", "\x1b[31m"]


def test_words_reach_the_program_as_they_are():
    with World() as w:
        done = w.koine("run", "--follow", "--", "printf", "%s\\0", *WORDS)
        same(done.out.split("\0"), [*WORDS, ""], "words")
        same(done.err, "task-0000\n", "its id")
        shown = w.json("show", "0")
        same(shown["command"], ["printf", "%s\\0", *WORDS], "kept")
        check(shown["prompt"].startswith("printf '%s\\0' 'a b' 'it'\\''s' '$HOME' '' '*' -n"),
              "the line: %r", shown["prompt"])
        check("\x1b" not in w("list").out + w("show", "0").out, "no escape reaches the terminal")
        # The line says the same to a shell.
        same(w.koine("run", "-f", "-c", shown["prompt"]).out, done.out, "by a shell")


def test_a_command_ends_as_its_program_does():
    with World() as w:
        same(w.koine("run", "-f", "-c", "echo out; echo err >&2; exit 7", code=7).out, "out\nerr\n",
             "output")
        same(w.json("show", "0")["exit_status"], 7, "exit status")
        check(": no-such-program: command not found\n" in
              w.koine("run", "-w", "--", "no-such-program", code=127).err, "no program")
        check("./none: no such file or directory" in w.koine("run", "-w", "./none", code=127).err, "no file")
        w.touch("plain")
        check("./plain: permission denied" in w.koine("run", "-w", "./plain", code=126).err, "no program")
        shown = w.json("list")[0]
        same((shown["error"], shown["exit_status"]), ("./plain: permission denied", 126), "in a list")
        same(w.koine("run", "-f", "--", "cat").out, "", "it reads nothing")
        task = w.koine("run", "--", "sleep", "600").out.strip()
        w.until(task, "running")
        w("cancel", task)
        w("wait", task, code=130)
        w.koine("run", "--retry", "2", "--retry-delay", "10ms", "-w", "-c",
                "[ -e again ] || { touch again; exit 1; }")
        for wrong, why in (((), "requires PROGRAM"), (("-c", "true", "true"), "requires PROGRAM")):
            check(why in w.koine("run", *wrong, code=64).err, "%r", wrong)
        check("not UTF-8" in w.koine("run", "--", b"\xff", code=65).err, "bytes")
        check("command[0] is empty" in w.koine("run", "--", "", code=1).err, "no name")


def test_it_runs_where_and_with_what_was_said():
    with World() as w:
        os.mkdir(w.path("there"))
        env = dict(w.env, MINE="mine", OTHER="other")
        out = w.koine("run", "-f", "-e", "MINE", "-e", "GIVEN=1", "-d", "there", "-c",
                      'pwd; echo "$MINE/$OTHER/$GIVEN/$KOINE_TASK"', env=env).out
        same(out, os.path.realpath(w.path("there")) + "\nmine//1/task-0000\n", "output")
        same(w.json("show", "0")["env"], ["MINE", "GIVEN"], "values are not told")
        # After another, in a group, with a name, later.
        first = w.koine("run", "--stash", "-l", "first", "-g", "g", "--", "true").out.strip()
        second = w.koine("run", "--after", first, "-c", "echo second").out.strip()
        same(w.json("show", first)["label"], "first", "label")
        w("enqueue", first)
        w("wait", second)
        same(w("log", second).out, "second\n", "after")


def test_bad_commands_are_refused_with_the_field():
    with World() as w, w.daemon.connect() as k:
        for command, why in (([], "must be an array of a program"), ([1], "must be a string"),
                             (["a\0b"], "NUL"), (["x" * 131072], "longer"),
                             (["x"] * 4097, "more than 4096"), (["x"] + ["y" * 131000] * 9, "1048576")):
            error = ask(k, "task.run", {"command": command})["error"]
            same((error["code"], error["data"]), (-32602, {"field": "command"}), why)
            check(why in error["message"], "%r", error)
        for params in {"command": "true"}, {"prompt": "true"}, {"command": None}:
            same(ask(k, "task.run", params)["error"]["data"], {"field": "command"}, "%r" % params)
        long = ["printf", "%s", *["y" * 100000] * 9]
        task = k.call("task.run", {"command": long})["id"]
        same(end(k, task)["state"], "completed", "a long one")
        same(k.call("task.output", {"id": task})["end"], 900000, "all of it")


def test_agents_and_tasks_run_no_commands():
    with World("--set", "approval.agents_decide=no") as w:
        done = w.koine("run", "-f", "--", KOINE, "run", "--", "touch", w.path("escaped"), code=1)
        check("started by koined" in done.err, "%r", done)
        task = w.add("--", KOINE, "run", "--", "touch", w.path("escaped"))
        w("wait", task, code=1)
        check(not os.path.exists(w.path("escaped")), "it ran")
        same(len(w.json("list")), 2, "tasks")


def test_a_kill_ends_it_and_a_queued_one_runs_then():
    with Folder_world() as w:
        with w.daemon("tasks.project_parallel=1", exit_status=-signal.SIGKILL) as d, d.connect() as k:
            ran = k.call("task.run", {"command": ["sh", "-c", "echo $$ >$WORLD/pid; exec sleep 600"],
                                      "project": w("root")})["id"]
            wait_until(lambda: w.read("pid").endswith("\n"), "its pid")
            waits = k.call("task.run", {"command": ["sh", "-c", "echo $0-$1", "a b", "c"],
                                        "project": w("root")})["id"]
            d.signal(signal.SIGKILL)
            d.wait_exit()
        with w.daemon() as d, d.connect() as k:
            check(dead(int(w.read("pid"))), "it goes on")
            same(k.call("task.show", {"id": ran})["error"], "daemon restarted", "what ran")
            same(end(k, waits)["state"], "completed", "what waited")
            same(k.call("task.output", {"id": waits})["text"], "a b-c\n", "output")
            # AIWG's clients see a task like any other.
            shown = connect(d).call("task.get", {"taskId": waits})
            same((shown["state"], shown["prompt"]), ("completed", "sh -c 'echo $0-$1' 'a b' c"),
                 "aiwg")


if __name__ == "__main__":
    main(globals())
