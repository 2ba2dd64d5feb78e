"""The rows of tasks: the aiwg socket beside the original's kind of server in Node; durable
submits, beside what a sync costs here; events fanned out to many; and how long a submitted
task takes to start, beside a bare posix_spawn.

The agent that runs tasks is a program of ours (started.c): it says when it started, or it
waits and so keeps the only slot, so that whatever is submitted is queued and no more.
"""

import json
import os
import shutil
import socket
import sys
import time

from part import Part
from servers import HERE, Server

CALLS = ["ping", "task.list"]
CALL_SHAPES = [(8, 32), (64, 1)]
CALL_ROUNDS = 3  # at least
LISTED = 5  # tasks that there are
SUBMIT_CLIENTS = [1, 8, 64]
LISTENERS = [1, 100, 1000]
EVENTS = 1000
PUBLISHERS = 64

CALL = '{"jsonrpc":"2.0","method":"%s","id":$ID}'
SUBMIT = ('{"jsonrpc":"2.0","method":"task.submit","params":{"prompt":"$TEXT","project":"%s"},'
          '"id":$ID}')
SUBSCRIBE = ('{"jsonrpc":"2.0","method":"event.subscribe","params":{"types":["task.queued"]},'
             '"id":$ID}')
PUBLISH = ('{"jsonrpc":"2.0","method":"task.submit","params":{"prompt":"event-$ID",'
           '"project":"%s"},"id":$ID}')


def calls(path, method, *all_params):
    """One call after another over lines; notifications between are passed over."""
    with socket.socket(socket.AF_UNIX) as s, s.makefile("rb") as lines:
        s.settimeout(10)
        s.connect(path)
        results = []
        for params in all_params:
            request = {"jsonrpc": "2.0", "method": method, "params": params, "id": 1}
            s.sendall(json.dumps(request).encode() + b"\n")
            answer = {"method": None}
            while "method" in answer:
                answer = json.loads(lines.readline())
            if "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']}")
            results.append(answer["result"])
        return results


def path(server, channel):
    return server.channels[channel][0].partition(":")[2]


