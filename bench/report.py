#!/usr/bin/env python3
"""Turns the runs of the bench into a table of ratios, a list of goals, JSON and a chart.

Every ratio is taken within one round, server beside floor, and the median of
those is shown: what slows a whole round slows both.

    bench/report.py [build/bench]      prints the report of the last run again
"""

import collections
import datetime
import json
import os
import platform
import statistics
import sys

import chart
import chat_report
import complete_report
import document
import gob_report
import hook_report
import mcp_report
import memory_report
import part_report
import quality_report
import sessions_report
import tasks_report
from servers import Catalogue

# Those that are measured apart, on all cores, and have tables of their own.
PARTS = {"memory": memory_report, "quality": quality_report, "chat": chat_report, "tasks": tasks_report,
         "sessions": sessions_report, "gob": gob_report, "mcp": mcp_report,
         "hook": hook_report, "complete": complete_report}

Row = collections.namedtuple("Row", "name title channel connections inflight")

ROWS = [
    Row(f"{channel} {n}×{m}", f"{label}, {part_report.load(n, m)}", channel, n, m)
    for channel, label, shapes in [
        ("line", "JSON lines", [(1, 1), (64, 1), (8, 32)]),
        ("length", "length-prefixed JSON", [(1, 1), (64, 1), (8, 32)]),
        ("http", "HTTP over TCP", [(1, 1), (64, 1), (8, 32)]),
        ("http-unix", "HTTP over a Unix socket", [(64, 1), (8, 32)]),
        ("nexus", "get_context", [(1, 1), (64, 1)]),
        ("line-10k", "JSON lines of 10 KB", [(64, 1)]),
        ("length-10k", "length-prefixed JSON of 10 KB", [(64, 1)]),
        ("http-10k", "HTTP requests of 10 KB", [(64, 1)]),
    ]
    for n, m in shapes
]

MEASURES = CPU, P50, P99, RATE, SILENT, SPOKEN, IDLE_CPU = (
    "server_cpu_ns", "p50_ns", "p99_ns", "rate", "kib_silent", "kib_spoken", "idle_cpu_ms")

# Lines of the printed table: (row, measure, title, is it a ratio that peers are judged by)
Line = collections.namedtuple("Line", "row measure title is_speed")


def lines():
    result = []
    for row in ROWS:
        if row.connections == 1:
            result.append(Line(row.name, P50, "p50 latency with " + row.title, True))
            result.append(Line(row.name, P99, "p99 latency with " + row.title, False))
        result.append(Line(row.name, CPU, "CPU time with " + row.title, True))
    result.append(Line("idle", P50, "p50 latency with 10,000 connections, of which one is active", True))
    return result


Goal = collections.namedtuple("Goal", "title row measure most is_ratio")

CPU_GOAL = "koined's CPU time per request is at most {most:g} times the minimal epoll server's, with "
P50_GOAL = "koined's p50 latency is at most {most:g} times the minimal epoll server's, with "

GOALS = [
    Goal(CPU_GOAL + f"JSON lines and {part_report.load(64, 1)}", "line 64×1", CPU, 1.25, True),
    Goal(CPU_GOAL + f"JSON lines and {part_report.load(8, 32)}", "line 8×32", CPU, 1.9, True),
    Goal(P50_GOAL + f"JSON lines and {part_report.load(1, 1)}", "line 1×1", P50, 1.12, True),
    Goal(CPU_GOAL + f"HTTP over TCP and {part_report.load(64, 1)}", "http 64×1", CPU, 1.25, True),
    Goal(CPU_GOAL + f"HTTP over TCP and {part_report.load(8, 32)}", "http 8×32", CPU, 2.0, True),
    Goal(CPU_GOAL + f"HTTP over a Unix socket and {part_report.load(64, 1)}", "http-unix 64×1", CPU, 1.25, True),
    Goal(CPU_GOAL + f"HTTP over a Unix socket and {part_report.load(8, 32)}", "http-unix 8×32", CPU, 2.0, True),
    Goal(CPU_GOAL + f"JSON lines of 10 KB and {part_report.load(64, 1)}", "line-10k 64×1", CPU, 1.3, True),
    Goal("koined uses at most {most:g} KiB of memory per idle connection", "idle", SILENT, 1.0, False),
]
PEERS = ["redis", "nginx", "go", "node", "python"]


