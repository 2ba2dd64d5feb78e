#!/usr/bin/env python3
"""
Tasks that are kept back: stashed, paused with their group or with all; labels, and prompts from
standard input. By the command line, and over restarts and kill -9.
"""
import json
import os
import signal

from harness import MIB, check, main, request, same, wait_until
from task_world import World as Folder_world
from task_world import add, end
from test_aiwg import connect
from test_task_cli import World


def shown(w, *args):
    """Of each task in a list: its id and its state as people see it."""
    return dict(line.split()[:2] for line in w("list", *args).out.splitlines()[1:])


def test_stash_and_enqueue():
    with World() as w:
        w.add("--stash", "-l", "later", "echo", "one")
        w.add("--", "echo", "two")
        w("wait", "1")
        same(shown(w), {"task-0000": "stashed", "task-0001": "completed"}, "states")
        same(w.json("show", "0")["stashed"], True, "stashed")
        check("state         stashed\n" in w("show", "0").out, "%r", w("show", "0").out)
        check("is already stashed" in w("stash", "0", code=1).err, "twice")
        check("is already completed" in w("stash", "1", code=1).err, "one that has ended")
        check("not found" in w("enqueue", "7", code=1).err, "one that is not there")
        same(w("enqueue", "0").out, "task-0000 enqueued\n", "said")
        w("wait", "0")
        check("is already completed" in w("enqueue", "0", code=1).err, "at the end")
        types = [json.loads(line)["type"]
                 for line in w.koine("events", "-n", "20", "--json").out.splitlines()]
        check("task.enqueued" in types, "%r", types)


def test_pause_is_seen_everywhere_and_resume_ends_it():
    with World() as w:
        same(w("pause").out, "all tasks paused\n", "said")
        w.add("echo", "one")
        done = w("list")
        check("task-0000  paused" in done.out and
              done.err == "all tasks are paused (resume: koine task resume)\n", "%r", done)
        check("1 waiting, paused (resume: koine task resume)" in w.koine("status").out, "status")
        w("pause", "-g", "docs")
        same(w("resume").out, "all tasks resumed\n", "said")
        w("wait", "0")
        w.add("-g", "docs", "echo", "two")
        w.add("-g", "other", "echo", "three")
        w("wait", "2")
        same(shown(w)["task-0001"], "paused", "of a paused group")
        check("docs" in w("groups").out and "paused" in w("groups").out, "groups")
        check("some groups paused (see: koine task groups)" in w.koine("status").out, "status")
        same(w("resume", "-g", "docs").out, "group docs resumed\n", "said")
        w("wait", "1")
        check("paused" not in w("groups").out.lower(), "no more")
        # Single ones are stashed.
        w.add("--delay", "1h", "echo", "four")
        same(w("pause", "3").out, "task-0003 stashed\n", "said")
        same(w("resume", "3").out, "task-0003 enqueued\n", "said")
        check("not both" in w("pause", "-g", "docs", "3", code=64).err, "both")
        told = [json.loads(line) for line in
                w.koine("events", "-n", "50", "--json", "--type", "task.paused",
                        "--type", "task.resumed").out.splitlines()]
        same([(e["type"], e["data"]["group"]) for e in told],
             [("task.paused", None), ("task.paused", "docs"), ("task.resumed", None),
              ("task.resumed", "docs")], "events")


def test_kept_back_over_a_restart_and_a_kill():
    with Folder_world() as w:
        with w.daemon(exit_status=-signal.SIGKILL) as d, d.connect() as k:
            same(k.call("task.pause", {"group": "docs"}), {"group": "docs", "paused": True}, "pause")
            stashed = add(k, 'echo stashed >>"$WORLD/order"', stash=True)
            paused = add(k, 'echo paused >>"$WORLD/order"', group="docs")
            d.signal(signal.SIGKILL)
            d.wait_exit()
        with w.daemon() as d, d.connect() as k:
            free = add(k, 'echo free >>"$WORLD/order"')
            end(k, free)
            tasks = {t["id"]: t for t in k.call("task.find")["tasks"]}
            same((tasks[stashed]["state"], tasks[stashed]["stashed"]), ("queued", True), "stashed")
            same((tasks[paused]["state"], tasks[paused]["paused"]), ("queued", True), "paused")
            same(k.call("task.pause"), {"group": None, "paused": True}, "all")
            same(k.call("task.enqueue", {"id": stashed}), {"id": stashed, "enqueued": True}, "one")
        with w.daemon() as d, d.connect() as k:
            found = k.call("task.find")
            same((found["paused"], found["paused_groups"]), (True, ["docs"]), "pauses")
            same({t["state"] for t in found["tasks"] if t["id"] != free}, {"queued"}, "states")
            same(k.call("daemon.status")["tasks"], {"paused": True, "paused_groups": ["docs"], "draining": False},
                 "status")
            same(k.call("task.resume"), {"group": None, "paused": False}, "resume")
            end(k, stashed)
            same(w.read("order").split(), ["free", "stashed"], "order")
            k.call("task.resume", {"group": "docs"})
            end(k, paused)


def test_aiwg_sees_a_queued_task_as_ever():
    with Folder_world() as w, w.daemon() as d, d.connect() as k:
        c = connect(d)
        task = add(k, "true", stash=True, label="mine", project=w("root"))
        before = c.call("task.get", {"taskId": c.submit("true")})
        shown_there = c.call("task.get", {"taskId": task})
        same(shown_there["state"], "queued", "state")
        same(sorted(shown_there), sorted(before), "members")


