"""The rows of gob: RPCService.Stats and a small Chat over Go's net/rpc, koined's ocg socket
beside a server of Go's own (peers/gob) that has nothing behind it; asked by the load generator
and by Go's own client. And what one message costs the codecs, ours beside encoding/gob.

The bytes of the calls come from Go, so without Go there are no rows.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys

from part import Part
from servers import HERE, Server

METHODS = ["Stats", "Chat"]
SHAPES = [(8, 32), (64, 1), (1, 1)]
GO_SHAPES = [(8, 32), (1, 1)]  # of Go's own client
CODEC = [f"{way} {method}" for way in ("decode", "encode") for method in METHODS]
STATS_KEYS = {"sessions", "messages", "tools_calls", "memories", "files"}
ROUNDS = 3  # at least


@contextlib.contextmanager
def on_one_core(server, cpu):
    """All threads that it has, and those that they start."""
    pid = server.process.pid
    before = os.sched_getaffinity(pid)

    def move(cores):
        for thread in os.listdir(f"/proc/{pid}/task"):
            os.sched_setaffinity(int(thread), cores)

    move({cpu})
    try:
        yield
    finally:
        move(before)


class GobBench(Part):
    name = "gob"

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.seconds = 0.5 if self.arguments.quick else 1.0
        self.rounds = max(self.rounds, ROUNDS)
        self.peer = os.path.abspath(os.path.join(self.programs, "peer_gob"))
        self.forms = {}

    def steps(self):
        return self.build, self.run_codec, self.run_calls

    def build(self):
        """Only the standard library, so that nothing is fetched."""
        go = shutil.which("go")
        if not go:
            raise RuntimeError("go is not installed")
        env = {**os.environ, "GO111MODULE": "off", "GOFLAGS": "", "GOPROXY": "off",
               "GOCACHE": os.path.join(os.path.abspath(self.programs), "gocache")}
        done = subprocess.run([go, "build", "-o", self.peer, "main.go"], env=env, text=True,
                              cwd=os.path.join(HERE, "peers", "gob"), capture_output=True)
        if done.returncode != 0:
            raise RuntimeError("peer_gob does not build: " + done.stderr.strip()[-300:])
        for method in METHODS:
            self.forms[method] = self.program("peer_gob", "form", "RPCService." + method).strip()

    def run_codec(self):
        if not self.forms:
            return
        print("gob: codecs", file=sys.stderr)
        for round_ in range(self.rounds):
            ours = self.measure("gob_codec", self.seconds / 2, *self.forms.values())
            theirs = self.measure("peer_gob", "codec", self.seconds / 2)
            for row in CODEC:
                self.record(row, "koine", round_, ns=ours[row])
                self.record(row, "go", round_, ns=theirs[row])

    # ---- calls ----

    def start_go(self):
        folder = self.sockets("go")
        argv = [self.peer, "serve", folder + "/sock"]
        return self.start(Server("go", argv, {"ocg": (f"unix:{folder}/sock", [])}), folder)

    def check_stats(self, server):
        """The same keys on both sides, or they would not do the same."""
        address = server.channels["ocg"][0]
        koine = os.path.join(os.path.dirname(self.koined), "koine")
        done = subprocess.run([koine, "--framing", "gob", "-u", address, "-j", "call",
                               "RPCService.Stats"], capture_output=True, text=True, timeout=20)
        if done.returncode != 0 or set(json.loads(done.stdout)["Stats"]) != STATS_KEYS:
            raise RuntimeError(f"{server.column}, Stats: {done.stdout}{done.stderr}")

    def load(self, server, method, connections, inflight, *more):
        return self.measure(
            "load", "--framing", "gob", "--target", server.channels["ocg"][0],
            "--connections", connections, "--inflight", inflight, "--seconds", self.seconds,
            "--warmup", "0.2", "--timeout-ms", "60000", "--pid", server.process.pid,
            "--request", self.forms[method], *more)

    def load_alone(self, server, method):
        """One call at a time, generator and server on one core: with two, how long an idle core
        takes to wake up is all that shows."""
        cpu = self.bench.cpu
        with on_one_core(server, cpu):
            return self.load(server, method, 1, 1, "--cpu", cpu)

    def ask_from_go(self, server, method, connections, inflight):
        path = server.channels["ocg"][0].partition(":")[2]
        return self.measure("peer_gob", "call", path, "RPCService." + method, connections,
                            inflight, self.seconds)

    def run_calls(self):
        if not self.forms:
            return
        servers = [self.start_go(),
                   self.start_koined("calls", ("ocg",), "--agent", "recall")]
        for server in servers:
            self.check_stats(server)
        for round_ in range(self.rounds):
            print(f"gob: calls, round {round_ + 1}", file=sys.stderr)
            for method in METHODS:
                for server in servers if round_ % 2 == 0 else servers[::-1]:
                    for n, m in SHAPES:
                        found = (self.load_alone(server, method) if (n, m) == (1, 1)
                                 else self.load(server, method, n, m))
                        self.record(f"{method} {n}×{m}", server.column, round_, **found)
                    for n, m in GO_SHAPES:
                        self.record(f"{method} {n}×{m} by go", server.column, round_,
                                    **self.ask_from_go(server, method, n, m))
