"""
Tasks of several hosts while these are cut off, killed, frozen and healed, and while the server is restarted.

Judged from outside, by what the tasks' programs wrote down: an attempt starts once, attempts of a task never
overlap, each task ends once, and none is lost. KOINE_SEED repeats a run; KOINE_SOAK=1 makes it long.
"""
import collections
import contextlib
import json
import os
import random
import re
import threading
import time

from harness import SANITIZED, Failure, check, note, same, wait_until
from hosts import LEASE, Follower, Hosts, agree

SOAK = os.environ.get("KOINE_SOAK") == "1"
TASKS = 1000 if SOAK else 100
ROUNDS = 100 if SOAK else 5
SEED = int(os.environ.get("KOINE_SEED", "0")) or random.randrange(1, 1 << 30)
# A machine that stood still needs a moment to find out.
GRACE = 10.0 if SANITIZED else 5.0
STATES = ["queued", "running", "completed", "failed", "cancelled"]


class Submitter(threading.Thread):
    """Gives tasks to one host after the other. What was answered: label to id; and what may be there."""

    def __init__(self, hosts, n, who, rng):
        super().__init__(daemon=True)
        self.hosts, self.n, self.who, self.rng = hosts, n, who, rng
        self.acknowledged, self.unknown, self.refusals = {}, set(), collections.Counter()
        self.over = threading.Event()

    def run(self):
        at = self.who
        while len(self.acknowledged) < self.n and not self.over.is_set():
            label = "%d.%d" % (self.who, len(self.acknowledged) + len(self.unknown) + sum(self.refusals.values()))
            node = self.hosts.nodes[at % len(self.hosts.nodes)]
            once = self.rng.random() < 0.2
            result, error = self.hosts.run(node, self.rng.choice((0.05, 0.5, 2.0)), label=label,
                                           retries=0 if once else 50, retry_delay=100,
                                           env={"ONCE": "1"} if once else {})
            if result:
                self.acknowledged[label] = result["id"]
            elif error and "is not known" not in error["message"]:
                self.refusals[error["message"]] += 1
            else:
                self.unknown.add(label)
            at += not result
            # As long as the weather lasts.
            self.over.wait(self.rng.uniform(0, 1.0))


class Weather:
    """What happens to hosts. Each thing is undone after a while; what was frozen is written down."""

    def __init__(self, hosts, rng):
        self.hosts, self.rng = hosts, rng
        self.grace, self.told = [], []
        self.broken = {}

    def some_time(self):
        """Often less than a lease, often more."""
        return self.rng.choice((0.3, 0.8, 1.6)) * LEASE

    def happen(self):
        kinds = ["kill", "freeze", "hang", "restart", "stall"]
        if self.hosts.network.real:
            kinds += ["cut", "deafen", "silence"]
        kind = self.rng.choice(kinds)
        # Sometimes two are broken at once; one always works.
        while self.broken and (len(self.broken) >= len(self.hosts.nodes) - 1 or self.rng.random() < 0.5):
            self.mend(self.rng.choice(list(self.broken)))
        node = self.rng.choice([n for n in self.hosts.nodes if n not in self.broken])
        self.told.append("%s %s" % (kind, node.name))
        getattr(self, kind)(node)

    def breaks(self, node, undo):
        self.broken[node] = undo
        time.sleep(self.some_time())

    def mend(self, node):
        self.broken.pop(node)()

    def clear(self):
        for node in list(self.broken):
            self.mend(node)

    def kill(self, node):
        node.kill()
        self.breaks(node, node.up)

    def thaw(self, node, stopped):
        since = time.monotonic()
        node.thaw()
        self.grace.append((stopped, since, time.monotonic() + GRACE))

    def freeze(self, node):
        stopped = set(node.freeze())
        self.breaks(node, lambda: self.thaw(node, stopped))

    def hang(self, node):
        """koined alone; its programs run on, until somebody ends them."""
        node.freeze(programs=False)
        self.breaks(node, node.thaw)

    def cut(self, node):
        node.cut()
        self.breaks(node, node.heal)

    def deafen(self, node):
        node.cut(leaving=False)
        self.breaks(node, node.heal)

    def silence(self, node):
        node.cut(coming=False)
        self.breaks(node, node.heal)

    def restart(self, _):
        self.hosts.server.restart()

    def stall(self, _):
        self.hosts.server.freeze()
        time.sleep(0.5 * LEASE)
        self.hosts.server.thaw()


