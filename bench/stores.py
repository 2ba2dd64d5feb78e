#!/usr/bin/env python3
"""Measures durable memory adds of one koined, with SQLite and with PostgreSQL on the same machine.

    bench/stores.py [ROUNDS [SECONDS [CLIENTS]]]

Each round measures both stores, one behind the other, so that what else runs on the machine
meets both; the ratio is that of the medians. The server is reached over its Unix socket, and its
data lies beside the file, in the build folder; it has the buffers that it comes with. `durable_adds` is for other parts of the bench.
"""
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(os.environ.setdefault("KOINE_BUILD", os.path.join(HERE, "..", "build")))
for name in ("koined", "koine"):
    os.environ.setdefault(name.upper(), os.path.join(BUILD, name))
sys.path.insert(0, os.path.join(HERE, "..", "test", "system"))
from harness import Daemon  # noqa: E402
from postgres_server import Server  # noqa: E402

# As it comes: tests' servers need not survive a power cut, these are asked what that costs.
SERVER = "-c fsync=on -c synchronous_commit=on -c shared_buffers=128MB"
ADD = ('{"jsonrpc":"2.0","method":"memory.add","params":{"content":"$TEXT","source":"agent",'
       '"user_id":"user-0","chat_id":"chat-1"},"id":$ID}')


def measure(daemon, seconds, clients, made_from):
    done = subprocess.run(
        [os.path.join(BUILD, "bench", "load"), "--target", daemon.address("unix"), "--framing", "length",
         "--connections", str(clients), "--seconds", str(seconds), "--warmup", "0.3", "--timeout-ms", "60000",
         "--pid", str(daemon.pid), "--request", ADD, "--made-from", str(made_from)],
        capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)


def durable_adds(rounds=5, seconds=1.0, clients=64, say=lambda line: None):
    """Adds per second, by store: {"sqlite": [of each round], "postgresql": [...]}."""
    found = {"sqlite": [], "postgresql": []}
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="s-", dir=BUILD))
        os.chmod(folder, 0o755)
        tempfile.tempdir = folder
        stack.callback(setattr, tempfile, "tempdir", None)
        server = stack.enter_context(Server(SERVER))
        server.database("bench")
        url = "postgresql:///bench?host=%s&port=%d&user=koine" % (server.folder, server.port)
        daemons = {"sqlite": stack.enter_context(Daemon()),
                   "postgresql": stack.enter_context(Daemon("--store", url))}
        for round_ in range(rounds):
            for number, (store, daemon) in enumerate(daemons.items()):
                # Never a text twice: that would be taken for a retry.
                result = measure(daemon, seconds, clients, (2 * round_ + number) * 10000000)
                found[store].append(result["requests"] / result["seconds"])
                say("%-10s %8.0f adds/s" % (store, found[store][-1]))
    return found


def main():
    words = sys.argv[1:] + [None] * 3
    found = durable_adds(int(words[0] or 5), float(words[1] or 1), int(words[2] or 64), print)
    medians = {store: statistics.median(rates) for store, rates in found.items()}
    print("medians    sqlite %.0f, postgresql %.0f: ratio %.2f"
          % (medians["sqlite"], medians["postgresql"], medians["postgresql"] / medians["sqlite"]))


if __name__ == "__main__":
    main()