class TasksBench(Part):
    name = "tasks"

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.seconds = 0.5 if self.arguments.quick else 1.0
        self.starts = 50 if self.arguments.quick else 200

    def steps(self):
        return self.run_calls, self.run_submits, self.run_fanout, self.run_starts

    # ---- servers ----

    def start_tasks(self, name, *arguments):
        """koined with one slot for its tasks, and our program as claude."""
        folder = os.path.join(self.disk, "bin")
        if not os.path.exists(folder):
            os.mkdir(folder)
            os.symlink(os.path.abspath(os.path.join(self.programs, "started")),
                       os.path.join(folder, "claude"))
        settings = ["tasks.project_parallel=1", "tasks.queue=1000000"]
        pairs = [x for s in settings for x in ("--set", s)]
        return self.start_koined(name, ("koine", "aiwg"), *pairs, *arguments,
                                 env={"PATH": folder + os.pathsep + os.environ["PATH"]})

    def start_full(self, name):
        """The same with its slot taken for good."""
        server = self.start_tasks(name)
        (submitted,) = calls(path(server, "aiwg"), "task.submit", {"prompt": "wait"})
        if submitted["state"] != "running":
            raise RuntimeError(f"the first task is {submitted['state']}")
        # The news of that is not to be measured.
        time.sleep(0.1)
        return server

    def start_node(self, name):
        """None where there is no Node."""
        node = shutil.which("node")
        if not node:
            return None
        folder = self.sockets(name)
        argv = [node, os.path.join(HERE, "peers", "aiwg_node.js"), folder + "/sock"]
        return self.start(Server("node", argv, {"aiwg": (f"unix:{folder}/sock", [])}), folder)

    def project(self, name):
        return os.path.realpath(os.path.join(self.disk, name))

    def load(self, server, channel, request, connections, inflight, *more):
        return self.measure(
            "load", "--target", server.channels[channel][0], "--connections", connections,
            "--inflight", inflight, "--seconds", self.seconds, "--warmup", "0.2",
            "--timeout-ms", "60000", "--pid", server.process.pid, "--request", request, *more)

    # ---- calls ----

    def run_calls(self):
        print("tasks: calls", file=sys.stderr)
        servers = [s for s in (self.start_full("calls"), self.start_node("calls-node")) if s]
        for server in servers:
            listed, = calls(path(server, "aiwg"), "task.list", {})
            calls(path(server, "aiwg"), "task.submit",
                  *({"prompt": f"Fix number {n} of the failing tests and say how"}
                    for n in range(LISTED - len(listed))))
            listed, = calls(path(server, "aiwg"), "task.list", {})
            if len(listed) != LISTED or len(listed[0]) != 13:
                raise RuntimeError(f"{server.column} lists {listed}")
        for round_ in range(max(self.rounds, CALL_ROUNDS)):
            for method in CALLS:
                for n, m in CALL_SHAPES:
                    for server in servers if round_ % 2 == 0 else servers[::-1]:
                        found = self.load(server, "aiwg", CALL % method, n, m)
                        self.record(f"{method} {n}×{m}", server.column, round_, **found)

    # ---- submits ----

    def run_submits(self):
        print("tasks: submits", file=sys.stderr)
        server = self.start_full("submits")
        made_from, acknowledged = 0, 0
        for round_ in range(self.rounds):
            for clients in SUBMIT_CLIENTS:
                self.record(f"submit {clients}", "disk", round_, **self.measure_sync())
                found = self.load(server, "koine", SUBMIT % self.project("submits"), clients, 1,
                                  "--made-from", made_from)
                self.record(f"submit {clients}", "koined", round_, **found)
                made_from += 10000000
                acknowledged += found["requests"]
        (stats,) = calls(path(server, "aiwg"), "task.stats", {})
        if stats["queued"] < acknowledged or stats["running"] != 1:
            raise RuntimeError(f"{acknowledged} submits were acknowledged, there are {stats}")

    # ---- events ----

    def fan_out(self, server, subscribe, publish, publishers, inflight, listeners, project):
        return self.measure(
            "fanout", "--target", server.channels["aiwg" if subscribe == "ping" else "koine"][0],
            "--subscribe", CALL % "ping" if subscribe == "ping" else SUBSCRIBE,
            "--publish", server.channels[publish][0], "--publishers", publishers,
            "--inflight", inflight, "--subscribers", listeners, "--events", EVENTS,
            "--request", PUBLISH % project, "--pid", server.process.pid,
            "--timeout-ms", 10000)

    def run_fanout(self):
        """Each time on a server of its own: what the last one left waiting is nobody's price."""
        for round_ in range(self.rounds):
            for n in LISTENERS:
                print(f"tasks: events to {n}", file=sys.stderr)
                for row, subscribe in (("events", "events"), ("told", "ping")):
                    name = f"{row}-{round_}-{n}"
                    server = self.start_full(name)
                    found = self.fan_out(server, subscribe, "koine", PUBLISHERS, 1, n,
                                         self.project(name))
                    self.record(f"{row} {n}", "koined", round_, **found)
                    self.bench.stop(server)
                server = self.start_node(f"told-node-{round_}-{n}")
                if server:
                    found = self.fan_out(server, "ping", "aiwg", 1, PUBLISHERS, n, "")
                    self.record(f"told {n}", "node", round_, **found)
                    self.bench.stop(server)

    # ---- starts ----

    def run_starts(self):
        print("tasks: starts", file=sys.stderr)
        server = self.start_tasks("starts")
        program = os.path.join(self.disk, "bin", "claude")
        pipe = os.path.join(self.sockets("starts"), "pipe")
        for round_ in range(self.rounds):
            self.record("start", "disk", round_, **self.measure_sync())
            for column, target in (("spawn", "spawn"), ("koined", server.channels["aiwg"][0])):
                self.record("start", column, round_,
                            **self.measure("start", target, program, pipe, self.starts))
