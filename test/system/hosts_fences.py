"""Hosts that are cut off, stand still, are wrong about the time, or have another's name."""
import calendar
import concurrent.futures
import contextlib
import glob
import os
import socket
import threading
import time

from harness import SANITIZED, Folder, Skip, check, note, same, wait_until
from hosts import LEASE, Hosts
from hosts_sharing import ask, states

WRONG_CLOCK = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"
# A lease, the time until somebody looks, and a busy machine.
LOST = 4 * LEASE + 30


def until_state(node, name, want):
    wait_until(lambda: states(node).get(name) == want, "%s to be %s" % (name, want), LOST)


def ends_as(node, task, state):
    wait_until(lambda: ask(node, "task.show", id=task)["state"] == state, "%s to be %s" % (task, state), LOST)
    return ask(node, "task.show", id=task)


def test_a_name_is_one_hosts(server):
    with Hosts(1, spare=1, server=server) as hosts:
        twin = hosts.node(1, name="alpha", exit_status=69)
        twin.start()
        same(twin.wait_exit(), 69, "exit status")
        said = twin.log().decode()
        check("alpha" in said and "name" in said, "%r", said)
        hosts.nodes[0].alive()
        # The same place may begin anew at once, whatever became of it before.
        hosts.nodes[0].kill()
        begun = time.monotonic()
        hosts.nodes[0].up()
        check(time.monotonic() - begun < LEASE + 10, "it waited for its own lease")


def seconds(iso):
    return calendar.timegm(time.strptime(iso[:19], "%Y-%m-%dT%H:%M:%S"))


def ticks(node):
    found = ask(node, "task.find", limit=1000)["tasks"]
    return [seconds(t["prompt"].split()[1]) for t in found if t["prompt"].startswith("tick ")]


def clocks():
    """What libfaketime keeps for each process, by its number, also when that is gone."""
    return set(glob.glob("/dev/shm/faketime_shm_*") + glob.glob("/dev/shm/sem.faketime_sem_*"))


@contextlib.contextmanager
def clocks_removed():
    before = clocks()
    try:
        yield
    finally:
        for path in clocks() - before:
            if not os.path.exists("/proc/" + path.rpartition("_")[2]):
                os.unlink(path)


def test_a_wrong_clock_is_nobodys_trouble(server):
    if SANITIZED or not os.path.exists(WRONG_CLOCK):
        raise Skip("a wrong clock needs libfaketime, and no sanitizer")
    # Nobody may be late for any other reason; hours are more than any lease.
    with clocks_removed(), Folder() as f, Hosts(0, spare=3, server=server, lease=30) as hosts:
        with open(f("koine.conf"), "w") as out:
            out.write("[rule tick]\nevery = 2s\nprompt = tick {{payload.time}}\n")
        config = ["--config", f("koine.conf")]
        hosts.node(0, args=config).up()
        for number, offset in ((1, "+7h"), (2, "-7h")):
            hosts.node(number, args=config, env={"LD_PRELOAD": WRONG_CLOCK, "FAKETIME": offset, "DONT_FAKE_MONOTONIC": "1",
                                    "FAKETIME_DONT_FAKE_MONOTONIC": "1"}).up()
        a, b, c = hosts.nodes
        same([b"clock skew" in node.log() for node in hosts.nodes], [False, True, True], "whose is wrong")
        for node in hosts.nodes:
            wait_until(lambda: states(node) == {n.name: "alive" for n in hosts.nodes}, "all at " + node.name, LOST)
        tasks = [hosts.run(node, 1, host=at.name, retries=0)[0]["id"] for node, at in ((a, b), (b, c), (c, a))]
        for task in tasks:
            done = ask(a, "task.wait", id=task)
            same((done["state"], done["error"]), ("completed", None), "a task")
        # Times mean the same everywhere: what waits for one, rules, and what is told.
        later = [hosts.run(node, host="alpha", delay=3600000)[0]["id"] for node in (b, c)]
        soon = [hosts.run(node, host="alpha", delay=1000)[0]["id"] for node in (b, c)]
        for task in soon:
            same(ask(a, "task.wait", id=task)["state"], "completed", "after a second")
        same([ask(a, "task.show", id=task)["state"] for task in later], ["queued"] * 2, "those of in an hour")
        wait_until(lambda: len(ticks(a)) >= 4, "four ticks")
        same([t for t in ticks(a) if abs(t - time.time()) > 300], [], "ticks of another time")
        for node in hosts.nodes:
            check(abs(seconds(ask(node, "ping")["timestamp"]) - time.time()) < 300, "the time at %s", node.name)
        for node in hosts.nodes:
            wait_until(lambda: states(node) == {n.name: "alive" for n in hosts.nodes}, "all at " + node.name, LOST)
        same(hosts.journal.faults(), [], "faults")


