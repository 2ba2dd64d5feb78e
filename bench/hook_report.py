"""The hooks' part of the report: its table and its goal."""

from part_report import format_time, verdict

TITLE = "Hooks"
INTRO = ["The table shows the time from the start of `koine hook` to its end. A policy decides each request, and koined stores the",
         "decision before it responds. The other columns show a Python hook that only reads its input, and the program `true`, which",
         "takes the minimum time for starting a program. All values are medians of the rounds."]

MOST_MS = 5


def tables(found):
    rows = [["time", "koine hook", "Python hook", "true", "ratio to Python"]]
    for title, measure in (("policy decision, p50", "p50_ns"), ("policy decision, p99", "p99_ns")):
        ratio = found.ratio(("answer", "koine"), ("answer", "python"), measure)
        if ratio is not None:
            rows.append([title, *(format_time(found.median("answer", column, measure))
                                  for column in ("koine", "python", "nothing")), f"{ratio:.3f}"])
    return [rows] if len(rows) > 1 else []


def judge(found):
    if not found.rows:
        return []
    ns = found.median("answer", "koine", "p50_ns")
    return [verdict("koine hook: time from its start to its end, if a policy decides: at most "
                    f"{MOST_MS} ms", ns and ns / 1e6, lambda value: value <= MOST_MS, "{:.2f} ms"),
            verdict("koine hook: time from its start to its end, ratio to the Python hook: below 1",
                    found.ratio(("answer", "koine"), ("answer", "python"), "p50_ns"),
                    lambda value: value < 1)]
