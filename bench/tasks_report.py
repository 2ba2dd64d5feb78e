"""The tasks part of the report: its tables and its goals."""

from part_report import format_time, load, verdict
from tasks import CALL_SHAPES, CALLS, EVENTS, LISTED, LISTENERS, SUBMIT_CLIENTS

TITLE = "Tasks"
INTRO = ["All cores are available, and koined's store is on a real disk. The Node server stores no data and runs no programs. Each value is",
         "the median of all rounds."]

SYNC_COSTS_NS = 500000  # below that a disk does not keep what it was told to, or hardly waits


def call_table(found):
    rows = [["call to aiwg's socket", "koined/s", "node/s", "ratio", "koined CPU", "node CPU"]]
    for method in CALLS:
        for n, m in CALL_SHAPES:
            row = f"{method} {n}×{m}"
            ratio = found.ratio((row, "koined"), (row, "node"), "rate")
            if ratio is None:
                continue
            title = f"{method} that returns {LISTED} tasks" if method == "task.list" else method
            rows.append([f"{title}, {load(n, m)}", f"{found.median(row, 'koined', 'rate'):,.0f}",
                         f"{found.median(row, 'node', 'rate'):,.0f}", f"{ratio:.1f}",
                         format_time(found.median(row, "koined", "server_cpu_ns")),
                         format_time(found.median(row, "node", "server_cpu_ns"))])
    return rows


def submit_table(found):
    rows = [["durable task submissions", "submissions/s", "p50", "p99", "CPU time per submission", "fdatasync, p50"]]
    for n in SUBMIT_CLIENTS:
        row = f"submit {n}"
        if found.median(row, "koined", "rate") is None:
            continue
        rows.append([f"{n} client{'s' if n > 1 else ''}",
                     f"{found.median(row, 'koined', 'rate'):,.0f}",
                     *(format_time(found.median(row, "koined", m))
                       for m in ("p50_ns", "p99_ns", "server_cpu_ns")),
                     format_time(found.median(row, "disk", "p50_ns"))])
    return rows


def fanout_table(found):
    rows = [[f"{EVENTS:,} events about submitted tasks", "events/s", "notifications/s",
             "CPU time per notification", "time from submitting a task to receiving its event, p50", "p99"]]
    for row, column, title in (("events", "koined", "koined with event.subscribe"),
                               ("told", "koined", "koined with aiwg's socket"),
                               ("told", "node", "Node server without a store")):
        for n in LISTENERS:
            name = f"{row} {n}"
            if found.median(name, column, "rate") is None:
                continue
            rows.append([f"{title}: {n:,} subscriber{'' if n == 1 else 's'}",
                         f"{found.median(name, column, 'rate'):,.0f}",
                         f"{found.median(name, column, 'notifications'):,.0f}",
                         *(format_time(found.median(name, column, m))
                           for m in ("server_cpu_ns", "p50_ns", "p99_ns"))])
    return rows


def start_table(found):
    rows = [["time to start a program", "p50", "p99"]]
    for title, column, measures in (
            ("one fdatasync", "disk", ("p50_ns", "p99_ns")),
            ("start with posix_spawn, without koined", "spawn", ("p50_ns", "p99_ns")),
            ("start through koined with task.submit, which stores the task first", "koined", ("p50_ns", "p99_ns"))):
        values = [found.median("start", column, m) for m in measures]
        if None not in values:
            rows.append([title, *map(format_time, values)])
    return rows


def tables(found):
    made = [make(found) for make in (call_table, submit_table, fanout_table, start_table)]
    return [rows for rows in made if len(rows) > 1]


def judge_calls(found):
    verdicts = []
    for method, n, m, least in (("ping", 8, 32, 3), ("task.list", 8, 32, 5), ("ping", 64, 1, 2),
                                ("task.list", 64, 1, 2)):
        row = f"{method} {n}×{m}"
        verdicts.append(verdict(
            f"koined serves at least {least} times as many aiwg {method} calls per second as the Node server, with {load(n, m)}",
            found.ratio((row, "koined"), (row, "node"), "rate"), lambda v, k=least: v >= k))
    return verdicts


def judge_submits(found):
    title = "on a slow disk, koined completes at least 20 times as many durable task submissions per second for 64 clients as for 1 client"
    ratio = found.ratio(("submit 64", "koined"), ("submit 1", "koined"), "rate")
    sync = found.median("submit 1", "disk", "p50_ns")
    if ratio is None or sync is None:
        return title, "not measured", None
    kind = next(iter(found.rows["submit 1"]["disk"].values()))["file_system"]
    disk = f"fdatasync takes {format_time(sync)} on {kind}"
    if sync < SYNC_COSTS_NS:
        return title, f"ratio {ratio:.1f}; the disk is too fast for this goal: {disk}", True
    return title, f"ratio {ratio:.1f}; {disk}", ratio >= 20


def judge_events(found):
    """Whoever misses one ends the measure, so what was measured was heard."""
    heard = [f"{row} {LISTENERS[-1]}" in found.rows and "koined" in
             found.rows[f"{row} {LISTENERS[-1]}"] for row in ("events", "told")]
    title = f"each of {LISTENERS[-1]:,} subscribers receives all {EVENTS:,} events"
    if not any(heard):
        return title, "not measured", None
    return title, "all events received" if all(heard) else "events lost", all(heard)


def judge(found):
    if not found.rows:
        return []
    return [*judge_calls(found), judge_submits(found), judge_events(found)]
