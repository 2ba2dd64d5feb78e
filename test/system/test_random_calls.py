#!/usr/bin/env python3
"""
Random calls of every dialect, while the store fails, connections break and the daemon stops: whatever
happens, koined ends as it was told to, its sanitizer has nothing to say, its store is sound, and no
process is left behind.

Seconds here, KOINE_SOAK=1: minutes. KOINE_SEED=N repeats what was asked for, and in which order on each
connection; what happens at the same time is the machine's. KOINE_SECONDS=N: for so long.
"""
import collections
import contextlib
import json
import os
import random
import resource
import signal
import socket
import sqlite3
import struct
import threading
import time

from harness import (PATIENCE, SANITIZER, SOURCE, Client, Failure, check, main, only_in_a_file,
                     preloaded, same)
from task_world import World
from websocket_client import frame

SOAK = os.environ.get("KOINE_SOAK") == "1"
SECONDS = float(os.environ.get("KOINE_SECONDS", "240" if SOAK else "8"))
SEED = int(os.environ.get("KOINE_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
ACTORS = 10
VECTORS = os.path.join(SOURCE, "test", "vectors", "gob.json")
TOKEN = "a-token-of-the-gateway"

# Nothing that is asked for is ever run: an agent does one of a few harmless things.
AGENT = r"""#!/bin/sh
for last; do :; done
case $(printf %s "$last" | cksum) in
*[05]\ *) trap '' TERM INT; sleep 0.7 ;;
*[16]\ *) echo broken >&2; exit 3 ;;
*[27]\ *) (sleep 5 &); exit 0 ;;
*[38]\ *) sleep 0.2 ;;
esac
echo '{"type":"system","subtype":"init","session_id":"agent-session-1"}'
echo '{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"well"}]}}'
echo '{"type":"result","subtype":"success","is_error":false,"result":"well","num_turns":1}'
"""

SETTINGS = ("listen.gateway=on", "listen.embedding=on", "gateway.process=yes", "limits.stop_time=1",
            "limits.linger=1", "tasks.interrupt_time=1", "session.interrupt_time=1",
            "session.terminate_time=1", "policy.some.verdict=allow", "policy.some.tool=process",
            "agent.recall.word_delay=5", "rule.often.event=memory.*", "rule.often.prompt=noticed")

COMMANDS = ("true", "sleep 0.3", "echo hello", "cat", "exit 4")
STOPS = ("daemon.stop", "shutdown", "shutdown_server")
WORDS = ("tea", "anna", "", "x" * 300, "été ☃ \U0001f600", "default", "recall", "claude", "pending",
         "approve", "deny", "queued", "no", "all", "Bash", "task.*", "local-", "\x00\x01")
# What goes on after its answer, or has others wait for it.
LIVELY = frozenset((
    "task.add", "task.submit", "task.cancel", "task.retry", "task.wait", "task.follow", "chat.stream",
    "chat.send", "send", "cancel", "rpc.cancel", "create_agent", "destroy_agent", "compact",
    "session.launch", "session.continue", "session.interrupt", "launchSession", "continueSession",
    "interruptSession", "approval.request", "approval.create", "approval.decide", "approval.withdraw",
    "createApproval", "sendDecision", "event.subscribe", "Subscribe", "debug.sleep", "memory.add",
    "automation.run", "store.backup"))
# Of the union that koine's own socket has, what the others have.
OWN = {"ash": ("memory.search", "memory.add", "memory.list", "memory.delete"),
       "hld": ("launchSession", "listSessions", "getSessionLeaves", "getConversation", "getSessionState",
               "continueSession", "interruptSession", "archiveSession", "updateSessionTitle",
               "getRecentPaths", "fetchApprovals", "sendDecision", "createApproval", "getApproval",
               "Subscribe", "health"),
       "nexus": ("send", "cancel", "get_tokens", "get_context", "get_messages", "compact",
                 "create_agent", "list_agents", "destroy_agent"),
       "aiwg": ("ping", "daemon.status", "task.submit", "task.cancel", "task.list", "task.get",
                "task.stats", "automation.status", "automation.enable", "automation.disable",
                "chat.send")}
KEYS = frozenset(("id", "taskId", "task_id", "memory_id", "session_id", "run_id", "approval_id",
                  "call_id", "agent_id", "request_id", "sessionId", "cursor", "subscription"))


class Known:
    """What answers have named, so that some of what is asked for is there."""

    def __init__(self, methods, root):
        self.methods, self.root = methods, root
        self.lively = [m for m in methods if m["name"] in LIVELY]
        self.own = {d: [m for m in methods if m["name"] in names] for d, names in OWN.items()}
        self.ids = collections.deque(maxlen=200)

    def choose(self, r, dialect):
        if dialect in self.own and r.random() < 0.9:
            return r.choice(self.own[dialect])
        return r.choice(self.lively if r.random() < 0.6 else self.methods)

    def learn(self, data):
        for line in data.split(b"\n"):
            start = line.find(b"{")
            with contextlib.suppress(ValueError):
                told = json.loads(line[start:]) if start >= 0 else None
                # The ids of calls are nobody's.
                if isinstance(told, dict) and "jsonrpc" in told:
                    told.pop("id", None)
                self.walk(told)

    def walk(self, tree):
        if isinstance(tree, list):
            for child in tree[:20]:
                self.walk(child)
        elif isinstance(tree, dict):
            for key, child in tree.items():
                if key in KEYS and isinstance(child, (str, int)):
                    self.ids.append(child)
                self.walk(child)


class Asker:
    """Makes up requests: of the right shape for the most part."""

    def __init__(self, known, r):
        self.known, self.r = known, r
        self.dialect = "koine"

    def text(self):
        r = self.r
        if r.random() < 0.02:
            return "long " * r.choice((2000, 60000))
        ids = list(self.known.ids)
        return str(r.choice(ids)) if ids and r.random() < 0.3 else r.choice(WORDS)

    def by_name(self, name):
        r, root = self.r, self.known.root
        key = name.lower()
        if key in ("path", "cwd", "working_dir", "workdir", "folder", "dir", "project"):
            return r.choice((root, os.path.join(root, "made.%d" % r.randrange(1000)), "/nowhere/x", ""))
        if key == "ms":
            return r.choice((0, 1, 30, 400))
        if key in ("timeout", "delay", "retry_delay", "for"):
            return r.choice((0, 1, 50, 2000))
        if key in ("retries", "uses", "offset", "after"):
            return r.randrange(3)
        if key == "command":
            return r.choice(COMMANDS)
        if key in KEYS or key.endswith("_id"):
            ids = list(self.known.ids)
            return str(r.choice(ids)) if ids and r.random() < 0.9 else self.text()
        return None

    def value(self, kind, name="", depth=0):
        r = self.r
        named = self.by_name(name)
        if named is not None and r.random() < 0.95:
            return [named] if kind == "array" else named
        if r.random() < 0.04:
            kind = r.choice(("string", "integer", "boolean", "object", "array", "null"))
        if kind == "integer":
            return r.choice((0, 1, 3, 50, -1, 1 << 40))
        if kind == "number":
            return r.choice((0, 0.5, 1, -3, 1e9))
        if kind == "boolean":
            return r.random() < 0.5
        if kind == "array" and depth < 3:
            return [self.value(r.choice(("string", "object")), "", depth + 1)
                    for _ in range(r.randrange(3))]
        if kind == "object" and depth < 3:
            return {r.choice(("a", "content", "role", "name", "command", "input", "id", "text")):
                    self.value("string", "", depth + 1) for _ in range(r.randrange(4))}
        return None if kind == "null" else self.text()

    def params(self, method):
        return {p["name"]: self.value(p["schema"].get("type", "string"), p["name"])
                for p in method["params"]
                if p.get("required", False) or self.r.random() < 0.3}

    def request(self):
        r = self.r
        method = self.known.choose(r, self.dialect)
        made = {"jsonrpc": "2.0", "method": method["name"], "id": r.randrange(1000)}
        if method["params"] or r.random() < 0.1:
            made["params"] = self.params(method)
        if r.random() < 0.05:
            del made["id"]
        return made

    def message(self):
        """One request, or a batch of them."""
        if self.r.random() < 0.1:
            return json.dumps([self.request() for _ in range(self.r.randint(1, 6))]).encode()
        return json.dumps(self.request()).encode()


def stop_message(r):
    """One that stops it, or several, with something before and behind."""
    stops = [{"jsonrpc": "2.0", "method": r.choice(STOPS), "id": n} for n in range(r.randint(1, 3))]
    if r.random() < 0.5:
        stops.insert(0, {"jsonrpc": "2.0", "method": "task.add", "params": {"prompt": "last"}, "id": 9})
    if r.random() < 0.3:
        stops.append({"jsonrpc": "2.0", "method": "ping", "id": 10})
    if r.random() < 0.5:
        return json.dumps(stops).encode() + b"\n"
    return b"".join(json.dumps(s).encode() + b"\n" for s in stops)


# ---- how each is spoken ----


def http(method, path, body=b"", more=""):
    return ("%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n%sContent-Length: %d\r\n\r\n"
            % (method, path, TOKEN, more, len(body))).encode() + body


def gobs():
    with open(VECTORS, encoding="utf-8") as f:
        return [bytes.fromhex(v["hex"]) for v in json.load(f)["vectors"]
                if v["name"].startswith(("req.", "robust.", "session.req."))]


GOBS = gobs()


def as_line(a):
    return a.message() + b"\n"


def as_length(a):
    body = a.message()
    return struct.pack(">I", len(body)) + body


def as_http(a):
    agent = "/agent/%s" % a.r.choice(("default", "other", "1"))
    return http("POST", a.r.choice(("/", "/rpc", agent)), a.message())


def as_gob(a):
    return a.r.choice(GOBS)


def as_gateway(a):
    r = a.r
    chat = {"model": "recall", "stream": r.random() < 0.5,
            "messages": [{"role": "user", "content": a.text()}]}
    job = {"name": a.text(), "schedule": {"kind": "every", "everyMs": 60000},
           "payload": {"kind": "agentTurn", "message": "tick"}, "jobId": a.value("string", "id")}
    start = {"command": r.choice(COMMANDS), "pty": r.random() < 0.3}
    own = {"sessionId": a.value("string", "id"), "data": a.text(), "eof": r.random() < 0.5}
    path, body = r.choice((
        ("/v1/chat/completions", chat), ("/v1/chat/completions", chat), ("/memory/store", {"text": a.text()}),
        ("/cron/add", job), ("/cron/update", job), ("/cron/remove", job), ("/cron/run", job),
        ("/process/start", start), ("/process/start", start), ("/process/write", own),
        ("/process/kill?sessionId=%s" % own["sessionId"], own), ("/memory/search?query=tea", None),
        ("/process/list", None), ("/cron/list", None), ("/storage/stats", None), ("/v1/models", None)))
    if body is None:
        return http("GET", path)
    return http("POST", path.replace(" ", "+"), json.dumps(body).encode(),
                "Content-Type: application/json\r\n")


def as_websocket(a):
    head = http("GET", "/ws/chat?token=" + TOKEN, b"",
                "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n")
    said = [frame(1, json.dumps({"type": "chat", "content": a.text()}).encode())
            for _ in range(a.r.randint(0, 3))]
    return head + b"".join(said) + (frame(8) if a.r.random() < 0.3 else b"")


def as_embedding(a):
    text = json.dumps({"text": a.text(), "input": a.text(), "texts": [a.text()]}).encode()
    return http("POST", a.r.choice(("/embed", "/embed-batch", "/v1/embeddings", "/info")), text)


SPOKEN = {"koine": (as_line, as_line, as_length, as_http, as_gob), "ash": (as_length,), "hld": (as_line,),
          "aiwg": (as_line,), "ocg": (as_gob,), "nexus": (as_http,), "embedding": (as_embedding,),
          "gateway": (as_gateway, as_gateway, as_websocket)}


# ---- who asks ----


class Actor(threading.Thread):
    """Comes, asks, listens or does not, and leaves in the middle of anything, until it is told to end."""

    def __init__(self, daemon, known, seed):
        super().__init__(daemon=True)
        self.addresses = daemon.addresses
        self.asker = Asker(known, random.Random(seed))
        self.over = threading.Event()
        self.n_sent = 0
        self.fault = None

    def run(self):
        try:
            while not self.over.is_set():
                with contextlib.suppress(OSError, Failure):
                    self.visit()
        except Exception as why:  # of ours: the test must not go on without it
            self.fault = why

    def hear(self, c, seconds):
        end = time.monotonic() + seconds
        c.socket.settimeout(0.02)
        with contextlib.suppress(socket.timeout):
            while time.monotonic() < end and not self.over.is_set():
                part = c.socket.recv(65536)
                if not part:
                    return
                self.asker.known.learn(part)

    def say(self, c, data):
        """False: it leaves in the middle."""
        r = self.asker.r
        c.socket.settimeout(1)
        if r.random() < 0.08:
            c.socket.sendall(data[:r.randrange(len(data))])
            return False
        if r.random() < 0.1:
            at = r.randrange(len(data))
            c.socket.sendall(data[:at])
            data = data[at:]
        c.socket.sendall(data)
        self.n_sent += 1
        return True

    def leave(self, c):
        r = self.asker.r
        how = r.randrange(4)
        if how == 0:
            c.reset()
        elif how == 1:
            c.half_close()
            self.hear(c, 0.3)
        elif how == 2:
            self.hear(c, 0.2)

    def visit(self):
        r = self.asker.r
        dialect, address = r.choice(self.addresses)
        speak = r.choice(SPOKEN[dialect])
        self.asker.dialect = dialect
        with Client(address, timeout=2) as c:
            for _ in range(r.choice((1, 1, 2, 5, 20))):
                if self.over.is_set() or not self.say(c, speak(self.asker)):
                    break
                if r.random() < 0.6:
                    self.hear(c, r.choice((0.005, 0.05, 0.3)))
            self.leave(c)


# ---- what goes wrong ----


class Trouble(threading.Thread):
    """Breaks something for a while, and mends it, until it is told to end."""

    def __init__(self, daemon, world, r):
        super().__init__(daemon=True)
        self.pid, self.root, self.world, self.r = daemon.pid, daemon.root, world, r
        self.over = threading.Event()

    def run(self):
        while not self.over.wait(self.r.choice((0.05, 0.2, 0.5))):
            with contextlib.suppress(OSError, sqlite3.Error, ValueError):
                self.r.choice((self.lock, self.fail, self.fail, self.few_descriptors, self.hang_up))()

    def lock(self):
        other = sqlite3.connect(os.path.join(self.root, "koine.db"), timeout=1, isolation_level=None)
        with contextlib.closing(other):
            other.execute("BEGIN IMMEDIATE")
            # The last is longer than anybody waits for a lock.
            self.over.wait(self.r.choice((0.1, 0.5, 1, 6 if SOAK else 1)))

    def set_rate(self, per_mille):
        with open(self.world("failing"), "r+b") as f:
            f.write(struct.pack("<H", per_mille))

    def fail(self):
        self.set_rate(self.r.choice((20, 200, 1000)))
        self.over.wait(self.r.choice((0.05, 0.4, 1.2)))
        self.set_rate(0)

    def few_descriptors(self):
        before = resource.prlimit(self.pid, resource.RLIMIT_NOFILE)
        n = len(os.listdir("/proc/%d/fd" % self.pid))
        resource.prlimit(self.pid, resource.RLIMIT_NOFILE, (min(n + 2, before[1]), before[1]))
        try:
            self.over.wait(0.3)
        finally:
            resource.prlimit(self.pid, resource.RLIMIT_NOFILE, before)

    def hang_up(self):
        os.kill(self.pid, signal.SIGHUP)


# ---- one life of a daemon ----


def discover(d):
    with Client(d.address("unix", "koine")) as c:
        methods = c.call("rpc.discover")["methods"]
    # A drain waits for tasks that nothing here ends.
    return [m for m in methods if m["name"] not in (*STOPS, "daemon.drain", "daemon.restart")]


def send_stop(d, r):
    with contextlib.suppress(OSError, Failure), Client(d.address("unix", "koine"), timeout=2) as c:
        c.send(stop_message(r))
        if r.random() < 0.5:
            c.read_rest()


def end_life(d, r):
    """Ends it in one of many ways, beside all that goes on; how it may end."""
    how = r.randrange(10)
    if how < 2:
        d.signal(signal.SIGKILL)
        return (-signal.SIGKILL,)
    for _ in range(r.choice((1, 1, 2, 3))):
        if how < 6:
            with contextlib.suppress(ProcessLookupError):
                d.signal(r.choice((signal.SIGTERM, signal.SIGINT)))
        else:
            send_stop(d, r)
        time.sleep(r.choice((0, 0.01, 0.3)))
    return (0,)


def report(log):
    """What the sanitizer said, from its beginning."""
    found = SANITIZER.search(log)
    start = max(0, found.start() - 200)
    return log[start:start + 6000].decode(errors="replace")


def sound(path):
    db = sqlite3.connect(path, timeout=PATIENCE)
    with contextlib.closing(db):
        same(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)], "integrity of the store")


