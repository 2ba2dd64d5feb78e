"""The hooks' part of the report: its table and its goal."""

from part_report import format_time, verdict

TITLE = "Hooks"
INTRO = ["What an agent waits for when it asks `koine hook` before a tool: from the start of the program",
         "to its end, with the answer of a policy that koined has kept on disk. Beside it a hook in Python",
         "that reads its input and does nothing, and `true`, which is what starting anything takes.",
         "Medians of the rounds."]

MOST_MS = 5


def tables(found):
    rows = [["a hook's whole cost", "koine hook", "python", "true", "over python"]]
    for title, measure in (("to its answer by a policy, p50", "p50_ns"), ("p99", "p99_ns")):
        ratio = found.ratio(("answer", "koine"), ("answer", "python"), measure)
        if ratio is not None:
            rows.append([title, *(format_time(found.median("answer", column, measure))
                                  for column in ("koine", "python", "nothing")), f"{ratio:.3f}"])
    return [rows] if len(rows) > 1 else []


def judge(found):
    if not found.rows:
        return []
    ns = found.median("answer", "koine", "p50_ns")
    return [verdict("a hook's whole cost, from its start to its answer by a policy: at most "
                    f"{MOST_MS} ms", ns and ns / 1e6, lambda value: value <= MOST_MS, "{:.2f} ms"),
            verdict("the same over a hook in Python that does nothing: below 1",
                    found.ratio(("answer", "koine"), ("answer", "python"), "p50_ns"),
                    lambda value: value < 1)]
