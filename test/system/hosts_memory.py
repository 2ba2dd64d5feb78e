"""Memories of several hosts: what one changes, the others find; and the counts are right."""
import contextlib
import json
import os
import subprocess
import sys
import threading

from harness import Folder, check, request, same, wait_until
from hosts import Hosts
from test_nexus_bounds import needs_landlock


def ask(node, method, params=None):
    result, error = node.ask(method, params)
    check(error is None and result is not None, "%s at %s: %r", method, node.name, error)
    return result


def found(node, query, **more):
    return sorted(m["content"] for m in ask(node, "memory.search", {"query": query, **more}))


def listed(node, **params):
    return sorted(m["content"] for m in ask(node, "memory.list", params))


def comes(node, query, contents, **more):
    wait_until(lambda: found(node, query, **more) == contents,
               "%r at %s; there is %r" % (contents, node.name, found(node, query, **more)))


def lists(node, contents, **params):
    wait_until(lambda: listed(node, **params) == contents,
               "%r at %s; there is %r" % (contents, node.name, listed(node, **params)))


def test_what_one_host_changes_the_others_find(server):
    with Hosts(2, server=server) as hosts:
        a, b = hosts.nodes
        for node in (a, b):
            # Their indexes are there, and their lists at hand, before anything changes.
            same((found(node, "fjord"), found(node, "fjord", user_id="ann"), listed(node)), ([], [], []))
        one = ask(a, "memory.add", {"content": "Anna runs along the fjord"})["id"]
        own = ask(b, "memory.add", {"content": "the fjord is ann's", "user_id": "ann"})["id"]
        for node in (a, b):
            comes(node, "fjord", ["Anna runs along the fjord"], user_id="bob")
            comes(node, "fjord", ["Anna runs along the fjord", "the fjord is ann's"], user_id="ann")
            lists(node, ["Anna runs along the fjord", "the fjord is ann's"])
        ask(b, "memory.update", {"memory_id": one, "content": "Anna swims in the lake"})
        comes(a, "lake", ["Anna swims in the lake"])
        same(found(a, "fjord"), ["the fjord is ann's"])
        lists(a, ["Anna swims in the lake"], user_id="bob")
        ask(a, "memory.add", {"content": "Anna rows on the river", "replaces": one})
        comes(b, "river", ["Anna rows on the river"])
        comes(b, "lake", [])
        ask(a, "memory.delete", {"memory_id": own, "user_id": "ann"})
        comes(b, "fjord", [], user_id="ann")
        lists(b, ["Anna rows on the river"], user_id="ann")
        same(ask(a, "memory.stats")["total"], ask(b, "memory.stats")["total"], "memories")


def test_what_is_found_again_is_as_it_is_now(server):
    """The same scope finds the same memory before and after it is changed, here and elsewhere."""
    with Hosts(2, server=server) as hosts:
        a, b = hosts.nodes
        one = ask(a, "memory.add", {"content": "the ferry leaves at seven"})["id"]
        for _ in range(2):
            for node in (a, b):
                comes(node, "ferry", ["the ferry leaves at seven"])
        ask(a, "memory.update", {"memory_id": one, "content": "the ferry leaves at eight"})
        same(found(a, "ferry"), ["the ferry leaves at eight"], "where it was changed, at once")
        comes(b, "ferry", ["the ferry leaves at eight"])
        ask(b, "memory.update", {"memory_id": one, "content": "the ferry leaves at nine"})
        same(found(b, "ferry"), ["the ferry leaves at nine"], "where it was changed, at once")
        comes(a, "ferry", ["the ferry leaves at nine"])
        ask(b, "memory.delete", {"memory_id": one})
        same(found(b, "ferry"), [], "where it was deleted, at once")
        comes(a, "ferry", [])


def both(nodes, work):
    """On all nodes at once; what it returns."""
    out = [None] * len(nodes)

    def run(i):
        try:
            out[i] = work(i, nodes[i])
        except Exception as why:
            out[i] = repr(why)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(nodes))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return out


