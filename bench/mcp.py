"""The rows of MCP: memory_search through `koine mcp` beside search_nodes of npm's
@modelcontextprotocol/server-memory, over standard input and output, with the same entries; from
a start to the first answer; and what each process has resident.

One client of ours asks both, one call at a time, and reads every answer to its end.
"""

import json
import os
import random
import socket
import subprocess
import sys
import time

from part import Part

ENTRIES = 10000
STARTS = 5  # of each, in one round
PACKAGE = "@modelcontextprotocol/server-memory"
MODULE = f"node_modules/{PACKAGE}/dist/index.js"
CALLS = {"koine": 400, "server-memory": 40}
TOOLS = {"koine": "memory_search", "server-memory": "search_nodes"}

INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {},
              "clientInfo": {"name": "bench", "version": "1"}}

FIRST = ("amber", "brass", "cedar", "delta", "ember", "fjord", "granite", "harbor", "indigo",
         "juniper", "kelp", "linen", "marble", "nickel", "opal", "pewter", "quartz", "russet",
         "slate", "tundra", "umber", "velvet", "willow", "yarrow", "zinc")
SECOND = ("anchor", "beacon", "compass", "dynamo", "engine", "furnace", "gateway", "hammer",
          "inlet", "journal", "kettle", "lantern", "mirror", "needle", "orchard", "parcel",
          "quarry", "rudder", "signal", "turbine", "uplink", "valve", "wharf", "yard")
THIRD = ("was moved to", "is tested on", "depends on", "replaced", "is written in", "belongs to")
FOURTH = ("Oslo", "Debian", "Postgres", "Rust", "the harbour team", "staging", "Lisbon", "Kotlin",
          "the night shift", "Redis")


def entries():
    """Sentences, the same in every run: each pair of words is in about sixteen of them."""
    choose = random.Random(7)
    return [f"{choose.choice(FIRST)} {choose.choice(SECOND)} {choose.choice(THIRD)} "
            f"{choose.choice(FOURTH)} in build {i}" for i in range(ENTRIES)]


def questions(n):
    choose = random.Random(11)
    return [f"{choose.choice(FIRST)} {choose.choice(SECOND)}" for _ in range(n)]


class Client:
    """What has started an MCP server."""

    def __init__(self, argv, env, prepare):
        self.began = time.perf_counter_ns()
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, env={**os.environ, **env},
                                        preexec_fn=prepare)
        self.last = 0

    def send(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def call(self, method, params):
        self.last += 1
        self.send({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})
        mark = b'"id":%d' % self.last
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError("the server has ended")
            if mark in line:
                return line

    def initialize(self):
        """How long the first answer took since it was started."""
        self.call("initialize", INITIALIZE)
        took = time.perf_counter_ns() - self.began
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return took

    def resident_kib(self):
        with open(f"/proc/{self.process.pid}/status") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def percentiles(times):
    times = sorted(times)
    return {"p50_ns": times[len(times) // 2], "p99_ns": times[len(times) * 99 // 100]}


class McpBench(Part):
    name = "mcp"

    def steps(self):
        return (self.run_all,)

    def run_all(self):
        self.servers = {"koine": self.prepare_koine(), "server-memory": self.prepare_package()}
        for round_ in range(self.rounds):
            for column, server in self.servers.items():
                if server:
                    print(f"mcp: {column}", file=sys.stderr)
                    self.measure_starts(column, server, round_)
                    self.measure_calls(column, server, round_)

    # ---- servers: (argv, environment) ----

    def prepare_koine(self):
        server = self.start_koined("store", ("koine",))
        path = server.channels["koine"][0][len("unix:"):]
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(path)
            lines = s.makefile("rwb")
            for first in range(0, ENTRIES, 100):
                for i, text in enumerate(self.entries()[first:first + 100], first):
                    lines.write(json.dumps({"jsonrpc": "2.0", "id": i, "method": "memory.add",
                                            "params": {"content": text}}).encode() + b"\n")
                lines.flush()
                for _ in range(100):
                    if b'"error"' in lines.readline():
                        raise RuntimeError("memory.add was refused")
        koine = os.path.join(os.path.dirname(self.koined), "koine")
        return [koine, "mcp"], {"KOINE_SOCKET": path}

    def entries(self):
        if not hasattr(self, "texts"):
            self.texts = entries()
        return self.texts

    def prepare_package(self):
        """None where it is not installed."""
        build = os.path.dirname(os.path.abspath(self.programs))
        module = os.path.join(build, "bench-npm", MODULE)
        if not os.path.exists(module):
            print(f"skipped: {PACKAGE}, which is not installed", file=sys.stderr)
            return None
        kept = os.path.join(self.disk, "graph.jsonl")
        with open(kept, "w") as f:
            for i, text in enumerate(self.entries()):
                f.write(json.dumps({"type": "entity", "name": f"fact {i}", "entityType": "fact",
                                    "observations": [text]}) + "\n")
        return ["node", module], {"MEMORY_FILE_PATH": kept}

    # ---- measures ----

    def measure_starts(self, column, server, round_):
        took = []
        for _ in range(STARTS):
            client = Client(*server, self.prepare)
            took.append(client.initialize())
            client.close()
        self.record("start", column, round_, **percentiles(took))

    def measure_calls(self, column, server, round_):
        client = Client(*server, self.prepare)
        client.initialize()
        took, found = [], 0
        for query in questions(CALLS[column]):
            params = {"name": TOOLS[column], "arguments": {"query": query}}
            begun = time.perf_counter_ns()
            answer = client.call("tools/call", params)
            took.append(time.perf_counter_ns() - begun)
            found += query.encode() in answer
        if found < len(took) * 0.9:
            raise RuntimeError(f"{column} has found {found} of {len(took)}")
        self.record("call", column, round_, **percentiles(took))
        self.record("resident", column, round_, kib=client.resident_kib())
        client.close()
