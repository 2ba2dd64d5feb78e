#!/usr/bin/env python3
"""Measures how fast each view of the page shows its data, with a full and an empty store.

    bench/page.py [--rounds N] [--tasks N] [--events N] [--keep]

Two daemons run at the same time, one of them with 10,000 objects of each kind and a session of 200,000
events. One Chromium opens the views of both daemons in turn. The report also shows how long the event loop
of each daemon was blocked. Set KOINED to measure a daemon other than build/koined, and KOINE_BUILD to use
another build folder.
"""
import argparse
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

import growth_store
from growth_store import NOW, session_id

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("KOINE_BUILD", os.path.join(ROOT, "build"))
KOINED = os.environ.get("KOINED", os.path.join(BUILD, "koined"))
KOINE = os.path.join(BUILD, "koine")
PACKAGES = os.path.join(BUILD, "npm")

# One session that said very much, and one that said little.
LONG = [("session_event", "session, sequence, type, created_ms, completed, approval, role, content",
         f"""1, {{n}} + i, 0, {NOW} + i, 1, 0, 'assistant', CAST('words ' || i AS BLOB) FROM n""")]
SHORT = [("session", """id, run, status, archived, created_ms, active_ms, ended_ms, cost_usd, input_tokens,
          output_tokens, duration_ms, turns, runner, working_dir, summary""",
          f"""'{session_id(1)}', 'a', 4, 0, {NOW}, {NOW}, {NOW}, 0, 1, 1, 1, 1, 'claude', '/src', 'did 1'"""),
         ("session_text", "seq, query", "seq, CAST('ask' AS BLOB) FROM session"),
         ("session_event", "session, sequence, type, created_ms, completed, approval, role, content",
          f"1, 1, 0, {NOW}, 1, 0, 'assistant', CAST('words' AS BLOB)")]


def go_first():
    """What else the machine does must not look as if the loop was held."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        pass


class Daemon:
    def __init__(self, folder, name):
        self.path = os.path.join(folder, name)
        os.mkdir(self.path)
        self.socket = os.path.join(self.path, "koine.sock")
        self.process = None

    def start(self):
        self.process = subprocess.Popen(
            [KOINED, "--root", self.path, "--listen", "koine=unix:" + self.socket, "--log-level", "err",
             *[word for kind in ("tasks", "session", "approval", "events") for word in ("--set", kind + ".keep_days=0")]],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, preexec_fn=go_first)
        for _ in range(600):
            try:
                with socket.socket(socket.AF_UNIX) as s:
                    s.connect(self.socket)
                return
            except OSError:
                time.sleep(0.05)
        raise SystemExit("koined is not listening on %s" % self.socket)

    def stop(self):
        if self.process:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait()
        self.process = None

    def koine(self, *args):
        return subprocess.run([KOINE, "--socket", self.socket, *args], check=True, capture_output=True,
                              text=True).stdout.strip()

    def store(self):
        for folder, _, names in os.walk(self.path):
            for name in names:
                if name.endswith(".db"):
                    return os.path.join(folder, name)
        raise SystemExit("no store in %s" % self.path)

    def held(self):
        """Counts by the upper bound in milliseconds, beyond the bound below."""
        found, before = {}, 0
        for bound, n in re.findall(r'koine_loop_held_seconds_bucket\{le="([^"]+)"\} (\d+)', self.koine("metrics")):
            if int(n) > before:
                found[bound] = int(n) - before
            before = int(n)
        return found


def show(times, daemons):
    print("%-12s %10s %10s %8s" % ("view", "empty, ms", "full, ms", "ratio"))
    for room, kinds in times.items():
        empty, full = statistics.median(kinds["empty"]), statistics.median(kinds["full"])
        print("%-12s %10.0f %10.0f %8.2f" % (room, empty, full, full / empty))
    for d in daemons:
        print("event loop blocked with the %s store, counts by upper bound in seconds: %s" %
              (os.path.basename(d.path), d.held() or "never for 4 ms or more"))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("--tasks", type=int, default=10_000, help="number of tasks, and of objects of each other kind")
    p.add_argument("--events", type=int, default=200_000, help="number of events in the long session")
    p.add_argument("--keep", action="store_true", help="keep the folder with the stores")
    args = p.parse_args()
    folder = tempfile.mkdtemp(prefix="koine-bench-page-")
    daemons = [Daemon(folder, "empty"), Daemon(folder, "full")]
    try:
        for d, rows in zip(daemons, (None, growth_store.ROWS)):
            d.start()
            d.koine("memory", "add", "so that there is an event")
            d.stop()
            if rows:
                growth_store.put(d.store(), args.tasks, rows)
                growth_store.put(d.store(), args.events, LONG)
            else:
                growth_store.put(d.store(), 1, SHORT)
            d.start()
        done = subprocess.run(
            ["node", os.path.join(ROOT, "bench/page.mjs"), PACKAGES, str(args.rounds),
             *[d.koine("page", "--no-open") for d in daemons], session_id(1)],
            check=True, stdout=subprocess.PIPE, text=True)
        show(json.loads(done.stdout), daemons)
    finally:
        for d in daemons:
            d.stop()
        if not args.keep:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
