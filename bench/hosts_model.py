#!/usr/bin/env python3
"""Simulates many hosts with one PostgreSQL server, using the costs that bench/hosts measured.

    bench/hosts_model.py [FILE]      FILE is build/bench/hosts.json by default

Hosts run tasks that take a while, and starting a program and noticing its end take some time around each. A host's
writer takes what waits, claims and ends, into a batch: one statement for all claims and one for all ends, which cost by
the row, then the numbers of their events, and the commit. Between two hosts there are:

    numbers   the lock of the numbering's row: from a batch's numbers to the end of its commit
    notify    PostgreSQL's lock for NOTIFY: one at a time, one for each host that committed in 15 ms
    server    its cores: statements, commits, beats, wakes, and pages of events for every other host

Connections are counted, not simulated: each host has 6. The random numbers are seeded, so the same costs give the same
figures.
"""

import heapq
import json
import math
import os
import random
import sys

CONNECTIONS = 6  # of a host: the writer's, four readers', the feed's
TELL_S = 0.015
BEAT_S = 10 / 6  # of a lease of 10 s
LOOK_S = 1.0
SLOTS = 16  # of a host: [tasks] parallel as it comes
SIZES = [1, 2, 3, 10, 100, 1000]
SERVER_CORES = 8
MAX_CONNECTIONS = 1000  # backends that a server of that size does well with
SEED = 20260101


class Costs:
    """Seconds, from what `jobs costs` says in nanoseconds."""

    def __init__(self, found):
        ns = {name: value / 1e9 for name, value in found.items()}
        self.claim, self.end, self.commit = ns["claim"], ns["end"], ns["commit"]
        self.event = max(0, ns["commit_many"] - ns["commit"]) / (found["many"] - 1)
        self.beat, self.tell, self.wake = ns["beat"], ns["tell"], ns["wake"]
        self.page = ns["page"]
        self.page_event = max(0, ns["page_many"] - ns["page"]) / (found["page_events"] - 1)
        # It was measured with the store's part, which is simulated.
        self.around = max(0, ns["around"] - self.changes(1, 1) - self.locked(2))

    def changes(self, n_claims, n_ends):
        """A batch's statements, one after another; they keep no other host waiting."""
        return n_claims * self.claim + n_ends * self.end

    def locked(self, n_events):
        """From there to the end of the commit, which keeps all others waiting that are as far."""
        return self.commit + max(0, n_events - 1) * self.event


class Host:
    def __init__(self, slots):
        self.free = slots
        self.ended = 0  # waiting to be written
        self.writing = False


class Simulation:
    """Tasks wait without end. Each event is (time, number, what, host, details)."""

    def __init__(self, costs, n_hosts, task_s, slots=SLOTS, seed=SEED):
        self.costs, self.task_s = costs, task_s
        self.random = random.Random(seed)
        self.hosts = [Host(slots) for _ in range(n_hosts)]
        self.queue, self.n = [], 0
        self.lock_free = 0.0  # when the next batch may begin
        self.completed, self.batches, self.waited, self.busy = 0, 0, 0.0, 0.0

    def at(self, time, what, *details):
        self.n += 1
        heapq.heappush(self.queue, (time, self.n, what, details))

    def write(self, now, host):
        """The writer takes all that waits, once it is done with the last batch."""
        if host.writing or host.free + host.ended == 0:
            return
        n_claims, n_ends = host.free + host.ended, host.ended
        host.free = host.ended = 0
        host.writing = True
        self.at(now + self.costs.changes(n_claims, n_ends), self.number, host, n_claims, n_ends)

    def number(self, now, host, n_claims, n_ends):
        """Others may be before us; they come in the order in which they asked."""
        begin = max(now, self.lock_free)
        took = self.costs.locked(n_claims + n_ends)
        self.lock_free = begin + took
        self.waited += begin - now
        self.busy += took
        self.batches += 1
        self.at(begin + took, self.written, host, n_claims, n_ends)

    def written(self, now, host, n_claims, n_ends):
        self.completed += n_ends
        host.writing = False
        for _ in range(n_claims):
            took = self.task_s * self.random.uniform(0.9, 1.1) + self.costs.around
            self.at(now + took, self.task_ended, host)
        self.write(now, host)

    def task_ended(self, now, host):
        host.ended += 1
        self.write(now, host)

    def run(self, seconds, warmup):
        for host in self.hosts:
            self.at(self.random.uniform(0, self.task_s), self.start, host)
        while self.queue and self.queue[0][0] < warmup + seconds:
            now, _, what, details = heapq.heappop(self.queue)
            if now < warmup:
                self.completed, self.batches, self.waited, self.busy = 0, 0, 0.0, 0.0
            what(now, *details)
        return {"rate": self.completed / seconds, "batches": self.batches / seconds,
                "waited": self.waited / max(1, self.batches), "busy": min(1.0, self.busy / seconds)}

    def start(self, now, host):
        self.write(now, host)


