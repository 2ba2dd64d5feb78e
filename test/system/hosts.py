"""
Several koined over one PostgreSQL server, each on a host of its own, and what can happen to them.

Hosts has the server and the nodes, for a `with`; each has its network (hosts_network.py), its folder and a
name. A node is started, stopped, killed, frozen with everything that it runs, and cut off; the server is restarted
without a word to anybody, and frozen. A Follower writes down the events that a node tells, or one node after the other.
A Journal has what tasks' programs did (attempt_program.py), and says what is wrong with it.
"""
import collections
import contextlib
import json
import os
import signal
import socket
import sys
import threading
import time

import harness
from harness import SANITIZED, SANITIZER, Client, Daemon, Failure, check, request, same, wait_until
from hosts_network import Network
from postgres_server import Server
from task_world import read_bytes

NAMES = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "attempt_program.py")
# Seconds until a node that is silent is taken for lost. A sanitizer makes everything slow.
LEASE = 8 if SANITIZED else 5


class Node(Daemon):
    """A koined of a Hosts. Its log may have any line but a sanitizer's, unless `strict`."""

    def __init__(self, hosts, number, name=None, env=None, url=None, lease=LEASE, strict=False, args=(), **opts):
        self.hosts = hosts
        self.number = number
        self.name = name or NAMES[number]
        self.strict = strict
        self.logs = []
        self.killed = False
        more = {"KOINE_HOST_NAME": self.name, "KOINE_HOST_LEASE": str(lease), "TEST_HOST": self.name,
                "PATH": os.environ["PATH"], **(env or {})}
        root = os.path.join(hosts.folder, self.name)
        if os.path.exists(root):
            root += "-%d" % len(hosts.nodes)
        os.mkdir(root, 0o700)
        super().__init__("--store", url or hosts.url, *args, root=root, env=more,
                         wrapper=[*hosts.network.wrapper(number), "setpriv", "--pdeathsig", "KILL"], **opts)
        hosts.nodes.append(self)

    def start(self):
        super().start()
        self.logs.append(self.log_path)

    def up(self):
        """Starts it, and waits until it is ready."""
        if self.process:
            self.process.stdout.close()
        self.killed = False
        self.start()
        self.wait_ready()
        return self

    @property
    def running(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        self.killed = True
        self.signal(signal.SIGKILL)
        self.wait_exit()

    def finish(self):
        """Ends it, and looks how it ended."""
        if not self.process:
            return
        try:
            status = self.stop()
            if not self.killed:
                same(status, self.exit_status, "exit status")
            self.check_log()
        finally:
            self.clean_up()

    def tree(self):
        """Its koined, and everything below it."""
        parents = collections.defaultdict(list)
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            fields = read_bytes("/proc/%d/stat" % pid).rpartition(b")")[2].split()
            if len(fields) > 1:
                parents[int(fields[1])].append(pid)
        found = [self.pid]
        for pid in found:
            found += parents[pid]
        return found

    def freeze(self, programs=True):
        """As a virtual machine that is paused; without its programs, as a koined in a debugger. Returns the processes
        that were there, and stand still now."""
        self.signal(signal.SIGSTOP)
        stopped = []
        for pid in self.tree()[1:] if programs else ():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
                stopped.append(pid)
        return stopped

    def thaw(self):
        """koined last: it has to find out by itself that time has passed."""
        for pid in reversed(self.tree()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def cut(self, **directions):
        self.hosts.network.cut(self.number, **directions)

    def heal(self):
        self.hosts.network.heal(self.number)

    def log(self):
        return b"".join(read_bytes(path) for path in self.logs)

    def check_log(self):
        if self.strict:
            super().check_log()
        check(not SANITIZER.search(self.log()), "sanitizer report: %s",
              self.log()[-4000:].decode(errors="replace"))

    def ask(self, method, params=None, timeout=harness.PATIENCE):
        """(result, error) by a connection of its own; (None, None) if there was no answer."""
        try:
            with Client("unix:" + self.path, timeout=timeout) as c:
                answer = json.loads(c.call_text(request(method, params)))
                return answer.get("result"), answer.get("error")
        except (OSError, Failure):
            return None, None

    @property
    def path(self):
        return os.path.join(self.root, "koine.sock")


class Hosts:
    """
    n: how many nodes are started; `spare` more hosts have a network, and no node yet. server: one that
    runs already, on a network of its own with enough hosts. folder: an empty one, where nodes have theirs.
    """

    def __init__(self, n=3, spare=0, server=None, folder=None, **opts):
        self.n = n
        self.folder = folder
        self.spare = spare
        self.server = server
        self.opts = opts
        self.nodes = []
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.server = self.server or stack.enter_context(HostsServer(self.n + self.spare))
            self.network = self.server.network
            check(self.network.n >= self.n + self.spare, "too few hosts")
            self.folder = self.folder or stack.enter_context(harness.Folder()).path
            self.journal = Journal(os.path.join(self.folder, "journal"))
            self.name = "koine_%d" % time.monotonic_ns()
            self.url = self.server.store(self.name)
            stack.push(self.end)
            for number in range(self.n):
                self.node(number).up()
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *exc):
        return self.stack.__exit__(*exc)

    def node(self, number, **opts):
        return Node(self, number, **{**self.opts, **opts})

    def end(self, kind, *exc):
        """All of them, at once."""
        faults = []
        told = [node for node in self.nodes if node.running]
        for node in self.nodes:
            if self.network.real:
                node.heal()
            if node.running:
                node.thaw()
                node.signal(signal.SIGTERM)
        for node in self.nodes:
            try:
                # A second signal would end one that is looking for leaks.
                if node in told:
                    node.wait_exit()
                node.finish()
            except Exception as why:
                faults.append("%s: %s" % (node.name, why))
        self.server.sql("DROP DATABASE %s WITH (FORCE)" % self.name)
        if faults and kind is None:
            raise Failure("; ".join(faults))

    def sql(self, text):
        return self.server.sql(text, self.name)

    def admin_url(self):
        """By the server's socket, which is in no network."""
        return "'postgresql://koine@/%s?host=%s&port=%d'" % (self.name, self.server.folder, self.server.port)

    def run(self, node, seconds=0.05, **params):
        """A task that tells the journal; (id, error) as Node.ask."""
        # A host's wrong clock is not its programs'.
        command = ["env", "-u", "LD_PRELOAD", sys.executable, "-IS", PROGRAM, self.journal.path, str(seconds)]
        return node.ask("task.run", {"command": command, **params}, timeout=3 * LEASE)

    def alive(self):
        return [node for node in self.nodes if node.running]


class HostsServer(Server):
    """A server in a network of hosts, both for a `with`."""

    def __init__(self, n, options="-c fsync=off -c full_page_writes=off"):
        self.network = Network(n)
        super().__init__(options)

    def __enter__(self):
        self.network.__enter__()
        try:
            self.wrapper = self.network.server_wrapper
            self.address = self.network.server_address
            return super().__enter__()
        except BaseException:
            self.network.close()
            raise

    def __exit__(self, *exc):
        self.thaw()
        super().__exit__(*exc)
        self.network.close()

    def restart(self):
        """As after a power cut: nobody is told."""
        self.stop("immediate")
        self.start()

    @contextlib.contextmanager
    def first_rule(self, line):
        """Of pg_hba.conf, for a while."""
        path = self.folder + "/data/pg_hba.conf"
        with open(path) as f:
            before = f.read()
        try:
            self.rules(path, line + "\n" + before)
            yield
        finally:
            self.rules(path, before)

    def rules(self, path, text):
        with open(path, "w") as f:
            f.write(text)
        self.sql("SELECT pg_reload_conf()")

    def pids(self):
        with open(self.folder + "/data/postmaster.pid") as f:
            first = int(f.readline())
        return [first] + [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
                          if read_bytes("/proc/%d/stat" % pid).rpartition(b")")[2].split()[1:2] == [b"%d" % first]]

    def signal_all(self, number):
        with contextlib.suppress(FileNotFoundError):
            for pid in self.pids():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)

    def freeze(self):
        self.signal_all(signal.SIGSTOP)

    def thaw(self):
        self.signal_all(signal.SIGCONT)


