"""What is kept while everybody writes and the server is restarted without a word; 100 times with KOINE_SOAK=1."""
import concurrent.futures
import os
import threading
import time

from harness import check, note, same, wait_until
from hosts import Follower, Hosts, HostsServer, agree

RESTARTS = 100 if os.environ.get("KOINE_SOAK") == "1" else 3


class Writers:
    """
    Clients of all nodes that write until they are told to stop. What was answered, what was refused, and what
    may have happened, since no answer came.
    """

    def __init__(self, nodes, each=2):
        self.over = threading.Event()
        self.kept, self.unknown = {}, set()
        self.decided, self.faults = {}, []
        self.lock = threading.Lock()
        jobs = [self.remember, self.submit, self.decide]
        self.threads = [threading.Thread(target=self.go_on, args=(job, nodes, i * each + k), daemon=True)
                        for i in range(len(nodes)) for k in range(each) for job in jobs]

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *exc):
        self.over.set()
        for t in self.threads:
            t.join()

    def go_on(self, job, nodes, who):
        n = 0
        while not self.over.is_set():
            n += 1
            node = nodes[(who + n // 20) % len(nodes)]
            try:
                job(node, "%s %d of writer %d" % (job.__name__, n, who))
            except Exception as why:
                self.faults.append(repr(why))
            time.sleep(0.005)

    def write(self, node, method, params, key):
        result, error = node.ask(method, params, timeout=30)
        with self.lock:
            if result:
                self.kept[key] = result["id"]
            elif error is None or "check whether it was stored" in error["message"]:
                self.unknown.add(key)
        if result is None and error is None:
            time.sleep(0.05)
        return result

    def remember(self, node, text):
        self.write(node, "memory.add", {"content": text}, text)

    def submit(self, node, text):
        self.write(node, "task.add", {"prompt": text, "stash": True}, text)

    def decide(self, node, text):
        made = self.write(node, "approval.create", {"tool": "Bash", "input": {"command": text}}, text)
        if not made:
            return
        want = "deny" if text.endswith(("1", "3", "5")) else "approve"
        result, _ = node.ask("approval.decide", {"id": made["id"], "decision": want}, timeout=30)
        if result:
            with self.lock:
                self.decided[made["id"]] = result["status"]


def check_kept(hosts, w):
    """Everything that was answered is there once; nothing is there twice."""
    memories = hosts.sql("SELECT content FROM koine.memory WHERE content LIKE 'remember %'").splitlines()
    tasks = hosts.sql("SELECT prompt FROM koine.task WHERE prompt LIKE 'submit %'").splitlines()
    for rows, job in ((memories, "remember"), (tasks, "submit")):
        answered = {k for k in w.kept if k.startswith(job)}
        same(sorted(answered - set(rows)), [], job + ": answered and lost")
        same(len(rows), len(set(rows)), job + ": each once")
        same(sorted(set(rows) - answered - w.unknown), [], job + ": refused, and there")
    ids = [w.kept[k] for k in w.kept if k.startswith("submit")]
    same(len(ids), len(set(ids)), "ids of tasks, each once")
    found = dict(l.split("|") for l in hosts.sql("SELECT id, status FROM koine.approval").splitlines())
    asked = [w.kept[k] for k in w.kept if k.startswith("decide")]
    same([i for i in asked if i not in found], [], "asked and lost")


def storm_of_writes(server, n_nodes):
    with Hosts(n_nodes, server=server) as hosts, Writers(hosts.nodes) as w:
        followers = [Follower([node]) for node in hosts.nodes] + [Follower(hosts.nodes, roams=True)]
        for f in followers:
            f.start()
        for _ in range(RESTARTS):
            before = len(w.kept)
            wait_until(lambda: len(w.kept) > before + 60, "writes")
            hosts.server.restart()
        before = len(w.kept)
        wait_until(lambda: len(w.kept) > before + 60, "writes after the last restart")
        w.__exit__()
        same(w.faults, [], "faults")
        check_kept(hosts, w)
        for id, status in w.decided.items():
            got, _ = hosts.nodes[0].ask("approval.get", {"id": id})
            same(got["status"], status, "a decision")
        agree(followers, hosts)
        for f in followers:
            f.__exit__()
        note("%d writes, %d decisions, %d without an answer, over %d restarts; %d events to each of %d" %
             (len(w.kept), len(w.decided), len(w.unknown), RESTARTS, len(followers[0].events), len(followers)))


def test_restarts_of_the_server_lose_and_double_nothing(server):
    storm_of_writes(server, 3)


def test_a_follower_may_be_ahead_of_its_host(server):
    """It was told more elsewhere: what it has is not told again, and what comes is."""
    server.network.need()
    with Hosts(2, server=server) as hosts:
        a, b = hosts.nodes
        b.cut(leaving=False)
        for i in range(5):
            same(a.ask("memory.add", {"content": "number %d" % i})[1], None, "a refusal")
        last = int(hosts.sql("SELECT max(seq) FROM koine.event"))
        with Follower([b], last=last) as f:
            wait_until(lambda: f.turns > 0, "it to ask")
            b.heal()
            a.ask("memory.add", {"content": "one more"})
            f.reach(last + 1)
            same(([e[0] for e in f.events], f.faults), ([last + 1], []), "what it was told")


def test_a_commit_that_nobody_knows_of_is_told_in_the_end():
    """Its host gives up before the server is back: what was kept then is found there, and told to all."""
    with HostsServer(2) as server, Hosts(2, server=server) as hosts, Follower(hosts.nodes[:1]) as f, Follower(hosts.nodes[1:]) as g:
        a, b = hosts.nodes
        same([n.ask("memory.search", {"query": "fjord"})[0] for n in (a, b)], [[], []], "their indexes are there")
        server.hold_commits()
        with concurrent.futures.ThreadPoolExecutor() as pool:
            asked = pool.submit(a.ask, "memory.add", {"content": "Anna runs along the fjord"})
            wait_until(lambda: hosts.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
                                         " AND query = 'COMMIT'") != "0", "a commit that waits")
            server.free_commits()
            server.stop("immediate")
            try:
                result, error = asked.result()
            finally:
                server.start()
        check(error and "check whether it was stored" in error["message"], "%r", (result, error))
        same(hosts.sql("SELECT count(*) FROM koine.memory"), "1", "it was kept")
        for node in a, b:
            wait_until(lambda: node.ask("memory.search", {"query": "fjord"})[0], "it is found at " + node.name)
        agree([f, g], hosts)


def test_a_wake_that_is_lost_is_made_up_for(server):
    """An event comes to be without a word to anybody, as when a wake is lost; hosts look by themselves."""
    with Hosts(2, server=server) as hosts:
        last = int(hosts.sql("SELECT last_seq FROM koine.event_counter"))
        with Follower([hosts.nodes[0]], last=last) as f, Follower([hosts.nodes[1]], last=last) as g:
            wait_until(lambda: f.turns > 0 and g.turns > 0, "them to ask")
            for n in range(1, 4):
                hosts.sql("UPDATE koine.event_counter SET last_seq = last_seq + 1, last_ms = koine.koine_now();"
                          "INSERT INTO koine.event (seq, type, time_ms, host, data)"
                          " SELECT last_seq, 'quiet', last_ms, 'ghost', ''::bytea FROM koine.event_counter")
                begun = time.monotonic()
                for one in f, g:
                    one.reach(last + n)
                note("told after %.1f s" % (time.monotonic() - begun))
            same([e[0] for e in f.events], [last + 1, last + 2, last + 3], "what it was told")
            same((f.faults, f.events), ([], g.events), "as the other one")