def rate(costs, n_hosts, task_s, slots=SLOTS):
    seconds = max(5.0, 20 * task_s)
    return Simulation(costs, n_hosts, task_s, slots).run(seconds, 2 * task_s + 0.5)


def limits(costs, n_hosts, offered):
    """How much of each limit n hosts use that complete `offered` tasks a second between them, as parts of 1.

    Batches grow where the lock is busy, up to all slots of a host. A measured time is taken for CPU time of the server,
    which is too much; a commit mostly waits for the disk, and counts as a statement there.
    """
    each = offered / n_hosts  # tasks per second of one host
    full = offered / SLOTS
    batches = max(full, min(min(2 * each, 1 / TELL_S) * n_hosts, 0.5 / costs.commit))
    changes = offered * (costs.claim + costs.end)
    events = 2 * offered * costs.event
    told = min(batches, n_hosts / TELL_S)
    # Everybody reads everybody's events: a page for each wake, but at most one for each 15 ms.
    wakes = min(told, 1 / TELL_S) * n_hosts
    pages = wakes * costs.page + 2 * offered * (n_hosts - 1) * costs.page_event
    beats = n_hosts * (costs.beat / BEAT_S + costs.page / LOOK_S)
    # A NOTIFY wakes every listener's backend, which costs the server about a wake's part for each.
    feed = (pages + told * (costs.tell + n_hosts * costs.wake / 8)) / SERVER_CORES
    return {
        "writer": each * (costs.claim + costs.end + 2 * costs.event + costs.commit / SLOTS),
        "numbers": full * costs.commit + events,
        "notify": told * costs.tell,
        "server": (batches * costs.claim + events + changes + beats) / SERVER_CORES + feed,
        "feed": feed,
        "readers": (wakes / n_hosts * costs.page + 2 * offered * costs.page_event) if n_hosts > 1 else 0.0,
        "connections": n_hosts * CONNECTIONS / MAX_CONNECTIONS,
    }


def first_limit(costs, n_hosts):
    """The load at which the first of them is used up, in tasks per second of all hosts, and which that is."""
    low, high = 0.01, 1e6
    if limits(costs, n_hosts, low)["connections"] > 1:
        fixed = {"connections"}
    else:
        fixed = set()

    def used(offered):
        found = {k: v for k, v in limits(costs, n_hosts, offered).items() if k not in ("connections", "feed")}
        return max(found.items(), key=lambda item: item[1])

    if used(low)[1] >= 1:
        return 0.0, used(low)[0], fixed
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if used(middle)[1] < 1 else (low, middle)
    return low, used(high)[0], fixed


NAMES = {"writer": "one writer thread per host", "numbers": "the lock of the event counter", "notify": "the lock of NOTIFY",
         "server": f"PostgreSQL's {SERVER_CORES} cores", "readers": "event reads of each host",
         "connections": "connections"}
LIFTS = {"writer": "add hosts",
         "numbers": "use one event log per project, in partitions of the table or with Citus",
         "notify": "send one NOTIFY through a relay, or read events through logical decoding",
         "server": "use a larger server",
         "feed": "read events through logical decoding, once for all hosts",
         "readers": "use one event log per project; let each host read only its own projects",
         "connections": "use a connection pooler for the four readers of each host"}


