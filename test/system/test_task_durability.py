#!/usr/bin/env python3
"""
Tasks outlive kill -9: what was acknowledged is there, runs at most once at a time, and nothing
of a dead daemon goes on.

KOINE_SOAK=1 kills 200 times instead of 10.
"""
import contextlib
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import threading
import time

from harness import (MIB, SANITIZED, Client, Daemon, Failure, Folder, check, main, note,
                     only_in_a_file, peak_rss, request, same, wait_until)
from task_world import World, add, dead, read_bytes, says, until
from test_aiwg import connect

KILLS = 200 if os.environ.get("KOINE_SOAK") == "1" else 10

# Holds a lock named for its task as long as any process of it lives, so that a second one is seen.
LOCKED = """
name="$WORLD/locks/$KOINE_TASK.$(basename "$KOINE_PROJECT")"
exec 9>>"$name"
flock -n -E 42 9
[ $? != 42 ] || echo "$KOINE_TASK" >>"$WORLD/twice"
"""

PROMPTS = (
    ":",
    "exit 3",
    "sleep 600 & exit 3",
    "sleep 0.05",
    "sleep 600 & sleep 600",
    "(setsid sleep 600 &) ; sleep 600",
    "trap '' TERM; while :; do sleep 0.05; done",
)

STATES = ("queued", "running", "completed", "failed", "cancelled")


class Caller:
    """One connection until it is cut off; notifications are passed over."""

    def __init__(self, address):
        self.client = Client(address)

    def __call__(self, method, params):
        """(result, None), (None, code), or None at the end of the stream."""
        self.client.send(request(method, params) + b"\n")
        while True:
            try:
                answer = json.loads(self.client.read_line())
            except Failure:
                return None
            if "id" in answer:
                return answer.get("result"), answer.get("error", {}).get("code")


class Storm:
    """
    Clients of both sockets that submit and cancel until they are cut off. What was acknowledged:
    (project, id) to its prompt, and the cancelled among them.
    """

    def __init__(self, d, project, round_, seed):
        self.tasks, self.cancelled, self.faults = {}, set(), []
        self.lock = threading.Lock()
        self.over = False
        self.project = project
        aiwg, koine = d.address("unix", "aiwg"), d.address("unix", "koine")
        jobs = [(self.submit_aiwg, aiwg)] * 4 + [(self.submit_koine, koine)] * 4
        jobs += [(self.cancel, koine)] * 4
        self.threads = [threading.Thread(target=self.run, args=(job, address, round_, i, seed + i))
                        for i, (job, address) in enumerate(jobs)]
        for t in self.threads:
            t.start()

    def run(self, job, address, round_, client, seed):
        dice = random.Random(seed)
        with contextlib.suppress(OSError):
            call = Caller(address)
            with call.client:
                n = 0
                while not self.over and job(call, dice, "\n# %d.%d.%d" % (round_, client, n)):
                    n += 1

    def keep(self, answer, project, id, prompt):
        if answer is None:
            return False
        result, code = answer
        with self.lock:
            if result is not None:
                self.tasks[project, result[id]] = prompt
            elif code not in (-32002, -32003):  # full
                self.faults.append((prompt, code))
        if code:
            time.sleep(0.01)
        return True

    def submit_aiwg(self, call, dice, name):
        prompt = LOCKED + dice.choice(PROMPTS) + name
        return self.keep(call("task.submit", {"prompt": prompt}), self.project, "taskId", prompt)

    def submit_koine(self, call, dice, name):
        prompt = LOCKED + dice.choice(PROMPTS) + name
        project = dice.choice((self.project, ""))
        more = {"retries": dice.choice((0, 3)), "retry_delay": 5, "priority": dice.choice((0, 1))}
        if dice.random() < 0.2:
            more["delay"] = 20
        answer = call("task.add", {"prompt": prompt, "project": project, **more})
        return self.keep(answer, project, "id", prompt)

    def cancel(self, call, dice, _name):
        with self.lock:
            wanted = dice.choice(list(self.tasks) or [None])
        if not wanted:
            time.sleep(0.001)
            return True
        answer = call("task.cancel", {"project": wanted[0], "taskId": wanted[1]})
        if answer is None:
            return False
        with self.lock:
            if answer[0] is not None:
                self.cancelled.add(wanted)
            elif answer[1] != -32002:  # at its end
                self.faults.append((wanted, answer[1]))
        time.sleep(0.004)  # some live to their end
        return True

    def join(self):
        self.over = True
        for t in self.threads:
            t.join()


def stored(w):
    """From a copy of what the kill left: (project, id) to (state, prompt)."""
    only_in_a_file("it reads the store")
    with Folder() as g:
        for name in os.listdir(w("root")):
            if name.startswith("koine.db") and os.path.isfile(w("root", name)):
                shutil.copy(w("root", name), g(name))
        db = sqlite3.connect(g("koine.db"))
        try:
            same(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)], "integrity")
            rows = db.execute("SELECT project, id, state, prompt FROM task").fetchall()
        finally:
            db.close()
    return {(project, id): (STATES[state], prompt) for project, id, state, prompt in rows}


