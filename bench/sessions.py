"""The rows of sessions: hld's socket beside the original's kind of server in Go; what one agent
says to many who listen, beside a bare loop that writes the same lines; and how long one line
takes from the agent's write to a subscriber's read, beside what a sync costs here.

The agent is a program of ours (speaker.c) that says as much as it is let.
"""

import os
import sys

from part import Part
from servers import FIXED, HERE, Server, build_go

CALL_SHAPES = [(8, 32), (64, 1)]
CALL_ROUNDS = 3  # at least
SUBSCRIBERS = 500
EVENTS = 2000
WINDOW = 90  # below the hundred that wait for a subscriber before any is dropped

HEALTH = '{"jsonrpc":"2.0","method":"health","params":{},"id":$ID}'
HEALTHY = '{"jsonrpc":"2.0","result":{"status":"ok","version":"0.1.0"},"id":10000}'


class SessionsBench(Part):
    name = "sessions"

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.seconds = 0.5 if self.arguments.quick else 1.0
        self.lines = 300 if self.arguments.quick else 1000

    def steps(self):
        return self.run_calls, self.run_fanout, self.run_lines

    # ---- servers ----

    def leave(self):
        return os.path.join(self.sockets("leave"), "sock")

    def start_sessions(self, name):
        program = os.path.abspath(os.path.join(self.programs, "speaker"))
        return self.start_koined(name, ("koine", "hld"), "--set",
                                 f"session.program={program} {self.leave()}")

    def start_go(self, name):
        """None where there is no Go."""
        program = os.path.join(self.programs, "peer_hld")
        why = build_go(program, os.path.join(HERE, "peers", "hld_go"), self.programs)
        if why:
            print("skipped: " + why, file=sys.stderr)
            return None
        folder = self.sockets(name)
        return self.start(Server("go", [os.path.abspath(program), folder + "/sock"],
                                 {"hld": (f"unix:{folder}/sock", [])}), folder)

    def start_floor(self, name):
        """Answers as long as ours, always the same: what the machine lets any server do."""
        folder = self.sockets(name)
        program = os.path.abspath(os.path.join(self.programs, "floor"))
        address = f"unix:{folder}/sock"
        return self.start(Server("floor", [program, "--listen", address, "--framing", "line",
                                           "--answer", HEALTHY], {"hld": (address, FIXED)}), folder)

    def start_writer(self, name):
        folder = self.sockets(name)
        program = os.path.abspath(os.path.join(self.programs, "writer"))
        return self.start(Server("writer", [program, folder + "/sock", self.leave(),
                                            str(SUBSCRIBERS)],
                                 {"hld": (f"unix:{folder}/sock", [])}), folder)

    # ---- calls ----

    def run_calls(self):
        print("sessions: calls", file=sys.stderr)
        servers = [s for s in (self.start_floor("calls-floor"), self.start_sessions("calls"),
                               self.start_go("calls-go")) if s]
        for round_ in range(max(self.rounds, CALL_ROUNDS)):
            for n, m in CALL_SHAPES:
                for server in servers if round_ % 2 == 0 else servers[::-1]:
                    found = self.measure(
                        "load", "--target", server.channels["hld"][0], "--connections", n,
                        "--inflight", m, "--seconds", self.seconds, "--warmup", "0.2",
                        "--timeout-ms", "60000", "--pid", server.process.pid, "--request", HEALTH,
                        *server.channels["hld"][1])
                    self.record(f"health {n}×{m}", server.column, round_, **found)

    # ---- events ----

    def listen(self, server, subscribers, events, window, *more):
        return self.measure(
            "listen", "--target", server.channels["hld"][0], "--leave", "unix:" + self.leave(),
            "--subscribers", subscribers, "--events", events, "--window", window,
            "--pid", server.process.pid, *more)

    def run_fanout(self):
        """Each time on a server of its own, and the bare loop beside it."""
        for round_ in range(max(self.rounds, CALL_ROUNDS)):
            print(f"sessions: events to {SUBSCRIBERS}", file=sys.stderr)
            server = self.start_sessions(f"events-{round_}")
            found = self.listen(server, SUBSCRIBERS, EVENTS, WINDOW, "--launch")
            self.record("events", "koined", round_, **found)
            self.bench.stop(server)
            server = self.start_writer(f"writer-{round_}")
            found = self.listen(server, SUBSCRIBERS, EVENTS, WINDOW)
            self.record("events", "writer", round_, **found)
            self.bench.stop(server)

    def run_lines(self):
        print("sessions: lines", file=sys.stderr)
        server = self.start_sessions("lines")
        for round_ in range(self.rounds):
            self.record("line", "disk", round_, **self.measure_sync())
            self.record("line", "koined", round_,
                        **self.listen(server, 1, self.lines, 1, "--launch"))