def live(w, r, seconds):
    """One daemon from its start to its end; how many requests it was sent."""
    with open(w("failing"), "wb") as f:
        f.write(b"\0\0")
    settings = [*SETTINGS, "session.program=" + w("bin", "claude"), "gateway.folder=" + w("root")]
    d = w.daemon(*settings, env={"OPENCLAW_UI_TOKEN": TOKEN, "FAILING": w("failing"), **preloaded("FAILING")})
    d.start()
    try:
        d.wait_ready()
        known = Known(discover(d), w("root"))
        actors = [Actor(d, known, r.randrange(1 << 32)) for _ in range(ACTORS)]
        trouble = Trouble(d, w, random.Random(r.randrange(1 << 32)))
        threads = [*actors, trouble]
        for t in threads:
            t.start()
        time.sleep(seconds)
        wanted = end_life(d, r)
        try:
            status = d.wait_exit()
        finally:
            for t in threads:
                t.over.set()
            for t in threads:
                t.join()
        log = d.log()
        check(not SANITIZER.search(log), "%s", report(log) if SANITIZER.search(log) else "")
        check(status in wanted, "it ended with %s, not %r: %s", status, wanted,
              log[-3000:].decode(errors="replace"))
        for a in actors:
            if a.fault:
                raise a.fault
        return sum(a.n_sent for a in actors)
    except Failure:
        keep = os.environ.get("KOINE_KEEP_LOG")
        if keep:
            with open(keep, "ab") as f:
                f.write(d.log())
        raise
    finally:
        d.clean_up()


def test_whatever_is_asked_and_breaks_it_ends_well():
    only_in_a_file("it breaks its disk")
    print("     KOINE_SEED=%d" % SEED, flush=True)
    r = random.Random(SEED)
    end = time.monotonic() + SECONDS
    n_lives = n_sent = 0
    with World() as w:
        w.program("claude", AGENT)
        while n_lives == 0 or time.monotonic() < end:
            n_sent += live(w, r, r.choice((0.2, 1, 2)))
            n_lives += 1
            sound(os.path.join(w("root"), "koine.db"))
        # After all that it is as any other.
        with w.daemon() as d:
            d.alive()
    check(n_sent > 0, "nothing was asked")
    print("     %d lives, %d requests" % (n_lives, n_sent), flush=True)


if __name__ == "__main__":
    main(globals())