def rows(hosts):
    """Label to (id, state, attempts, max_attempts, error), of all tasks."""
    text = hosts.sql("SELECT json_agg(json_build_array(label, id, state, attempts, max_attempts, error)) FROM koine.task")
    found = {}
    for label, id, state, *rest in json.loads(text or "[]") or []:
        check(label not in found, "%s is there twice", label)
        found[label] = (id, STATES[state], *rest)
    return found


def check_tasks(hosts, submitters, follower):
    """Nothing is lost, doubled, or ended twice."""
    found = rows(hosts)
    acknowledged = {label: id for s in submitters for label, id in s.acknowledged.items()}
    unknown = {label for s in submitters for label in s.unknown}
    same(sorted(set(acknowledged) - set(found)), [], "acknowledged and lost")
    same(sorted(set(found) - set(acknowledged) - unknown), [], "refused, and there")
    same([l for l, id in acknowledged.items() if found[l][0] != id], [], "other ids than were answered")
    ids = [row[0] for row in found.values()]
    same(len(ids), len(set(ids)), "ids, each once")
    told = collections.Counter(json.loads(data).get("task_id") for _, kind, data in follower.events
                               if kind in ("task.completed", "task.failed", "task.cancelled"))
    wrong = {id: n for id, n in told.items() if n != 1}
    same(wrong, {}, "ends that are told more than once")
    same(sorted(set(ids) - set(told)), [], "ends that are not told")
    journal = hosts.journal.attempts()
    stopped = {task for (task, _), lines in journal.items() if any(l[1] == "stop" for l in lines)}
    for id, state, attempts, most, error in found.values():
        check(max(hosts.journal.started(id), default=0) <= attempts, "%s ran more often than it was counted", id)
        if state == "completed":
            check(id in stopped, "%s is completed, and never came to its end", id)
        else:
            check(most == 1 and re.search("declared dead|restarted", error or ""), "%s is %s: %r", id, state, error)
    return found


def settled(hosts):
    """None waits and none runs."""
    return hosts.sql("SELECT count(*) FROM koine.task WHERE state < 2") == "0"


def test_tasks_in_bad_weather(server, n=3):
    rng = random.Random(SEED)
    with Hosts(n, server=server, args=["--set", "tasks.parallel=4"]) as hosts, contextlib.ExitStack() as stack:
        weather = Weather(hosts, rng)
        stack.callback(weather.clear)
        followers = [stack.enter_context(Follower([node])) for node in hosts.nodes]
        followers.append(stack.enter_context(Follower(hosts.nodes, roams=True)))
        submitters = [Submitter(hosts, TASKS // n, i, random.Random(SEED + i)) for i in range(n)]
        try:
            for s in submitters:
                s.start()
                stack.callback(s.join)
                stack.callback(s.over.set)
            for _ in range(ROUNDS):
                weather.happen()
            weather.clear()
            for s in submitters:
                wait_until(lambda: not s.is_alive(), "all tasks to be taken", 120)
            wait_until(lambda: settled(hosts), "all tasks to end", 180)
            found = check_tasks_when_told(hosts, submitters, followers)
            same(hosts.journal.faults(weather.grace), [], "what the journal shows")
            agree(followers, hosts)
        except Failure as why:
            raise Failure("seed %d, %s: %s" % (SEED, ", ".join(weather.told), why)) from None
        states = collections.Counter(row[1] for row in found.values())
        note("%d tasks, %d attempts, %s, through %s" % (len(found), len(hosts.journal.attempts()), dict(states),
                                                       ", ".join(weather.told)))


def check_tasks_when_told(hosts, submitters, followers):
    """Events come a moment after the rows."""
    last = int(hosts.sql("SELECT max(seq) FROM koine.event"))
    for f in followers:
        f.reach(last)
    return check_tasks(hosts, submitters, followers[0])