class Follower(threading.Thread):
    """
    Events as one client reads them: of one node, or in turns of several, going on by number after whatever
    happened to its connection.
    """

    def __init__(self, nodes, roams=False, last=0):
        super().__init__(daemon=True)
        self.nodes = nodes
        self.roams = roams
        self.events = []
        self.faults = []
        self.last = last
        self.turns = 0
        self.over = threading.Event()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self.over.set()
        self.join()

    def run(self):
        while not self.over.is_set():
            node = self.nodes[self.turns % len(self.nodes)]
            self.turns += 1
            with contextlib.suppress(OSError, Failure, ValueError):
                self.follow(node)
            self.over.wait(0.05)

    def follow(self, node):
        """Until the connection ends; one that roams leaves after a while."""
        until = time.monotonic() + (0.5 if self.roams else 1e9)
        with Client("unix:" + node.path, timeout=5) as c:
            c.send(request("event.subscribe", {"since": self.last}) + b"\n")
            c.socket.settimeout(0.2)
            while not self.over.is_set() and time.monotonic() < until:
                self.read(c)

    def read(self, c):
        try:
            part = c.socket.recv(262144)
        except socket.timeout:
            return
        if not part:
            raise Failure("the end")
        c.got += part
        while b"\n" in c.got:
            line, _, rest = bytes(c.got).partition(b"\n")
            c.got = bytearray(rest)
            self.take(json.loads(line))

    def take(self, message):
        if message.get("method") == "event.lost" or "error" in message:
            self.faults.append(message)
        if message.get("method") != "event":
            return
        event = message["params"]
        if event["seq"] <= self.last:
            self.faults.append("%d after %d" % (event["seq"], self.last))
        self.last = event["seq"]
        self.events.append((event["seq"], event["type"], json.dumps(event["data"], sort_keys=True)))

    def reach(self, seq, patience=harness.PATIENCE):
        wait_until(lambda: self.last >= seq, "event %d; the last is %d" % (seq, self.last), patience)