def test_labels_are_shown_and_found():
    with World() as w:
        w.add("--label", "Über Nacht", "echo", "one")
        w.add("-l", "other", "-g", "g", "echo", "two")
        w("wait", "0", "1")
        check("LABEL" in w("list").out and "Über Nacht" in w("list").out, "list")
        same(list(shown(w, "--label", "Über Nacht")), ["task-0000"], "found")
        same(list(shown(w, "--label", "other", "-g", "g", "--state", "completed")), ["task-0001"],
             "with more")
        same(list(shown(w, "--label", "nobody")), [], "none")
        check("label         Über Nacht\n" in w("show", "0").out, "get")
        for wrong, why in (("a\nb", "control"), ("\x1b[31m", "control"), ("x" * 81, "longer")):
            check(why in w("add", "-l", wrong, "true", code=1).err, "%r", wrong)


def test_a_prompt_from_stdin():
    with World() as w:
        w.add("--stdin", stdin=b"echo from stdin")
        w.add("--stdin", "--", ":", stdin=b"echo the rest")
        w("wait", "0", "1")
        same(w("log", "0").out, "from stdin\n", "output")
        same(w.json("show", "1")["prompt"], ":\n\necho the rest", "both")
        same(w.json("add", "--stash", "--stdin", "-", stdin=b"true")["state"], "queued", "and -")
        check("prompt is empty" in w("add", "--stdin", stdin=b"", code=1).err, "empty")
        check("NUL" in w("add", "--stdin", stdin=b"a\0b", code=1).err, "a NUL")
        check("longer than 8388608" in w("add", "--stdin", stdin=b"x" * 10 * MIB, code=1).err,
              "10 MiB")
        check("longer than" in w("add", "--stdin", stdin=b"x" * 17 * MIB, code=65).err, "17 MiB")
        # Bytes that are no UTF-8, and escapes, are text like any other.
        hostile = w.add("--stash", "--stdin", stdin=b": \xff\xfe \x1b[31m \xe2\x80\xae --json")
        same(w.json("show", hostile)["prompt"], ": \ufffd\ufffd \x1b[31m \u202e --json", "kept")
        check("\x1b" not in w("list").out, "no escape reaches the terminal")


def test_a_variable_of_ones_own_goes_along_if_it_is_named():
    with World() as w:
        env = dict(w.env, MINE="my own", OTHER="not this")
        w.add("-e", "MINE", "-e", "GIVEN=x=y", "--", 'echo "$MINE/$GIVEN/$OTHER"', env=env)
        w("wait", "0")
        same(w("log", "0").out, "my own/x=y/\n", "output")
        check("no such variable" in w("add", "-e", "NOBODY", "true", code=64).err, "unset")
        check("requires NAME" in w("add", "-e", "=x", "true", code=64).err, "no name")


def test_delete_removes_one_ended_task():
    with World() as w:
        w.add("true")
        w.add("sleep", "600")
        w.add("--after", "0", "--stash", "true")
        w("wait", "0")
        check("task task-0001 has not ended" in w("delete", "1", code=1).err, "running")
        check("depends on task task-0000" in w("delete", "0", code=1).err, "needed")
        w("cancel", "1", "2")
        w("wait", "1", code=130)
        same(w("delete", "0", "2").out, "task-0000 deleted\ntask-0002 deleted\n", "both")
        check("not found" in w("delete", "0", code=1).err, "again")
        same(list(shown(w)), ["task-0001"], "left")


def test_clean_forgets_what_has_ended():
    with World() as w:
        w.add("-g", "docs", "true")
        w.add("-g", "docs", "false")
        w.add("true")
        w.add("sleep", "600")
        w.add("--after", "2", "--stash", "true")
        w("wait", "0", "2")
        w("wait", "1", code=1)
        outputs = os.path.join(w.daemon.root, "koine.db.tasks")
        check(len(os.listdir(outputs)) >= 1, "%r", os.listdir(outputs))
        same(w("delete", "--all", "-g", "docs", "--successful-only").out, "1 deleted\n", "said")
        check("not found" in w("show", "0", code=1).err, "gone")
        same(w("delete", "--all").out, "1 deleted\n", "the failed one; what one waits for stays")
        same(sorted(shown(w)), ["task-0002", "task-0003", "task-0004"], "left")
        same(w("delete", "--all").out, "0 deleted\n", "again")
        w("cancel", "3", "4")
        w("wait", "3", code=130)
        same(w.json("delete", "--all"), {"cleaned": 3}, "all")
        same(shown(w), {}, "none")
        same([n for n in os.listdir(outputs) if n.isdigit()], [], "output")
        same(w.add("true"), "task-0005", "ids are not used again")
        w("wait", "5")
        told = [json.loads(line)["data"]["count"] for line in
                w.koine("events", "-n", "20", "--json", "--type", "task.cleaned").out.splitlines()]
        same(told, [1, 1, 3], "events")


def test_many_are_forgotten_and_the_rest_after_a_kill():
    with Folder_world() as w:
        with w.daemon("tasks.queue=2000", "tasks.project_parallel=16", exit_status=-signal.SIGKILL) as d, \
                d.connect() as k:
            k.call("task.pause")
            tasks = [add(k, "true") for _ in range(350)]
            for task in tasks:
                k.call("task.cancel", {"taskId": task})
            same(k.call("task.clean", {"group": "nobody"}), {"cleaned": 0}, "none of that")
            k.send(request("task.clean", {}) + b"\n")
            wait_until(lambda: d.connect().call("task.find")["counts"]["total"] < 350, "some to go")
            d.signal(signal.SIGKILL)
            d.wait_exit()
        with w.daemon() as d, d.connect() as k:
            total = k.call("task.find", {"limit": 1})["counts"]["total"]
            check(total % 50 == 0 and total < 350, "whole batches: %d", total)
            same(k.call("task.clean"), {"cleaned": total}, "the rest")
            same(k.call("task.find")["counts"]["total"], 0, "none")


if __name__ == "__main__":
    main(globals())