def test_two_hosts_that_change_one_memory_lose_no_version(server):
    with Hosts(2, server=server) as hosts:
        one = ask(hosts.nodes[0], "memory.add", {"content": "first"})["id"]

        def update(who, node):
            for i in range(12):
                ask(node, "memory.update", {"memory_id": one, "content": "version %d of %d" % (i, who)})

        same(both(hosts.nodes, update), [None, None], "faults")
        said = [m["content"] for m in ask(hosts.nodes[1], "memory.history", {"memory_id": one})]
        same(sorted(said), sorted(["first"] + ["version %d of %d" % (i, w) for i in range(12) for w in range(2)]))

        def replace(who, node):
            return node.ask("memory.add", {"content": "instead, by %d" % who, "replaces": one})

        answers = both(hosts.nodes, replace)
        same(sorted(error is None for _, error in answers), [False, True], "who replaced it")
        check("was replaced by" in str(answers), "%r", answers)
        for node in hosts.nodes:
            wait_until(lambda: len(found(node, "instead")) == 1 and found(node, "version first") == [],
                       "the one that is valid")


@contextlib.contextmanager
def model_of(server):
    """An embedding model that all hosts reach; its URL."""
    here = os.path.dirname(os.path.abspath(__file__))
    with subprocess.Popen([*server.network.server_wrapper, sys.executable, os.path.join(here, "embedding_server.py"),
                           server.network.server_address], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield process.stdout.readline().decode().strip()
        finally:
            process.stdin.close()


def test_vectors_of_one_host_are_compared_by_the_others(server):
    with model_of(server) as url:
        args = ("--set", "memory.embedding_url=" + url, "--set", "memory.embedding_model=test")
        with Hosts(2, server=server, args=args) as hosts:
            a, b = hosts.nodes
            ask(a, "memory.add", {"content": "the physician of my aunt"})
            for node in (a, b):
                # No word of it is in the memory; from here on both have their vectors in memory.
                comes(node, "doctor", ["the physician of my aunt"])
            for i, node in enumerate((a, b)):
                one = ask(node, "memory.add", {"content": "a limousine, number %d" % i})["id"]
                for other in (a, b):
                    comes(other, "which sedan", ["a limousine, number %d" % i], limit=1)
                # Its vector stays with it, and goes with its text.
                ask(node, "memory.update", {"memory_id": one, "importance": 0.9})
                for other in (a, b):
                    wait_until(lambda: ask(other, "memory.get", {"memory_id": one})["importance"] == 0.9, "the change")
                    comes(other, "which sedan", ["a limousine, number %d" % i], limit=1)
                ask(node, "memory.update", {"memory_id": one, "content": "nothing of that kind"})
                for other in (a, b):
                    comes(other, "which sedan", [], limit=1)
            same(hosts.sql("SELECT count(*) FROM koine.event WHERE type = 'memory.embedded'") != "0", True, "events")


def test_who_has_a_model_makes_the_vectors_of_who_has_none(server):
    with model_of(server) as url:
        args = ("--set", "memory.embedding_url=" + url, "--set", "memory.embedding_model=test")
        with Hosts(0, spare=2, server=server) as hosts:
            a, b = hosts.node(0, args=args).up(), hosts.node(1).up()
            ask(a, "memory.add", {"content": "the physician of my aunt"})
            comes(a, "doctor", ["the physician of my aunt"])
            one = ask(b, "memory.add", {"content": "a limousine"})["id"]
            comes(a, "which sedan", ["a limousine"], limit=1)
            ask(b, "memory.update", {"memory_id": one, "content": "my aunt's limousine"})
            comes(a, "which sedan", ["my aunt's limousine"], limit=1)


# Says something else each time that it is asked.
SCRIBE = r"""#!/usr/bin/env python3
import sys, time
sys.stdin.read()
time.sleep(0.5)
print("Ann | - | Ann was heard of at %d" % time.monotonic_ns())
"""


def say(node, conversation, text):
    with node.connect() as c:
        c.send(request("chat.stream", {"conversation": conversation, "content": text, "agent": "recall"}) + b"\n")
        while "id" not in (said := json.loads(c.read_line())):
            pass
        check("result" in said, "%r", said)


def unclaimed(hosts):
    """Nobody draws any."""
    wait_until(lambda: hosts.sql("SELECT count(*) FROM koine.extract_mark WHERE kind LIKE 'claim %'") == "0",
               "all claims are over")


def test_facts_are_drawn_once_whoever_draws_them(server):
    needs_landlock()  # a program that draws facts is kept from writing
    with Folder() as f:
        with open(f("scribe"), "w") as out:
            out.write(SCRIBE)
        os.chmod(f("scribe"), 0o755)
        with open(f("koine.conf"), "w") as out:
            out.write("[agent scribe]\nkind = command\ncommand = %s\ninput = stdin\n"
                      "[memory]\nextract = scribe\nextract_idle = 1\n" % f("scribe"))
        with Hosts(3, server=server, args=("--config", f("koine.conf"))) as hosts:
            drawn = "SELECT count(*) FROM koine.memory WHERE source = 'extracted'"
            for i in range(3):
                say(hosts.nodes[i], "talk-%d" % i, "I have a boat")
                wait_until(lambda: int(hosts.sql(drawn)) >= i + 1, "fact %d" % i)
            unclaimed(hosts)
            same(hosts.sql(drawn), "3", "facts")
            # What a lost host has claimed goes to another.
            hosts.sql("INSERT INTO koine.extract_mark SELECT 'claim conversation', seq, 999999 FROM koine.conversation")
            say(hosts.nodes[0], "talk-0", "and a car")
            wait_until(lambda: int(hosts.sql(drawn)) == 4, "one more")
            hosts.sql("DELETE FROM koine.extract_mark WHERE place = 999999")
            unclaimed(hosts)


class Adders:
    """Clients of all nodes that add memories of several users, and delete some of them."""

    def __init__(self, nodes, n):
        self.faults = []
        self.threads = [threading.Thread(target=self.run, args=(node, i, n)) for i, node in enumerate(nodes * 2)]
        for t in self.threads:
            t.start()

    def run(self, node, who, n):
        try:
            with node.connect() as c:
                for i in range(n):
                    new = c.call("memory.add", {"content": "fact %d of %d" % (i, who), "user_id": "u%d" % (i % 7)})
                    if i % 5 == 0:
                        c.call("memory.delete", {"memory_id": new["id"], "user_id": "u%d" % (i % 7)})
        except Exception as why:
            self.faults.append(repr(why))

    def join(self):
        for t in self.threads:
            t.join()
        same(self.faults, [], "faults of those who add")


def test_counts_are_right_whoever_adds(server):
    n = 2000 if os.environ.get("KOINE_SOAK") == "1" else 700
    with Hosts(2, server=server) as hosts:
        Adders(hosts.nodes, n).join()
        left = 4 * (n - n // 5)
        for node in hosts.nodes:
            same(ask(node, "memory.stats")["total"], left, "memories at " + node.name)
            for u in range(7):
                rows = int(hosts.sql("SELECT count(*) FROM koine.memory WHERE owner = 'u%d'" % u))
                same(ask(node, "memory.stats", {"user_id": "u%d" % u})["total"], rows, "of one user")
        same(hosts.sql("SELECT bool_and(n > 0) FROM koine.tally"), "t", "tallies")
        for node in hosts.nodes:
            wait_until(lambda: len(found(node, "fact", user_id="u3", limit=1000)) ==
                       ask(node, "memory.stats", {"user_id": "u3"})["total"], "all in the index")
