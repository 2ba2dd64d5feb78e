"""
The other system tests with one PostgreSQL server in place of their files: those of EVERY_TIME, with KOINE_EVERY_TEST=1 or
KOINE_SOAK=1 all but those of ELSEWHERE, or those that are named.

What can only be tested in a file skips itself, see only_in_a_file(). The server's own log is a judge, too: a
query that it did not understand is a fault, even if nobody noticed.
"""
import concurrent.futures
import os
import re
import subprocess
import sys
import time

from harness import EVERYTHING, Failure, Skip, cpu_used
from postgres_server import Server

HERE = os.path.dirname(os.path.abspath(__file__))
# Suites that run here every time, and why. Every query has the same text in both databases, except for locks, batches and
# counts. The store's own unit tests run every query on a server (test_postgres.py). These suites add what those
# cannot reach: many writers at once, batches that are retried, and connections that break, for each table.
EVERY_TIME = {
    "memory, its versions, vectors, scopes and duplicates (locks rows that it changes)": (
        "memory", "memory_history", "memory_deleted", "memory_scopes", "memory_duplicates", "memory_extract", "embeddings"),
    "tasks (claims skip locked rows; numbers come from the batch)": (
        "tasks", "task_run", "task_cancel", "task_stash", "task_waits", "task_limits"),
    "conversations (a turn locks its conversation)": ("chat", "chat_stress"),
    "sessions, approvals, and who decided": ("sessions", "deciders"),
    "events (numbered by one row), and who follows them": ("events", "event_words"),
    "rules, jobs, their claims and trust": ("automation", "trust"),
    "counts, lists and sweeps, which a server folds in the background": ("growth", "lists", "retention"),
    "what was acknowledged is there after a kill": ("chat_durability", "durability", "task_durability"),
    "everything at once, in any order": ("random_calls",),
}
# All others that have a store run here in `./dev soak`: dialects, the command line, notifications, settings and MCP
# reach the queries above through the same functions of the engine, and differ in what they send.
# What never runs here, and why. Nothing of it is about what is kept.
ELSEWHERE = {
    "it has servers of its own": ("availability", "hosts", "hosts_work", "postgres", "store_move"),
    "no store is asked: bytes, and who sends or reads them": (
        "framings", "json_cases", "limits", "mcp", "mcp_pipe", "mcp_wire", "provider", "slow_clients"),
    "no store is asked: files, documents, and places in the system": (
        "codex_trust", "connect", "connect_http", "docs", "doctor", "packaging", "places", "units"),
    "what shells and a browser make of answers, which are the same": ("completion", "page_browser", "page_hostile"),
}
# What is wrong on purpose: keys that are taken are tried, a test's daemon may be killed, and of a large answer not
# all is wanted.
EXPECTED = re.compile(r"duplicate key value|terminating |canceling statement due to user request")
AT_ONCE = 3 * os.cpu_count()
TALLY = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", re.M)


def run(name, env):
    begun = time.monotonic()
    done = subprocess.run([sys.executable, os.path.join(HERE, "test_%s.py" % name)], env=env,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return name, done.returncode, done.stdout.decode(errors="replace"), time.monotonic() - begun


def listed(table):
    return [name for names in table.values() for name in names]


def everything():
    """Those that take long first, so that none of them is left alone at the end."""
    with open(os.path.join(HERE, "meson.build")) as f:
        text = f.read()
    names = re.findall(r"^  '(\w+)': (?:true|false),$", text, re.M)
    long = re.findall(r"'(\w+)'", re.search(r"^long_tests = \[(.*?)\]", text, re.M | re.S).group(1))
    unknown = {*listed(ELSEWHERE), *listed(EVERY_TIME)} - set(names)
    if unknown:
        raise Failure("there is no %s" % ", ".join(sorted(unknown)))
    if EVERYTHING:
        names = [n for n in names if n not in listed(ELSEWHERE)]
    else:
        names = listed(EVERY_TIME)
    return sorted(names, key=lambda n: n not in long)


def run_all(names, url):
    """How many of their tests passed, failed and were skipped."""
    env = dict(os.environ, KOINE_TEST_SERVER=url)
    total = [0, 0, 0]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for done in concurrent.futures.as_completed([pool.submit(run, n, env) for n in names]):
            name, status, said, seconds = done.result()
            print("%s, %.0f s:" % (name, seconds))
            print("\n".join("  " + line for line in said.splitlines()
                            if status != 0 or not line.startswith(("ok ", " "))), flush=True)
            found = [int(n or 0) for n in (TALLY.findall(said) or [(0, 0, 0)])[-1]]
            found[1] = max(found[1], int(status != 0))
            total = [a + b for a, b in zip(total, found)]
    return total


def faults_in(log):
    with open(log, errors="replace") as f:
        return [l.strip() for l in f
                if re.search(r" (?:ERROR|FATAL|PANIC): ", l) and not EXPECTED.search(l)]


def main():
    names = sys.argv[1:] or everything()
    with Server("-c max_connections=500") as server:
        server.make_template()
        passed, failed, skipped = run_all(names, server.url(""))
        faults = faults_in(server.folder + "/log")
    for line in faults[:50]:
        print("FAIL the server says: " + line)
    print("CPU: %.1f s" % cpu_used())
    print("%d passed, %d failed, %d skipped" % (passed, failed + len(faults), skipped))
    sys.exit(1 if failed or faults else 0)


if __name__ == "__main__":
    try:
        main()
    except Skip as why:
        print("skip on_postgres: %s" % why)
        print("0 passed, 0 failed, 1 skipped")
    except Failure as why:
        print("FAIL on_postgres: %s" % why)
        sys.exit(1)