def check_stored(w, tasks, cancelled, before):
    """cancelled: those that the daemon which now ran had to end first."""
    found = stored(w)
    lost = [t for t, prompt in tasks.items() if found.get(t, ("", ""))[1] != prompt]
    same(lost, [], "lost")
    # What is at its end stays as it is: nobody tries these again.
    changed = {t: (was, found[t][0]) for t, (was, _) in before.items()
               if was not in ("queued", "running") and found[t][0] != was}
    same(changed, {}, "changed after their end")
    wrong = {t: found[t][0] for t in cancelled if found[t][0] != "cancelled"}
    same(wrong, {}, "cancelled, but")
    return found


def life(pid):
    """Which daemon's it is; b"" for one that just ends."""
    found = re.search(rb"\0LIFE=(\d+)\0", read_bytes("/proc/%d/environ" % pid))
    return found[1] if found else b""


def storm_round(w, n, tasks, cancelled):
    """One life of a daemon; when it was ready, in seconds."""
    began = time.monotonic()
    with w.daemon("tasks.parallel=12", "tasks.project_parallel=8", "tasks.queue=300",
                  "tasks.interrupt_time=1", env={"LIFE": str(n)},
                  exit_status=-signal.SIGKILL) as d:
        took = time.monotonic() - began
        lives = {life(p) for p in w.processes()} - {b"%d" % n, b""}
        same(lives, set(), "left of daemons before")
        storm = Storm(d, w("root"), n, n * 100)
        # From none to some hundred tasks later.
        time.sleep(random.random() * 0.5)
        d.signal(signal.SIGKILL)
        d.wait_exit()
        storm.join()
    same(storm.faults, [], "refusals")
    tasks.update(storm.tasks)
    cancelled.update(storm.cancelled)
    return took


def test_what_was_acknowledged_survives_kill_nine():
    only_in_a_file("it reads the store that a kill leaves")
    tasks, cancelled, found, slowest = {}, set(), {}, 0.0
    random.seed(5)
    with World() as w:
        os.mkdir(w("locks"))
        for n in range(KILLS):
            settled = set(cancelled)
            took = storm_round(w, n, tasks, cancelled)
            check(took < 5 or SANITIZED, "restart took %.1f s", took)
            slowest = max(slowest, took)
            # A cancel of the last life may still be a wish; those before have come true.
            found = check_stored(w, tasks, settled, found)
            check(not w.read("twice"), "ran twice at once:\n%s", w.read("twice"))
        with w.daemon(env={"LIFE": "last"}) as d:
            finish(d)
            wait_until(lambda: d.status()["store"]["check"] == "ok", "the check")
        found = check_stored(w, tasks, cancelled, found)
        same({s for s, _ in found.values()} & {"queued", "running"}, set(), "open states")
        check(not w.read("twice"), "ran twice at once:\n%s", w.read("twice"))
    note("%d kills, %d tasks and %d cancels acknowledged, slowest start %.2f s"
         % (KILLS, len(tasks), len(cancelled), slowest))
    check(len(tasks) > 10 * KILLS and len(cancelled) > KILLS, "only %d tasks, %d cancels",
          len(tasks), len(cancelled))


def finish(d):
    """Cancels all that is open, and waits until nothing is."""
    with d.connect() as k:
        def open_tasks():
            return [t for s in ("queued", "running")
                    for t in k.call("task.list", {"state": s, "limit": 1000})]

        for t in open_tasks():
            k.send(request("task.cancel", {"project": t["project"], "taskId": t["id"]}) + b"\n")
            k.read_line()
        wait_until(lambda: not open_tasks(), "the end of all")


def test_after_a_kill_what_waited_runs_and_what_ran_has_failed():
    with World() as w:
        with w.daemon("tasks.project_parallel=2", exit_status=-signal.SIGKILL) as d:
            c, k = connect(d), d.connect()
            ran = c.submit("sleep 600")
            tried = add(k, 'echo x >>"$WORLD/tries"; [ -e "$WORLD/again" ] || sleep 600',
                        project=w("root"), retries=1)
            waited = [c.submit("echo %d" % i) for i in range(5)]
            after = add(k, "echo after", project=w("root"), after=[waited[0]])
            doomed = add(k, "echo never", project=w("root"), after=[ran])
            deep = add(k, "echo never", project=w("root"), after=[doomed])
            wait_until(lambda: w.read("tries") == "x\n", "the first try")
            d.signal(signal.SIGKILL)
            d.wait_exit()
        w.touch("again")
        with w.daemon() as d:
            c = connect(d)
            t = c.call("task.get", {"taskId": ran})
            same((t["state"], t["error"], t["pid"]), ("failed", "daemon restarted", None), "task")
            for i, task in enumerate(waited):
                same(c.ended(task)["result"], "%d\n" % i, "what waited")
            until(c, tried, "completed")
            same(w.read("tries"), "x\nx\n", "tries")
            same(c.ended(after)["result"], "after\n", "what came after")
            for task in doomed, deep:
                same(c.ended(task)["state"], "failed", "what comes after one that was cut off")
            with d.connect() as k:
                same(k.call("task.show", {"id": tried})["attempts"], 2, "attempts")