class Results:
    """values[row, measure][column][round]"""

    def __init__(self, runs):
        self.values = collections.defaultdict(lambda: collections.defaultdict(dict))
        present = {run["column"] for run in runs}
        self.columns = [c for c in Catalogue.COLUMNS if c in present]
        for run in runs:
            for measure in MEASURES:
                if measure in run:
                    self.values[run["row"], measure][run["column"]][run["round"]] = run[measure]

    def absolute(self, row, measure, column):
        values = self.values[row, measure].get(column)
        return statistics.median(values.values()) if values else None

    def ratios(self, row, measure, column, to="floor"):
        """One for each round that has both."""
        by_column = self.values[row, measure]
        theirs, ours = by_column.get(to, {}), by_column.get(column, {})
        return [ours[n] / theirs[n] for n in sorted(ours) if theirs.get(n)]

    def ratio(self, row, measure, column, to="floor"):
        ratios = self.ratios(row, measure, column, to)
        return statistics.median(ratios) if ratios else None

    def n_rounds(self):
        return max((len(rounds) for by_column in self.values.values()
                    for rounds in by_column.values()), default=0)


def format_time(ns):
    if ns >= 1e6:
        return f"{ns / 1e6:.3g} ms"
    return f"{ns / 1e3:.3g} µs" if ns >= 1e3 else f"{ns:.0f} ns"


def format_ratio(ratio):
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.1f}" if ratio < 100 else f"{ratio:.0f}"


def ratio_cell(results, line, column):
    value = results.absolute(line.row, line.measure, column)
    if value is None:
        return ""
    if column == "floor":
        return format_time(value)
    ratio = results.ratio(line.row, line.measure, column)
    return format_time(value) if ratio is None else f"{format_ratio(ratio)}  {format_time(value)}"


def spread_cell(results, line, column):
    ratios = results.ratios(line.row, line.measure, column)
    if column == "floor":
        values = list(results.values[line.row, line.measure].get(column, {}).values())
        return f"±{(max(values) - min(values)) / 2 / statistics.median(values):.0%}" \
            if values else ""
    return f"{format_ratio(min(ratios))}–{format_ratio(max(ratios))}" if ratios else ""


def plain_cell(form):
    def cell(results, line, column):
        value = results.absolute(line.row, line.measure, column)
        return "" if value is None else form.format(value)

    return cell


def text_table(results, title, some_lines, cell):
    head = [title, *results.columns]
    body = [[line.title, *(cell(results, line, c) for c in results.columns)]
            for line in some_lines]
    body = [row for row in body if any(row[1:])]
    widths = [max(len(row[i]) for row in [head, *body]) for i in range(len(head))]
    out = []
    for row in [head, *body]:
        cells = [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:]))]
        out.append("  ".join(cells).rstrip())
    out.insert(1, "-" * max(len(line) for line in out))
    return "\n".join(out)


MEMORY_LINES = [
    Line("idle", SILENT, "KiB of memory per connection, before the first request", False),
    Line("idle", SPOKEN, "KiB of memory per connection, after one request", False),
]
RATE_LINES = [Line("nexus 64×1", RATE, f"get_context, {part_report.load(64, 1)}", False)]
IDLE_CPU_LINES = [Line("idle", IDLE_CPU, "CPU time per second, ms", False)]


def judge(results):
    """[(title, what was found, True, False or None for not measured)]"""
    verdicts = []
    for goal in GOALS:
        take = results.ratio if goal.is_ratio else results.absolute
        value = take(goal.row, goal.measure, "koined")
        title = goal.title.format(most=goal.most)
        if value is None:
            verdicts.append((title, "not measured", None))
        else:
            verdicts.append((title, f"{value:.2f}", value <= goal.most))
    verdicts.append(judge_context(results))
    verdicts.append(judge_peer(results, "redis"))
    verdicts.append(judge_all_peers(results))
    return verdicts


def judge_context(results):
    title = f"koined serves at least as many `get_context` calls per second as nginx, with keep-alive and {part_report.load(64, 1)}"
    value = results.ratio("nexus 64×1", RATE, "koined", "nginx")
    return part_report.verdict(title, value, lambda v: v >= 1, "{:.2f}")