def test_a_cut_in_any_direction_ends_programs_in_time(server):
    server.network.need()
    with Hosts(4, server=server, args=["--set", "tasks.parallel=8"]) as hosts:
        a, *others = hosts.nodes
        tasks = {node: hosts.run(node, 600, retries=0, host=node.name)[0]["id"] for node in others}
        for task in tasks.values():
            wait_until(lambda: hosts.journal.started(task), "it to start", LOST)
        for node, directions in zip(others, ({}, {"leaving": False}, {"coming": False})):
            node.cut(**directions)
        same(a.ask("memory.add", {"content": "goes on"})[1], None, "a refusal")
        for node in others:
            until_state(a, node.name, "lost")
        lost = time.monotonic()
        for node, task in tasks.items():
            check("host %s was declared dead" % node.name in ends_as(a, task, "failed")["error"], "why")
            last = max(l[2] for l in hosts.journal.attempts()[task, 1])
            check(last < lost, "the program at %s went on for %.1f s", node.name, last - lost)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            asked = pool.map(lambda n: n.ask("memory.add", {"content": "nobody hears it"}), others)
            same([bool(error) for _, error in asked], [True] * len(others), "refusals")
        for node in others:
            node.heal()
        for node in others:
            until_state(a, node.name, "alive")
            wait_until(lambda: node.ask("memory.add", {"content": "back at " + node.name})[0], "a write", LOST)


def test_a_server_that_stands_still(server):
    """For longer than a lease: all programs end, and run again when it goes on."""
    with Hosts(2, server=server) as hosts:
        a, b = hosts.nodes
        task = hosts.run(a, 4, retries=5, retry_delay=10)[0]["id"]
        wait_until(lambda: hosts.journal.started(task), "it to start", LOST)
        server.freeze()
        try:
            begun = time.monotonic()
            time.sleep(2 * LEASE)
        finally:
            server.thaw()
        last = max(l[2] for l in hosts.journal.attempts()[task, 1])
        check(last - begun < LEASE, "the program went on for %.1f s", last - begun)
        same(ends_as(b, task, "completed")["attempts"], 2, "attempts")
        for node in hosts.nodes:
            wait_until(lambda: states(node) == {"alpha": "alive", "beta": "alive"}, "both to be alive", LOST)
        same(hosts.journal.faults(), [], "faults")


class Between:
    """Before a server's socket, at one of its own: passes everything on, until somebody sends much at once; then nothing."""

    def __init__(self, server, folder):
        self.there = "%s/.s.PGSQL.%d" % (server.folder, server.port)
        self.full, self.over = threading.Event(), threading.Event()
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind("%s/.s.PGSQL.5432" % folder)
        self.socket.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.over.set()
        self.socket.close()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                one, _ = self.socket.accept()
                two = socket.socket(socket.AF_UNIX)
                two.connect(self.there)
                for ends in (one, two), (two, one):
                    threading.Thread(target=self.pass_on, args=(*ends, ends[0] is one), daemon=True).start()

    def pass_on(self, source, to, guarded):
        with contextlib.suppress(OSError), source, to:
            while True:
                data = source.recv(1 << 20)
                if guarded and len(data) > 1 << 16:
                    self.full.set()
                if self.full.is_set():
                    self.over.wait()
                if not data:
                    return to.shutdown(socket.SHUT_WR)
                to.sendall(data)


