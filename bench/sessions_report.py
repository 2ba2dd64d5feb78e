"""The sessions part of the report: its tables and its goals."""

from part_report import format_time, load
from sessions import CALL_SHAPES, EVENTS, SUBSCRIBERS

TITLE = "Sessions"
INTRO = ["All cores are available, and koined's store is on a real disk. The Go server and the minimal loop store no data and run no",
         "programs. Each value is the median of all rounds."]

LEAST = {(8, 32): 10, (64, 1): 2.5}  # times the Go server's requests per second
LEAST_LINES = 500000
LEAST_OF_WRITER = 0.5


def call_table(found):
    rows = [["call to hld's socket", "floor/s", "koined/s", "go/s", "ratio", "koined CPU", "go CPU",
             "CPU ratio"]]
    for n, m in CALL_SHAPES:
        row = f"health {n}×{m}"
        ratio = found.ratio((row, "koined"), (row, "go"), "rate")
        if ratio is None:
            continue
        rows.append([f"health, {load(n, m)}", f"{found.median(row, 'floor', 'rate'):,.0f}",
                     f"{found.median(row, 'koined', 'rate'):,.0f}",
                     f"{found.median(row, 'go', 'rate'):,.0f}", f"{ratio:.1f}",
                     format_time(found.median(row, "koined", "server_cpu_ns")),
                     format_time(found.median(row, "go", "server_cpu_ns")),
                     f"{found.ratio((row, 'go'), (row, 'koined'), 'server_cpu_ns'):.1f}"])
    return rows


def fanout_table(found):
    rows = [[f"{EVENTS:,} events sent to {SUBSCRIBERS} subscribers", "lines/s", "CPU time per line",
             "time from sending to receiving an event, p50", "p99"]]
    for title, column in (("a minimal loop that only writes the lines", "writer"),
                          ("koined, which stores and filters the events", "koined")):
        if found.median("events", column, "lines") is None:
            continue
        rows.append([title, f"{found.median('events', column, 'lines'):,.0f}",
                     *(format_time(found.median("events", column, m))
                       for m in ("server_cpu_ns", "p50_ns", "p99_ns"))])
    return rows


def line_table(found):
    rows = [["time from the agent's write to the subscriber's read", "p50", "p99"]]
    for title, column in (("one fdatasync", "disk"), ("koined, which stores the event before it sends it", "koined")):
        values = [found.median("line", column, m) for m in ("p50_ns", "p99_ns")]
        if None not in values:
            rows.append([title, *map(format_time, values)])
    return rows


def tables(found):
    made = [make(found) for make in (call_table, fanout_table, line_table)]
    return [rows for rows in made if len(rows) > 1]


def judge_events(found):
    title = (f"koined sends {EVENTS:,} events to {SUBSCRIBERS} subscribers with at least {LEAST_LINES:,} lines/s, "
             f"or with at least {LEAST_OF_WRITER:.0%} of the minimal loop's rate")
    lines = found.median("events", "koined", "lines")
    ratio = found.ratio(("events", "koined"), ("events", "writer"), "lines")
    if lines is None or ratio is None:
        return title, "not measured", None
    return title, f"{lines:,.0f} lines/s, {ratio:.0%} of the minimal loop's rate", lines >= LEAST_LINES or ratio >= LEAST_OF_WRITER


def judge_calls(found, n, m, least):
    """By requests per second; with what is to be had here at all, and what the CPU time says."""
    row = f"health {n}×{m}"
    title = f"koined serves at least {least} times as many hld health calls per second as the Go server, with {load(n, m)}"
    rate = found.ratio((row, "koined"), (row, "go"), "rate")
    if rate is None:
        return title, "not measured", None
    floor = found.ratio((row, "floor"), (row, "go"), "rate")
    cpu = found.ratio((row, "go"), (row, "koined"), "server_cpu_ns")
    return title, f"ratio of calls per second: {rate:.3g} (minimal epoll server: {floor:.3g}); ratio of CPU times: {cpu:.3g}", rate >= least


def judge(found):
    if not found.rows:
        return []
    return [*(judge_calls(found, n, m, least) for (n, m), least in LEAST.items()),
            judge_events(found)]