def test_a_chain_that_was_failing_has_failed_after_a_kill():
    """The daemon dies between two parts of it; each task fails once, and says so once."""
    n = 600
    with World() as w:
        with w.daemon("tasks.parallel=1", exit_status=-signal.SIGKILL) as d, d.connect() as k:
            add(k, "sleep 600")
            first = add(k, "true")
            number = int(first.split("-")[1])
            chain = ["task-%04d" % (number + i) for i in range(n + 1)]
            for at in range(0, n, 50):
                k.send(b"".join(request("task.add", {"prompt": "true", "after": [before]}) + b"\n"
                                for before in chain[at:at + 50]))
                same([json.loads(k.read_line())["result"]["id"] for _ in range(50)],
                     chain[at + 1:at + 51], "tasks")
            k.send(request("task.cancel", {"taskId": first}) + b"\n" +
                   request("task.find", {"limit": 1}) + b"\n")
            same(json.loads(k.read_line())["result"], {"cancelled": True}, "cancelled")
            counts = json.loads(k.read_line())["result"]["counts"]
            d.signal(signal.SIGKILL)
            d.wait_exit()
            # Others are answered while the chain fails.
            check(0 < counts["failed"] < n, "failed before the kill: %d", counts["failed"])
        with w.daemon() as d, d.connect() as k:
            counts = k.call("task.find", {"limit": 1})["counts"]
            # The first of all was running.
            same((counts["failed"], counts["cancelled"], counts["queued"]), (n + 1, 1, 0), "counts")
            told = k.call("event.list", {"types": ["task.failed"], "limit": 1000})["events"]
            same(sorted(e["run_id"] for e in told), sorted(["task-0000", *chain[1:]]),
                 "told")


def test_another_store_at_the_same_path_ends_nothing_of_ours():
    """As two daemons in different mount namespaces have, whose stores have one path."""
    only_in_a_file("another file is put in its place")
    with World() as w:
        with w.daemon(exit_status=-signal.SIGKILL) as d:
            connect(d).submit("setsid sh -c 'echo $$ >$WORLD/pid; exec sleep 600' "
                              "</dev/null >/dev/null 2>&1 & sleep 600")
            left = int(says(w, "pid"))
            d.signal(signal.SIGKILL)
            d.wait_exit()
        os.rename(w("root"), w("moved"))
        os.mkdir(w("root"))
        with w.daemon() as d:
            d.alive()
            check(not dead(left), "a stranger's process was ended")
        # The mark goes with the store, wherever it is, but not with a copy of it.
        shutil.rmtree(w("root"))
        shutil.copytree(w("moved"), w("root"), ignore=shutil.ignore_patterns("*.sock", "*.lock"))
        with w.daemon() as d:
            d.alive()
            check(not dead(left), "a copy of the store took its mark along")
        with Daemon(root=w("moved"), env=w.env()) as d:
            d.alive()
            check(dead(left), "what a crash left goes on")


def test_a_delay_and_an_order_outlive_a_restart():
    with World() as w:
        with w.daemon("tasks.project_parallel=1") as d:
            c, k = connect(d), d.connect()
            late = add(k, "echo late", project=w("root"), delay=3600 * 1000)
            soon = add(k, 'echo soon >>"$WORLD/order"', project=w("root"), delay=300)
            hold = c.submit("sleep 600")
            low = c.submit('echo low >>"$WORLD/order"')
            high = c.submit('echo high >>"$WORLD/order"', priority=3)
            same(k.call("daemon.stop", {"force": True}), {"stopping": True}, "answer")
            d.wait_exit()
        with w.daemon("tasks.project_parallel=1") as d:
            c = connect(d)
            same(c.ended(hold)["error"], "Killed during shutdown", "what ran")
            for task in low, high, soon:
                c.ended(task)
            order = w.read("order").split()
            check(order.index("high") < order.index("low") and "soon" in order, "%r", order)
            same(c.call("task.get", {"taskId": late})["state"], "queued", "the late one")
            # Numbers go on.
            same(c.submit(":"), "task-0005", "the next id")


def test_a_queue_of_long_prompts_does_not_hinder_a_start():
    prompt = "# " + "x" * (2 << 20)
    with World() as w:
        with w.daemon("tasks.project_parallel=1") as d:
            c = connect(d)
            c.submit("sleep 600")
            for _ in range(60):
                c.submit(prompt)
            d.signal(signal.SIGTERM)
            d.wait_exit()
        with w.daemon("tasks.project_parallel=1") as d:
            c = connect(d)
            same(c.call("task.stats")["failed"], 1, "failed")
            peak = peak_rss(d.pid)
            note("%d MiB at most, with 120 MiB in the queue" % (peak // MIB))
            check(peak < 64 * MIB, "%d MiB", peak // MIB)


if __name__ == "__main__":
    main(globals(), measured=(
        "what_was_acknowledged_survives_kill_nine",
        "a_queue_of_long_prompts_does_not_hinder_a_start",))
