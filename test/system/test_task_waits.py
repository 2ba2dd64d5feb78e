#!/usr/bin/env python3
"""Who waits for a task costs nothing until there is something to tell, and is told then."""
import contextlib
import json
import os
import time

from harness import check, main, note, request, same, wait_until
from task_world import UNTIL, World, add, end

WAITERS = 60


def switches(pid):
    """How often a thread of the process went to sleep so far: once for each time it was woken."""
    n = 0
    for thread in os.listdir("/proc/%d/task" % pid):
        with contextlib.suppress(OSError), open("/proc/%d/task/%s/status" % (pid, thread),
                                                encoding="ascii") as f:
            n += sum(int(line.split()[1]) for line in f
                     if line.startswith("voluntary_ctxt_switches:"))
    return n


def ask(c, method, params, id=1):
    c.send(request(method, params, id) + b"\n")


def followed(c):
    """All that a follower is sent: the text, and the answer."""
    text, at = "", None
    while True:
        message = json.loads(c.read_line())
        if "id" in message:
            return text, message["result"]
        params = message["params"]
        check(at is None or params["offset"] == at, "offset %d after %s", params["offset"], at)
        at = params["next"]
        text += params["text"]


def waiters(d, stack, method, task, n):
    out = []
    for _ in range(n):
        c = stack.enter_context(d.connect())
        ask(c, method, {"id": task})
        out.append(c)
    return out


def test_those_who_wait_wake_nobody():
    with World() as w, w.daemon() as d, d.connect() as k, contextlib.ExitStack() as stack:
        task = add(k, "echo begins; %s; echo ends" % (UNTIL % "go"))
        waits = waiters(d, stack, "task.wait", task, WAITERS)
        follows = waiters(d, stack, "task.follow", task, WAITERS)
        for c in follows:
            same(json.loads(c.read_line())["params"]["text"], "begins\n", "the beginning")
        same(k.call("task.show", {"id": task})["state"], "running", "state")
        # Each of them looked 5 to 20 times a second. Others may wake it: a clock, a client.
        time.sleep(0.2)
        before = switches(d.pid)
        time.sleep(1)
        n = switches(d.pid) - before
        note("%d wake-ups" % n)
        check(n < 40, "%d wake-ups with %d who wait", n, 2 * WAITERS)
        w.touch("go")
        for c in waits:
            same(json.loads(c.read_line())["result"]["state"], "completed", "the end")
        for c in follows:
            text, answer = followed(c)
            same((text, answer["state"], answer["exit_status"]), ("ends\n", "completed", 0), "follow")


def test_waiting_begins_while_it_is_queued():
    with World() as w, w.daemon("tasks.parallel=1") as d, d.connect() as k, \
            contextlib.ExitStack() as stack:
        first = add(k, UNTIL % "go")
        second = add(k, "echo one; echo two >&2; exit 3")
        third = add(k, "true", after=[second])
        follow = waiters(d, stack, "task.follow", second, 1)[0]
        wait = waiters(d, stack, "task.wait", third, 1)[0]
        gone = add(k, "true")
        cancelled = waiters(d, stack, "task.wait", gone, 1)[0]
        wait_until(lambda: d.status()["calls_in_flight"] >= 3, "the calls")
        w.touch("go")
        text, answer = followed(follow)
        same(sorted(text.split()), ["one", "two"], "output")
        same((answer["state"], answer["exit_status"]), ("failed", 3), "the end")
        answer = json.loads(wait.read_line())["result"]
        same((answer["id"], answer["state"], answer["error"]),
             (third, "skipped", "dependency %s failed" % second), "what came after")
        same(json.loads(cancelled.read_line())["result"]["state"], "completed", "the last")
        same(end(k, first)["state"], "completed", "one that has ended long ago")


def test_characters_that_come_in_pieces_are_told_whole():
    with World() as w, w.daemon() as d, d.connect() as k, d.connect() as c:
        task = add(k, r"""printf 'a\303'; sleep 0.2; printf '\244b\342'; sleep 0.2
            printf '\202'; sleep 0.2; printf '\254'; sleep 0.2; printf '\n\303'""")
        ask(c, "task.follow", {"id": task})
        text, answer = followed(c)
        same((text, answer["state"]), ("a\u00e4b\u20ac\n\ufffd", "completed"), "text")


def test_much_that_is_printed_reaches_all_who_follow():
    with World() as w, w.daemon() as d, d.connect() as k, contextlib.ExitStack() as stack:
        task = add(k, "%s; seq 1 100000; for i in 1 2 3 4 5 6 7 8; do echo $i; done" % (UNTIL % "go"))
        follows = waiters(d, stack, "task.follow", task, 10)
        w.touch("go")
        want = "".join("%d\n" % n for n in [*range(1, 100001), *range(1, 9)])
        for c in follows:
            text, answer = followed(c)
            check(text == want, "%d of %d bytes", len(text), len(want))
            same(answer["state"], "completed", "the end")


def test_who_does_not_read_is_sent_the_rest_later():
    with World() as w, w.daemon("limits.queue_bytes=65536") as d, d.connect() as k, \
            d.connect() as slow, d.connect() as c:
        task = add(k, "seq 1 300000; %s; seq 1 1000" % (UNTIL % "go"))
        ask(slow, "task.follow", {"id": task})
        wait_until(lambda: d.status()["listeners"][0]["dropped"] > 0, "a full queue")
        # It waits for its client, and looks at nothing meanwhile.
        before = d.status()["listeners"][0]["dropped"]
        ask(c, "task.wait", {"id": task})
        time.sleep(0.5)
        same(d.status()["listeners"][0]["dropped"], before, "tries")
        w.touch("go")
        same(json.loads(c.read_line())["result"]["state"], "completed", "another is told the end")
        text, answer = followed(slow)
        check(text == "".join("%d\n" % n for n in [*range(1, 300001), *range(1, 1001)]), "text")
        same(answer["state"], "completed", "the end")


def test_who_leaves_is_forgotten():
    with World() as w, w.daemon() as d, d.connect() as k:
        task = add(k, UNTIL % "go")
        with contextlib.ExitStack() as stack:
            waiters(d, stack, "task.wait", task, 10)
            waiters(d, stack, "task.follow", task, 10)
            wait_until(lambda: d.status()["calls_in_flight"] >= 20, "the calls")
        wait_until(lambda: d.status()["calls_in_flight"] <= 1, "the calls to end")
        w.touch("go")
        same(end(k, task)["state"], "completed", "the end")


if __name__ == "__main__":
    main(globals())