def is_ahead(results, line, peer):
    ours = results.absolute(line.row, line.measure, "koined")
    theirs = results.absolute(line.row, line.measure, peer)
    return None if ours is None or theirs is None else ours < theirs


def judge_peer(results, peer):
    title = f"with JSON lines, koined has a lower p50 latency than {peer} on 1 connection, and uses less CPU time on 64 and on 8 connections"
    wanted = {("line 1×1", P50), ("line 64×1", CPU), ("line 8×32", CPU)}
    found = [(line.title, is_ahead(results, line, peer))
             for line in lines() if (line.row, line.measure) in wanted]
    if any(ahead is None for _, ahead in found):
        return title, "not measured", None
    behind = [name for name, ahead in found if not ahead]
    return title, "koined's value is higher in " + ", ".join(behind) if behind else "koined's values are lower in all three rows", not behind


def judge_all_peers(results):
    title = "koined has a lower p50 latency and uses less CPU time than redis, nginx, go, node and python in every row"
    found = [(f"{peer} in {line.title}", is_ahead(results, line, peer))
             for line in lines() if line.is_speed for peer in PEERS]
    found = [(name, ahead) for name, ahead in found if ahead is not None]
    if not found:
        return title, "not measured", None
    behind = [name for name, ahead in found if not ahead]
    if behind:
        return title, "koined's value is higher than the value of " + ", ".join(behind), False
    return title, f"koined's value is lower in all {len(found)} comparisons", True


WORDS = {True: "ok", False: "missed", None: "-"}


def machine():
    cpu = "unknown"
    with open("/proc/cpuinfo") as f:
        for line in f:
            if line.startswith("model name"):
                cpu = line.partition(":")[2].strip()
                break
    return {"cpu": cpu, "cores": os.cpu_count(), "kernel": ".".join(platform.release().split(".")[:2]),
            "date": datetime.date.today().isoformat()}


def as_json(results, found, verdicts, runs, missing, failures):
    table = {}
    for line in [*lines(), *MEMORY_LINES, *IDLE_CPU_LINES]:
        table[line.title] = {
            column: {"median": results.absolute(line.row, line.measure, column),
                     "ratio": results.ratio(line.row, line.measure, column),
                     "ratios": results.ratios(line.row, line.measure, column)}
            for column in results.columns
            if results.absolute(line.row, line.measure, column) is not None}
    return {"machine": machine(), "rounds": results.n_rounds(), "table": table,
            **{name: [dict(head=rows[0], rows=rows[1:]) for rows in part.tables(found[name])]
               for name, part in PARTS.items()},
            "goals": [{"goal": t, "found": f, "verdict": WORDS[v]} for t, f, v in verdicts],
            "skipped": missing, "failures": failures, "runs": runs}


def markdown_table(results, title, some_lines, cell):
    out = [f"| {title} | " + " | ".join(results.columns) + " |",
           "|---|" + "---:|" * len(results.columns)]
    for line in some_lines:
        cells = [cell(results, line, c) for c in results.columns]
        if any(cells):
            out.append(f"| {line.title} | " + " | ".join(cells) + " |")
    return "\n".join(out)


def calls_as_markdown(results):
    return [f"Each value is the median of {results.n_rounds()} rounds. Client and server share one core. Each cell contains two numbers: the ratio",
            "of the server's value to the floor's value, and the server's value. The floor is a minimal epoll server, whose cells contain",
            "only its value. *64 connections × 1 request* means that each of 64 connections has one request in flight;",
            "*8 connections × 32 requests* means that each of 8 connections sends batches of 32 requests. *CPU time* is the server's CPU",
            "time per request.", "",
            "![CPU time per request](bench.svg)", "",
            markdown_table(results, "workload", lines(), ratio_cell), "",
            markdown_table(results, "requests/s", RATE_LINES, plain_cell("{:,.0f}")), "",
            markdown_table(results, "10,000 idle connections", MEMORY_LINES,
                           plain_cell("{:.2f}")), ""]


def part_as_markdown(part, found):
    out = [*part.INTRO, ""]
    for rows in part.tables(found):
        out += [part_report.as_markdown(rows), ""]
    return "\n".join(out)


def head_as_markdown(results):
    m = machine()
    return "\n".join([
        "# Benchmarks", "",
        f"The benchmarks ran on {m['date']} on this machine: {m['cpu']}, {m['cores']} cores, Linux {m['kernel']}.",
        "[bench/README.md](../bench/README.md) describes the rows of the tables, and how to run the benchmarks.", "",
        *(calls_as_markdown(results) if results.columns else [])])


