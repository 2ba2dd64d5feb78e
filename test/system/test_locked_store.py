#!/usr/bin/env python3
"""
A store that another program has locked: nothing can be written, and everybody is told; a stop ends in
its time all the same, and what could not be kept is no harm to anybody.
"""
import contextlib
import os
import signal
import sqlite3
import struct

from harness import (PATIENCE, Client, Skip, check, main, only_in_a_file, preloaded, request, same,
                     wait_until)
from task_world import UNTIL, World, add, dead, state, until

NOT_KEPT = "could not store tasks, retrying"
# Of calls whose change could not be kept: one for each.
FAILED = "call failed"


@contextlib.contextmanager
def locked(d):
    """Another program writes, and does not come to an end."""
    only_in_a_file("a writer keeps others out")
    other = sqlite3.connect(os.path.join(d.root, "koine.db"), timeout=PATIENCE,
                            isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")
    finally:
        other.close()


def begun(k, task):
    """A task is shown as running before its claim is stored; a claim that cannot be stored queues it again."""
    wait_until(lambda: k.call("task.get", {"taskId": task})["pid"], "%s to begin" % task)


def ask(d, *asked):
    """Each on a connection of its own; nobody waits for an answer yet."""
    clients = []
    for method, params in asked:
        c = Client(d.address("unix", "koine"))
        c.send(request(method, params) + b"\n")
        clients.append(c)
    return clients


class Disk:
    """One that can be made to hang, and then to go on."""

    def __init__(self, path):
        self.path = path
        self.set(0)

    def set(self, rate):
        with open(self.path, "wb" if rate == 0 and not os.path.exists(self.path) else "r+b") as f:
            f.write(struct.pack("<H", rate))

    def hang(self):
        self.set(2000)

    def go_on(self):
        self.set(0)

    def env(self):
        return {"FAILING": self.path, **preloaded("FAILING")}


def ends(d):
    same(d.wait_exit(), 0, "exit status")


def test_wishes_behind_a_failed_write_are_answered_or_go_with_the_stop():
    # A retry that waits for the lock is a call of its own, which a stop cuts off.
    with World() as w, w.daemon(announced=[NOT_KEPT, FAILED], possible=["shutdown timed out"]) as d:
        k = d.connect("unix", "koine")
        task = add(k, UNTIL % "never")
        begun(k, task)
        with locked(d):
            # The first is under way; those behind it wait for the same write.
            first = ask(d, ("task.cancel", {"taskId": task}))
            wait_until(lambda: NOT_KEPT.encode() in d.log(), "the write to fail")
            check(b"error" in first[0].read_line(), "a cancel that is not kept was acknowledged")
            wait_until(lambda: state(k, task) == "cancelled", "its end")
            behind = ask(d, ("task.retry", {"id": task}), ("task.cancel", {"taskId": task}), ("task.retry", {"id": task}))
            d.signal(signal.SIGTERM)
            for c in behind:
                c.read_rest()
            ends(d)


def test_retry_of_a_task_whose_end_is_not_stored_yet_waits_for_that():
    with World() as w, w.daemon(announced=[NOT_KEPT]) as d:
        k = d.connect("unix", "koine")
        task = add(k, 'echo >>"$WORLD/runs"; ' + UNTIL % "go" + "; exit 1")
        begun(k, task)
        with locked(d):
            w.touch("go")
            wait_until(lambda: NOT_KEPT.encode() in d.log(), "the write to fail")
            until(k, task, "failed")
        same(k.call("task.retry", {"id": task})["tasks"], [task], "queued again")
        until(k, task, "failed")
        same(w.read("runs"), "\n\n", "runs")


def test_a_list_puts_first_what_runs_though_that_is_not_stored_yet():
    with World() as w, w.daemon("tasks.project_parallel=1", announced=[NOT_KEPT]) as d:
        k = d.connect("unix", "koine")
        first = add(k, UNTIL % "go")
        begun(k, first)
        second, third = add(k, ":"), add(k, ":")
        with locked(d):
            w.touch("go")
            # The second starts on a later pass of the loop, and is queued again when its claim could not be stored.
            wait_until(lambda: [(t["id"], t["state"]) for t in k.call("task.find", {"open_first": True})["tasks"]] ==
                       [(second, "running"), (third, "queued"), (first, "completed")], "the list")
            wait_until(lambda: NOT_KEPT.encode() in d.log(), "the write to fail")
        until(k, third, "completed")


def test_a_second_signal_ends_it_while_nothing_can_be_written():
    with World() as w, w.daemon("limits.stop_time=3600", announced=[NOT_KEPT]) as d:
        k = d.connect("unix", "koine")
        begun(k, add(k, UNTIL % "go", retries=3))
        with locked(d):
            # Its end cannot be stored.
            w.touch("go")
            wait_until(lambda: NOT_KEPT.encode() in d.log(), "the write to fail")
            d.signal(signal.SIGTERM)
            wait_until(lambda: b"stopping" in d.log(), "the stop to begin")
            d.signal(signal.SIGTERM)
            ends(d)


def test_a_run_that_cannot_begin_is_there_at_the_next_start():
    with World() as w:
        with w.daemon("tasks.project_parallel=1", announced=[NOT_KEPT]) as d:
            k = d.connect("unix", "koine")
            first = add(k, UNTIL % "go")
            begun(k, first)
            second = add(k, ": >\"$WORLD/second\"")
            until(k, second, "queued")
            with locked(d):
                # The end of the first, and that the second begins, wait behind the lock.
                w.touch("go")
                wait_until(lambda: NOT_KEPT.encode() in d.log(), "the write to fail")
                check(not os.path.exists(w("second")), "it ran, and nobody would know")
                d.signal(signal.SIGTERM)
                ends(d)
        check(not os.path.exists(w("second")), "it ran while the daemon stopped")
        with w.daemon() as d:
            k = d.connect("unix", "koine")
            until(k, second, "completed")
            check(os.path.exists(w("second")), "it has not run")


def test_what_waited_for_the_lock_goes_on_when_it_is_gone():
    with World() as w, w.daemon(announced=[NOT_KEPT]) as d:
        k = d.connect("unix", "koine")
        first = add(k, UNTIL % "go")
        begun(k, first)
        after = add(k, ":", after=[first])
        with locked(d):
            w.touch("go")
            wait_until(lambda: NOT_KEPT.encode() in d.log(), "the write to fail")
        until(k, first, "completed")
        until(k, after, "completed")
        check(dead(d.pid) is False, "it died")


def test_a_disk_that_hangs_is_not_waited_for():
    only_in_a_file("the disk is the server's")
    if not preloaded("FAILING"):
        raise Skip("there is no disk that hangs here")
    with World() as w:
        disk = Disk(w("disk"))
        with w.daemon("limits.stop_time=1", announced=["shutdown timed out"], env=disk.env()) as d:
            k = d.connect("unix", "koine")
            task = add(k, UNTIL % "go")
            begun(k, task)
            # Its process is noted after that: the disk hangs behind it, not before.
            wait_until(lambda: k.call("task.get", {"taskId": task}).get("pid"), "its process")
            k.call("memory.add", {"content": "written behind it"})
            disk.hang()
            w.touch("go")
            wait_until(lambda: state(k, task) == "completed", "its end, which is not kept yet")
            d.signal(signal.SIGTERM)
            wait_until(lambda: b"stopping" in d.log(), "the stop to begin")
            # However often it is told: who asks again and again does not give it more time. Only the
            # thread that waits for the disk is waited for then.
            wait_until(lambda: d.signal(signal.SIGTERM) or b"tasks=1 sessions=" in d.log(),
                       "its patience to end")
            disk.go_on()
            ends(d)
        # Either its end was on its way to the disk, or waited behind that: then it was lost, and is told so.
        with w.daemon() as d:
            k = d.connect("unix", "koine")
            check(state(k, task) in ("completed", "failed"), "it is %s", state(k, task))


if __name__ == "__main__":
    main(globals())