def test_a_server_that_takes_nothing_holds_no_stop(server):
    """By its socket, where no kernel gives up, and more is written than that holds."""
    with Folder() as f, Between(server, f.path) as between, Hosts(0, spare=1, server=server) as hosts:
        node = hosts.node(0, url="postgresql://koine@/%s?host=%s" % (hosts.name, f.path), args=["--set", "limits.stop_time=0"])
        node.up()
        writer = threading.Thread(target=node.ask, daemon=True,
                                  args=("task.add", {"prompt": "x" * (4 << 20), "stash": True}))
        writer.start()
        check(between.full.wait(30), "nothing large was sent")
        begun = time.monotonic()
        node.stop()
        note("it stopped after %.1f s" % (time.monotonic() - begun))
        writer.join()


def test_a_host_that_stands_still_in_a_transaction_holds_nobody_up(server):
    with Hosts(2, server=server) as hosts:
        a, b = hosts.nodes
        over = threading.Event()

        def write(who):
            n = 0
            while not over.is_set():
                n += 1
                b.ask("memory.add", {"content": "%d of %d" % (n, who)}, timeout=60)

        writers = [threading.Thread(target=write, args=(i,), daemon=True) for i in range(4)]
        for t in writers:
            t.start()
        try:
            for i in range(5):
                b.freeze()
                begun = time.monotonic()
                same(a.ask("memory.add", {"content": "meanwhile %d" % i})[1], None, "a refusal")
                check(time.monotonic() - begun < 30, "held up for %.0f s", time.monotonic() - begun)
                b.thaw()
                wait_until(lambda: b.ask("memory.add", {"content": "awake %d" % i})[0], "it to go on", LOST)
        finally:
            over.set()
            b.thaw()
            for t in writers:
                t.join()


def step_database_clock(hosts, by_ms):
    """What the database says that the time is: koined asks nothing else there."""
    hosts.sql("CREATE OR REPLACE FUNCTION koine.koine_now() RETURNS BIGINT VOLATILE LANGUAGE sql AS"
              " 'SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) + %d'" % by_ms)


def renewals(hosts):
    return hosts.sql("SELECT string_agg(CAST(seen_ms AS TEXT), ' ' ORDER BY name) FROM koine.host").split()


def test_step_of_the_databases_clock_loses_no_host(server):
    """An hour forward, and back: every lease is over at once, and no task runs twice."""
    with Hosts(3, server=server) as hosts:
        alpha = hosts.nodes[0]
        task = hosts.run(alpha, 4 * LEASE, retry=3, host="alpha")[0]["id"]
        wait_until(lambda: hosts.journal.attempts(), "the program")
        for by_ms in 3600000, 0, -3600000:
            before = renewals(hosts)
            step_database_clock(hosts, by_ms)
            wait_until(lambda: all(a != b for a, b in zip(renewals(hosts), before)), "renewals")
            same(states(alpha), {"alpha": "alive", "beta": "alive", "gamma": "alive"}, "hosts")
        same(ends_as(alpha, task, "completed")["attempts"], 1, "attempts")
        same(hosts.journal.faults(), [], "faults")
        log = [line for line in hosts.sql("SELECT type FROM koine.event WHERE type IN ('task.retrying', 'task.fenced')").split()]
        same(log, [], "events")


def test_killed_host_is_lost_although_the_databases_clock_was_set_back(server):
    with Hosts(2, server=server) as hosts:
        alpha, beta = hosts.nodes
        alpha.kill()
        step_database_clock(hosts, -3600000)
        until_state(beta, "alpha", "lost")
