"""Hosts that want the same at the same moment, and each what the other one has."""
import contextlib
import json
import random
import subprocess
import threading

from harness import Client, Failure, Folder, check, note, request, same, wait_until
from hosts import Hosts
from hosts_work import CALM
from task_world import read_bytes

EACH = 60  # changes by each client
AT_ONCE = 10  # of these, where a client does not wait for each


def quick_to_see(hosts):
    """A server looks for such a circle after a second; here at once."""
    hosts.server.sql("ALTER DATABASE %s SET deadlock_timeout = '5ms'" % hosts.name)
    return [hosts.node(i).up() for i in range(hosts.spare)]


def at_once(jobs):
    threads = [threading.Thread(target=job) for job in jobs]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def circles(hosts):
    """So far."""
    return read_bytes(hosts.server.folder + "/log").count(b"deadlock detected")


def until_a_deadlock(hosts, jobs):
    """Runs them in rounds until two batches deadlock, which is chance: how many did, and how many rounds it took."""
    before = circles(hosts)
    for n in range(1, 11):
        at_once(jobs)
        if circles(hosts) > before:
            return circles(hosts) - before, n
    raise Failure("no deadlock in 10 rounds")


def test_who_waits_for_each_other_goes_on(server):
    """Batches of two hosts change the same memories in any order; whoever is ended by the database runs again."""
    with Hosts(0, spare=2, server=server) as hosts:
        nodes = quick_to_see(hosts)
        ids = [nodes[0].ask("memory.add", {"content": "memory %d" % i})[0]["id"] for i in range(4)]
        kept, refused = [], []

        def change(node, who):
            rng = random.Random(who)
            for n in range(EACH):
                result, error = node.ask("memory.update", {"memory_id": rng.choice(ids),
                                                           "content": "change %d of %d" % (n, who)})
                (kept if result else refused).append(error)

        n_circles, rounds = until_a_deadlock(
            hosts, [lambda node=node, who=who: change(node, who) for who, node in enumerate(nodes * 6)])
        same(refused, [], "refusals, with %d circles" % n_circles)
        told = hosts.sql("SELECT count(*) FROM koine.event WHERE type = 'memory.updated'")
        same((int(told), len(kept)), (12 * EACH * rounds, 12 * EACH * rounds), "changes, each once")
        note("%d changes, %d circles" % (len(kept), n_circles))


RULES = "".join("[rule r%d]\nevent = memory.deleted\nprompt = x\n" % i for i in range(2))


def test_whatever_they_want_they_get(server):
    """The same with all kinds of rows: rules, groups, memories, sessions, approvals, in any order and all at once."""
    with Folder() as f, Hosts(0, spare=2, server=server, args=("--config", f("koine.conf")), env=CALM) as hosts:
        with open(f("koine.conf"), "w") as out:
            out.write(RULES)
        nodes = quick_to_see(hosts)
        for node in nodes:
            wait_until(lambda: b"rule state loaded" in node.log(), "rules of " + node.name)
        ids = [nodes[0].ask("memory.add", {"content": "memory %d" % i})[0]["id"] for i in range(2)]
        answers = []

        def change(node, who):
            rng = random.Random(who)
            wishes = [lambda: ("automation." + rng.choice(["enable", "disable"]), {"ruleId": "r%d" % rng.randrange(2)}),
                      lambda: ("task." + rng.choice(["pause", "resume"]), {"group": "g%d" % rng.randrange(2)}),
                      lambda: ("memory.update", {"memory_id": rng.choice(ids), "content": "of %d" % rng.randrange(1000)}),
                      lambda: ("task.add", {"prompt": "x", "delay": 3600}),
                      lambda: ("approval.create", {"tool": "Edit", "id": "q%d" % rng.randrange(100)})]
            with Client("unix:" + node.path) as c:
                for _ in range(EACH // AT_ONCE):
                    c.send(b"".join(request(*rng.choice(wishes)()) + b"\n" for _ in range(AT_ONCE)))
                    answers.extend(json.loads(c.read_line()) for _ in range(AT_ONCE))

        n, _ = until_a_deadlock(hosts, [lambda node=node, who=who: change(node, who) for who, node in enumerate(nodes * 6)])
        same([a["error"] for a in answers if "error" in a], [], "refusals, with %d circles" % n)
        note("%d changes, %d circles" % (len(answers), n))


class Holder:
    """Somebody who has a table for himself, for a `with`."""

    def __init__(self, hosts, table):
        self.hosts, self.table = hosts, table

    def __enter__(self):
        self.process = subprocess.Popen([*self.hosts.server.wrapper, "psql", "-qX", "-d", self.hosts.server.url(self.hosts.name)],
                                        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        self.process.stdin.write(b"BEGIN; LOCK %s IN ACCESS EXCLUSIVE MODE;\n" % self.table.encode())
        self.process.stdin.flush()
        wait_until(lambda: self.hosts.sql("SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted"
                                          " AND relation = '%s'::regclass" % self.table) == "1", "the lock")
        return self

    def __exit__(self, *exc):
        self.process.stdin.close()
        self.process.wait()

    def waiting(self):
        return self.hosts.sql("SELECT pid FROM pg_locks WHERE NOT granted AND relation = '%s'::regclass" % self.table).split()


def test_what_somebody_cancels_is_read_again(server):
    """An administrator ends a query of a host that reads what another one did."""
    with Hosts(2, server=server, lease=30) as hosts:
        a, b = hosts.nodes
        same(b.ask("memory.search", {"query": "fjord"}), ([], None), "its index is there")
        b.freeze()
        same(a.ask("memory.add", {"content": "Anna runs along the fjord"})[1], None, "a refusal")
        with Holder(hosts, "koine.memory") as holder:
            b.thaw()
            wait_until(holder.waiting, "it to read")
            same(hosts.sql("SELECT pg_cancel_backend(%s)" % holder.waiting()[0]), "t", "cancelled")
        wait_until(lambda: b.ask("memory.search", {"query": "fjord"})[0], "it to be found")


def test_numbers_of_a_batch_are_taken_at_once(server):
    """The row that has a project's next number is written a few times for a batch, not for each task."""
    many = 200
    with Hosts(1, server=server) as hosts, contextlib.ExitStack() as stack:
        alpha = hosts.nodes[0]
        clients = [stack.enter_context(Client("unix:" + alpha.path)) for _ in range(many + 1)]
        with Holder(hosts, "koine.task_project") as holder:
            for i, c in enumerate(clients):
                c.send(request("task.add", {"prompt": "x", "stash": True}) + b"\n")
                if i == 0:
                    # The others wait for the batch that this one is in.
                    wait_until(holder.waiting, "the first waits")
        ids = [json.loads(c.read_line())["result"]["id"] for c in clients]
        same(sorted(ids), ["task-%04d" % i for i in range(many + 1)], "ids")
        # What is counted of both tables comes together.
        count = "SELECT %s FROM pg_stat_user_tables WHERE relid = '%s'::regclass"
        wait_until(lambda: hosts.sql(count % ("n_tup_ins", "koine.task")) == str(many + 1), "it is counted")
        written = int(hosts.sql(count % ("n_tup_upd", "koine.task_project")))
        check(written < many / 4, "the row was written %d times for %d tasks", written, many)