def next_heading(name):
    """Where a new section belongs: before the next part that the document has, or the goals."""
    names = list(PARTS)
    return [PARTS[n].TITLE for n in names[names.index(name) + 1:]] + [document.GOALS]


def publish(doc, results, found, verdicts):
    """What was not measured stays as it is."""
    page = document.Document(os.path.join(doc, "bench.md"))
    if results.columns or not page.head:
        page.head = head_as_markdown(results)
    for name, part in PARTS.items():
        if found[name].rows:
            page.put(part.TITLE, part_as_markdown(part, found[name]), next_heading(name))
    if results.columns and all(found[name].rows for name in PARTS):
        page.put(document.GOALS, "")  # also those that nobody has any more
    page.put_goals([f"| {title} | {words} | {WORDS[verdict]} |"
                    for title, words, verdict in verdicts])
    page.write()
    if found["quality"].rows:
        write(os.path.join(doc, "memory.svg"), quality_report.picture(found["quality"]))


def print_calls(results):
    print(f"\nRatio of each value to the floor's value, and the value; medians of {results.n_rounds()} rounds\n")
    print(text_table(results, "workload", lines(), ratio_cell))
    print("\nSpread of the ratios, minimum to maximum\n")
    print(text_table(results, "workload", lines(), spread_cell))
    print()
    print(text_table(results, "requests/s", RATE_LINES, plain_cell("{:,.0f}")))
    print("\n10,000 idle connections\n")
    print(text_table(results, "memory", MEMORY_LINES, plain_cell("{:.2f}")))
    print(text_table(results, "idle", IDLE_CPU_LINES, plain_cell("{:.2f}")))


def print_report(results, found, verdicts):
    if results.columns:
        print_calls(results)
    for name, part in PARTS.items():
        for rows in part.tables(found[name]):
            print("\n" + part_report.as_text(rows))
    print("\nGoals\n")
    for title, words, verdict in verdicts:
        print(f"  {WORDS[verdict]:5}  {title}: {words}")


def write(path, text):
    with open(path, "w") as f:
        f.write(text)


def draw_chart(results, folder, doc):
    svg = chart.draw([("64 connections × 1 in flight", bars(results, "line 64×1")),
                      ("8 connections × 32 pipelined", bars(results, "line 8×32"))])
    write(os.path.join(folder, "chart.svg"), svg)
    if doc:
        write(os.path.join(doc, "bench.svg"), svg)


def report(runs, folder, doc, missing=(), failures=()):
    """Prints and writes everything; True when no goal is missed or unmeasured."""
    results = Results([run for run in runs if "part" not in run])
    found = {name: part_report.Found([run for run in runs if run.get("part") == name])
             for name in PARTS}
    verdicts = [*(judge(results) if results.columns else []),
                *(verdict for name, part in PARTS.items() for verdict in part.judge(found[name]))]
    print_report(results, found, verdicts)
    for line in [*missing, *failures]:
        print("  note:  " + line)
    write(os.path.join(folder, "results.json"),
          json.dumps(as_json(results, found, verdicts, runs, list(missing), list(failures)),
                     indent=1))
    if doc:
        os.makedirs(doc, exist_ok=True)
        publish(doc, results, found, verdicts)
    if results.columns:
        draw_chart(results, folder, doc)
    return all(verdict for _, _, verdict in verdicts)


LABELS = {"floor": "bare epoll floor", "libuv": "bare libuv", "koined": "koined",
          "redis": "Redis PING", "go": "Go net/rpc/jsonrpc", "node": "Node.js",
          "python": "Python asyncio"}


def bars(results, row):
    """[(label, ratio, time, is it ours)], in the order of the columns."""
    return [(LABELS.get(c, c), results.ratio(row, CPU, c),
             format_time(results.absolute(row, CPU, c)), c == "koined")
            for c in results.columns if results.ratio(row, CPU, c) is not None]


def read_runs(path):
    with open(path) as f:
        return [json.loads(line) for line in f]


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(root, "build", "bench")
    report(read_runs(os.path.join(folder, "runs.jsonl")), folder, None)


if __name__ == "__main__":
    main()