def table(costs):
    rows = [["hosts", "connections", "rate of tasks of 1 second, with 16 slots per host", "slots used", "wait for the event counter's lock per batch",
             "maximum tasks/s", "first bottleneck", "remedy"]]
    for n in SIZES:
        found = rate(costs, n, 1.0)
        most, limit, fixed = first_limit(costs, n)
        carried = min(found["rate"], most)  # the simulation has no limit but the locks'
        used = limits(costs, n, most)
        lift = "feed" if limit == "server" and used["feed"] > used["server"] / 2 else limit
        also = ", and more than 1,000 connections" if fixed else ""
        rows.append([f"{n:,}", f"{n * CONNECTIONS:,}", f"{carried:,.0f}/s", f"{carried / (n * SLOTS):.0%}",
                     f"{1000 * found['waited']:.1f} ms", f"{most:,.0f}", NAMES[limit] + also, LIFTS[lift]])
    return rows


# ---- the picture ----

LEFT, TOP, WIDTH, HEIGHT = 70, 70, 480, 250
SHOWN = ["writer", "numbers", "notify", "server", "readers"]
COLOURS = {"writer": "#bc4c00", "numbers": "#0969da", "notify": "#1a7f37", "server": "#8250df", "readers": "#bf3989"}


def most_by(costs, n_hosts, limit):
    low, high = 0.001, 1e7
    if limits(costs, n_hosts, low)[limit] >= 1:
        return low
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if limits(costs, n_hosts, middle)[limit] < 1 else (low, middle)
    return low


def picture(costs):
    import chart
    sizes = [1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000]
    bottom, top = 10, 100_000

    def point(n, value):
        value = min(max(value, bottom), top)
        return (LEFT + math.log(n) / math.log(sizes[-1]) * WIDTH,
                TOP + HEIGHT - math.log(value / bottom) / math.log(top / bottom) * HEIGHT)

    body = [chart.label(16, 26, "Tasks per second of several hosts over one PostgreSQL", "title"),
            chart.label(16, 44, "Limits simulated with measured costs; the lowest line applies. Dashed line: load of hosts with "
                        "16 slots and tasks of one minute.", "note")]
    for value in (10, 100, 1000, 10_000, 100_000):
        x, y = point(1, value)
        body.append(f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{x + WIDTH:.1f}" y2="{y:.1f}" class="grid"/>')
        body.append(chart.label(x - 6, y + 4, f"{value:,}", "tick", "end"))
    for n in (1, 10, 100, 1000):
        body.append(chart.label(point(n, bottom)[0], TOP + HEIGHT + 16, f"{n:,}", "tick", "middle"))
    body.append(chart.label(LEFT + WIDTH / 2, TOP + HEIGHT + 34, "hosts", "tick", "middle"))
    for i, limit in enumerate(SHOWN):
        path = " ".join("%.1f,%.1f" % point(n, most_by(costs, n, limit)) for n in sizes)
        body.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[limit]}" stroke-width="2"/>')
        body.append(f'<circle cx="{LEFT + WIDTH + 24}" cy="{TOP + 16 + 22 * i}" r="4" fill="{COLOURS[limit]}"/>')
        body.append(chart.label(LEFT + WIDTH + 34, TOP + 20 + 22 * i, NAMES[limit], "tick"))
    path = " ".join("%.1f,%.1f" % point(n, n * SLOTS / 60) for n in sizes if n * SLOTS / 60 >= bottom)
    body.append(f'<polyline points="{path}" fill="none" class="floor"/>')
    x, _ = point(MAX_CONNECTIONS / CONNECTIONS, bottom)
    body.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{TOP + HEIGHT}" class="floor"/>')
    body.append(chart.label(x + 4, TOP + 12, f"{MAX_CONNECTIONS:,} connections", "tick"))
    return chart.page(LEFT + WIDTH + 220, TOP + HEIGHT + 50, "Limits of hosts over one PostgreSQL", body)


def main():
    build = os.environ.get("KOINE_BUILD", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "build"))
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(build, "bench", "hosts.json")
    with open(path) as f:
        costs = Costs(json.load(f)["costs"])
    from part_report import as_text
    print(as_text(table(costs)))


if __name__ == "__main__":
    main()
