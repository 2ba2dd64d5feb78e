"""The hooks' part of the report: its table and its goal."""

from part_report import format_time, verdict

TITLE = "Hooks"
INTRO = ["The table shows the time from the start of `koine hook` to its end. A policy decides each request, and koined stores the",
         "decision before it responds. For comparison, the table also shows a Python hook that only reads its input, and",
         "`true`, a program that does nothing. Each value is the median of all rounds."]

MOST_MS = 5


def tables(found):
    rows = [["time", "koine hook", "Python hook", "true", "ratio to the Python hook"]]
    for title, measure in (("hook with a policy decision, p50", "p50_ns"), ("hook with a policy decision, p99", "p99_ns")):
        ratio = found.ratio(("answer", "koine"), ("answer", "python"), measure)
        if ratio is not None:
            rows.append([title, *(format_time(found.median("answer", column, measure))
                                  for column in ("koine", "python", "nothing")), f"{ratio:.3f}"])
    return [rows] if len(rows) > 1 else []


def judge(found):
    if not found.rows:
        return []
    ns = found.median("answer", "koine", "p50_ns")
    return [verdict(f"koine hook with a policy decision takes at most {MOST_MS} ms from start to exit", ns and ns / 1e6, lambda value: value <= MOST_MS, "{:.2f} ms"),
            verdict("koine hook takes less time from start to exit than the Python hook",
                    found.ratio(("answer", "koine"), ("answer", "python"), "p50_ns"),
                    lambda value: value < 1)]
