"""Completion's part of the report: its table and its goal."""

from part_report import format_time, verdict

TITLE = "Completion"
INTRO = ["The table shows the time from pressing Tab in bash until the candidates and their descriptions appear. koined has 1,000 tasks",
         "and 1,000 memories, and offers at most 100 candidates. For comparison, the table also shows `true`, a program that does nothing.",
         "Each value is the median of all rounds."]

MOST_MS = 30
ROWS = {"commands": "commands, without a call to koined", "options": "options, without a call to koined",
        "tasks": "task ids", "memories": "memory ids", "methods": "methods"}


def tables(found):
    rows = [["candidates", "p50", "p99", "true, p50"]]
    for row, title in ROWS.items():
        if found.median(row, "bash", "p50_ns") is not None:
            rows.append([title, *(format_time(found.median(row, "bash", m)) for m in ("p50_ns", "p99_ns")),
                         format_time(found.median(row, "nothing", "p50_ns"))])
    return [rows] if len(rows) > 1 else []


def judge(found):
    if not found.rows:
        return []
    times = [found.median(row, "bash", "p50_ns") for row in ROWS]
    slowest = None if None in times else max(times) / 1e6
    return [verdict(f"bash shows the candidates at most {MOST_MS} ms after Tab is pressed", slowest,
                    lambda value: value <= MOST_MS, "{:.1f} ms")]