def agree(followers, hosts):
    """All have read the same, and that is what the database has."""
    rows = [line.split("|") for line in hosts.sql("SELECT seq, type FROM koine.event ORDER BY seq").splitlines()]
    kept = [(int(seq), kind) for seq, kind in rows]
    for f in followers:
        f.reach(kept[-1][0])
        same(f.faults, [], "faults of a follower")
        told = [e[:2] for e in f.events if e[0] <= kept[-1][0]]
        missing = sorted(set(kept) - set(told))
        check(not missing, "%d events were not told: %r", len(missing), missing[:5])
        same(len(told), len(kept), "events told")
        same([e for e in f.events if e[0] <= kept[-1][0]], [e for e in followers[0].events if e[0] <= kept[-1][0]],
             "what two followers read")


class Journal:
    """What programs of tasks wrote, and whether it may be."""

    def __init__(self, path):
        self.path = path

    def attempts(self):
        """(task, attempt) to [(host, what, time, pid)]"""
        found = collections.defaultdict(list)
        for line in read_bytes(self.path).decode().splitlines():
            task, attempt, host, what, at, pid = line.split(" ")
            found[task, int(attempt)].append((host, what, float(at), int(pid)))
        return found

    def started(self, task):
        return sorted(attempt for found, attempt in self.attempts() if found == task)

    def faults(self, grace=()):
        """
        What is wrong. grace: [(pids, since, until)], in which programs that were frozen with their host may show
        that they were still there: no clock that stands still can end them in time. One that was frozen before its
        first line says then that it starts; but nobody begins to run who was not there before.
        """
        def in_grace(pid, at):
            return any(pid in g[0] and g[1] <= at <= g[2] for g in grace)

        out, spans = [], collections.defaultdict(list)
        for (task, attempt), lines in self.attempts().items():
            starts = [l for l in lines if l[1] == "start"]
            if len(starts) != 1 or len({(l[0], l[3]) for l in lines}) != 1:
                out.append("attempt %d of %s was started %d times: %r" % (attempt, task, len(starts), starts))
                continue
            host = starts[0][0]
            seen = [at for _, _, at, pid in lines if not in_grace(pid, at)]
            spans[task].append((starts[0][2], max(seen, default=starts[0][2]), attempt, host, not seen))
        for task, all_found in spans.items():
            found = sorted(s for s in all_found
                           if not s[4] or not any(o[2] > s[2] and o[0] < s[0] for o in all_found))
            for one, two in zip(found, found[1:]):
                if two[0] < one[1]:
                    out.append("%s: attempt %d at %s went on for %.3f s after attempt %d had begun at %s" %
                               (task, one[2], one[3], one[1] - two[0], two[2], two[3]))
                if two[2] < one[2]:
                    out.append("%s: attempt %d at %s came %.3f s after attempt %d at %s" %
                               (task, two[2], two[3], two[0] - one[0], one[2], one[3]))
        return out
